# SPDX-License-Identifier: MIT
"""postern probe against real Caddy processes, right and wrong: the sentence it says and the exit code."""
import pytest

from gateway import App, Caddy
from postern import run_postern
from questions import one_limit
from topologies import FRONT, TOPOLOGIES, TRUSTING_THE_HOP, AskingApp, FrontEnd, Site, front_end, one_hop, two_hops

# A gateway that hands on whatever a client writes: every peer is trusted.
PASSING = ":{$PORT} {\n\treverse_proxy {$TO} {\n\t\ttrusted_proxies 0.0.0.0/0\n\t}\n}"


@pytest.fixture
def site(postern):
    built = []

    def build(topology, config):
        built.append(topology(postern(config)))
        return built[-1]

    yield build
    for one in built:
        one.cleanup()


def passing(postern):
    """client -> a proxy that appends to what the client sent -> an application that asks /check"""
    app = AskingApp(postern)
    outer = Caddy(PASSING, TO=app.endpoint).start()
    return Site(postern, outer.endpoint, app, [app, outer])


def direct(postern):
    """client -> a proxy that replaces X-Forwarded-For -> an application that asks /check"""
    app = AskingApp(postern)
    outer = Caddy(FRONT, TO=app.endpoint).start()
    return Site(postern, outer.endpoint, app, [app, outer])


def probe(site, path="/"):
    done = run_postern("probe", f"http://{site.endpoint}{path}", "--admin", site.postern.admin)
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_right(site, name):
    topology, client = TOPOLOGIES[name]
    s = site(topology, one_limit("50/hour", **({"client": client} if client else {})))
    code, said = probe(s, "/login?x=1")
    assert code == 0, said
    assert said.startswith("your clients are told apart: postern saw this machine as 127.")
    assert "share" not in said and "can choose" not in said and "can leave" not in said
    assert "key 4:" + said.split("as ")[1].split()[0] in said


CURE = '"client": {"strategy": "trusted_ranges", "trusted_proxies": ["127.0.0.1"]}'


@pytest.mark.parametrize("topology, client, says", [
    (two_hops, {}, CURE),  # what the hop wrote is there and not read
    (front_end, {}, CURE),
    (direct, {}, CURE),
    (lambda p: two_hops(p, "127.0.0.99/32"), TRUSTING_THE_HOP, "trusted_proxies inside forward_auth"),  # the inner Caddy has dropped it
    (direct, {"strategy": "hop_count", "hops": 2, "trusted_proxies": ["127.0.0.1"]}, "too_few_hops"),
    (direct, {"strategy": "named_header", "header": "CF-Connecting-IP", "trusted_proxies": ["127.0.0.1"]}, "header_missing"),
])  # fmt: skip
def test_all_share_one_address(site, topology, client, says):
    s = site(topology, one_limit("50/hour", **({"client": client} if client else {})))
    code, said = probe(s)
    assert code == 5, said
    assert "all clients share the address of 127.0.0.1" in said and says in said
    assert "told apart" not in said


@pytest.mark.parametrize("client, header", [
    ({"strategy": "hop_count", "hops": 2, "trusted_proxies": ["127.0.0.1"]}, "X-Forwarded-For"),
    ({"strategy": "trusted_ranges", "trusted_proxies": ["127.0.0.0/8"]}, "X-Forwarded-For"),
    ({"strategy": "named_header", "header": "X-Real-IP", "trusted_proxies": ["127.0.0.1"]}, "X-Real-IP"),
    ({"strategy": "named_header", "header": "True-Client-IP", "trusted_proxies": ["127.0.0.1"]}, "True-Client-IP"),
    ({"strategy": "rightmost", "header": "Forwarded", "trusted_proxies": ["127.0.0.1"]}, "Forwarded"),
])  # fmt: skip
def test_a_client_can_choose_its_key(site, client, header):
    s = site(passing, one_limit("50/hour", client=client))
    code, said = probe(s)
    assert code == 5, said
    assert f"a client can choose its key with {header}: 198.51.100." in said and "cure:" in said
    others = {"X-Forwarded-For", "Forwarded", "X-Real-IP", "True-Client-IP"} - {header}
    assert not any(f"choose its key with {other}" in said for other in others)


def test_a_client_can_leave_its_key(site):
    s = site(passing, one_limit("50/hour", client={"strategy": "single_value", "trusted_proxies": ["127.0.0.1"]}))
    code, said = probe(s)
    assert code == 5
    assert "told apart" in said and "a client can leave its key with X-Forwarded-For: with it the client is multiple_values" in said


def test_nothing_arrived(postern, caddy, app):
    p, behind = postern(one_limit()), app()
    gateway = caddy(FRONT, TO=behind.endpoint)  # never asks postern
    done = run_postern("probe", f"http://{gateway.endpoint}/", "--admin", p.admin)
    assert done.returncode == 4 and done.stdout.startswith("nothing arrived: the gateway answered 200")


def test_a_gateway_that_drops_the_nonce(postern):
    p = postern(one_limit())
    app = AskingApp(p)
    outer = Caddy(":{$PORT} {\n\treverse_proxy {$TO} {\n\t\theader_up -X-Postern-Probe\n\t}\n}", TO=app.endpoint).start()
    try:
        done = run_postern("probe", f"http://{outer.endpoint}/", "--admin", p.admin)
        assert done.returncode == 4 and "hand that header on" in done.stdout
        assert len(app.verdicts) == 4
    finally:
        outer.cleanup()
        app.cleanup()


def test_two_applications_that_ask_are_both_told(postern):
    p = postern(one_limit("50/hour"))
    right = AskingApp(p)

    def ask_first(request):
        right.decide(request)
        return wrong.forward(request)

    asker = AskingApp(p)
    wrong = FrontEnd(asker.endpoint)
    first = App(ask_first)
    try:
        done = run_postern("probe", f"http://{first.endpoint}/", "--admin", p.admin)
        assert done.returncode == 5, done.stdout
        assert "your clients are told apart" in done.stdout and "all clients share the address of 127.0.0.1" in done.stdout
    finally:
        for one in (first, wrong, asker, right):
            one.cleanup()


def test_it_is_charged_like_any_other(site):
    s = site(one_hop, one_limit("2/hour"))
    code, said = probe(s)
    assert code == 0 and "told apart" in said  # refused in the end, and seen all the same
    assert s.postern.metrics()['postern_decisions_total{door="forward_auth",decision="deny",reason="rate_limited",rule="all"}'] == 2

# SPDX-License-Identifier: MIT
"""The bucket that was secretly global, with real Caddy processes: how it is right, and how a wrong setting is told."""
import json
import time

import pytest

from gateway import send
from postern import run_postern
from questions import AGENT, EDGE, FORGED, IDENTITIES, ask, check_config, one_limit
from topologies import TOPOLOGIES, front_end, one_hop, two_hops

IGNORED = "forwarded_header_ignored"
A, B, C = "127.0.0.11", "127.0.0.12", "127.0.0.13"


@pytest.fixture
def site(postern):
    """site(topology, configuration) gives a running Site with that postern behind it."""
    built = []

    def build(topology, config, **options):
        built.append(topology(postern(config, **options)))
        return built[-1]

    yield build
    for one in built:
        one.cleanup()


@pytest.fixture(params=TOPOLOGIES)
def right(request, site):
    """right(configuration): each way of asking in turn, with the "client" that is right for it."""
    topology, client = TOPOLOGIES[request.param]
    return lambda config: site(topology, {**config, "client": client} if client else config)


def statuses(site, source, times, **more):
    return [send(site.endpoint, source, **more).status for _ in range(times)]


FORGERIES = [
    ["X-Forwarded-For: 6.6.6.6"],
    ["X-Forwarded-For: 6.6.6.6, 7.7.7.7"],
    ["X-Forwarded-For: 6.6.6.6", "X-Forwarded-For: 7.7.7.7"],
    ["X-Forwarded-For: 127.0.0.1"],
    ["X-Forwarded-For: unknown, _junk, ,::1%x", "X-Forwarded-For: \xff\xfe"],
    ["X-Forwarded-For:"],
    ["X-Forwarded-For: " + ", ".join(["10.0.0.1"] * 100)],
    ["Forwarded: for=6.6.6.6", "X-Real-IP: 6.6.6.6", "X-Original-URL: /free", "X_Forwarded_For: 6.6.6.6"],
    ["Connection: close, X-Forwarded-For", "X-Forwarded-For: 6.6.6.6"],
    ["X-Forwarded-Host: other.example", "X-Forwarded-Method: OPTIONS", "X-Forwarded-Uri: /free"],
]


def test_each_client_has_its_own_bucket(right):
    s = right(one_limit())
    assert statuses(s, A, 7) == [200] * 5 + [429] * 2
    assert statuses(s, B, 2) == [200] * 2
    assert [left(s, source) for source in (A, B, C)] == [{"per-client": 0}, {"per-client": 3}, {"per-client": 5}]
    assert [request.all("X-Postern-Client") for request in s.served()] == [[A]] * 5 + [[B]] * 2
    if hasattr(s.app, "verdicts"):
        assert not any("warnings" in verdict for verdict in s.app.verdicts)
    assert s.postern.metrics()['postern_request_warnings_total{warning="forwarded_header_ignored"}'] == 0


def left(s, source, **more):
    """What that client has left, asked as whoever stands behind the site's hops would ask."""
    behind_a_hop = s.postern.log("start")[0]["client"] != "peer"
    seen = {"remote_addr": "127.0.0.1", "headers": {"X-Forwarded-For": source}} if behind_a_hop else {"remote_addr": source}
    return {entry["name"]: entry["remaining"] for entry in ask(s.postern, peek=True, **seen, **more)["limits"]}


def test_a_forged_header_changes_nothing(right):
    s = right(one_limit("10/hour"))
    for forged in FORGERIES:
        answer = send(s.endpoint, A, headers=forged)
        assert answer.status == 200, forged
        assert s.served()[-1].all("X-Postern-Client") == [A], forged
    assert len(FORGERIES) == 10
    for forged in FORGERIES:
        assert send(s.endpoint, A, headers=forged).status == 429, forged
    assert statuses(s, B, 1) == [200]


def test_waiting_exactly_retry_after_passes(right):
    s = right(one_limit("1/second"))
    assert send(s.endpoint, A).status == 200
    answer = send(s.endpoint, A)
    answered = time.monotonic()
    assert answer.status == 429
    wait_s = int(answer.get("Retry-After"))
    assert wait_s == 1 and answer.json() == {"error": "rate_limited", "retry_after": 1}
    time.sleep(max(0, answered + wait_s - time.monotonic()))
    assert send(s.endpoint, A).status == 200


def login_and_general():
    return {
        "limits": {"per-client": {"rate": "300/minute"}, "login": {"rate": "10/minute"}},
        "rules": [
            {"name": "login", "match": {"method": "POST", "path": "/login"}, "limits": ["per-client", "login"]},
            {"name": "rest", "limits": ["per-client"]},
        ],
    }


def test_a_login_limit_and_a_general_one_hold_together(right):
    config = login_and_general()
    # The same numbers by the hour, so that nothing refills while the test runs.
    config["limits"] = {"per-client": {"rate": "300/hour"}, "login": {"rate": "10/hour"}}
    s = right(config)
    assert statuses(s, A, 12, method="POST", path="/login", body=b"user=x") == [200] * 10 + [429] * 2
    assert statuses(s, A, 2, method="POST", path="//login/?x=1", body=b"user=x") == [429] * 2
    assert statuses(s, A, 1, path="/login") == [200]
    assert statuses(s, A, 3, method="POST", path="/other", body=b"x") == [200] * 3
    assert statuses(s, B, 1, method="POST", path="/login", body=b"user=x") == [200]
    # The refused attempts took nothing from the general limit: 10 + 1 + 3 of 300.
    assert left(s, A, method="POST", path="/login") == {"per-client": 286, "login": 0}


def test_the_numbers_of_the_story(site):
    s = site(two_hops, {**login_and_general(), "client": TOPOLOGIES["two-hops"][1]})
    began = time.monotonic()
    answers = [send(s.endpoint, A, "POST", "/login", body=b"user=x") for _ in range(11)]
    if time.monotonic() - began < 6:  # one attempt more comes back every six seconds
        assert [answer.status for answer in answers] == [200] * 10 + [429]
        assert 1 <= int(answers[-1].get("Retry-After")) <= 6


def test_our_own_services_pass_by_their_token(right):
    s = right(one_limit(identities=IDENTITIES))
    for token, name in ((EDGE, "edge"), (AGENT, "agent")):
        for line in (f"X-Internal-Token: {token}", f"Authorization: Bearer {token}"):
            assert statuses(s, A, 4, headers=[line, "X-Postern-Identity: forged"]) == [200] * 4
            assert s.served()[-1].all("X-Postern-Identity") == [name]
            assert s.served()[-1].all("X-Internal-Token") == []
    assert statuses(s, A, 6) == [200] * 5 + [429]
    assert statuses(s, B, 6, headers=[f"X-Internal-Token: {FORGED}"]) == [200] * 5 + [429]
    assert s.served()[-1].all("X-Postern-Identity") == [""] and s.served()[-1].all("X-Internal-Token") == []


def test_a_users_login_reaches_the_application(right):
    s = right(one_limit(identities=IDENTITIES))
    assert statuses(s, A, 1, headers=["Authorization: Bearer eyJhbGciOiJ", "Cookie: a=b"]) == [200]
    assert s.served()[-1].all("Authorization") == ["Bearer eyJhbGciOiJ"]
    assert s.served()[-1].all("Cookie") == ["a=b"]


def test_what_postern_says_upstream_cannot_be_forged(right):
    s = right(one_limit(identities=IDENTITIES))
    forged = ["X-Postern-Client: 6.6.6.6", "X-Postern-Identity: edge", "x-postern-identity: agent"]
    assert send(s.endpoint, A, headers=forged).status == 200
    request = s.served()[-1]
    assert (request.all("X-Postern-Client"), request.all("X-Postern-Identity")) == ([A], [""])


def test_nothing_internal_reaches_a_refused_client(right):
    config = one_limit(identities=IDENTITIES)
    config["rules"].insert(0, {"name": "secret-rule", "match": {"path": "/internal/*"}, "require": "identity", "limits": ["per-client"]})
    s = right(config)
    answer = send(s.endpoint, A, path="/internal/x", headers=[f"X-Internal-Token: {FORGED}"])
    assert (answer.status, answer.get("WWW-Authenticate"), answer.json()) == (401, "Bearer", {"error": "identity_required"})
    statuses(s, A, 4)
    refused = send(s.endpoint, A)
    assert refused.status == 429 and set(refused.json()) == {"error", "retry_after"}
    for answer in (answer, refused):
        assert not [name for name, _ in answer.headers if name.lower().startswith("x-postern")]
        assert not [word for word in (b"127.0.0", b"secret-rule", b"per-client", b"edge") if word in answer.body]
    assert len(s.served()) == 4


def test_other_methods_bodies_and_upgrades(right):
    s = right(one_limit("100/hour"))
    body = b"x" * 70000
    answer = send(s.endpoint, A, "POST", "/upload?a=b", body=body)
    assert (answer.status, s.served()[-1].body, s.served()[-1].path) == (200, body, "/upload?a=b")
    answer = send(s.endpoint, A, "HEAD", "/x")
    assert (answer.status, answer.body, s.served()[-1].method) == (200, b"", "HEAD")
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH"):
        assert send(s.endpoint, A, method, "/x").status == 200
        assert s.served()[-1].method == method
    upgrade = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13"]
    assert send(s.endpoint, A, headers=upgrade).status == 200
    assert statuses(s, A, 1, headers=["Expect: 100-continue"]) == [200]
    assert all(request.all("X-Postern-Client") == [A] for request in s.served())


# ---- the naive configuration


def test_the_naive_configuration_behind_two_hops(site, tmp_path):
    """`peer`, and an inner Caddy that trusts the outer one: everybody shares the outer hop's bucket, and it is said."""
    s = site(two_hops, one_limit())
    told = [send(s.endpoint, source).status for source in (A, B, C, A, B, C)]
    assert told == [200] * 5 + [429]
    assert [request.all("X-Postern-Client") for request in s.served()] == [["127.0.0.1"]] * 5
    assert s.postern.metrics()['postern_request_warnings_total{warning="forwarded_header_ignored"}'] == 6
    line = s.postern.wait_log(IGNORED)
    assert len(s.postern.log(IGNORED)) == 1 and line["door"] == "forward_auth"
    assert line["cure"] == '"client": {"strategy": "trusted_ranges", "trusted_proxies": ["127.0.0.1"]}'
    assert line["cure"] in line["msg"]

    # explain says which hop was believed and why, with the wrong and with the right configuration.
    seen = ["--door", "forward_auth", "-H", f"X-Forwarded-For: {A}, 127.0.0.1", "-H", "X-Forwarded-Method: GET", "-H", "X-Forwarded-Uri: /"]
    naive, right = tmp_path / "naive.json", tmp_path / "right.json"
    naive.write_text(json.dumps(one_limit()))
    right.write_text(json.dumps(one_limit(**json.loads("{" + line["cure"] + "}"))))
    done = run_postern("explain", "--config", naive, *seen)
    assert "client: 127.0.0.1, decided: peer" in done.stdout and f"warning: {IGNORED}" in done.stdout
    done = run_postern("explain", "--config", right, *seen)
    assert f"client: {A}, decided: trusted_range" in done.stdout and "warning" not in done.stdout
    assert 'remote_addr "127.0.0.1" is a trusted proxy' in done.stdout and f'"{A}" is the client' in done.stdout

    # The named cure, as it stands, heals it.
    config = json.loads(right.read_text())
    assert check_config(config).returncode == 0
    healed = site(two_hops, config)
    assert [send(healed.endpoint, source).status for source in (A, B, C, A, B, C)] == [200] * 6
    assert [request.all("X-Postern-Client") for request in healed.served()][:3] == [[A], [B], [C]]
    assert not healed.postern.log(IGNORED)


def test_the_naive_configuration_of_an_application_that_asks(site):
    s = site(front_end, one_limit())
    assert [send(s.endpoint, source).status for source in (A, B, C, A, B, C)] == [200] * 5 + [429]
    assert all(verdict["warnings"] == [IGNORED] for verdict in s.app.verdicts)
    assert all(verdict["client"]["address"] == "127.0.0.1" for verdict in s.app.verdicts)
    cure = json.loads("{" + s.postern.wait_log(IGNORED)["cure"] + "}")
    healed = site(front_end, one_limit(**cure))
    assert [send(healed.endpoint, source).status for source in (A, B, C, A, B, C)] == [200] * 6
    assert not any("warnings" in verdict for verdict in healed.app.verdicts)


def test_an_inner_hop_that_trusts_nobody_hides_everything(site):
    """It replaces the header by the outer hop's address. What arrives looks like one busy client: nothing can be said at once."""
    s = site(lambda postern: two_hops(postern, hop="192.0.2.1/32"), one_limit())
    assert [send(s.endpoint, source).status for source in (A, B, C, A, B, C)] == [200] * 5 + [429]
    assert [request.all("X-Postern-Client") for request in s.served()] == [["127.0.0.1"]] * 5
    assert s.postern.metrics()['postern_request_warnings_total{warning="forwarded_header_ignored"}'] == 0
    assert not s.postern.log(IGNORED)


def test_an_inner_hop_that_trusts_nobody_leaves_the_right_configuration_undecided(site):
    s = site(lambda postern: two_hops(postern, hop="192.0.2.1/32"), one_limit(client=TOPOLOGIES["two-hops"][1]))
    assert [send(s.endpoint, source).status for source in (A, B)] == [200] * 2
    assert [request.all("X-Postern-Client") for request in s.served()] == [[""]] * 2
    assert s.postern.wait_log("client_undecided")["client_reason"] == "header_missing"


# ---- what several share, and what fails


def test_two_applications_share_one_postern(postern):
    p = postern(one_limit())
    sites = [one_hop(p), one_hop(p)]
    try:
        told = [send(sites[i % 2].endpoint, A).status for i in range(7)]
        assert told == [200] * 5 + [429] * 2
        assert [len(s.served()) for s in sites] == [3, 2]
        assert [send(s.endpoint, B).status for s in sites] == [200] * 2
    finally:
        for s in sites:
            s.cleanup()


def test_the_next_hop_gets_exactly_one_believed_value(site):
    s = site(two_hops, one_limit(client=TOPOLOGIES["two-hops"][1]))
    send(s.endpoint, A, headers=["X-Forwarded-For: 6.6.6.6, 7.7.7.7"])
    assert s.served()[-1].all("X-Forwarded-For") == [A]


def test_a_gateway_that_does_not_say_the_method_is_told(postern, caddy, app):
    p, behind = postern(one_limit()), app()
    gateway = caddy(
        ":{$PORT} {\n\tforward_auth {$POSTERN} {\n\t\turi /forward-auth?\n\t\theader_up -X-Forwarded-Method\n\t}\n\treverse_proxy {$APP}\n}",
        POSTERN=p.http, APP=behind.endpoint,
    )  # fmt: skip
    answer = send(gateway.endpoint, A)
    assert answer.status == 403 and answer.json()["error"] == "door_misconfigured"
    assert "X-Forwarded-Method" in answer.json()["detail"]
    assert p.wait_log("door_misconfigured")["header"] == "X-Forwarded-Method"
    assert behind.requests == []


def test_without_postern_nothing_passes(site):
    s = site(one_hop, one_limit())
    assert send(s.endpoint, A).status == 200
    s.postern.stop()
    assert send(s.endpoint, A).status in (502, 504)
    assert len(s.served()) == 1


def test_caddy_keeps_its_connections_to_postern(site):
    s = site(one_hop, one_limit("20/hour"))
    statuses(s, A, 25)
    assert s.postern.metrics()['postern_connections{listener="http"}'] == 1

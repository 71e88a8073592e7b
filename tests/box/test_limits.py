# SPDX-License-Identifier: MIT
"""What limits take, give back in words, and let through at once."""
import json
import math
import time

import pytest

from postern import connect, read_answer
from questions import EDGE, IDENTITIES, ask, check_config, one_limit, reasons, remaining


def two_limits(a, b, **more):
    """Every request is charged to "a"; those to /both also to "b"."""
    return {
        "limits": {"a": {"rate": a}, "b": {"rate": b}},
        "rules": [
            {"name": "both", "match": {"path": "/both"}, "limits": ["a", "b"]},
            {"name": "rest", "limits": ["a"]},
        ],
        **more,
    }


def test_several_limits_are_charged_all_or_none(postern):
    p = postern(two_limits("10/hour", "3/hour"))
    assert reasons(p, 5, path="/both") == ["allowed"] * 3 + ["rate_limited"] * 2
    assert reasons(p, 8, path="/a") == ["allowed"] * 7 + ["rate_limited"]
    answer = ask(p, path="/both")
    assert [entry.get("limited") for entry in answer["limits"]] == [True, True]
    assert answer["rule"] == "both"


def test_the_verdict_names_every_limit(postern):
    p = postern(two_limits("10/hour", "3/hour"))
    answer = ask(p, path="/both", cost=2)
    assert [(e["name"], e["quota"], e["window"], e["remaining"]) for e in answer["limits"]] == [
        ("a", 10, 3600, 8), ("b", 3, 3600, 1)
    ]  # fmt: skip
    answer = ask(p, path="/both", cost=2)
    assert (answer["reason"], answer["status"]) == ("rate_limited", 429)
    assert [(e["name"], e["remaining"], "limited" in e) for e in answer["limits"]] == [("a", 8, False), ("b", 1, True)]
    headers = answer["response_headers"]
    assert headers["RateLimit-Policy"] == '"a";q=10;w=3600, "b";q=3;w=3600'
    assert headers["RateLimit"].startswith('"a";r=8;t=') and '"b";r=1;t=' in headers["RateLimit"]
    assert headers["Retry-After"] == str(answer["retry_after"])
    assert answer["retry_after"] * 1000 - 1000 < answer["retry_after_ms"] <= answer["retry_after"] * 1000


def test_a_peek_takes_nothing(postern):
    p = postern(one_limit())
    for _ in range(10):
        answer = ask(p, peek=True)
        assert (answer["reason"], answer["limits"][0]["remaining"], answer["limits"][0]["reset"]) == ("allowed", 5, 0)
    ask(p, cost=5)
    assert ask(p, peek=True)["reason"] == "rate_limited"


def test_cost(postern):
    p = postern(one_limit())
    assert ask(p, cost=3)["limits"][0]["remaining"] == 2
    assert ask(p, cost=3)["reason"] == "rate_limited"
    assert ask(p, cost=2)["limits"][0]["remaining"] == 0


@pytest.mark.parametrize("peek", [False, True])
def test_a_cost_that_can_never_pass(postern, peek):
    p = postern(two_limits("10/hour", "3/hour"))
    answer = ask(p, cost=4, path="/both", peek=peek)
    assert (answer["decision"], answer["reason"], answer["status"]) == ("deny", "cost_too_large", 403)
    assert "retry_after" not in answer and "Retry-After" not in answer["response_headers"]
    assert remaining(p, "a") == 10


def test_shadow_never_refuses(postern):
    config = two_limits("10/hour", "3/hour")
    config["rules"][0]["mode"] = "shadow"
    p = postern(config)
    answers = [ask(p, path="/both") for _ in range(5)]
    assert [a["reason"] for a in answers] == ["allowed"] * 3 + ["shadow"] * 2
    assert [a.get("would") for a in answers] == [None] * 3 + ["rate_limited"] * 2
    assert all(a["decision"] == "allow" and a["status"] == 200 for a in answers)
    assert all(entry["shadow"] for a in answers for entry in a["limits"])
    assert all("retry_after" not in a and "RateLimit" not in a["response_headers"] for a in answers)


def test_shadow_of_a_denial_and_of_a_requirement(postern):
    config = one_limit()
    config["rules"] = [
        {"name": "deny", "match": {"path": "/deny"}, "action": "deny", "mode": "shadow"},
        {"name": "require", "match": {"path": "/require"}, "require": "identity", "mode": "shadow"},
        *config["rules"],
    ]
    p = postern({**config, "identities": IDENTITIES})
    for path, would in (("/deny", "blocked"), ("/require", "identity_required")):
        answer = ask(p, path=path)
        assert (answer["decision"], answer["reason"], answer["would"]) == ("allow", "shadow", would)


def test_actions(postern):
    config = one_limit()
    config["rules"] = [
        {"name": "no", "match": {"path": "/admin/*"}, "action": "deny"},
        {"name": "yes", "match": {"path": "/static/*"}, "action": "allow"},
        {"name": "none", "match": {"path": "/free"}},
        *config["rules"],
    ]
    p = postern({**config, "identities": IDENTITIES})
    for path in ("/admin", "/admin/", "/admin/x", "//admin/x", "/static/../admin/x", "/%61dmin/x"):
        answer = ask(p, path=path, token=EDGE)
        assert (answer["decision"], answer["reason"], answer["status"], answer["rule"]) == ("deny", "blocked", 403, "no")
        assert "retry_after" not in answer
    for path in ("/static/x", "/free"):
        assert reasons(p, 7, path=path) == ["rule_allow"] * 7
    assert remaining(p) == 5
    assert ask(p, path="/administrator")["reason"] == "allowed"


@pytest.mark.parametrize(
    "path", ["//login", "/./login", "/x/../login", "/%6cogin", "/login/", "/login?x=1", "/login;v=1", "/login#x", "/%2flogin", "/login/."]
)
def test_another_spelling_is_no_way_around_a_rule(postern, path):
    config = one_limit("100/hour")
    config["limits"]["login"] = {"rate": "1/hour"}
    config["rules"].insert(0, {"name": "login", "match": {"path": "/login"}, "limits": ["per-client", "login"]})
    p = postern(config)
    ask(p, path="/login")
    answer = ask(p, path=path)
    assert (answer["reason"], answer["rule"]) == ("rate_limited", "login")


@pytest.mark.parametrize(
    "path",
    [
        "/%69nternal/;/../x",  # served as /internal/x by nginx, Caddy, Python: they know no parameters
        "//internal/;/../x",
        "/%69nternal/%3b/../x",
        "/z/../internal//../x",  # ... by who keeps empty segments: Envoy without merge_slashes, new URL() of Node
        "/q/z//../../internal/;/../x",  # ... by nginx again
        "/%69nternal/../x",  # ... by who decodes and does not resolve: WSGI applications
        "/%69nternal/..%2fx",
        "/%69nternal/a%2f../../x",  # ... by who takes %2f for no slash: ASP.NET
        "/internal\\x",  # ... by who takes a backslash for one: new URL() of JavaScript
    ],
)
def test_a_path_that_another_server_reads_otherwise_is_no_way_in(postern, path):
    config = one_limit("100/hour")
    config["rules"].insert(0, {"name": "in", "match": {"path": "/internal/*"}, "require": "identity", "limits": ["per-client"]})
    p = postern({**config, "identities": IDENTITIES})
    answer = ask(p, path=path)
    assert (answer["decision"], answer["reason"] in ("blocked", "identity_required"), answer["rule"]) == ("deny", True, "in")


def test_what_a_rule_matches(postern):
    config = one_limit()
    config["rules"] = [
        {"name": "post", "match": {"method": ["POST", "PUT"], "path": "/a/*"}, "action": "allow"},
        {"name": "host", "match": {"host": "Api.example"}, "action": "allow"},
        {"name": "case", "match": {"path": "/Case"}, "ignore_case": True, "action": "allow"},
        {"name": "edge", "match": {"identity": "edge", "path": "/own"}, "action": "allow"},
        *config["rules"],
    ]
    p = postern({**config, "identities": IDENTITIES})
    for rule, question in (
        ("post", {"method": "POST", "path": "/a/b"}), ("post", {"method": "PUT", "path": "/a"}),
        ("all", {"method": "post", "path": "/a/b"}), ("all", {"method": "POST", "path": "/ab"}), ("all", {"path": "/a/b"}),
        ("host", {"host": "api.EXAMPLE.:8443"}), ("all", {"host": "xapi.example"}), ("all", {}),
        ("case", {"path": "/cASE"}), ("edge", {"path": "/own", "token": EDGE}), ("all", {"path": "/own"}),
    ):  # fmt: skip
        assert ask(p, peek=True, **question)["rule"] == rule, question


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("config", [one_limit("20/hour"), two_limits("20/hour", "25/hour")], ids=["one", "two"])
def test_200_at_once_against_20(postern, workers, config):
    p = postern({**config, "workers": workers})
    body = json.dumps({"remote_addr": "203.0.113.7", "path": "/both"}).encode()
    request = b"POST /check HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    sockets = [connect(p.http) for _ in range(200)]
    try:
        for sock in sockets:
            sock.sendall(request)
        answers = [json.loads(read_answer(sock).partition(b"\r\n\r\n")[2]) for sock in sockets]
    finally:
        for sock in sockets:
            sock.close()
    told = [answer["reason"] for answer in answers]
    assert (told.count("allowed"), told.count("rate_limited")) == (20, 180)
    if len(config["limits"]) == 2:
        assert remaining(p, "b", path="/both") == 5


@pytest.mark.parametrize("rate, interval_s", [("1/second", 1), ("3/2s", 2 / 3), ("10/13s", 1.3)])
def test_waiting_exactly_as_told_passes_and_not_before(postern, rate, interval_s):
    config = one_limit(rate)
    config["limits"]["per-client"]["burst"] = 1
    p = postern(config)
    assert ask(p)["reason"] == "allowed"
    before = time.monotonic()
    answer = ask(p)
    after = time.monotonic()
    wait_s = answer["retry_after_ms"] / 1000
    assert answer["reason"] == "rate_limited"
    assert 0 < wait_s < interval_s + 0.001
    assert answer["retry_after"] == math.ceil(wait_s)
    # The judgement fell between before and after: peeks are refused until the wait is over, and pass from then on.
    while True:
        asked = time.monotonic()
        passes = ask(p, peek=True)["reason"] == "allowed"
        answered = time.monotonic()
        if passes:
            assert answered >= before + wait_s - 0.001  # told in whole milliseconds, rounded up
            break
        assert asked <= after + wait_s
    assert ask(p)["reason"] == "allowed"


def test_a_flood_of_refusals_does_not_prolong_the_wait(postern):
    p = postern(one_limit("1/second"))
    ask(p)
    told = [ask(p)["retry_after_ms"] for _ in range(50)]
    assert told == sorted(told, reverse=True) and max(told) <= 1000


@pytest.mark.parametrize("rate", ["10/13s", "1/3600s", "1/day", "1/365d", "7/m"])
def test_odd_rates(postern, rate):
    p = postern(one_limit(rate))
    burst = int(rate.split("/")[0])
    answers = [ask(p) for _ in range(burst + 1)]
    assert [a["reason"] for a in answers] == ["allowed"] * burst + ["rate_limited"]
    assert answers[-1]["retry_after"] >= 1


def test_high_rates_load_and_allow(postern):
    for rate in ("2000/second", "1000000/second"):
        config = one_limit(rate)
        config["limits"]["per-client"]["burst"] = 1
        p = postern(config)
        assert ask(p)["reason"] == "allowed"
        assert ask(p, cost=2)["reason"] == "cost_too_large"


def test_numbers_stay_in_range_while_it_refills(postern):
    config = one_limit("20/second")
    config["limits"]["per-client"]["burst"] = 4
    p = postern(config)
    end = time.monotonic() + 0.5
    seen = set()
    while time.monotonic() < end:
        answer = ask(p)
        entry = answer["limits"][0]
        seen.add(answer["reason"])
        assert 0 <= entry["remaining"] <= 4 and entry["window"] == 1
        assert 1 <= entry["reset"] <= entry["window"]
        if answer["decision"] == "deny":
            assert answer["retry_after"] == 1 and 1 <= answer["retry_after_ms"] <= 50
            assert answer["response_headers"]["Retry-After"] == "1"
    assert seen == {"allowed", "rate_limited"}


def test_a_limit_that_clients_may_not_see(postern):
    config = two_limits("10/hour", "3/hour")
    config["limits"]["b"]["headers"] = False
    p = postern(config)
    answers = [ask(p, path="/both") for _ in range(4)]
    assert all('"b"' not in json.dumps(a["response_headers"]) for a in answers)
    assert answers[-1]["response_headers"]["Retry-After"]
    config["limits"]["a"]["headers"] = False
    answer = ask(postern(config))
    assert not any(name.startswith("RateLimit") for name in answer["response_headers"])


def test_which_headers_clients_get(postern):
    p = postern(one_limit(headers={"ratelimit": False, "retry_after": False, "x_ratelimit": True}))
    answer = ask(p)
    assert answer["response_headers"]["X-RateLimit-Limit"] == "5"
    assert answer["response_headers"]["X-RateLimit-Remaining"] == "4"
    assert 1 <= int(answer["response_headers"]["X-RateLimit-Reset"]) <= 720
    ask(p, cost=4)
    assert set(ask(p)["response_headers"]) == {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}


@pytest.mark.parametrize(
    "config, said",
    [
        (one_limit("0/minute"), "/limits/per-client/rate"),
        ({**one_limit(), "limits": {"per-client": {"rate": "5/hour", "burst": 0}}}, "/limits/per-client/burst"),
        ({**one_limit(), "limits": {"per-client": {"rate": "5/hour", "burts": 5}}}, 'did you mean "burst"?'),
        ({**one_limit(), "limits": {"per-client": {"rate": "5 / hour"}}}, "/limits/per-client/rate"),
        (one_limit(store={"max_memory": 0}), "/store/max_memory"),
        (one_limit(store={"max_memory": "1KiB"}), "/store/max_memory"),
        ('{"version": 1, "workers": 1, "workers": 2}', '"workers" comes twice'),
    ],
)
def test_refused_at_load(config, said):
    done = check_config(config)
    assert done.returncode == 3 and said in done.said, done.said

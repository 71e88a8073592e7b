# SPDX-License-Identifier: MIT
"""Who shares a bucket with whom: the faults that other systems had, as requests."""
import random

import pytest

from questions import ask, one_limit, reasons, remaining

P = "172.18.0.5:50000"
BEHIND_P = {"client": {"strategy": "trusted_ranges", "trusted_proxies": ["172.18.0.0/16"]}}


def via(address):
    return {"remote_addr": P, "headers": {"X-Forwarded-For": address}}


def test_one_clients_spending_is_not_anothers(postern):
    p = postern(one_limit(**BEHIND_P))
    assert reasons(p, 6, **via("203.0.113.1")) == ["allowed"] * 5 + ["rate_limited"]
    assert ask(p, **via("203.0.113.2"))["limits"][0]["remaining"] == 4


def test_an_entry_that_a_client_can_write_is_never_the_key(postern):
    p = postern(one_limit("100/hour", **BEHIND_P))
    rng = random.Random(7948)
    for left in reversed(range(100)):
        forged = ".".join(str(rng.randrange(1, 224)) for _ in range(4))
        answer = ask(p, **via(f"{forged}, 203.0.113.1"))
        assert answer["client"]["address"] == "203.0.113.1"
        assert answer["limits"][0]["remaining"] == left
    assert ask(p, **via("203.0.113.1"))["reason"] == "rate_limited"


@pytest.mark.parametrize(
    "same",
    [
        ["203.0.113.1", "203.0.113.1:1001", "203.0.113.1:1002"],
        ["::ffff:203.0.113.4", "::ffff:cb00:7104", "203.0.113.4", "[::FFFF:203.0.113.4]:80"],
        ["2001:db8::1", "[2001:db8::1]:5", "2001:DB8:0:0:0:0:0:2", "2001:db8::ffff:1.2.3.4"],
        ["64:ff9b::808:808", "64:ff9b::8.8.8.8", "8.8.8.8"],
    ],
)
def test_one_bucket(postern, same):
    p = postern(one_limit(**BEHIND_P))
    for left, address in enumerate(reversed(same)):
        assert ask(p, **via(address))["limits"][0]["remaining"] == 4 - left, address
        assert ask(p, address, peek=True)["limits"][0]["remaining"] == 4 - left, address


@pytest.mark.parametrize(
    "one, other",
    [
        ("::ffff:203.0.113.4", "::ffff:203.0.113.5"),
        ("64:ff9b::808:808", "64:ff9b::909:909"),
        ("2001:db8::1.2.3.4", "1.2.3.4"),
        ("2001:db8:0:1::1", "2001:db8:0:2::1"),
        ("fe80::1", "fe80::2"),
    ],
)
def test_two_buckets(postern, one, other):
    p = postern(one_limit(**BEHIND_P))
    ask(p, one)
    assert remaining(p, remote_addr=one) == 4
    assert remaining(p, remote_addr=other) == 5


def test_prefixes_are_settable(postern):
    config = one_limit(client={"ipv6_prefix": 48}, network_prefix={"ipv4": 16, "ipv6": 32})
    config["limits"]["wide"] = {"rate": "9/hour", "key": ["network"]}
    config["rules"][0]["limits"].append("wide")
    p = postern(config)
    ask(p, "2001:db8:0:1::1")
    ask(p, "203.0.113.1")
    for address, narrow, wide in (
        ("2001:db8:0:2::1", 4, 8), ("2001:db8:1::1", 5, 8), ("2001:db9::1", 5, 9), ("203.0.200.1", 5, 8), ("203.1.0.1", 5, 9)
    ):  # fmt: skip
        assert remaining(p, remote_addr=address) == narrow, address
        assert remaining(p, "wide", remote_addr=address) == wide, address


def test_an_undecided_client_does_not_spend_the_peers_bucket(postern):
    p = postern(one_limit(client={"strategy": "rightmost", "trusted_proxies": ["172.18.0.0/16"]}))
    for junk in ("unknown", "junk", "", "203.0.113.1,", "_hidden"):
        answer = ask(p, **via(junk))
        assert answer["client"]["decided"] is False and answer["warnings"] == ["client_undecided"]
        assert answer["upstream_headers"]["X-Postern-Client"] == ""
    assert ask(p, **via("again"))["reason"] == "rate_limited"
    answer = ask(p, **via("172.18.0.5"))
    assert answer["client"] == {"address": "172.18.0.5", "reason": "rightmost", "decided": True}
    assert answer["limits"][0]["remaining"] == 4


def test_a_missing_header_is_replaced_by_the_client_and_counted(postern):
    config = one_limit()
    config["limits"]["per-client"]["key"] = ["header:X-Api-Key"]
    p = postern(config)
    for address in ("203.0.113.1", "203.0.113.2"):
        assert reasons(p, 6, remote_addr=address) == ["allowed"] * 5 + ["rate_limited"]
    assert p.metrics()['postern_key_fallback_total{limit="per-client"}'] == 12
    for key in ("one", "two"):
        assert reasons(p, 6, headers={"x-api-key": key}) == ["allowed"] * 5 + ["rate_limited"]
    assert p.metrics()['postern_key_fallback_total{limit="per-client"}'] == 12


@pytest.mark.parametrize(
    "part, one, other",
    [
        ("host", {"host": "A.example:443"}, {"host": "b.example"}),
        ("path", {"path": "/a//b/?x=1"}, {"path": "/a/c"}),
        ("method", {"method": "GET"}, {"method": "POST"}),
    ],
)
def test_facts_as_key(postern, part, one, other):
    config = one_limit()
    config["limits"]["per-client"]["key"] = ["client", part]
    p = postern(config)
    ask(p, **one)
    assert remaining(p, **one) == 4
    assert remaining(p, **other) == 5
    assert remaining(p) == 5
    assert remaining(p, remote_addr="203.0.113.8", **one) == 5


def test_a_path_has_one_key_however_it_is_written(postern):
    config = one_limit("20/hour")
    config["limits"]["per-client"]["key"] = ["client", "path"]
    p = postern(config)
    spellings = ("/a/b", "/a/b/", "//a/b", "/a/./b", "/a/x/../b", "/%61/b", "/a/b?q", "/a/b;v=1", "/a/b#f")
    for spent, path in enumerate(spellings, 1):
        assert ask(p, path=path)["limits"][0]["remaining"] == 20 - spent, path


def test_rules_that_name_one_limit_share_its_bucket(postern):
    config = one_limit("10/hour")
    config["rules"].insert(0, {"name": "login", "match": {"path": "/login"}, "limits": ["per-client"]})
    p = postern(config)
    ask(p, path="/login")
    ask(p, path="/")
    assert remaining(p) == 8


def test_limits_of_their_own_names_do_not(postern):
    config = one_limit("1000/hour")
    config["limits"]["login"] = {"rate": "10/hour"}
    config["rules"].insert(0, {"name": "login", "match": {"path": "/login"}, "limits": ["per-client", "login"]})
    p = postern(config)
    assert reasons(p, 11, path="/login") == ["allowed"] * 10 + ["rate_limited"]
    assert remaining(p) == 990


def test_all_ranges_of_a_rule_apply(postern):
    config = one_limit()
    config["rules"].insert(
        0, {"name": "ours", "match": {"client": ["198.51.100.0/24", "203.0.113.0/28"]}, "action": "allow"}
    )
    p = postern(config)
    for address in ("198.51.100.7", "203.0.113.7"):
        assert reasons(p, 8, remote_addr=address) == ["rule_allow"] * 8
    for address in ("192.0.2.1", "203.0.113.16"):
        assert reasons(p, 6, remote_addr=address) == ["allowed"] * 5 + ["rate_limited"]


def test_an_undecided_client_satisfies_no_range(postern):
    config = one_limit(**BEHIND_P)
    config["rules"].insert(0, {"name": "ours", "match": {"client": ["172.18.0.0/16"]}, "action": "allow"})
    p = postern(config)
    assert ask(p, P)["client"]["reason"] == "header_missing"
    assert ask(p, P)["reason"] == "allowed"


def test_a_rule_that_ignores_case_gives_no_bucket_a_spelling(postern):
    limit = {"per-page": {"rate": "5/hour", "key": ["client", "path"]}}
    rules = [
        {"name": "files", "match": {"path": "/files/*"}, "ignore_case": True, "limits": ["per-page"]},
        {"name": "rest", "limits": ["per-page"]},
    ]
    p = postern({"limits": limit, "rules": rules})
    for left, path in enumerate(["/files/a", "/FILES/a", "/files/A?x", "/f%49les/a"]):
        assert ask(p, "203.0.113.1", path=path)["limits"][0]["remaining"] == 4 - left, path
    assert ask(p, "203.0.113.1", path="/other")["limits"][0]["remaining"] == 4
    assert ask(p, "203.0.113.1", path="/OTHER")["limits"][0]["remaining"] == 4

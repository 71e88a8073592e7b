# SPDX-License-Identifier: MIT
"""A wrong key looks like success from outside, so the program says it: in the answer, in a metric, and once in the log."""
import json

import pytest

from questions import ask, check_config, one_limit

IGNORED = "forwarded_header_ignored"
UNDECIDED = "client_undecided"
GATEWAY = "172.18.0.5:50000"  # in own_networks, as they are by default
STRANGER = "198.51.100.66:50000"
FORGED = {"X-Forwarded-For": "203.0.113.9"}


def cured(postern, line, **more):
    """The configuration that the line asks for, and a program that runs with it."""
    config = one_limit(**more)
    config["client"] = json.loads("{" + line["cure"] + "}")["client"]
    done = check_config(config)
    assert done.returncode == 0, done.said
    return config, postern(config)


def test_the_naive_configuration_is_told_at_once(postern):
    p = postern(one_limit())
    for visitor in range(50):
        answer = ask(p, GATEWAY, headers={"X-Forwarded-For": f"203.0.113.{visitor}"})
        assert answer["warnings"] == [IGNORED]
        assert answer["client"] == {"address": "172.18.0.5", "reason": "peer", "decided": True}
        assert answer["decision"] == ("allow" if visitor < 5 else "deny")
    line = p.wait_log(IGNORED)
    assert line["level"] == "warn" and line["remote_addr"] == GATEWAY and line["door"] == "check"
    assert line["cure"] == '"client": {"strategy": "trusted_ranges", "trusted_proxies": ["172.18.0.5"]}'
    assert line["cure"] in line["msg"]
    assert p.metrics()['postern_request_warnings_total{warning="forwarded_header_ignored"}'] == 50
    assert len(p.log(IGNORED)) == 1
    _, healed = cured(postern, line)
    for visitor in range(50):
        answer = ask(healed, GATEWAY, headers={"X-Forwarded-For": f"203.0.113.{visitor}"})
        assert (answer["reason"], answer["client"]["address"]) == ("allowed", f"203.0.113.{visitor}")
        assert "warnings" not in answer


@pytest.mark.parametrize(
    "client",
    [
        {"strategy": "trusted_ranges", "trusted_proxies": ["10.1.0.0/16", "2001:db8::/32"]},
        {"strategy": "single_value", "trusted_proxies": ["10.1.0.0/16"]},
        {"strategy": "rightmost", "header": "Forwarded", "trusted_proxies": ["10.1.0.0/16"]},
        {"strategy": "hop_count", "hops": 1, "trusted_proxies": ["10.1.0.0/16"], "on_undecided": "none"},
        {"strategy": "rightmost", "trust_unix": True, "trusted_proxies": [], "ipv6_prefix": 56},
    ],
    ids=lambda client: client["strategy"],
)
def test_a_cure_keeps_what_is_there(postern, client):
    p = postern(one_limit(client=client))
    lines = {"X-Forwarded-For": "203.0.113.9", "Forwarded": "for=203.0.113.9"}
    assert ask(p, GATEWAY, headers=lines)["warnings"] == [IGNORED]
    config, healed = cured(postern, p.wait_log(IGNORED))
    answer = ask(healed, GATEWAY, headers=lines)
    assert answer["client"]["address"] == "203.0.113.9" and "warnings" not in answer
    for name, value in client.items():
        kept = config["client"][name]
        assert kept == (value + ["172.18.0.5"] if name == "trusted_proxies" else value)


def test_forwarded_alone_is_cured_by_forwarded(postern):
    p = postern(one_limit())
    ask(p, GATEWAY, headers={"Forwarded": "for=203.0.113.9"})
    config, healed = cured(postern, p.wait_log(IGNORED))
    assert config["client"]["header"] == "Forwarded"
    assert ask(healed, GATEWAY, headers={"Forwarded": "for=203.0.113.9"})["client"]["address"] == "203.0.113.9"


def test_a_unix_peer_is_cured_by_trust_unix(postern):
    p = postern(one_limit())
    assert ask(p, "@", headers=FORGED)["warnings"] == [IGNORED, UNDECIDED]
    config, healed = cured(postern, p.wait_log(IGNORED))
    assert config["client"]["trust_unix"] is True
    assert ask(healed, "@", headers=FORGED)["client"]["address"] == "203.0.113.9"


@pytest.mark.parametrize("strategy", [None, {"strategy": "trusted_ranges", "trusted_proxies": ["172.18.0.0/16"]}])
def test_a_stranger_is_never_to_be_trusted(postern, strategy):
    p = postern(one_limit(**({"client": strategy} if strategy else {})))
    assert ask(p, STRANGER, headers=FORGED)["warnings"] == [IGNORED]
    line = p.wait_log(IGNORED)
    assert "cure" not in line and "trusted_proxies" not in line["msg"]
    assert "right unless the address is a proxy of yours" in line["msg"]


@pytest.mark.parametrize("junk", ["unix junk", "", "203.0.113.7, 1", "\u0000", "unknown"])
def test_a_peer_that_cannot_be_read_is_never_to_be_trusted(postern, junk):
    p = postern(one_limit())
    assert ask(p, junk, headers=FORGED)["warnings"] == [IGNORED, UNDECIDED]
    assert "cure" not in p.wait_log(IGNORED)


def test_own_networks_decide_who_is_ours(postern):
    p = postern(one_limit(own_networks=["198.51.100.0/24"]))
    ask(p, STRANGER, headers=FORGED)
    assert '"198.51.100.66"' in p.wait_log(IGNORED)["cure"]
    p = postern(one_limit(own_networks=["198.51.100.0/24"]))
    ask(p, GATEWAY, headers=FORGED)
    assert "cure" not in p.wait_log(IGNORED)


def test_one_line_for_each_network(postern):
    p = postern(one_limit())
    for peer in ("10.0.0.1", "10.0.0.2:99", "10.0.1.1", "10.0.0.3", "fd00::1", "[fd00::2]:5", "fd00:0:1::1", "10.0.0.1"):
        ask(p, peer, headers=FORGED)
    p.wait_log(IGNORED, remote_addr="fd00:0:1::1")
    assert [line["remote_addr"] for line in p.log(IGNORED)] == ["10.0.0.1", "10.0.1.1", "fd00::1", "fd00:0:1::1"]


def test_a_flood_of_networks_is_bounded_and_counted(postern):
    p = postern(one_limit())
    for i in range(300):
        ask(p, f"198.{18 + i // 200}.{i % 200}.1", headers=FORGED)
    ask(p, "192.0.2.1", headers={"X-Forwarded-For": "x"})
    assert len(p.log(IGNORED)) <= 256
    suppressed = [value for name, value in p.metrics().items() if name.startswith("postern_log_suppressed_total")]
    assert sum(suppressed) == 301 - 256


@pytest.mark.parametrize("headers, said", [({}, "header_missing"), ({"X-Forwarded-For": "a, b"}, "invalid_address")])
def test_an_undecided_client(postern, headers, said):
    p = postern(one_limit(client={"strategy": "rightmost", "trusted_proxies": ["172.18.0.0/16"]}))
    answer = ask(p, GATEWAY, headers=headers)
    assert answer["warnings"] == [UNDECIDED] and answer["client"]["decided"] is False
    ask(p, GATEWAY, headers=headers)
    line = p.wait_log(UNDECIDED)
    assert (line["client_reason"], line["remote_addr"]) == (said, GATEWAY)
    assert len(p.log(UNDECIDED)) == 1
    assert p.metrics()['postern_request_warnings_total{warning="client_undecided"}'] == 2


def test_no_warning_where_all_is_well(postern):
    p = postern(one_limit())
    assert "warnings" not in ask(p)
    assert "warnings" not in ask(p, headers={"X-Real-IP": "6.6.6.6", "Cookie": "a=b"})
    assert not p.log(IGNORED) and not p.log(UNDECIDED)


def test_nothing_a_client_sends_can_forge_a_log_line(postern):
    p = postern(one_limit())
    hostile = '1\n{"level":"error","event":"start_failed"}\r\u001b[31m"\\'
    ask(p, hostile, headers={"X-Forwarded-For": hostile}, id=hostile)
    p.wait_log(IGNORED, remote_addr=hostile)
    p.stop()
    assert not p.log("start_failed")
    assert all(json.loads(text) for text in p.lines)
    assert all(" " <= c <= "~" for text in p.lines for c in text)

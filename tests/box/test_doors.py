# SPDX-License-Identifier: MIT
"""One table of cases through every door: the same request must get the same decision, and mean the same bucket.

A case is what a gateway sees: the end of its connection, the X-Forwarded-For lines that came with the request, other
lines, method, host and path. /check is told remote_addr; /forward-auth gets the same address as the last entry, which is
what a gateway writes.
"""
import json

import pytest

from postern import run_postern
from questions import AGENT, EDGE, FORGED, ask, sha256

CONFIG = {
    "client": {"strategy": "trusted_ranges", "trusted_proxies": ["10.0.0.0/8", "2001:db8:10::/48"]},
    "identities": {
        "edge": {"token_sha256": sha256(EDGE)},
        "agent": {"token_sha256": sha256(AGENT), "limits": ["agents"]},
    },
    "limits": {
        "per-client": {"rate": "5/hour"},
        "login": {"rate": "2/hour"},
        "agents": {"rate": "5/hour", "key": ["identity"]},
        "by-path": {"rate": "5/hour", "key": ["client", "host", "path", "method"]},
    },
    "rules": [
        {"name": "blocked", "match": {"path": "/admin/*"}, "action": "deny"},
        {"name": "internal", "match": {"path": "/internal/*"}, "require": "identity", "limits": ["per-client"]},
        {"name": "login", "match": {"method": "POST", "path": "/login"}, "limits": ["per-client", "login"]},
        {"name": "host", "match": {"host": "keyed.example"}, "limits": ["by-path"]},
        {"name": "own", "match": {"client": "198.51.100.0/24"}, "action": "allow"},
        {"name": "shadow", "match": {"path": "/shadow"}, "limits": ["login"], "mode": "shadow"},
        {"name": "rest", "limits": ["per-client"]},
    ],
}


def case(name, peer, *chain, client="", reason="allowed", decision="allow", lines=(), method="GET", host="a.example", path="/"):
    return pytest.param(dict(locals()), id=name)


CASES = [
    case("direct", "203.0.113.7", client="203.0.113.7"),
    case("direct-ipv6", "2001:db8::7", client="2001:db8::7"),
    case("mapped", "::ffff:203.0.113.7", client="203.0.113.7"),
    case("nat64", "64:ff9b::203.0.113.7", client="64:ff9b::cb00:7107"),
    case("forged-by-a-stranger", "203.0.113.7", "6.6.6.6", client="203.0.113.7"),
    case("forged-twice", "203.0.113.7", "6.6.6.6, 7.7.7.7", "8.8.8.8", client="203.0.113.7"),
    case("one-proxy", "10.0.0.5", "203.0.113.7", client="203.0.113.7"),
    case("one-proxy-ipv6", "2001:db8:10::5", "2001:db8::7", client="2001:db8::7"),
    case("two-proxies", "10.0.0.5", "203.0.113.7, 10.1.1.1", client="203.0.113.7"),
    case("two-proxies-two-lines", "10.0.0.5", "203.0.113.7", "10.1.1.1", client="203.0.113.7"),
    case("forged-behind-proxies", "10.0.0.5", "6.6.6.6, 203.0.113.7, 10.1.1.1", client="203.0.113.7"),
    case("forged-line-behind-proxies", "10.0.0.5", "6.6.6.6", "203.0.113.7", client="203.0.113.7"),
    case("entry-with-port", "10.0.0.5", "203.0.113.7:9999", client="203.0.113.7"),
    case("no-header-from-a-proxy", "10.0.0.5"),
    case("all-trusted", "10.0.0.5", "10.0.0.7, 10.0.0.6"),
    case("junk-entry", "10.0.0.5", "203.0.113.7, junk"),
    case("unknown-entry", "10.0.0.5", "unknown"),
    case("empty-last-entry", "10.0.0.5", "203.0.113.7,"),
    case("unusable-peer", "junk"),
    case("identity", "203.0.113.7", client="203.0.113.7", reason="exempt", lines=[("X-Internal-Token", EDGE)]),
    case("bearer", "203.0.113.7", client="203.0.113.7", reason="exempt", lines=[("Authorization", f"Bearer {EDGE}")]),
    case("own-limits", "203.0.113.7", client="203.0.113.7", lines=[("X-Internal-Token", AGENT)]),
    case("forged-token", "203.0.113.7", client="203.0.113.7", lines=[("X-Internal-Token", FORGED)]),
    case("two-tokens", "203.0.113.7", client="203.0.113.7", lines=[("X-Internal-Token", EDGE), ("x-internal-token", EDGE)]),
    case("login-of-a-user", "203.0.113.7", client="203.0.113.7", lines=[("Authorization", "Bearer eyJhbGciOiJ")]),
    case("required", "203.0.113.7", decision="deny", reason="identity_required", path="/internal/x"),
    case("required-forged", "203.0.113.7", decision="deny", reason="identity_required", path="/internal/x", lines=[("X-Internal-Token", FORGED)]),
    case("required-met", "203.0.113.7", client="203.0.113.7", reason="exempt", path="/internal/x", lines=[("X-Internal-Token", EDGE)]),
    case("blocked", "203.0.113.7", decision="deny", reason="blocked", path="/admin"),
    case("blocked-by-another-spelling", "203.0.113.7", decision="deny", reason="blocked", path="/x/..//%61dmin/?q"),
    case("login", "203.0.113.7", client="203.0.113.7", method="POST", path="/login?next=/admin"),
    case("login-read", "203.0.113.7", client="203.0.113.7", method="GET", path="/login"),
    case("keyed-by-path", "203.0.113.7", client="203.0.113.7", host="Keyed.example:8443", path="/a//b/", method="PUT"),
    case("own-range", "10.0.0.5", "198.51.100.9", client="198.51.100.9", reason="rule_allow"),
    case("own-range-forged", "203.0.113.7", "198.51.100.9", client="203.0.113.7"),
    case("shadow", "203.0.113.7", client="203.0.113.7", path="/shadow"),
    case("high-bytes", "203.0.113.7", client="203.0.113.7", path="/\u00e4\u00ff", lines=[("X-A", "\u00e9")]),
]  # fmt: skip


def by_check(postern, c, **more):
    lines = [["X-Forwarded-For", line] for line in c["chain"]] + [list(line) for line in c["lines"]]
    question = {"headers": lines, "method": c["method"], "host": c["host"], "path": c["path"]}
    return ask(postern, c["peer"], **question, **more)


def by_forward_auth(postern, c, joined):
    """joined: the gateway appends to the last line, as Caddy does; else it adds a line, as HAProxy does."""
    chain = [*c["chain"][:-1], c["chain"][-1] + ", " + c["peer"]] if joined and c["chain"] else [*c["chain"], c["peer"]]
    lines = [("X-Forwarded-For", line) for line in chain] + list(c["lines"])
    lines += [("X-Forwarded-Method", c["method"]), ("X-Forwarded-Host", c["host"]), ("X-Forwarded-Uri", c["path"])]
    # http.client sends text as Latin-1: one byte each, as /check means it.
    return postern.ask("GET", "/forward-auth", headers=lines)


@pytest.mark.parametrize("c", CASES)
def test_every_door_decides_alike(postern, c):
    p = postern(CONFIG)
    full = by_check(p, c, peek=True)
    assert (full["decision"], full["reason"]) == (c["decision"], c["reason"])
    if c["decision"] == "allow":
        assert full["upstream_headers"]["X-Postern-Client"] == c["client"]

    # Each question through either door takes one from the same buckets.
    for taken, joined in enumerate((True, False), 1):
        status, headers, body = by_forward_auth(p, c, joined)
        assert status == full["status"]
        if c["decision"] == "allow":
            assert headers.get_all("X-Postern-Client") == [c["client"]]
            assert headers.get_all("X-Postern-Identity") == [full["identity"] or ""]
        else:
            assert json.loads(body)["error"] == c["reason"]
        left = {entry["name"]: entry["remaining"] for entry in by_check(p, c, peek=True)["limits"]}
        assert left == {entry["name"]: entry["remaining"] - taken for entry in full["limits"]}

    # What one door has spent is refused at the other.
    if full["limits"] and not full["limits"][0].get("shadow"):
        for _ in range(8):
            last = by_check(p, c)
        assert last["reason"] == "rate_limited"
        status, _, body = by_forward_auth(p, c, True)
        assert (status, json.loads(body)["error"]) == (429, "rate_limited")


@pytest.mark.parametrize("c", [c for c in CASES if c.id != "high-bytes"])
def test_explain_tells_the_same_of_every_door(tmp_path, c):
    path = tmp_path / "postern.json"
    path.write_text(json.dumps(CONFIG))
    lines = [f"X-Forwarded-For: {line}" for line in c["chain"]]
    rest = [f"{name}: {value}" for name, value in c["lines"]]
    gateway = [f"X-Forwarded-For: {c['peer']}", f"X-Forwarded-Method: {c['method']}", f"X-Forwarded-Host: {c['host']}",
        f"X-Forwarded-Uri: {c['path']}"]  # fmt: skip
    told = []
    for args, headers in (
        (["--remote-addr", c["peer"], "--method", c["method"], "--host", c["host"], "--path", c["path"]], lines + rest),
        (["--door", "forward_auth"], lines + gateway + rest),
    ):
        flags = [word for line in headers for word in ("-H", line)]
        done = run_postern("explain", "--config", path, "--json", *args, *flags)
        assert done.returncode == 0, done.stderr
        told.append(json.loads(done.stdout))
    assert told[0] == told[1]
    assert (told[0]["decision"], told[0]["reason"]) == (c["decision"], c["reason"])

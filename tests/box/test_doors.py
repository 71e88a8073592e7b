# SPDX-License-Identifier: MIT
"""One table of cases through every door: the same request must get the same decision, and mean the same bucket.

A case is what a gateway sees: the end of its connection, the X-Forwarded-For lines that came with the request, other
lines, method, host and path. /check is told remote_addr; a header door gets the same address as its gateway writes it,
with X-Forwarded-For appended to, or added to as a line of its own, or passed through.
"""
import json

import pytest

from gateway import Answer
from grpc_door import Door
from postern import run_postern
from questions import AGENT, EDGE, FORGED, ask, sha256

CONFIG = {
    "client": {"strategy": "trusted_ranges", "trusted_proxies": ["10.0.0.0/8", "2001:db8:10::/48"]},
    "identities": {
        "edge": {"token_sha256": sha256(EDGE)},
        "agent": {"token_sha256": sha256(AGENT), "limits": ["agents"]},
    },
    "limits": {
        "per-client": {"rate": "12/hour"},
        "login": {"rate": "12/hour"},
        "agents": {"rate": "12/hour", "key": ["identity"]},
        "by-path": {"rate": "12/hour", "key": ["client", "host", "path", "method"]},
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


def appended(c):
    """As Caddy and Envoy do: the peer behind what is there."""
    return [*c["chain"][:-1], c["chain"][-1] + ", " + c["peer"]] if c["chain"] else [c["peer"]]


def added(c):
    """As HAProxy does: a line of its own."""
    return [*c["chain"], c["peer"]]


def passed(c):
    return list(c["chain"])


def forward_auth(c):
    return "GET", "/forward-auth", [("X-Forwarded-Method", c["method"]), ("X-Forwarded-Host", c["host"]), ("X-Forwarded-Uri", c["path"])]


def auth_request(c):
    url = f"https://{c['host']}{c['path']}"
    return "GET", "/auth-request", [("X-Real-IP", c["peer"]), ("X-Original-Method", c["method"]), ("X-Original-URL", url)]


def ext_authz_http(c):
    return c["method"], "/ext-authz" + c["path"], [("X-Postern-Remote-Addr", c["peer"]), ("Host", c["host"])]


# What asks, and what its gateway may do to X-Forwarded-For.
WAYS = [(forward_auth, appended), (forward_auth, added)]
WAYS += [(door, chain) for door in (auth_request, ext_authz_http) for chain in (appended, added, passed)]


def by_door(postern, c, door, chain):
    """Text goes out as Latin-1: one byte each, as /check means it."""
    method, target, own = door(c)
    lines = [*own, *(("X-Forwarded-For", line) for line in chain(c)), *c["lines"]]
    if "Host" not in dict(own):
        lines.append(("Host", "postern"))
    head = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in lines)]
    return Answer(postern.raw("\r\n".join([*head, "", ""]).encode("latin-1")))


def assert_denied(answer, door, status, reason):
    if door is not auth_request:
        assert (answer.status, answer.json()["error"]) == (status, reason)
        return
    assert answer.status == (401 if status == 401 else 403) and answer.body == b""
    assert (answer.get("X-Postern-Status"), answer.get("X-Postern-Reason")) == (str(status), reason)


@pytest.mark.parametrize("c", CASES)
def test_every_door_decides_alike(postern, c):
    p = postern(CONFIG)
    full = by_check(p, c, peek=True)
    assert (full["decision"], full["reason"]) == (c["decision"], c["reason"])
    if c["decision"] == "allow":
        assert full["upstream_headers"]["X-Postern-Client"] == c["client"]

    # Each question through any door takes one from the same buckets.
    for taken, (door, chain) in enumerate(WAYS, 1):
        answer = by_door(p, c, door, chain)
        if c["decision"] == "allow":
            assert (answer.status, answer.body) == (200, b""), (door, chain)
            assert (answer.get("X-Postern-Client"), answer.get("X-Postern-Identity")) == (c["client"], full["identity"] or "")
        else:
            assert_denied(answer, door, full["status"], c["reason"])
        left = {entry["name"]: entry["remaining"] for entry in by_check(p, c, peek=True)["limits"]}
        assert left == {entry["name"]: entry["remaining"] - taken for entry in full["limits"]}, (door, chain)

    # What one door has spent is refused at the others.
    if full["limits"] and not full["limits"][0].get("shadow"):
        for _ in range(13 - len(WAYS)):
            last = by_check(p, c)
        assert last["reason"] == "rate_limited"
        for door, chain in WAYS:
            assert_denied(by_door(p, c, door, chain), door, 429, "rate_limited")


@pytest.mark.parametrize("c", CASES)
def test_envoy_over_grpc_decides_alike(postern, c):
    """It joins lines, or keeps them apart as bytes; decisions and buckets are compared, not the reason of the address."""
    p = postern(CONFIG)
    full = by_check(p, c, peek=True)
    ways = [(chain, raw) for chain in (appended, added, passed) for raw in (False, True)]
    door = Door(p.grpc)
    try:
        for taken, (chain, raw) in enumerate(ways, 1):
            lines = [*(("X-Forwarded-For", line) for line in chain(c)), *c["lines"]]
            answer = door.check(c["peer"], c["path"], c["method"], c["host"], lines, raw)
            assert (answer.allowed, answer.reason, answer.status) == (c["decision"] == "allow", c["reason"], full["status"]), (chain, raw)
            if answer.allowed:
                known = {"x-postern-client": c["client"], "x-postern-identity": full["identity"] or ""}
                assert answer.upstream_headers == {name: value for name, value in known.items() if value}
                removed = {name.lower() for name in full["remove_headers"]} | {name for name, value in known.items() if not value}
                assert set(answer.removed) == removed
            assert answer.metadata.get("rule", "") == (full["rule"] or "") and answer.metadata.get("identity") == full["identity"]
            left = {entry["name"]: entry["remaining"] for entry in by_check(p, c, peek=True)["limits"]}
            assert left == {entry["name"]: entry["remaining"] - taken for entry in full["limits"]}, (chain, raw)
    finally:
        door.close()


@pytest.mark.parametrize("c", [c for c in CASES if c.id != "high-bytes"])
def test_explain_tells_the_same_of_every_door(tmp_path, c):
    path = tmp_path / "postern.json"
    path.write_text(json.dumps(CONFIG))
    lines = [f"X-Forwarded-For: {line}" for line in c["chain"]] + [f"{name}: {value}" for name, value in c["lines"]]
    asked = [(["--remote-addr", c["peer"], "--method", c["method"], "--host", c["host"], "--path", c["path"]], lines)]
    for door in (forward_auth, auth_request, ext_authz_http):
        method, _, own = door(c)
        args = ["--method", method, "--path", c["path"]] if door is ext_authz_http else []
        chain = [("X-Forwarded-For", line) for line in added(c)]
        asked.append((["--door", door.__name__, *args], [f"{name}: {value}" for name, value in [*own, *chain, *c["lines"]]]))
    told = []
    for args, headers in asked:
        flags = [word for line in headers for word in ("-H", line)]
        done = run_postern("explain", "--config", path, "--json", *args, *flags)
        assert done.returncode == 0, done.stderr
        told.append(json.loads(done.stdout))
    assert told == [told[0]] * 4
    assert (told[0]["decision"], told[0]["reason"]) == (c["decision"], c["reason"])

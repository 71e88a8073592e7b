# SPDX-License-Identifier: MIT
"""Traefik's way of asking, replayed: no package of it can be had here. What Traefik makes of a request is written down below
from its source (ForwardAuth and the entry point's forwarded headers); the tests then ask postern exactly that.
"""
import pytest

from gateway import Answer
from postern import TOP
from questions import EDGE, IDENTITIES, ask, one_limit

MANAGED = ["X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Method", "X-Forwarded-Port", "X-Forwarded-Proto", "X-Forwarded-Uri",
    "X-Forwarded-Server", "X-Forwarded-Prefix", "X-Real-Ip", "X-Forwarded-Tls-Client-Cert", "X-Forwarded-Tls-Client-Cert-Info"]  # fmt: skip
HOP_BY_HOP = {"connection", "upgrade", "te", "trailer", "keep-alive", "transfer-encoding", "proxy-connection"}


def entry_point(lines, peer, trusted):
    """What arrives at the middleware: from a stranger every managed header is deleted, and X-Real-Ip is the peer's."""
    if peer not in trusted:
        lines = [line for line in lines if line[0].lower() not in {name.lower() for name in MANAGED}]
    if not any(name.lower() == "x-real-ip" for name, _ in lines):
        lines = [*lines, ("X-Real-Ip", peer)]
    return lines


def check_of(method, uri, host, lines, peer, trust_forward_header):
    """The check: everything but hop-by-hop lines and the length, and the five headers as this mode writes them."""
    named = {name.strip().lower() for key, value in lines if key.lower() == "connection" for name in value.split(",")}
    own = {"X-Forwarded-Method": method, "X-Forwarded-Proto": "http", "X-Forwarded-Host": host, "X-Forwarded-Uri": uri}
    managed = {name.lower() for name in MANAGED}
    kept, chain = [], []
    for name, value in lines:
        key = name.lower()
        if key in HOP_BY_HOP | {"content-length"} or (key in named and key not in managed):
            continue
        if key == "x-forwarded-for":
            chain.append(value)
        elif trust_forward_header is False and key.replace("_", "-") in managed:
            continue
        elif key not in {name.lower() for name in own}:
            kept.append((name, value))
        elif trust_forward_header:
            own[next(name for name in own if name.lower() == key)] = value
    forwarded = ", ".join([*chain, peer]) if trust_forward_header else peer
    return [*kept, ("X-Forwarded-For", forwarded), *own.items()]


def traefik(postern, peer, lines=(), mode=None, trusted=(), method="GET", uri="/", host="app.example", check_method="GET"):
    lines = check_of(method, uri, host, entry_point(list(lines), peer, trusted), peer, mode)
    head = [f"{check_method} /forward-auth HTTP/1.1", "Host: 127.0.0.1:9180", "Accept-Encoding: gzip"]
    head += [f"{name}: {value}" for name, value in lines]
    return Answer(postern.raw("\r\n".join([*head, "", ""]).encode("latin-1")))


FORGERIES = [
    [],
    [("X-Forwarded-For", "6.6.6.6")],
    [("X-Forwarded-For", "6.6.6.6"), ("X-Forwarded-For", "7.7.7.7")],
    [("X-Forwarded-For", "unknown, _x, ,"), ("X_Forwarded_For", "6.6.6.6")],
    [("X-Real-Ip", "6.6.6.6"), ("Forwarded", "for=6.6.6.6"), ("X-Original-URL", "/free"), ("X-Postern-Remote-Addr", "6.6.6.6")],
    [("X-Forwarded-Uri", "/free"), ("X-Forwarded-Method", "BREW"), ("X-Forwarded-Host", "other"), ("X-Forwarded-Prefix", "/x")],
    [("Connection", "X-Forwarded-For, X-Forwarded-Uri"), ("X-Forwarded-For", "6.6.6.6"), ("Upgrade", "websocket")],
    [("X-Postern-Client", "6.6.6.6"), ("X-Postern-Identity", "edge"), ("Expect", "100-continue")],
]


@pytest.mark.parametrize("mode", (None, False, True))
@pytest.mark.parametrize("client", ("203.0.113.7", "2001:db8::7"))
def test_one_hop(postern, mode, client):
    p = postern(one_limit(f"{len(FORGERIES)}/hour"))
    for forged in FORGERIES:
        answer = traefik(p, client, forged, mode)
        assert (answer.status, answer.body) == (200, b""), forged
        assert (answer.get("X-Postern-Client"), answer.get("X-Postern-Identity")) == (client, "")
    for forged in FORGERIES:
        assert traefik(p, client, forged, mode).status == 429, forged
    assert traefik(p, "203.0.113.8", mode=mode).status == 200


@pytest.mark.parametrize("forged", FORGERIES)
def test_two_hops(postern, forged):
    """The hop appends to what the client says; the entry point trusts the hop, the check trusts the entry point."""
    p = postern(one_limit(client={"strategy": "trusted_ranges", "trusted_proxies": ["10.0.0.7"]}))
    others = [line for line in forged if line[0] not in ("X-Forwarded-For", "Connection", "Upgrade", *MANAGED)]
    chain = ", ".join([*(value for name, value in forged if name == "X-Forwarded-For"), "203.0.113.7"])
    lines = [*others, ("X-Forwarded-For", chain)]
    answer = traefik(p, "10.0.0.7", lines, True, ["10.0.0.7"])
    assert (answer.status, answer.get("X-Postern-Client")) == (200, "203.0.113.7")
    # A client that goes round the hop gains nothing.
    answer = traefik(p, "203.0.113.9", lines, True, ["10.0.0.7"])
    assert (answer.status, answer.get("X-Postern-Client")) == (200, "203.0.113.9")


def test_the_classic_mistake(postern):
    """The entry point trusts the hop, the check does not: postern never hears of a client, so everybody is the hop."""
    p = postern(one_limit("2/hour", client={"strategy": "trusted_ranges", "trusted_proxies": ["10.0.0.7"]}))
    clients = [[("X-Forwarded-For", f"203.0.113.{n}")] for n in range(3)]
    answers = [traefik(p, "10.0.0.7", lines, None, ["10.0.0.7"]) for lines in clients]
    assert [answer.status for answer in answers] == [200, 200, 429]
    assert answers[0].get("X-Postern-Client") == ""
    assert p.wait_log("client_undecided")["client_reason"] == "header_missing"


def test_denials_and_tokens(postern):
    config = one_limit("1/hour", identities=IDENTITIES)
    config["rules"].insert(0, {"name": "ours", "match": {"path": "/ours"}, "require": "identity", "limits": ["per-client"]})
    p = postern(config)
    for line in (("X-Internal-Token", EDGE), ("Authorization", f"Bearer {EDGE}")):
        answer = traefik(p, "203.0.113.7", [line], uri="/ours")
        assert (answer.status, answer.get("X-Postern-Identity")) == (200, "edge")
    answer = traefik(p, "203.0.113.7", uri="/ours")
    assert (answer.status, answer.get("WWW-Authenticate"), answer.json()) == (401, "Bearer", {"error": "identity_required"})
    # preserveRequestMethod: the check has the request's own method, and no body.
    answer = traefik(p, "203.0.113.7", method="POST", check_method="POST")
    assert answer.status == 429 and set(answer.json()) == {"error", "retry_after"}
    assert answer.get("Retry-After") and answer.get("RateLimit").startswith('"per-client";r=0;')
    assert not [name for name, _ in answer.headers if name.lower().startswith("x-postern")]
    assert ask(p, "203.0.113.7", peek=True)["limits"][0]["remaining"] == 0


def test_the_shipped_files_say_what_is_replayed():
    for name, trust in (("one-hop.yml", "false"), ("two-hops.yml", "true")):
        text = (TOP / "deploy" / "gateways" / "traefik" / name).read_text()
        assert "address: http://127.0.0.1:9180/forward-auth\n" in text
        assert f"trustForwardHeader: {trust}\n" in text
        assert "authResponseHeaders: [X-Postern-Identity, X-Postern-Client]\n" in text
        # Names that Connection lists are dropped in front of forwardAuth, so that one cannot take along what that sets; other
        # spellings are not.
        assert "middlewares: [postern-clean, postern, postern-strip]\n" in text
        for name in ("X_Postern_%s", "X_Postern-%s", "X-Postern_%s"):
            assert all(f'          {name % what}: ""\n' in text for what in ("Identity", "Client"))

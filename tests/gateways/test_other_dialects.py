# SPDX-License-Identifier: MIT
"""Gateways that no package here has, replayed as their source asks: APISIX forward-auth, HAProxy with haproxy-auth-request, and
the Envoy family without the header that our files add."""
from gateway import Answer
from questions import EDGE, IDENTITIES, ask, one_limit


def raw(postern, head, body=b""):
    return postern.raw("\r\n".join([*head, "", ""]).encode("latin-1") + body)


def test_apisix(postern):
    """A fresh set of five headers, and of the client's only what is listed; as GET, or as POST with the body."""
    p = postern(one_limit("3/hour", identities=IDENTITIES))
    five = ["Host: postern", "X-Forwarded-Proto: https", "X-Forwarded-Method: POST", "X-Forwarded-Host: app.example",
        "X-Forwarded-Uri: /login?x=1", "X-Forwarded-For: 203.0.113.7"]  # fmt: skip
    answer = Answer(raw(p, ["GET /forward-auth HTTP/1.1", *five]))
    assert (answer.status, answer.body, answer.get("X-Postern-Client")) == (200, b"", "203.0.113.7")
    answer = Answer(raw(p, ["GET /forward-auth HTTP/1.1", *five, f"Authorization: Bearer {EDGE}"]))
    assert (answer.status, answer.get("X-Postern-Identity")) == (200, "edge")
    # A body costs the connection, and is not waited for.
    for body in (b"", b"x" * 100):
        answer = Answer(raw(p, ["POST /forward-auth HTTP/1.1", *five, "Content-Length: 100"], body))
        assert (answer.status, answer.get("Connection")) == (200, "close")
    answer = Answer(raw(p, ["GET /forward-auth HTTP/1.1", *five]))
    assert answer.status == 429 and answer.get("Retry-After")


def test_haproxy_auth_request(postern):
    """HEAD, names in lower case, a connection a check; nothing of an answer but its head."""
    p = postern(one_limit("2/hour"))
    head = ["HEAD /forward-auth HTTP/1.1", "host: postern", "connection: close", "user-agent: x", "x-forwarded-for: 6.6.6.6",
        "x-forwarded-for: 203.0.113.7", "x-forwarded-method: GET", "x-forwarded-uri: /", "x-forwarded-host: app.example"]  # fmt: skip
    for status in (200, 200, 429):
        answer = Answer(raw(p, head))
        assert (answer.status, answer.body) == (status, b"")
        assert (answer.get("X-Postern-Client") is not None) == (status == 200)
        assert (answer.get("Retry-After") is not None) == (status == 429)
    assert ask(p, "203.0.113.7", peek=True)["limits"][0]["remaining"] == 0


def test_envoy_before_1_28(postern):
    """It put an address of its own at the end of X-Forwarded-For, whatever was allowed: the header decides, not that entry."""
    p = postern(one_limit())
    head = ["GET /ext-authz/x HTTP/1.1", "host: app.example", "content-length: 0", "x-envoy-internal: true",
        "x-envoy-expected-rq-timeout-ms: 200", "x-forwarded-for: 10.1.2.3"]  # fmt: skip
    answer = Answer(raw(p, [*head, "x-postern-remote-addr: 203.0.113.7"]))
    assert (answer.status, answer.get("X-Postern-Client")) == (200, "203.0.113.7")
    answer = Answer(raw(p, head))
    assert answer.status == 403 and answer.json()["error"] == "door_misconfigured"


def test_gateway_api_asks_as_get(postern):
    """ExternalAuth of the Gateway API may send GET and the true length of a body that stays where it is."""
    p = postern(one_limit())
    head = ["GET /ext-authz/upload HTTP/1.1", "Host: app.example", "Content-Length: 5000", "X-Postern-Remote-Addr: 203.0.113.7"]
    answer = Answer(raw(p, head))
    assert (answer.status, answer.body, answer.get("Connection")) == (200, b"", "close")

# SPDX-License-Identifier: MIT
"""/forward-auth as a gateway sees it, byte by byte where the gateway depends on it."""
import json

import pytest

from postern import connect, read_answer
from questions import EDGE, FORGED, IDENTITIES, ask, one_limit, remaining

METHOD = ("X-Forwarded-Method", "GET")
URI = ("X-Forwarded-Uri", "/a?b=c")
CLIENT = ("X-Forwarded-For", "203.0.113.7")
INTERNAL = ("X-Postern-Client", "X-Postern-Identity")


def go(postern, *lines, target="/forward-auth", method="GET"):
    """One check with those header lines besides the required ones that they do not name."""
    names = {name.lower() for name, _ in lines}
    lines = [line for line in (METHOD, URI, CLIENT) if line[0].lower() not in names] + list(lines)
    return postern.ask(method, target, headers=lines)


def without(*left_out):
    return [line for line in (METHOD, URI, CLIENT) if line[0] not in left_out]


def test_allow_is_200_with_nothing_in_it(postern):
    status, headers, body = go(postern(one_limit()))
    assert (status, headers["Content-Length"], body) == (200, "0", b"")
    assert headers.get_all("X-Postern-Client") == ["203.0.113.7"]
    assert headers.get_all("X-Postern-Identity") == [""]
    assert headers["RateLimit-Policy"] == '"per-client";q=5;w=3600'
    assert headers["RateLimit"].startswith('"per-client";r=4;t=')
    assert headers["Cache-Control"] == "no-store"


def test_denial_has_exactly_the_reason_and_the_wait(postern):
    p = postern(one_limit(identities=IDENTITIES))
    ask(p, cost=5)
    status, headers, body = go(p, ("X-Postern-Client", "6.6.6.6"), ("X-Postern-Identity", "edge"))
    assert status == 429
    wait = int(headers["Retry-After"])
    assert json.loads(body) == {"error": "rate_limited", "retry_after": wait}
    assert headers["Content-Type"] == "application/json"
    assert not [name for name in headers if name.lower().startswith("x-postern")]
    assert b"per-client" not in body and b"203.0.113.7" not in body


def test_a_proven_identity(postern):
    p = postern(one_limit(identities=IDENTITIES))
    for line in (("X-Internal-Token", EDGE), ("Authorization", f"Bearer {EDGE}")):
        status, headers, _ = go(p, line, ("X-Postern-Identity", "agent"))
        assert (status, headers.get_all("X-Postern-Identity")) == (200, ["edge"])
    assert remaining(p) == 5


def test_401_says_how(postern):
    config = one_limit(identities=IDENTITIES)
    config["rules"].insert(0, {"name": "i", "match": {"path": "/i/*"}, "require": "identity", "limits": ["per-client"]})
    status, headers, body = go(postern(config), ("X-Forwarded-Uri", "/i/x"), ("X-Internal-Token", FORGED))
    assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")
    assert json.loads(body) == {"error": "identity_required"}
    assert "RateLimit" not in headers and "X-Postern-Client" not in headers


def test_forgeries_change_nothing(postern):
    p = postern(one_limit())
    forged = [("X-Postern-Client", "6.6.6.6"), ("X-Postern-Identity", "edge"), ("X-Postern-Remote-Addr", "6.6.6.6"),
        ("X-Real-IP", "6.6.6.6"), ("X-Original-URL", "/x"), ("X-Original-Method", "PUT"), ("Forwarded", "for=6.6.6.6"),
        ("X_Forwarded_For", "6.6.6.6"), ("CF-Connecting-IP", "6.6.6.6")]  # fmt: skip
    status, headers, _ = go(p, *forged)
    assert status == 200
    assert headers.get_all("X-Postern-Client") == ["203.0.113.7"] and headers.get_all("X-Postern-Identity") == [""]
    assert remaining(p) == 4


@pytest.mark.parametrize("header", ["X-Forwarded-For", "X-Forwarded-Method", "X-Forwarded-Uri"])
def test_a_missing_header_is_never_guessed_around(postern, header):
    p = postern(one_limit())
    status, headers, body = p.ask("GET", "/forward-auth", headers=without(header))
    assert status == 403
    said = json.loads(body)
    assert (said["error"], header in said["detail"], set(said)) == ("door_misconfigured", True, {"error", "detail"})
    assert not [name for name in headers if name.lower().startswith("x-postern")]
    assert p.wait_log("door_misconfigured")["header"] == header
    assert p.metrics()[
        'postern_decisions_total{door="forward_auth",decision="deny",reason="door_misconfigured",rule=""}'
    ] == 1
    assert p.metrics()['postern_door_misconfigured_total{door="forward_auth",header="%s"}' % header] == 1
    assert remaining(p) == 5


@pytest.mark.parametrize("header", ["X-Forwarded-Method", "X-Forwarded-Uri", "X-Forwarded-Host", "X-Forwarded-Proto"])
def test_a_doubled_header_is_refused(postern, header):
    p = postern(one_limit())
    status, _, body = p.ask("GET", "/forward-auth", headers=without(header) + [(header, "/a"), (header.lower(), "/a")])
    assert status == 403
    assert json.loads(body)["error"] == "door_misconfigured" and header in json.loads(body)["detail"]
    assert remaining(p) == 5


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW"])
def test_any_method(postern, method):
    status, headers, body = go(postern(one_limit()), method=method)
    assert (status, body, headers["X-Postern-Client"]) == (200, b"", "203.0.113.7")


def test_a_denied_head_has_no_body(postern):
    p = postern(one_limit())
    ask(p, cost=5)
    connection = p.connect()
    for _ in range(2):
        status, headers, body = connection.ask("HEAD", "/forward-auth", headers=[METHOD, URI, CLIENT])
        assert (status, body) == (429, b"") and int(headers["Content-Length"]) > 0
    connection.close()


def test_the_query_of_the_check_is_ignored(postern):
    p = postern(one_limit())
    assert go(p, target="/forward-auth?x=1&remote_addr=6.6.6.6")[0] == 200
    assert go(p, target="/forward-auth?")[0] == 200
    assert remaining(p) == 3
    assert go(p, target="/forward-auth/")[0] == 404
    assert go(p, target="/forward-auth/x")[0] == 404


def test_the_connection_is_kept(postern):
    p = postern(one_limit())
    with connect(p.http) as sock:
        for status in [b"200"] * 5 + [b"429"] * 3:
            sock.sendall(request())
            answer = read_answer(sock)
            assert answer.split(b" ", 2)[1] == status
            assert b"connection: close" not in answer.lower()


def request(*lines, method="GET"):
    head = [f"{method} /forward-auth HTTP/1.1", "Host: app.example"]
    head += [f"{name}: {value}" for name, value in (METHOD, URI, CLIENT, *lines)]
    return "\r\n".join(head).encode() + b"\r\n\r\n"


@pytest.mark.parametrize("length", [("Content-Length", "10"), ("Content-Length", "10000000000"), ("Transfer-Encoding", "chunked")])
@pytest.mark.parametrize("left", [5, 0])
def test_an_announced_body_is_never_waited_for(postern, length, left):
    """A leaked Content-Length must not swallow the next client's question: answer at once, then close."""
    p = postern(one_limit())
    if left == 0:
        ask(p, cost=5)
    with connect(p.http) as sock:
        sock.sendall(request(length, method="POST"))
        answer = read_answer(sock)
        assert answer.split(b" ", 2)[1] == (b"200" if left else b"429")
        assert b"connection: close" in answer.lower()
        assert sock.recv(1) == b""
    assert ask(p, peek=True)["limits"][0]["remaining"] == max(left - 1, 0)


def test_a_length_of_zero_is_no_body(postern):
    p = postern(one_limit())
    with connect(p.http) as sock:
        for _ in range(2):
            sock.sendall(request(("Content-Length", "0"), method="POST"))
            answer = read_answer(sock)
            assert answer.split(b" ", 2)[1] == b"200" and b"connection: close" not in answer.lower()


def test_expect_is_no_reason_to_wait(postern):
    p = postern(one_limit())
    answer = p.raw(request(("Expect", "100-continue")))
    assert b" 200 " in answer.split(b"\r\n\r\n")[-2]


def test_http_1_0(postern):
    answer = postern(one_limit()).raw(request().replace(b"HTTP/1.1", b"HTTP/1.0"))
    assert answer.split(b" ", 2)[1] == b"200"


@pytest.mark.parametrize(
    "lines, peer, rest_is_seen",
    [
        (["203.0.113.7"], "203.0.113.7", False),
        (["6.6.6.6, 203.0.113.7"], "203.0.113.7", True),
        (["6.6.6.6", "203.0.113.7"], "203.0.113.7", True),
        ([" , \t203.0.113.7 "], "203.0.113.7", False),
        (["2001:db8::7"], "2001:db8::7", False),
        (["[2001:db8::7]:443"], "2001:db8::7", False),
        (["203.0.113.7:5000"], "203.0.113.7", False),
        (["203.0.113.7,"], "", True),
        (["junk"], "", False),
        ([""], "", False),
    ],
)
def test_the_last_entry_is_remote_addr(postern, lines, peer, rest_is_seen):
    p = postern(one_limit())
    status, headers, _ = p.ask(
        "GET", "/forward-auth", headers=[METHOD, URI] + [("X-Forwarded-For", line) for line in lines]
    )
    assert (status, headers.get_all("X-Postern-Client")) == (200, [peer])
    warned = p.metrics()['postern_request_warnings_total{warning="forwarded_header_ignored"}']
    assert warned == (1 if rest_is_seen else 0)

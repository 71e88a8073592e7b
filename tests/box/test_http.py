# SPDX-License-Identifier: MIT
"""HTTP/1 as it goes over the wire: who closes when, what is answered in which order, and that nothing a peer does or leaves
undone costs more than its own connection."""
import email.utils
import json
import socket
import time

import pytest

from postern import connect, read_answer, until
from questions import ask, one_limit, remaining

GOOD = b'{"remote_addr": "203.0.113.7"}'
PEEK = b'{"remote_addr": "203.0.113.7", "peek": true}'
HEADER_DOOR = b"X-Forwarded-For: 203.0.113.7\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Uri: /\r\n"


def check(body=PEEK, *lines, version=b"1.1"):
    head = [b"POST /check HTTP/" + version, b"Host: x", b"Content-Length: %d" % len(body), *lines]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


def status(answer):
    return int(answer.split(b" ", 2)[1])


def read_to_end(sock):
    data = b""
    while more := sock.recv(65536):
        data += more
    return data


def problem_of(answer):
    """The problem that a whole answer is; it must be the last of its connection, and say so."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"\r\nContent-Type: application/problem+json" in head and b"\r\nConnection: close" in head, answer
    problem = json.loads(body)
    assert problem["status"] == status(answer)
    return problem["status"], problem["code"]


@pytest.fixture(scope="module")
def one():
    from postern import Postern

    instance = Postern(one_limit()).start()
    yield instance
    instance.cleanup()


# ---------------------------------------------------------------------------------------- closing


@pytest.mark.parametrize("cut", [0, 10, 60])
def test_who_closes_half_after_the_question_is_answered(one, cut):
    data = check()
    with connect(one.http) as sock:
        sock.sendall(data[:cut])
        sock.sendall(data[cut:])
        sock.shutdown(socket.SHUT_WR)
        answer = read_to_end(sock)
    assert answer.count(b"HTTP/1.1 ") == 1 and status(answer) == 200 and answer.endswith(b"}\n")


@pytest.mark.parametrize("data", [b"", b"POST /ch", check()[:-1], check() + b"GET"], ids=["nothing", "line", "body", "next"])
def test_who_closes_half_in_a_question_is_let_go(one, data):
    with connect(one.http) as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        assert read_to_end(sock).count(b"HTTP/1.1 ") == (1 if data.endswith(b"GET") else 0)


def test_nginx_asks_with_http_1_0(one):
    with connect(one.http) as sock:
        sock.sendall(check(version=b"1.0"))
        answer = read_to_end(sock)
        assert status(answer) == 200 and b"\r\nConnection: close\r\n" in answer
    with connect(one.http) as sock:
        for _ in range(3):
            sock.sendall(check(PEEK, b"Connection: keep-alive", version=b"1.0"))
            answer = read_answer(sock)
            assert status(answer) == 200 and b"\r\nConnection: keep-alive\r\n" in answer


def test_connection_close_is_honoured(one):
    with connect(one.http) as sock:
        sock.sendall(check(PEEK, b"Connection: Close") + check())
        answer = read_to_end(sock)
    assert answer.count(b"HTTP/1.1 ") == 1 and b"\r\nConnection: close\r\n" in answer


@pytest.mark.parametrize("size", [1000, 100_000, 2_000_000])
@pytest.mark.parametrize("path", [b"/forward-auth", b"/check", b"/nothing"])
def test_a_body_that_nobody_reads_does_not_cost_the_answer(one, path, size):
    """Closing with bytes unread resets the connection, and what the peer has not read yet is lost with it."""
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n" % (path, size + 70_000) + HEADER_DOOR + b"\r\n"
    for _ in range(5):
        with connect(one.http) as sock:
            sock.sendall(head)
            sock.sendall(b"x" * size)
            time.sleep(0.001)
            assert status(read_answer(sock)) in (200, 429, 413, 404)
            assert sock.recv(1) == b""


def test_who_goes_on_sending_is_cut_off(postern):
    p = postern(one_limit(http={"request_timeout": "200ms"}))
    with connect(p.http) as sock:
        sock.sendall(b"POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n")
        assert status(read_answer(sock)) == 404
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            for _ in range(1_000_000):
                sock.sendall(b"x" * 65536)
    until(lambda: p.metrics()['postern_connections{listener="http"}'] == 0)


def test_who_neither_sends_nor_closes_is_let_go(postern):
    p = postern(one_limit(http={"request_timeout": "200ms"}))
    with connect(p.http) as sock:
        sock.sendall(b"x\r\n\r\n")
        assert problem_of(read_answer(sock)) == (400, "bad_framing")
        assert sock.recv(1) == b""
        until(lambda: p.metrics()['postern_connections{listener="http"}'] == 0)


# ---------------------------------------------------------------------------------------- order


def test_a_hundred_questions_sent_ahead(one):
    bodies = [b'{"remote_addr": "203.0.113.7", "peek": true, "id": "%d"}' % i for i in range(100)]
    data = b"".join(map(check, bodies[:-1])) + check(bodies[-1], b"Connection: close")
    for size in (len(data), 1000, 77):
        with connect(one.http) as sock:
            for at in range(0, len(data), size):
                sock.sendall(data[at : at + size])
            answers = read_to_end(sock).split(b"HTTP/1.1 ")[1:]
        assert [json.loads(answer.partition(b"\r\n\r\n")[2])["id"] for answer in answers] == [str(i) for i in range(100)]


def test_bodies_of_every_size_behind_each_other(one):
    """What has come of the next question with the end of a body lies at every place of the buffer once."""
    data = b""
    for size in range(60, 9000, 97):
        body = PEEK + b" " * (size - len(PEEK))
        data += check(body)
        chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        data += b"POST /check HTTP/1.1\r\nHost: x\r\nX-A: %s\r\nTransfer-Encoding: chunked\r\n\r\n" % (b"a" * (size % 7200)) + chunks
    n = data.count(b"POST /check")
    with connect(one.http) as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        answers = read_to_end(sock)
    assert answers.count(b"HTTP/1.1 200 ") == answers.count(b"HTTP/1.1 ") == n


def test_who_asks_ahead_does_not_hold_up_others(one):
    """One connection with thousands of questions in its queue, and one with a single one beside it."""
    with connect(one.http) as many, connect(one.http) as single:
        many.setblocking(False)
        batch = check() * 200
        sent = 0
        try:
            while sent < 20_000_000:
                sent += many.send(batch)
        except BlockingIOError:
            pass  # it is not read from any more, since nobody takes its answers
        for _ in range(20):
            single.sendall(check())
            assert status(read_answer(single)) == 200


# ---------------------------------------------------------------------------------------- slow peers


def test_answers_to_a_peer_that_reads_slowly(one):
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        sock.settimeout(20)
        host, _, port = one.http.rpartition(":")
        sock.connect((host, int(port)))
        sock.sendall(check() * 300)
        sock.shutdown(socket.SHUT_WR)
        data = b""
        while more := sock.recv(700):
            data += more
    answers = data.split(b"HTTP/1.1 200 ")
    assert len(answers) == 301
    for answer in answers[1:]:
        head, _, body = answer.partition(b"\r\n\r\n")
        assert b"\r\nContent-Length: %d" % len(body) in head and json.loads(body)["rule"] == "all"


def test_a_long_answer_to_a_peer_that_reads_slowly(one):
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        sock.settimeout(20)
        host, _, port = one.ops.rpartition(":")
        sock.connect((host, int(port)))
        sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
        sock.shutdown(socket.SHUT_WR)
        data = read_to_end(sock)
    answers = data.split(b"HTTP/1.1 200 OK\r\n")[1:]
    assert len(answers) == 20
    for answer in answers:
        head, _, body = answer.partition(b"\r\n\r\n")
        assert b"\r\nContent-Length: %d" % len(body) in head


def test_a_peer_that_never_reads_is_ended(postern):
    p = postern(one_limit("1000000/hour", http={"request_timeout": "300ms"}))
    with connect(p.http) as sock:
        sock.settimeout(10)
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            while True:
                sock.sendall(check() * 100)
        until(lambda: p.metrics()['postern_connections{listener="http"}'] == 0)
    assert ask(p)["reason"] == "allowed"


CHUNKED = b"POST /check HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "first, drop",
    [(b"POST /", b"x"), (b"POST /check HTTP/1.1\r\n", b"X: y\r\n"), (check(b" " * 60_000)[:100], b" "), (CHUNKED, b"1\r\n \r\n")],
    ids=["line", "header", "body", "chunks"],
)
def test_drops_do_not_prolong_a_question(postern, first, drop):
    p = postern(one_limit(http={"request_timeout": "300ms"}))
    with connect(p.http) as sock:
        sock.sendall(check())
        assert status(read_answer(sock)) == 200  # the time of a later question counts from its own first byte
        sock.settimeout(0.02)
        sock.sendall(first)
        try:
            for _ in range(500):
                sock.sendall(drop)
                try:
                    if not sock.recv(1000):
                        break
                except socket.timeout:
                    continue
            else:
                pytest.fail("it goes on for ever")
        except (ConnectionResetError, BrokenPipeError):
            pass
    assert ask(p)["reason"] == "allowed"


# ---------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    "data, want",
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", (400, "bad_framing")),
        (b"GET /check\r\n\r\n", (400, "bad_framing")),
        (b"GET /check HTTP/1.1\n", (400, "bad_framing")),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (505, "http_version_not_supported")),
        (b"GET /check HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 20000, (431, "headers_too_large")),
        (b"GET /" + b"&" * 20000, (431, "headers_too_large")),
        (b"GET /check HTTP/1.1\r\nHost: x\r\n" + b"X:\r\n" * 300 + b"\r\n", (431, "headers_too_large")),
        (CHUNKED + b"5;" + b"x" * 20000, (400, "bad_framing")),
        (CHUNKED + b"0" * 20000, (400, "bad_framing")),
        (CHUNKED + b"5\nhello\n0\n\n", (400, "bad_framing")),
        (CHUNKED + b"5\r\nhello\r\n0\r\n" + b"X: y\r\n" * 2000, (400, "bad_framing")),
        (CHUNKED + b"fffffffffffffffff\r\n", (400, "bad_framing")),
        (CHUNKED + b"ffffffffffffffff\r\n" + b"x" * 70000, (413, "body_too_large")),
        (check(b" " * 65537), (413, "body_too_large")),
    ],
)
def test_every_refusal_is_a_problem(postern, data, want):
    p = postern(one_limit())
    assert problem_of(p.raw(data)) == want
    found = p.metrics()
    assert found['postern_bad_requests_total{code="%s"}' % want[1]] == 1
    assert found['postern_requests_total{listener="http",code="%d"}' % want[0]] == 1
    assert remaining(p) == 5


def test_an_endless_line_of_a_chunk_costs_nothing(postern):
    p = postern(one_limit())
    with connect(p.http) as sock:
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            sock.sendall(CHUNKED + b"5;")
            for _ in range(1_000_000):
                sock.sendall(b"x" * 65536)
    before = p.metrics()["process_cpu_seconds_total"]
    time.sleep(0.2)
    assert p.metrics()["process_cpu_seconds_total"] - before < 0.1


# ---------------------------------------------------------------------------------------- the rest


def test_the_client_is_told_to_go_on_only_where_it_waits(one):
    go_on = b"HTTP/1.1 100 Continue\r\n\r\n"
    expect = b"Expect: 100-continue"
    with connect(one.http) as sock:
        head, _, body = check(PEEK, expect).partition(b"\r\n\r\n")
        sock.sendall(head + b"\r\n\r\n")
        assert sock.recv(len(go_on), socket.MSG_WAITALL) == go_on
        sock.sendall(body)
        assert status(read_answer(sock)) == 200
        # Sent along, too large, or for nobody: no reason to.
        sock.sendall(check(PEEK, expect))
        assert status(read_answer(sock)) == 200
    for data, code in [
        (b"POST /check HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n" + expect + b"\r\n\r\n", 413),
        (b"POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n" + expect + b"\r\n\r\n", 404),
        (b"POST /nothing HTTP/1.1\r\nHost: x\r\n" + expect + b"\r\nConnection: close\r\n\r\n", 404),
    ]:
        assert status(one.raw(data)) == code


def test_answers_have_a_date(one):
    said, headers, _ = one.ask("POST", "/check", PEEK)
    assert said == 200
    when = email.utils.parsedate_to_datetime(headers["Date"])
    assert abs(when.timestamp() - time.time()) < 3
    assert headers["Date"].endswith(" GMT")


def test_an_empty_line_in_front_is_read_over(one):
    with connect(one.http) as sock:
        sock.sendall(check() + b"\r\n" + check() + b"\r\n")
        assert status(read_answer(sock)) == 200
        sock.sendall(check())
        assert status(read_answer(sock)) == 200

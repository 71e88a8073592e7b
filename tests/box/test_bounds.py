# SPDX-License-Identifier: MIT
"""What one peer may cost: bytes, connections and time, each settable."""
import select
import socket

import pytest

from postern import connect, read_answer, until
from questions import ask, one_limit, remaining

GOOD = b'{"remote_addr": "203.0.113.7"}'
HEAD = b"POST /check HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(GOOD)


def closed_without_decision(sock):
    """Whatever is said at the end (a 408 or nothing), it is no decision."""
    answer = read_answer(sock)
    return b" 200 " not in answer.split(b"\r\n", 1)[0]


@pytest.mark.parametrize("sent", [b"", b"POST /che", HEAD, HEAD + GOOD[:-1]], ids=["nothing", "line", "head", "half-a-body"])
def test_a_request_that_does_not_arrive_is_ended(postern, sent):
    p = postern(one_limit(http={"request_timeout": "200ms", "idle_timeout": "1s"}))
    with connect(p.http) as sock:
        sock.sendall(sent)
        assert closed_without_decision(sock)
    assert remaining(p) == 5


def test_drops_of_a_request_do_not_prolong_its_time(postern):
    p = postern(one_limit(http={"request_timeout": "300ms"}))
    with connect(p.http) as sock:
        sock.settimeout(0.02)  # a byte, then a moment in which nothing is answered, again and again
        sock.sendall(b"POST /check HTTP/1.1\r\nX-Slow: ")
        try:
            for _ in range(1000):
                sock.sendall(b"x")
                try:
                    if not sock.recv(1000):
                        break
                except socket.timeout:
                    continue
            else:
                pytest.fail("a request of one byte at a time goes on for ever")
        except (ConnectionResetError, BrokenPipeError):
            pass
    assert ask(p)["reason"] == "allowed"


def test_where_descriptors_are_few_a_full_http_blinds_no_health_check(postern):
    p = postern(one_limit(listen={"grpc": "127.0.0.1:0"}), open_files=64)
    (warning,) = p.log("few_descriptors")
    assert all(word in warning["msg"] for word in ("64 ", "http.max_connections", "grpc.max_connections", "LimitNOFILE"))
    sockets = [connect(endpoint) for endpoint in (p.http, p.grpc) for _ in range(100)]
    try:
        for _ in range(10):
            assert p.get_ops("/readyz") == (200, "ok\n")
        assert p.metrics()['postern_connections_rejected_total{listener="http"}'] > 50
    finally:
        for sock in sockets:
            sock.close()
    until(lambda: p.metrics()['postern_connections{listener="http"}'] == 0)
    assert ask(p)["reason"] == "allowed"


def test_where_descriptors_are_enough_nothing_is_said(postern):
    p = postern(one_limit(http={"max_connections": 10}, grpc={"max_connections": 10}), open_files=128)
    assert p.log("few_descriptors") == []


CHUNKED = b"POST /check HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


def cpu_s(p):
    return p.metrics()["process_cpu_seconds_total"]


@pytest.mark.parametrize("line", [b"0" * 60_000, b"5;" + b"a" * 60_000], ids=["size", "extension"])
def test_a_chunk_line_that_never_ends_is_ended(postern, line):
    """And nobody else: not who is slow, and not at the price of a core until http.request_timeout."""
    p = postern(one_limit(http={"request_timeout": "1h"}))
    with connect(p.http) as slow, connect(p.http) as sock:
        slow.sendall(CHUNKED + b"1e\r\n" + GOOD[:5])
        before = cpu_s(p)
        sock.sendall(CHUNKED + line)
        assert read_answer(sock).split(b" ", 2)[1] == b"400"
        assert cpu_s(p) - before < 0.5  # an upper bound; as much as a second where nobody looks
        slow.sendall(GOOD[5:] + b"\r\n0\r\n\r\n")
        assert b'"allowed"' in read_answer(slow)


@pytest.mark.parametrize("line, more", [(b"0" * 16, b"0"), (b"5;" + b"a" * 4096, b"a")], ids=["size", "extension"])
def test_a_chunk_line_is_ended_at_its_bound(postern, line, more):
    """Not a byte before, and at the first one behind, however they come."""
    p = postern(one_limit(http={"request_timeout": "1h"}))
    with connect(p.http) as sock:
        sock.sendall(CHUNKED + line)
        with connect(p.http) as other:  # what has come before is read before
            other.sendall(HEAD + GOOD)
            assert b'"allowed"' in read_answer(other)
        assert not select.select([sock], [], [], 0)[0]
        sock.sendall(more)
        assert read_answer(sock).split(b" ", 2)[1] == b"400"


def test_an_idle_connection_is_closed_and_a_busy_one_is_not(postern):
    p = postern(one_limit("1000/hour", http={"idle_timeout": "1s"}))
    busy = p.connect()
    with connect(p.http) as idle:
        idle.sendall(HEAD + GOOD)
        assert read_answer(idle).split(b" ", 2)[1] == b"200"
        idle.settimeout(0.1)
        closed = False
        for _ in range(100):
            assert busy.ask("POST", "/check", GOOD)[0] == 200
            try:
                closed = idle.recv(100) == b""
            except socket.timeout:
                continue
            break
        assert closed
    local = busy.sock.getsockname()
    assert busy.ask("POST", "/check", GOOD)[0] == 200 and busy.sock.getsockname() == local
    busy.close()


def test_the_size_of_a_body_is_settable(postern):
    p = postern(one_limit(http={"body_bytes": "1KiB"}))
    padded = GOOD[:-1] + b" " * (1024 - len(GOOD)) + b"}"
    assert p.ask("POST", "/check", padded)[0] == 200
    assert p.ask("POST", "/check", padded + b" ")[0] == 413
    p = postern(one_limit(http={"body_bytes": "1MiB"}))
    assert p.ask("POST", "/check", padded + b" " * 1_000_000)[0] == 200


@pytest.mark.parametrize("size, fits, does_not", [("4KiB", 3000, 9000), ("64KiB", 60000, 140000)])
def test_the_size_of_a_head_is_settable(postern, size, fits, does_not):
    p = postern(one_limit(http={"header_bytes": size}))
    assert p.ask("POST", "/check", GOOD, {"X-A": "x" * fits})[0] == 200
    answer = p.raw(b"POST /check HTTP/1.1\r\nHost: x\r\nX-A: " + b"x" * does_not + b"\r\n\r\n")
    assert answer.split(b" ", 2)[1] == b"431"
    assert remaining(p) == 4


def test_the_default_holds_16_kib_of_headers(postern):
    p = postern(one_limit())
    assert p.ask("POST", "/check", GOOD, [(f"X-{i}", "v" * 1000) for i in range(15)])[0] == 200


def test_many_connections_come_and_go(postern):
    p = postern(one_limit("10000/hour", workers=2))
    before = p.metrics()["process_open_fds"]
    for _ in range(5):
        sockets = [connect(p.http) for _ in range(100)]
        for sock in sockets:
            sock.sendall(HEAD + GOOD)
        assert all(read_answer(sock).split(b" ", 2)[1] == b"200" for sock in sockets)
        for sock in sockets:
            sock.close()
    until(lambda: p.metrics()['postern_connections{listener="http"}'] == 0)
    assert p.metrics()["process_open_fds"] <= before + 1

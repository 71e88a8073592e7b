# SPDX-License-Identifier: MIT
"""gRPC frame by frame: what no library sends, and what must be true of every frame that is sent back."""
import signal
import time

import pytest

import h2
from grpc_door import CHECK, HEALTH, REFLECTION, CheckResponse, Decision, check_request
from h2 import Peer, call_headers, frame
from postern import until
from questions import one_limit

OK, INVALID, DEADLINE, DENIED, EXHAUSTED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE = "0", "3", "4", "7", "8", "12", "13", "14"
BODY = h2.message(check_request("203.0.113.7").SerializeToString())


@pytest.fixture
def peer():
    """peer(postern) connects; closed at the end of the test."""
    opened = []

    def start(p, **options):
        opened.append(Peer(p.grpc, **options))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def assert_allowed(answer):
    head, body, trailers, reset = answer
    assert reset is None and head[":status"] == "200" and head["content-type"] == "application/grpc"
    assert trailers == {"grpc-status": OK}
    assert body[0] == 0 and int.from_bytes(body[1:5], "big") == len(body) - 5
    assert Decision(CheckResponse.FromString(body[5:])).allowed


def assert_refused(answer, code, http="200"):
    head, body, trailers, _ = answer
    assert (head[":status"], head["grpc-status"], body, trailers) == (http, code, b"", None)
    assert head["grpc-message"] and head["content-type"].startswith("application/grpc")


def assert_works(p):
    """A new connection and a good call on it."""
    c = Peer(p.grpc)
    assert_allowed(c.answer(c.open(call_headers(CHECK), BODY)))
    c.close()


# ----------------------------------------------------------------------------------------------------- one call


def test_a_call_frame_by_frame(postern, peer):
    c = peer(postern(one_limit()))
    kind, flags, _, settings = c.next()
    assert (kind, flags) == (h2.SETTINGS, 0)
    values = {int.from_bytes(settings[i : i + 2], "big"): int.from_bytes(settings[i + 2 : i + 6], "big") for i in range(0, len(settings), 6)}
    assert values == {3: 256, 6: 16 * 1024}
    c.send(frame(h2.SETTINGS, h2.ACK, 0))
    stream = c.open(call_headers(CHECK), BODY)
    got = []
    for kind, flags, where, payload in c.frames():
        if where == stream:
            got.append((kind, flags, len(payload) > 0))
            if flags & h2.END_STREAM:
                break
    assert got == [(h2.HEADERS, h2.END_HEADERS, True), (h2.DATA, 0, True), (h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, True)]


@pytest.mark.parametrize("end", ["with the last data", "with empty data", "with trailers"])
@pytest.mark.parametrize("cut", [1, 3, 5, 100])
def test_a_message_in_pieces(postern, peer, end, cut):
    c = peer(postern(one_limit()))
    stream = c.open(call_headers(CHECK), end=False)
    pieces = [BODY[i : i + cut] for i in range(0, len(BODY), cut)]
    for i, piece in enumerate(pieces):
        last = end == "with the last data" and i == len(pieces) - 1
        c.send(frame(h2.DATA, h2.END_STREAM if last else 0, stream, piece))
    if end == "with empty data":
        c.send(frame(h2.DATA, h2.END_STREAM, stream))
    if end == "with trailers":
        c.send(frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, stream, h2.block([("x-end", "1")])))
    assert_allowed(c.answer(stream))


def test_padding_and_continuation(postern, peer):
    c = peer(postern(one_limit()))
    block = h2.block(call_headers(CHECK))
    c.send(frame(h2.HEADERS, 0, 1, block[:10]) + frame(h2.CONTINUATION, 0, 1, block[10:20]) + frame(h2.CONTINUATION, h2.END_HEADERS, 1, block[20:]))
    c.send(frame(h2.DATA, h2.PADDED | h2.END_STREAM, 1, bytes([7]) + BODY + bytes(7)))
    assert_allowed(c.answer(1))


def test_bytes_one_by_one(postern, peer):
    c = peer(postern(one_limit()), preface=False)
    whole = h2.PREFACE + frame(h2.SETTINGS, 0, 0) + frame(h2.HEADERS, h2.END_HEADERS, 1, h2.block(call_headers(CHECK)))
    for byte in whole + frame(h2.DATA, h2.END_STREAM, 1, BODY):
        c.send(bytes([byte]))
    assert_allowed(c.answer(1))


STATUSES = [
    ("no-such-service", dict(path="/x/y"), BODY, UNIMPLEMENTED, "200"),
    ("one-slash", dict(path="/xy"), BODY, UNIMPLEMENTED, "200"),
    ("content-type", dict(content_type="application/json"), BODY, INVALID, "415"),
    ("no-content-type", dict(content_type=None), BODY, INVALID, "415"),
    ("grpc-web", dict(content_type="application/grpc-web"), BODY, INVALID, "415"),
    ("get", dict(method_="GET"), BODY, INTERNAL, "405"),
    ("timeout-syntax", dict(grpc_timeout="1x"), BODY, INTERNAL, "400"),
    ("timeout-digits", dict(grpc_timeout="123456789S"), BODY, INTERNAL, "400"),
    ("timeout-zero", dict(grpc_timeout="0m"), BODY, DEADLINE, "200"),
    ("encoding", dict(grpc_encoding="gzip"), BODY, UNIMPLEMENTED, "200"),
    ("compressed-without-encoding", {}, h2.message(b"", 1), INTERNAL, "200"),
    ("bad-flag", {}, h2.message(b"", 2), INTERNAL, "200"),
    ("no-message", {}, None, UNIMPLEMENTED, "200"),
    ("no-message-empty-data", {}, b"", UNIMPLEMENTED, "200"),
    ("two-messages", {}, BODY + BODY, UNIMPLEMENTED, "200"),
    ("cut-prefix", {}, BODY[:3], INTERNAL, "200"),
    ("cut-message", {}, BODY[:-1], INTERNAL, "200"),
    ("more-than-a-message", {}, BODY + b"\0", INTERNAL, "200"),
    ("no-protobuf", {}, h2.message(b"\xff\xff"), INTERNAL, "200"),
    ("too-large", {}, b"\0\xff\xff\xff\xff", EXHAUSTED, "200"),
    ("header-too-large", dict(x_long="x" * 20000), BODY, EXHAUSTED, "200"),
    ("long-path", dict(path="/" + "a" * 10000 + "/%\u00e4"), BODY, UNIMPLEMENTED, "200"),
]  # fmt: skip


@pytest.mark.parametrize("changes,body,code,http", [pytest.param(*c[1:], id=c[0]) for c in STATUSES])
def test_statuses(postern, peer, changes, body, code, http):
    p = postern(one_limit())
    c = peer(p)
    changes = dict(changes)
    headers = call_headers(changes.pop("path", CHECK), **changes)
    if sum(len(n) + len(v) for n, v in headers) > 16000:
        block = h2.block(headers)
        c.send(frame(h2.HEADERS, 0, 1, block[:16000]) + frame(h2.CONTINUATION, h2.END_HEADERS, 1, block[16000:]) + frame(h2.DATA, h2.END_STREAM, 1, body))
        stream = c.stream = 1
    else:
        stream = c.open(headers, body)
    assert_refused(c.answer(stream), code, http)
    assert_allowed(c.answer(c.open(call_headers(CHECK), BODY)))


def test_the_encodings_are_told(postern, peer):
    c = peer(postern(one_limit()))
    head, _, _, _ = c.answer(c.open(call_headers(CHECK, grpc_encoding="gzip"), BODY))
    assert head["grpc-accept-encoding"] == "identity"


@pytest.mark.parametrize("kind", ["application/grpc+proto", "application/grpc;charset=utf-8"])
def test_other_content_types(postern, peer, kind):
    c = peer(postern(one_limit()))
    head, _, trailers, _ = c.answer(c.open(call_headers(CHECK, content_type=kind), BODY))
    assert trailers == {"grpc-status": OK}
    assert head["content-type"] == ("application/grpc+proto" if "proto" in kind else "application/grpc")


@pytest.mark.parametrize("line", [("connection", "close"), ("te", "gzip"), ("x-A", "1"), (":path", "/twice"), ("x-a", "a\0b")])
def test_what_is_no_header_of_http2_is_reset(postern, peer, line):
    c = peer(postern(one_limit()))
    headers = [h for h in call_headers(CHECK) if h[0] != line[0] or line[0] == ":path"]
    if line[0] == ":path":
        headers.insert(0, line)
    else:
        headers.append(line)
    assert c.answer(c.open(headers, BODY))[3] == h2.PROTOCOL_ERROR
    assert_allowed(c.answer(c.open(call_headers(CHECK), BODY)))


# ------------------------------------------------------------------------------------------------------- times


def test_a_deadline_that_passes(postern, peer):
    c = peer(postern(one_limit()))
    stream = c.open(call_headers(CHECK, grpc_timeout="50m"), BODY[:7], end=False)
    assert_refused(c.answer(stream), DEADLINE)
    assert_allowed(c.answer(c.open(call_headers(CHECK), BODY)))


def test_half_open_calls_end(postern, peer):
    c = peer(postern(one_limit(grpc={"request_timeout": "100ms"})))
    streams = [c.open(call_headers(CHECK), end=False) for _ in range(3)]
    for stream in streams:
        assert_refused(c.answer(stream), DEADLINE)


def test_a_connection_that_says_nothing_ends(postern, peer):
    p = postern(one_limit(grpc={"request_timeout": "100ms"}))
    c = peer(p, preface=False)
    c.send(h2.PREFACE[:10])
    assert all(kind in (h2.SETTINGS, h2.WINDOW_UPDATE) for kind, *_ in c.frames())


def test_an_idle_connection_ends_without_harm(postern, peer):
    c = peer(postern(one_limit(grpc={"idle_timeout": "1s"})))
    assert_allowed(c.answer(c.open(call_headers(CHECK), BODY)))
    assert int.from_bytes(c.wait(h2.GOAWAY)[3][:4], "big") == 2**31 - 1


def test_the_end_has_two_steps(postern, peer):
    p = postern(one_limit("100/hour"))
    c = peer(p)
    assert_allowed(c.answer(c.open(call_headers(CHECK), BODY)))
    watch = c.open(call_headers(HEALTH + "Watch"), h2.message(b""))
    assert c.wait(h2.DATA, watch)[3] == h2.message(b"\x08\x01")
    p.signal(signal.SIGTERM)
    assert c.wait(h2.DATA, watch)[3] == h2.message(b"\x08\x02")
    assert c.wait(h2.GOAWAY)[3] == b"\x7f\xff\xff\xff\0\0\0\0"
    ping = c.wait(h2.PING)
    assert not ping[1] & h2.ACK
    late = c.open(call_headers(CHECK), BODY)  # begun before the notice can have come
    assert_allowed(c.answer(late))
    c.send(frame(h2.PING, h2.ACK, 0, ping[3]))
    last = c.wait(h2.GOAWAY)[3]
    assert int.from_bytes(last[:4], "big") == late and last[4:] == b"\0\0\0\0"
    assert dict(c.wait(h2.HEADERS, watch)[3])["grpc-status"] == UNAVAILABLE
    assert c.next() is None
    c.close()
    assert p.wait() == 0


def test_a_peer_that_never_acknowledges_is_left(postern, peer):
    p = postern(one_limit(drain={"timeout": "20s"}))
    c = peer(p)
    assert_allowed(c.answer(c.open(call_headers(CHECK), BODY)))
    p.signal(signal.SIGTERM)
    begun = time.monotonic()
    ends = [payload[:4] for kind, _, _, payload in c.frames() if kind == h2.GOAWAY]
    assert ends == [b"\x7f\xff\xff\xff", b"\0\0\0\1"] and time.monotonic() - begun > 4
    assert p.wait() == 0


# ------------------------------------------------------------------------------------------------------ floods


def test_pings_are_answered(postern, peer):
    c = peer(postern(one_limit()))
    stream = c.open(call_headers(CHECK), BODY)
    c.send(frame(h2.PING, 0, 0, b"12345678"))
    assert c.wait(h2.PING, flags=h2.ACK)[3] == b"12345678"
    assert stream == 1


def call_and_reset(stream):
    return frame(h2.HEADERS, h2.END_HEADERS, stream, h2.block(call_headers(CHECK))) + frame(h2.RST_STREAM, 0, stream, b"\0\0\0\x08")


def bomb(stream):
    """One header of 4 KiB in the dynamic table, and then an index of it, again and again."""
    first = b"\x40" + b"\x01x" + b"\x7f" + bytes([(3900 - 127) % 128 | 128, (3900 - 127) // 128]) + b"y" * 3900
    block = h2.block(call_headers(CHECK)) + first + b"\xbe" * 12000
    return frame(h2.HEADERS, h2.END_HEADERS, stream, block[:16000]) if len(block) <= 16000 else (
        frame(h2.HEADERS, 0, stream, block[:16000]) + frame(h2.CONTINUATION, h2.END_HEADERS, stream, block[16000:])
    )  # fmt: skip


FLOODS = {
    "resets": (lambda i: call_and_reset(2 * i + 1), 20000),
    "pings": (lambda i: frame(h2.PING, 0, 0, b"12345678"), 100000),
    "settings": (lambda i: frame(h2.SETTINGS, 0, 0), 50000),
    "priority": (lambda i: frame(h2.PRIORITY, 0, 2 * i + 1, b"\0\0\0\0\0"), 50000),
    "windows": (lambda i: frame(h2.WINDOW_UPDATE, 0, 0, b"\0\0\0\x01"), 50000),
    "continuations": (lambda i: frame(h2.HEADERS, 0, 1, b"") if i == 0 else frame(h2.CONTINUATION, 0, 1, b""), 50000),
    "bombs": (lambda i: bomb(2 * i + 1), 50),
}


@pytest.mark.parametrize("name", FLOODS)
def test_floods_end_the_connection_and_nothing_else(postern, peer, name):
    make, n = FLOODS[name]
    p = postern(one_limit("100/hour"))
    other = peer(p)
    assert_allowed(other.answer(other.open(call_headers(CHECK), BODY)))
    c = peer(p)
    c.sock.settimeout(0.5)
    cut, i = False, 0
    while i < n and not cut:
        try:
            cut = not c.send(b"".join(make(k) for k in range(i, min(n, i + 200))))
        except OSError:  # it is no longer read, which ends it as well
            cut = True
        i += 200
    c.sock.settimeout(20)
    code = c.goaway()
    # nghttp2 says INTERNAL_ERROR of resets; and where the connection was cut, what was said before may be lost.
    assert cut or code == (h2.INTERNAL_ERROR if name == "resets" else h2.ENHANCE_YOUR_CALM)
    assert_allowed(other.answer(other.open(call_headers(CHECK), BODY)))
    assert_works(p)


def test_empty_data_ends_the_connection(postern, peer):
    p = postern(one_limit())
    c = peer(p)
    stream = c.open(call_headers(CHECK), end=False)
    for _ in range(60):
        if not c.send(frame(h2.DATA, 0, stream) * 200):
            break
    assert c.goaway() in (None, h2.ENHANCE_YOUR_CALM)
    assert_works(p)


def test_more_streams_than_allowed_are_refused_one_by_one(postern, peer):
    p = postern(one_limit("100/hour", grpc={"max_streams": 3}))
    c = peer(p)
    open_streams = [c.open(call_headers(CHECK), end=False) for _ in range(3)]
    assert c.answer(c.open(call_headers(CHECK), BODY))[3] == h2.REFUSED_STREAM
    for stream in open_streams:
        c.send(frame(h2.DATA, h2.END_STREAM, stream, BODY))
        assert_allowed(c.answer(stream))


def test_unfinished_messages_have_a_bound(postern, peer):
    c = peer(postern(one_limit(grpc={"message_bytes": "64KiB"})))
    prefix = b"\0" + (60000).to_bytes(4, "big")
    streams = [c.open(call_headers(CHECK), prefix, end=False) for _ in range(6)]
    refused = [stream for stream in streams[4:]]
    for stream in refused:
        assert_refused(c.answer(stream), EXHAUSTED)


def test_more_connections_than_allowed_are_closed(postern, peer):
    p = postern(one_limit(grpc={"max_connections": 2}))
    kept = [peer(p) for _ in range(2)]
    for c in kept:
        assert_allowed(c.answer(c.open(call_headers(CHECK), BODY)))
    assert list(peer(p).frames()) == []
    assert p.metrics()['postern_connections_rejected_total{listener="grpc"}'] == 1
    for c in kept:
        assert_allowed(c.answer(c.open(call_headers(CHECK), BODY)))


def test_a_peer_that_does_not_read_holds_nobody_up(postern, peer):
    """Its own window is shut after 64 KiB, then its socket is full; others go on, and what it does not take is dropped."""
    p = postern(one_limit("1000000/hour", grpc={"request_timeout": "500ms"}))
    deaf, other = peer(p), peer(p)
    deaf.sock.settimeout(0.2)
    calls = 0
    try:
        while calls < 60000 and deaf.send(
            b"".join(
                frame(h2.HEADERS, h2.END_HEADERS, 2 * i + 1, h2.block(call_headers(CHECK)))
                + frame(h2.DATA, h2.END_STREAM, 2 * i + 1, BODY)
                for i in range(calls, calls + 100)
            )
        ):
            calls += 100
    except TimeoutError:
        pass
    assert_allowed(other.answer(other.open(call_headers(CHECK), BODY)))
    cancelled = 'postern_grpc_calls_total{service="envoy.service.auth.v3.Authorization",method="Check",code="CANCELLED"}'
    deadline = time.monotonic() + 30
    while p.metrics()[cancelled] == 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert_allowed(other.answer(other.open(call_headers(CHECK), BODY)))


def test_chatter_that_nobody_reads_has_a_bound(postern, peer):
    """Answers of reflection are a hundred times as long as its questions."""
    p = postern(one_limit(grpc={"request_timeout": "500ms"}))
    c = peer(p)
    stream = c.open(call_headers(REFLECTION.format("v1")), end=False)
    ask = h2.message(b"\x22\x23envoy.service.auth.v3.Authorization") * 100
    for _ in range(20):
        c.send(frame(h2.DATA, 0, stream, ask))
    head, body, trailers, reset = c.answer(stream)
    assert head[":status"] == "200" and len(body) < 2 << 20
    assert reset == h2.CANCEL or trailers["grpc-status"] == EXHAUSTED


def test_flow_control_of_the_caller_is_kept(postern, peer):
    """A window of 10 bytes: the message comes in pieces as the window opens."""
    c = peer(postern(one_limit()), settings=b"\0\x04\0\0\0\x0a")
    stream = c.open(call_headers(CHECK), BODY)
    body = c.wait(h2.DATA, stream)[3]
    assert len(body) == 10
    c.send(frame(h2.WINDOW_UPDATE, 0, stream, (1000).to_bytes(4, "big")))
    for kind, flags, where, payload in c.frames():
        if kind == h2.DATA:
            body += payload
        elif kind == h2.HEADERS and where == stream:
            assert flags & h2.END_STREAM
            break
    assert Decision(CheckResponse.FromString(body[5:])).allowed


def test_our_windows_open_again(postern, peer):
    """More data than all windows together, on streams that are refused."""
    p = postern(one_limit())
    c = peer(p)
    for _ in range(40):
        stream = c.open(call_headers("/x/y"), b"x" * 16000, end=False)
        for _ in range(2):
            c.send(frame(h2.DATA, 0, stream, b"x" * 16000))
        c.send(frame(h2.DATA, h2.END_STREAM, stream, b"x" * 16000))
        assert_refused(c.answer(stream), UNIMPLEMENTED)
    assert_allowed(c.answer(c.open(call_headers(CHECK), BODY)))


# ---------------------------------------------------------------------------------------------- other protocols


def test_grpc_over_http1_is_recognised(postern):
    p = postern(one_limit())
    head = f"POST {CHECK} HTTP/1.1\r\nHost: x\r\nContent-Type: application/grpc\r\nContent-Length: 5\r\n\r\n".encode() + b"\0\0\0\0\0"
    for listener in ("grpc", "http"):
        answer = p.raw(head, listener=listener)
        assert answer.split(b" ", 2)[1] == {"grpc": b"505", "http": b"415"}[listener]
    until(lambda: len(p.log("grpc_over_http1")) == 2)
    assert "http2_protocol_options" in p.log("grpc_over_http1")[0]["msg"]
    assert_works(p)


def test_http1_gets_its_answer(postern):
    p = postern(one_limit())
    assert p.raw(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", listener="grpc").startswith(b"HTTP/1.1 505 ")
    assert not p.log("grpc_over_http1")
    assert_works(p)


@pytest.mark.parametrize("junk", [b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + b"x" * 500, b"\0" * 100, b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", b"JUNK\r\n"])
def test_junk_is_no_beginning(postern, peer, junk):
    p = postern(one_limit())
    c = peer(p, preface=False)
    c.send(junk)
    assert c.goaway() in (None, h2.PROTOCOL_ERROR)
    assert_works(p)

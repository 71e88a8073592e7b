# SPDX-License-Identifier: MIT
"""HTTP/2 by hand, to send what no library would: frames as they are wanted, headers without compression."""
import struct

from postern import connect

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
ACK = END_STREAM = 1
END_HEADERS, PADDED = 4, 8
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM = 0, 1, 2, 7, 8, 11


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _length(n, bits, first):
    full = (1 << bits) - 1
    if n < full:
        return bytes([first | n])
    out, n = bytes([first | full]), n - full
    while n >= 128:
        out, n = out + bytes([n % 128 | 128]), n // 128
    return out + bytes([n])


def block(headers):
    """A header block of literal fields that are never indexed; RFC 7541 6.2.2."""
    out = b""
    for name, value in headers:
        name = name.encode("latin-1") if isinstance(name, str) else name
        value = value.encode("latin-1") if isinstance(value, str) else value
        out += b"\x00" + _length(len(name), 7, 0) + name + _length(len(value), 7, 0) + value
    return out


def call_headers(path, **changes):
    """The header of a gRPC call; content_type=None leaves a line out, another value replaces it."""
    lines = {
        ":method": "POST", ":scheme": "http", ":path": path, ":authority": "postern",
        "content-type": "application/grpc", "te": "trailers",
    }  # fmt: skip
    lines.update({name.replace("method_", ":method").replace("_", "-"): value for name, value in changes.items()})
    return [(name, value) for name, value in lines.items() if value is not None]


def message(body, flag=0):
    return bytes([flag]) + struct.pack(">I", len(body)) + body


class Decoder:
    """As much of HPACK as answers of nghttp2 need: a dynamic table, no sizes changed; Huffman text stays raw bytes."""

    STATIC = {8: (":status", "200"), 12: (":status", "400"), 31: ("content-type", "")}

    def __init__(self):
        self.dynamic = []

    def _int(self, data, at, bits):
        full = (1 << bits) - 1
        n = data[at] & full
        at += 1
        shift = 0
        while n >= full and shift >= 0:
            n += (data[at] & 127) << shift
            shift = shift + 7 if data[at] & 128 else -1
            at += 1
            if shift < 0:
                break
        return n, at

    def _text(self, data, at):
        huffman = data[at] & 128
        n, at = self._int(data, at, 7)
        raw = data[at : at + n]
        return (_huffman(raw) if huffman else raw.decode("latin-1")), at + n

    def _entry(self, index):
        if index > 61:
            return self.dynamic[index - 62]
        return self.STATIC.get(index, (f"static-{index}", f"static-{index}"))

    def decode(self, data):
        at, out = 0, []
        while at < len(data):
            first = data[at]
            if first & 0x80:
                index, at = self._int(data, at, 7)
                out.append(self._entry(index))
                continue
            if first & 0xE0 == 0x20:
                _, at = self._int(data, at, 5)
                continue
            bits = 6 if first & 0x40 else 4
            index, at = self._int(data, at, bits)
            if index:
                name = self._entry(index)[0]
            else:
                name, at = self._text(data, at)
            value, at = self._text(data, at)
            if bits == 6:
                self.dynamic.insert(0, (name, value))
            out.append((name, value))
        return out


# RFC 7541 appendix B, for the characters that answers hold: (character, code, bits).
_CODES = {
    (0x0, 5): "0", (0x1, 5): "1", (0x2, 5): "2", (0x3, 5): "a", (0x4, 5): "c", (0x5, 5): "e", (0x6, 5): "i", (0x7, 5): "o",
    (0x8, 5): "s", (0x9, 5): "t", (0x14, 6): " ", (0x15, 6): "%", (0x16, 6): "-", (0x17, 6): ".", (0x18, 6): "/",
    (0x19, 6): "3", (0x1A, 6): "4", (0x1B, 6): "5", (0x1C, 6): "6", (0x1D, 6): "7", (0x1E, 6): "8", (0x1F, 6): "9",
    (0x20, 6): "=", (0x21, 6): "A", (0x22, 6): "_", (0x23, 6): "b", (0x24, 6): "d", (0x25, 6): "f", (0x26, 6): "g",
    (0x27, 6): "h", (0x28, 6): "l", (0x29, 6): "m", (0x2A, 6): "n", (0x2B, 6): "p", (0x2C, 6): "r", (0x2D, 6): "u",
    (0x5C, 7): ":", (0x5D, 7): "B", (0x5E, 7): "C", (0x5F, 7): "D", (0x60, 7): "E", (0x61, 7): "F", (0x62, 7): "G",
    (0x63, 7): "H", (0x64, 7): "I", (0x65, 7): "J", (0x66, 7): "K", (0x67, 7): "L", (0x68, 7): "M", (0x69, 7): "N",
    (0x6A, 7): "O", (0x6B, 7): "P", (0x6C, 7): "Q", (0x6D, 7): "R", (0x6E, 7): "S", (0x6F, 7): "T", (0x70, 7): "U",
    (0x71, 7): "V", (0x72, 7): "W", (0x73, 7): "Y", (0x74, 7): "j", (0x75, 7): "k", (0x76, 7): "q", (0x77, 7): "v",
    (0x78, 7): "w", (0x79, 7): "x", (0x7A, 7): "y", (0x7B, 7): "z", (0xFA, 8): ",", (0xFB, 8): ";", (0xF8, 8): "&",
    (0xFC, 8): "X", (0xFD, 8): "Z", (0x7FB, 11): "+", (0x3FA, 10): "(", (0x3FB, 10): ")", (0x3F8, 10): "!", (0x3F9, 10): '"',
    (0x7FA, 11): "'",
}  # fmt: skip


def _huffman(raw):
    out, code, bits = "", 0, 0
    for byte in raw:
        for shift in range(7, -1, -1):
            code, bits = code << 1 | (byte >> shift & 1), bits + 1
            if (code, bits) in _CODES:
                out += _CODES[code, bits]
                code = bits = 0
    return out


class Peer:
    """One connection. Sends what it is told; frames() reads what comes."""

    def __init__(self, endpoint, preface=True, settings=b""):
        self.sock = connect(endpoint)
        self.buffer = b""
        self.kept = []  # frames read and not yet wanted
        self.decoder = Decoder()
        self.stream = -1
        if preface:
            self.send(PREFACE + frame(SETTINGS, 0, 0, settings))

    def close(self):
        self.sock.close()

    def send(self, data):
        """False if the other side is gone already."""
        try:
            self.sock.sendall(data)
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def next(self):
        """(kind, flags, stream, payload), or None at the end."""
        return self.kept.pop(0) if self.kept else self._read()

    def _read(self):
        while len(self.buffer) < 9 or len(self.buffer) < 9 + int.from_bytes(self.buffer[:3], "big"):
            try:
                data = self.sock.recv(65536)
            except ConnectionResetError:
                data = b""
            if not data:
                return None
            self.buffer += data
        n = int.from_bytes(self.buffer[:3], "big")
        kind, flags = self.buffer[3], self.buffer[4]
        stream = int.from_bytes(self.buffer[5:9], "big") & 0x7FFFFFFF
        payload, self.buffer = self.buffer[9 : 9 + n], self.buffer[9 + n :]
        if kind == HEADERS:
            payload = self.decoder.decode(payload)
        return kind, flags, stream, payload

    def frames(self):
        """All frames up to the end of the connection."""
        while True:
            got = self.next()
            if got is None:
                return
            yield got

    def wait(self, kind, stream=None, flags=None):
        """The first such frame; what comes before is passed over."""
        for got in self.frames():
            if got[0] == kind and (stream is None or got[2] == stream) and (flags is None or got[1] & flags == flags):
                return got
        raise AssertionError(f"the connection ended without a frame of kind {kind}")

    def open(self, headers, body=None, end=True):
        """Begins a stream; gives its number. body: bytes of DATA, or None for none at all."""
        self.stream += 2
        last = END_STREAM if end and body is None else 0
        data = frame(HEADERS, END_HEADERS | last, self.stream, block(headers))
        if body is not None:
            data += frame(DATA, END_STREAM if end else 0, self.stream, body)
        self.send(data)
        return self.stream

    def answer(self, stream):
        """(lines of the header, body, trailers or None, error code of a reset or None) of one stream."""
        head, body, trailers = None, b"", None
        others, self.kept = self.kept, []
        waiting = [got for got in others if got[2] == stream]
        self.kept = [got for got in others if got[2] != stream]
        while True:
            got = waiting.pop(0) if waiting else self._read()
            if got is None:
                raise AssertionError("the connection ended within an answer")
            kind, flags, where, payload = got
            if where != stream:
                self.kept.append(got)
                continue
            if kind == RST_STREAM:
                return head, body, trailers, int.from_bytes(payload, "big")
            if kind == HEADERS:
                assert trailers is None
                head, trailers = (dict(payload), None) if head is None else (head, dict(payload))
            if kind == DATA:
                assert payload, "an empty DATA frame"
                body += payload
            if flags & END_STREAM and kind in (HEADERS, DATA):
                return head, body, trailers, None

    def goaway(self):
        """The error code of the last GOAWAY before the end of the connection; None without one."""
        code = None
        for kind, _, _, payload in self.frames():
            if kind == GOAWAY:
                code = int.from_bytes(payload[4:8], "big")
        return code

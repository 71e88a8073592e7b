# SPDX-License-Identifier: MIT
"""A flood of random keys through the real door: it costs no memory, refunds nobody, and harms nobody else."""
import json
import os
import random
import threading

from postern import connect
from questions import ask, one_limit, reasons

KEYS = 100_000
AT_ONCE = 250
# A small table, so that the flood is several times its size; every address is a key, so that one network holds them all.
CONFIG = one_limit(client={"ipv6_prefix": 128}, store={"max_memory": "256KiB"})


def flood(postern, keys, rng):
    """That many questions from random addresses of 2001:db8:6666::/48, sent ahead of their answers; counts the answers."""
    with connect(postern.http) as sock:

        def send():
            for _ in range(keys // AT_ONCE):
                batch = b""
                for _ in range(AT_ONCE):
                    body = b'{"remote_addr": "2001:db8:6666:%x:%x::%x"}' % tuple(rng.randrange(65536) for _ in range(3))
                    batch += b"POST /check HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
                sock.sendall(batch)

        sender = threading.Thread(target=send)
        sender.start()
        answers, tail = 0, b""
        while answers < keys:
            data = sock.recv(1 << 20)
            assert data, "the connection was closed"
            text = tail + data
            answers += text.count(b"HTTP/1.1 200 ")
            tail = text[-12:]
        sender.join()


def test_a_flood_of_random_keys(postern):
    p = postern(CONFIG)
    rng = random.Random(52)
    assert reasons(p, 6) == ["allowed"] * 5 + ["rate_limited"]
    flood(p, 10_000, rng)
    before = p.metrics()["process_resident_memory_bytes"]
    flood(p, KEYS, rng)
    metrics = p.metrics()
    if os.environ.get("SAN", "none") in ("", "none"):  # sanitizers keep what was freed
        assert metrics["process_resident_memory_bytes"] - before < 1 << 20
    assert metrics['postern_state_entries{store="memory"}'] <= metrics['postern_state_capacity{store="memory"}'] < 20_000
    assert metrics['postern_state_overflow_total{store="memory"}'] > KEYS / 2

    # Nobody in debt has been forgotten, not even for a moment that a peek would show.
    assert ask(p)["reason"] == "rate_limited"

    # The flood's own network is refused now, in the answer's own words.
    answer = ask(p, "2001:db8:6666:1:2:3:4:5")
    assert (answer["decision"], answer["reason"], answer["status"]) == ("deny", "table_pressure", 429)
    assert answer["retry_after"] >= 1 and answer["limits"][0]["overflow"] is True

    # Strangers have five each. Two of their networks may share a place with the flood's debt: the hash is keyed anew at
    # each start, and one place in 64 such tables is the flood's.
    told = [json.dumps(reasons(p, 5, remote_addr=f"198.51.{i}.1")) for i in range(20)]
    assert told.count(json.dumps(["allowed"] * 5)) >= 16

# SPDX-License-Identifier: MIT
"""Who may ask: listed addresses, Unix sockets, and the key that callers show."""
import json
import os
import socket
import stat

import pytest

from postern import Postern, connect
from questions import ask, check_config, one_limit, remaining

QUESTION = {"remote_addr": "203.0.113.7"}
KEY = "the-callers-key-0123456789-abcdefghijk"
FORWARD = [("X-Forwarded-For", "203.0.113.7"), ("X-Forwarded-Method", "GET"), ("X-Forwarded-Uri", "/")]


def test_only_listed_addresses_may_ask(postern):
    p = postern(one_limit(callers=["127.0.0.11", "127.0.1.0/24"]))
    for source in ("127.0.0.11", "127.0.1.9"):
        assert p.check({**QUESTION, "peek": True}, source=source)[0] == 200
    for source in ("127.0.0.1", "127.0.0.12", "127.0.2.1"):
        status, headers, problem = p.check(QUESTION, source=source)
        assert (status, problem["code"], problem["status"]) == (403, "caller_not_allowed", 403)
        assert headers["Content-Type"] == "application/problem+json"
        status, headers, body = p.ask("GET", "/forward-auth", headers=FORWARD, source=source)
        assert (status, json.loads(body)) == (403, {"error": "caller_not_allowed"})
        assert not [name for name in headers if name.lower().startswith("x-postern")]
    status, _, answer = p.check({**QUESTION, "peek": True}, source="127.0.0.11")
    assert answer["limits"][0]["remaining"] == 5
    assert p.wait_log("caller_not_allowed")
    assert p.get_ops("/readyz")[0] == 200


def test_a_stranger_learns_nothing_of_the_doors(postern):
    p = postern(one_limit(callers=["127.0.0.11"]))
    for method, path in (("GET", "/"), ("GET", "/check"), ("POST", "/nothing")):
        assert p.ask(method, path)[0] == 403


def test_the_gate_is_judged_before_the_body_is_read(postern):
    p = postern(one_limit(callers=["127.0.0.11"]))
    head = b"POST /check HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
    assert p.raw(head + b"\r\n").split(b" ", 2)[1] == b"403"
    assert p.raw(head + b"Expect: 100-continue\r\n\r\n").split(b" ", 2)[1] == b"403"


@pytest.fixture
def keyed(postern):
    return postern(one_limit(caller_key_file="key"), files={"key": KEY + "\n"})


def test_the_key_is_required_besides_the_address(keyed):
    assert keyed.check({**QUESTION, "peek": True}, {"X-Postern-Key": KEY})[0] == 200
    assert keyed.ask("GET", "/forward-auth", headers=[*FORWARD, ("x-postern-key", KEY)])[0] == 200
    wrong = [[], [("X-Postern-Key", "")], [("X-Postern-Key", KEY[:-1])], [("X-Postern-Key", KEY + "x")],
        [("X-Postern-Key", KEY), ("X-Postern-Key", KEY)], [("X-Postern-Key", KEY + ", " + KEY)],
        [("Authorization", "Bearer " + KEY)]]  # fmt: skip
    for lines in wrong:
        assert keyed.check(QUESTION, lines)[0] == 403, lines
        assert keyed.ask("GET", "/forward-auth", headers=[*FORWARD, *lines])[0] == 403, lines
    status, _, answer = keyed.check({**QUESTION, "peek": True}, {"X-Postern-Key": KEY})
    assert answer["limits"][0]["remaining"] == 4
    assert KEY not in keyed.output()


def test_a_key_in_the_question_is_no_key(keyed):
    assert keyed.check({**QUESTION, "headers": {"X-Postern-Key": KEY}})[0] == 403


def unix(tmp_path, mode=""):
    return {"listen": {"http": f"unix:{tmp_path}/http.sock{mode}"}}


@pytest.mark.parametrize("mode, bits", [("", 0o660), ("?mode=0666", 0o666), ("?mode=0600", 0o600)])
def test_unix_listener(postern, tmp_path, mode, bits):
    p = postern(one_limit(**unix(tmp_path, mode)))
    assert stat.S_IMODE(os.stat(tmp_path / "http.sock").st_mode) == bits
    assert p.http.partition("?")[0] == f"unix:{tmp_path}/http.sock"
    assert ask(p)["reason"] == "allowed"
    assert remaining(p) == 4
    p.stop()
    assert not (tmp_path / "http.sock").exists()


def test_unix_callers_need_the_word_and_the_key(postern, tmp_path):
    p = postern(one_limit(callers=["127.0.0.1"], **unix(tmp_path)))
    assert p.check(QUESTION)[0] == 403
    p.stop()
    p = postern(one_limit(callers=["unix"], caller_key_file="key", **unix(tmp_path)), files={"key": KEY})
    assert p.check(QUESTION)[0] == 403
    assert p.check(QUESTION, {"X-Postern-Key": KEY})[0] == 200


def test_a_stale_socket_is_replaced_and_a_live_one_is_not(postern, tmp_path):
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(tmp_path / "http.sock"))
    left.close()
    p = postern(one_limit(**unix(tmp_path)))
    second = Postern(one_limit(**unix(tmp_path)))
    assert second.run_to_end() == 1
    assert f"http unix:{tmp_path}/http.sock" in second.output()
    connect(p.http).close()
    assert ask(p)["reason"] == "allowed"


def test_beyond_loopback_callers_must_be_named():
    wide = one_limit(listen={"http": "0.0.0.0:9180"})
    done = check_config(wide)
    assert done.returncode == 3 and "/listen/http" in done.said and "callers" in done.said
    done = check_config({**wide, "callers": ["10.0.0.0/8"]})
    assert done.returncode == 0 and "warning:" in done.said and "caller_key_file" in done.said
    done = check_config({**wide, "callers": ["10.0.0.0/8"], "caller_key_file": "key"}, files={"key": KEY})
    assert (done.returncode, "warning" in done.said) == (0, False)
    assert check_config(one_limit(callers=[])).returncode == 3
    assert check_config(one_limit(callers=["any"])).returncode == 3

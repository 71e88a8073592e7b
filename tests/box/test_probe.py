# SPDX-License-Identifier: MIT
"""/probe of the admin listener: what is kept of which requests; and the verb where nothing is in between. Real gateways: tests/gateways/test_probe_caddy.py."""
import json
import os
import pty
import socket
import subprocess

import pytest

from postern import DEADLINE_S, PROGRAM, clean_env, run_postern
from questions import EDGE, IDENTITIES, ask, one_limit

NONCE = "0123456789abcdef" * 2


def read(p, nonce=NONCE):
    status, _, body = p.ask("GET", f"/probe/{nonce}", listener="admin")
    assert status == 200
    answer = json.loads(body)
    assert answer["nonce"] == nonce
    return answer["seen"]


def send(p, nonce=NONCE, **headers):
    return ask(p, "172.18.0.5:1", headers={"X-Postern-Probe": nonce, **headers})


def test_only_an_awaited_nonce_is_kept(postern):
    p = postern(one_limit("50/hour"))
    send(p)
    assert read(p) == []  # asked for the first time: awaited from now on
    send(p, "f" * 32)
    send(p, NONCE[:-1])
    send(p, NONCE.upper())
    ask(p, headers=[["X-Postern-Probe", NONCE], ["x-postern-probe", NONCE]])
    assert read(p) == []
    send(p)
    assert len(read(p)) == 1 and read(p, "f" * 32) == []


def test_what_is_kept(postern):
    p = postern(one_limit(client={"strategy": "trusted_ranges", "trusted_proxies": ["172.18.0.5"]}, identities=IDENTITIES))
    read(p)
    p.check({"remote_addr": "172.18.0.5:1", "path": "/login?secret", "headers": {"X-Forwarded-For": "6.6.6.6, 203.0.113.7", "Forwarded": "for=x",
        "Cookie": "session=secret", "X-Internal-Token": EDGE, "X-Postern-Probe": f" {NONCE} "}})  # fmt: skip
    (seen,) = read(p)
    assert (seen["door"], seen["decision"], seen["reason"], seen["remote_addr"]) == ("check", "allow", "exempt", "172.18.0.5:1")
    assert seen["headers"] == [["X-Forwarded-For", "6.6.6.6, 203.0.113.7"], ["Forwarded", "for=x"]]
    client = seen["client"]
    assert (client["address"], client["reason"], client["class"], client["key"]) == ("203.0.113.7", "trusted_range", "decided", "4:203.0.113.7")
    assert [step["verdict"] for step in client["steps"]] == ["trusted", "chosen"]
    assert seen["cure"] is None
    assert "secret" not in json.dumps(seen) and EDGE not in json.dumps(seen)


def test_the_cure_is_told_where_it_is_ours_to_tell(postern):
    p = postern(one_limit("50/hour"))
    read(p)
    send(p, **{"X-Forwarded-For": "203.0.113.7"})
    ask(p, "198.51.100.9", headers={"X-Postern-Probe": NONCE, "X-Forwarded-For": "203.0.113.7"})
    assert [seen["cure"] for seen in read(p)] == ['"client": {"strategy": "trusted_ranges", "trusted_proxies": ["172.18.0.5"]}', None]


def test_header_doors_are_seen_too(postern):
    p = postern(one_limit("50/hour"))
    read(p)
    p.ask("GET", "/forward-auth", headers=[("X-Forwarded-For", "203.0.113.7"), ("X-Forwarded-Method", "GET"), ("X-Forwarded-Uri", "/"), ("X-Postern-Probe", NONCE)])
    p.ask("GET", "/forward-auth", headers=[("X-Forwarded-For", "203.0.113.7"), ("X-Postern-Probe", NONCE)])
    good, bad = read(p)
    assert (good["door"], good["client"]["address"]) == ("forward_auth", "203.0.113.7")
    assert bad["reason"] == "door_misconfigured" and "client" not in bad


def test_what_is_kept_is_bounded(postern):
    p = postern(one_limit("900/hour", http={"body_bytes": "256KiB"}))
    read(p)
    worst = "\x01\xff\"\\" * 500
    for _ in range(20):
        ask(p, worst, headers=[["X-Postern-Probe", NONCE], *[["X-Forwarded-For", worst]] * 12])
    seen = read(p)
    assert len(seen) == 4 and all(len(one["headers"]) == 8 for one in seen)
    assert len(p.ask("GET", f"/probe/{NONCE}", listener="admin")[2]) < 100_000
    for i in range(40):
        read(p, f"{i:032x}")
    assert read(p, f"{39:032x}") == [] and read(p) == []  # sixteen are awaited at once; the oldest made room


@pytest.mark.parametrize("nonce", ["", "0", "g" * 32, "A" * 32, "0" * 31, "0" * 33, "0" * 32 + "/"])
def test_what_is_no_nonce(postern, nonce):
    p = postern(one_limit())
    assert p.ask("GET", f"/probe/{nonce}", listener="admin")[0] == 400


# ---------------------------------------------------------------------------------------------------- the verbs


def test_probe_of_nobody(postern):
    p = postern(one_limit())
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening
        nobody = "127.0.0.1:%d" % taken.getsockname()[1]
        done = run_postern("probe", f"http://{nobody}/", "--admin", p.admin)
        assert (done.returncode, done.stdout) == (4, "") and nobody in done.stderr
        done = run_postern("probe", f"http://{p.http}/", "--admin", nobody)
        assert (done.returncode, done.stdout) == (4, "") and nobody in done.stderr
    done = run_postern("probe", f"http://{p.http}/", "--admin", p.ops)
    assert done.returncode == 4 and "admin" in done.stderr
    done = run_postern("probe", f"http://{p.http}/", "--admin", p.admin)  # no gateway: a page that is none of ours
    assert done.returncode == 4 and "nothing arrived: the gateway answered 404" in done.stdout


def test_probe_finds_a_host_by_name(postern):
    p = postern(one_limit())
    done = run_postern("probe", f"http://localhost:{p.http.rpartition(':')[2]}", "--admin", p.admin)
    assert "nothing arrived" in done.stdout
    done = run_postern("probe", "http://name.invalid/", "--admin", p.admin)
    assert done.returncode == 4 and "name.invalid" in done.stderr


def test_top_once(postern, tmp_path):
    p = postern(one_limit(listen={"admin": f"unix:{tmp_path}/admin.sock"}))
    done = run_postern("top", "--once", p.admin)
    assert done.returncode == 0 and done.stdout.count("nobody") == 2
    for _ in range(7):
        ask(p)
    ask(p, "2001:db8::1")
    done = run_postern("top", "--once", p.admin)
    head, refused, busiest = done.stdout.split("\n\n")
    assert "allowed 6  denied 2" in head
    assert [line.split() for line in refused.splitlines()] == [["refused", "rule", "refusals"], ["4:203.0.113.7", "all", "2"]]
    assert [line.split() for line in busiest.splitlines()][1:] == [["4:203.0.113.7", "all", "7"], ["6:2001:db8::/64", "all", "1"]]
    assert "\x1b" not in done.stdout


def test_top_goes_on(postern):
    p = postern(one_limit())
    ask(p)
    for env, colored in (({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        ours, theirs = pty.openpty()
        process = subprocess.Popen([PROGRAM, "top", p.admin], stdin=subprocess.DEVNULL, stdout=theirs, env={**clean_env(), **env})
        os.close(theirs)
        said = b""
        while said.count(b"busiest") < 2:  # the second picture
            said += os.read(ours, 4096)
        process.kill()
        process.wait(DEADLINE_S)
        os.close(ours)
        assert (b"\x1b[1m" in said) == colored
        assert b"in the last second 0 and 0" in said and b"\x1b[H\x1b[J" in said


def test_top_of_nobody(postern):
    p = postern(one_limit())
    assert run_postern("top", "--once", p.ops).returncode == 4
    assert run_postern("top", "--once", "unix:/nonexistent/admin.sock").returncode == 4

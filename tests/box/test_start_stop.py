# SPDX-License-Identifier: MIT
"""How the program comes up, says what is in force, refuses to start, and leaves."""
import json
import signal
import socket

import pytest

from postern import Postern, connect, read_answer, run_postern, until
from questions import AGENT, EDGE, IDENTITIES, ask, one_limit

GOOD = b'{"remote_addr": "203.0.113.7"}'
HEAD = b"POST /check HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(GOOD)


def start_line(postern):
    (line,) = postern.log("start")
    return line


def test_the_banner_says_what_is_in_force(postern):
    config = one_limit("10/minute", identities=IDENTITIES, callers=["127.0.0.1", "unix"])
    config["client"] = {"strategy": "single_value", "trusted_proxies": ["172.18.0.0/16"]}
    line = start_line(postern(config))
    assert "per-client 10 in 60 s" in line["limits"]
    assert "single_value" in line["client"] and "172.18.0.0/16" in line["client"]
    assert "127.0.0.1" in line["callers"] and "unix" in line["callers"]
    assert "edge" in str(line["identities"]) and "agent" in str(line["identities"])
    assert line["http"].startswith("127.0.0.1:") and line["ops"].startswith("127.0.0.1:")


def test_the_banner_without_a_configuration(postern):
    p = postern()
    line = start_line(p)
    assert "per-client 300 in 60 s" in line["limits"] and line["client"] == "peer"
    assert "without a configuration" in line["msg"]
    assert (ask(p)["rule"], ask(p)["limits"][0]["quota"]) == ("default", 300)


@pytest.mark.parametrize("config", [{}, {"log": {"level": "info"}}, one_limit()], ids=["empty", "logs", "rules"])
def test_a_file_is_a_configuration(postern, config):
    assert start_line(postern(config))["msg"] == "ready"


@pytest.mark.parametrize("args", [["--rate", "5/hour"], ["--trusted-proxies", "10.0.0.1"], ["--caller", "127.0.0.1"]], ids=str)
def test_flags_are_a_configuration(postern, args):
    assert start_line(postern(args=args))["msg"] == "ready"


def test_quick_flags_hold(postern):
    p = postern(args=["--rate", "5/hour", "--burst", "2", "--trusted-proxies", "172.18.0.0/16,10.0.0.1"])
    answers = [ask(p, "10.0.0.1:1", headers={"X-Forwarded-For": "203.0.113.7"}) for _ in range(3)]
    assert [a["reason"] for a in answers] == ["allowed", "allowed", "rate_limited"]
    assert answers[0]["client"] == {"address": "203.0.113.7", "reason": "trusted_range", "decided": True}


def test_no_secret_is_ever_said(postern):
    p = postern(one_limit(identities={"edge": {"token_file": "t"}}, log={"level": "debug"}), files={"t": EDGE})
    ask(p, token=EDGE)
    ask(p, token=AGENT, id="seen")
    p.wait_log("decision", id="seen")
    p.stop()
    assert EDGE not in p.output() and AGENT not in p.output()


def fails(config=None, args=(), files=None, env=None):
    instance = Postern(config, args, env=env, files=files)
    code = instance.run_to_end()
    return code, instance.output()


@pytest.mark.parametrize("listener", ["http", "ops"])
def test_a_port_that_is_taken(listener):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        where = "127.0.0.1:%d" % taken.getsockname()[1]
        code, said = fails(one_limit(listen={listener: where}))
    assert code == 1
    assert f"{listener} {where}" in said.split("\n", 1)[1] and "in use" in said


def test_an_address_that_is_not_ours():
    code, said = fails(one_limit(listen={"ops": "192.0.2.1:9182"}))
    assert code == 1 and "ops 192.0.2.1:9182: this address is not one of this machine's" in said


def test_a_socket_in_a_folder_that_is_not_there(tmp_path):
    code, said = fails(one_limit(listen={"http": f"unix:{tmp_path}/none/http.sock"}))
    assert code == 1 and f"{tmp_path}/none/http.sock: its folder is not there" in said


def test_a_file_where_the_socket_should_be(tmp_path):
    (tmp_path / "http.sock").write_text("precious")
    code, said = fails(one_limit(listen={"http": f"unix:{tmp_path}/http.sock"}))
    assert code == 1 and f"{tmp_path}/http.sock: a file that is no socket is there" in said
    assert (tmp_path / "http.sock").read_text() == "precious"


@pytest.mark.parametrize(
    "files, word",
    [
        ({}, "cannot be read"),
        ({"edge": ""}, "empty"),
        ({"edge": "short-token"}, "shorter than 16"),
        ({"edge": "x" * 513}, "longer than 512"),
        ({"edge": EDGE + "\n" + EDGE}, "line break"),
        ({"edge": "one,two-and-three-and-four"}, "comma"),
        ({"edge": "/run/secrets/edge.token"}, "path"),
        ({"edge": "${EDGE_TOKEN_OF_THE_DAY}"}, "template"),
    ],
)
def test_a_token_file_that_cannot_be_used(files, word):
    code, said = fails(one_limit(identities={"edge": {"token_file": "edge"}}), files=files)
    assert code == 3
    assert "/identities/edge/token_file" in said and word in said
    for text in files.values():
        assert len(text) < 12 or text not in said


def test_two_services_with_one_token():
    identities = {"edge": {"token_file": "one"}, "agent": {"token_file": "two"}}
    code, said = fails(one_limit(identities=identities), files={"one": EDGE, "two": EDGE})
    assert code == 3 and '"edge" has the same token' in said


def test_a_configuration_that_cannot_be_read(tmp_path):
    done = run_postern("serve", "--config", tmp_path / "none.json")
    assert done.returncode == 3 and f"{tmp_path}/none.json" in done.stderr
    done = run_postern("serve", "--config", tmp_path)
    assert done.returncode == 3


def test_a_faulty_configuration_names_every_fault():
    config = one_limit(workers=0, cilent={}, http={"body_bytes": "1GiB"})
    code, said = fails(config)
    assert code == 3
    for word in ("/workers", 'did you mean "client"?', "/http/body_bytes"):
        assert word in said


def test_sigterm_finishes_what_is_in_flight(postern):
    p = postern(one_limit())
    with connect(p.http) as half, connect(p.http) as idle, connect(p.http) as live:
        for sock in (idle, live):
            sock.sendall(HEAD + GOOD)
            assert b" 200 " in read_answer(sock)
        half.sendall(HEAD + GOOD[:10])
        # Whether the first half has arrived can be seen only by what comes later on this worker's loop.
        assert p.get_ops("/livez")[0] == 200
        p.signal(signal.SIGTERM)
        assert idle.recv(100) == b""
        half.sendall(GOOD[10:])
        answer = read_answer(half)
        assert answer.split(b" ", 2)[1] == b"200" and b"connection: close" in answer.lower()
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["limits"][0]["remaining"] == 2
        assert half.recv(100) == b""
    assert p.wait() == 0


def test_not_ready_while_it_drains(postern):
    p = postern(one_limit(drain={"delay": "5s"}))
    assert p.get_ops("/readyz")[0] == 200
    ops = p.connect(listener="ops")
    assert ops.ask("GET", "/livez")[0] == 200
    p.signal(signal.SIGTERM)
    until(lambda: ops.ask("GET", "/readyz")[0] == 503)
    assert ops.ask("GET", "/livez")[0] == 200
    assert ask(p)["reason"] == "allowed"  # the gateway may still send
    ops.close()
    p.may_end_with.add(1)
    p.signal(signal.SIGTERM)
    p.wait()


def is_refused(endpoint):
    try:
        connect(endpoint).close()
    except (ConnectionRefusedError, ConnectionResetError):
        return True
    return False


def test_signals_of_other_daemons_end_nothing(postern):
    p = postern(one_limit())
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGPIPE):
        p.signal(number)
        assert ask(p)["reason"] == "allowed"


def test_a_second_signal_ends_it(postern):
    p = postern(one_limit())
    with connect(p.http) as half:
        half.sendall(HEAD + GOOD[:10])
        assert p.get_ops("/livez")[0] == 200
        p.signal(signal.SIGTERM)
        until(lambda: is_refused(p.http))  # from here on it drains, and waits for the half
        p.may_end_with.add(1)
        p.signal(signal.SIGTERM)
        assert half.recv(100) == b""
    assert p.wait() in (0, 1)


def test_sigint_stops_it_too(postern):
    p = postern(one_limit())
    p.signal(signal.SIGINT)
    assert p.wait() == 0
    assert p.log("stop")


def test_a_program_with_two_workers_stops(postern):
    p = postern(one_limit("1000/hour", workers=2))
    connections = [p.connect() for _ in range(6)]
    for connection in connections:
        assert connection.ask("POST", "/check", GOOD)[0] == 200
    p.stop()
    for connection in connections:
        connection.close()

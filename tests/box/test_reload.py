# SPDX-License-Identifier: MIT
"""SIGHUP: a changed configuration is taken while questions are answered, and a bad one is not."""
import json
import os
import signal
import threading

import pytest

from grpc_door import Door
from postern import connect, read_answer, until
from questions import AGENT, EDGE, FORGED, IDENTITIES, ask, one_limit, reasons, remaining, sha256

GOOD = b'{"remote_addr": "203.0.113.7"}'
JSON = {"Content-Type": "application/json"}


def limited(rate, burst=None, **more):
    config = one_limit(rate, **more)
    if burst is not None:
        config["limits"]["per-client"]["burst"] = burst
    return config


def status(p):
    return json.loads(p.ask("GET", "/status", listener="admin")[2])


def reload_ok(p, config=None, **more):
    line = p.reload(config, **more)
    assert line["event"] == "reload", p.output()
    return line


# ---------------------------------------------------------------- buckets keep what they owe


@pytest.mark.parametrize("workers", [1, 2])
def test_a_larger_burst_lets_more_pass_at_once(postern, workers):
    p = postern(limited("5/minute", workers=workers))
    assert reasons(p, 6) == ["allowed"] * 5 + ["rate_limited"]
    reload_ok(p, limited("5/minute", 8, workers=workers))
    assert reasons(p, 4) == ["allowed"] * 3 + ["rate_limited"]


def test_a_higher_rate_keeps_the_time_owed(postern):
    p = postern(limited("5/minute"))
    assert reasons(p, 6) == ["allowed"] * 5 + ["rate_limited"]
    reload_ok(p, limited("8/minute"))
    answer = ask(p)
    assert (answer["decision"], answer["limits"][0]["quota"]) == ("deny", 8)
    assert 2500 < answer["retry_after_ms"] <= 7500


def test_a_smaller_burst_cuts_the_debt(postern):
    p = postern(limited("5/minute"))
    assert reasons(p, 6) == ["allowed"] * 5 + ["rate_limited"]
    reload_ok(p, limited("5/minute", 2))
    answer = ask(p)
    assert (answer["decision"], answer["limits"][0]["quota"]) == ("deny", 2)
    assert 7 <= answer["retry_after"] <= 12  # uncut: 48
    assert ask(p)["retry_after_ms"] <= answer["retry_after_ms"]  # and stays cut


def test_buckets_follow_the_name_of_their_limit(postern):
    p = postern(limited("5/hour"))
    reasons(p, 3)
    config = limited("5/hour")
    config["limits"]["other"] = {"rate": "5/hour"}
    config["rules"] = [{"name": "renamed", "limits": ["other", "per-client"]}]
    reload_ok(p, config)
    assert (remaining(p), remaining(p, "other")) == (2, 5)
    ask(p)
    reload_ok(p, limited("5/hour"))
    reload_ok(p, config)
    assert (remaining(p), remaining(p, "other")) == (1, 4)


# ---------------------------------------------------------------- what is said


def test_the_line_says_what_changed(postern):
    p = postern(one_limit("5/hour", identities=IDENTITIES))
    config = one_limit("6/hour", identities={"edge": {"token_sha256": sha256(FORGED)}}, log={"level": "debug"})
    config["limits"]["new"] = {"rate": "1/s"}
    old = p.log("start")[0]["config"]
    line = reload_ok(p, config)
    assert line["old"] == old and line["new"] != old and len(line["new"]) == 12
    assert line["limits"] == "0 kept; changed: per-client; new: new"
    assert line["rules"] == "1 kept"
    assert line["identities"] == "0 kept; changed: edge; dropped: agent"
    assert line["changed"] == "log.level"
    assert "restart_required" not in line and line["level"] == "info"
    ask(p, id="seen")
    assert p.wait_log("decision", id="seen")  # log.level holds at once
    s = status(p)
    assert s["config"]["hash"] == line["new"] and s["config"]["last_reload"] == {"ok": True, "error": None}
    assert p.metrics()[f'postern_config_info{{hash="{line["new"]}"}}'] == 1
    assert FORGED not in p.output() and EDGE not in p.output()


def test_metrics_of_attempts(postern):
    p = postern(one_limit())
    started = p.metrics()
    assert started["postern_config_last_reload_successful"] == 1
    assert started["postern_config_last_reload_success_timestamp_seconds"] >= started["process_start_time_seconds"] - 1

    def totals():
        return tuple(p.metrics()[f'postern_config_reloads_total{{result="{r}"}}'] for r in ("success", "unchanged", "failure"))

    assert totals() == (0, 0, 0)
    assert p.reload()["event"] == "reload_unchanged"
    assert p.reload(text="{")["event"] == "reload_failed"
    assert p.reload(text="{")["event"] == "reload_failed"
    assert totals() == (0, 1, 2)
    assert p.metrics()["postern_config_last_reload_successful"] == 0
    reload_ok(p, one_limit("9/hour"))
    assert totals() == (1, 1, 2)
    assert p.metrics()["postern_config_last_reload_successful"] == 1
    assert len([name for name in p.metrics() if name.startswith("postern_config_info")]) == 1


def test_a_bad_file_changes_nothing(postern):
    p = postern(one_limit("5/hour", identities=IDENTITIES))
    ask(p)
    hash_before = status(p)["config"]["hash"]
    line = p.reload(text='{"version": 1,\n "limts": {},\n "workers": 0,\n "log": {"level": "loud"}, "client": 5}')
    assert (line["event"], line["level"], line["config"], line["faults"]) == ("reload_failed", "error", hash_before, 4)
    assert "postern.json:" in line["fault"] and 'did you mean "limits"?' in line["fault"] + line["fault_2"] + line["fault_3"]
    for _ in range(2):
        assert p.get_ops("/readyz")[0] == 200
        assert ask(p, token=EDGE)["reason"] == "exempt"
    assert remaining(p) == 4
    s = status(p)
    assert s["config"]["hash"] == hash_before and s["config"]["last_reload"]["ok"] is False
    assert s["config"]["last_reload"]["error"] == line["fault"]
    assert "the last reload failed" in p.ask("GET", "/", listener="admin")[2].decode()
    # The old text again: nothing to take, and no fault any more.
    assert p.reload(one_limit("5/hour", identities=IDENTITIES))["event"] == "reload_unchanged"
    assert status(p)["config"]["last_reload"] == {"ok": True, "error": None}
    assert "the last reload failed" not in p.ask("GET", "/", listener="admin")[2].decode()


def test_a_file_that_is_gone_is_a_fault(postern):
    p = postern(one_limit("5/hour"))
    p.config_path.unlink()
    line = p.reload()
    assert line["event"] == "reload_failed" and str(p.config_path) in line["fault"] and "cannot be read" in line["fault"]
    assert ask(p)["limits"][0]["quota"] == 5


def test_warnings_are_told_as_at_the_start(postern):
    p = postern(one_limit())
    reload_ok(p, one_limit(client={"strategy": "single_value", "trusted_proxies": "any"}))
    assert any("/client/trusted_proxies" in line["msg"] for line in p.log("config_warning"))


# ---------------------------------------------------------------- what needs a restart


def test_what_needs_a_restart_is_named_and_kept_whole(postern, tmp_path):
    p = postern(one_limit("5/hour", http={"body_bytes": "1KiB"}))
    config = one_limit("6/hour", workers=2, http={"body_bytes": "8KiB"}, store={"max_memory": "1MiB"}, listen={"ops": f"unix:{tmp_path}/ops"})
    line = reload_ok(p, config)
    assert line["restart_required"] == "listen.ops, store.max_memory, workers, http.body_bytes" and line["level"] == "warn"
    assert ask(p)["limits"][0]["quota"] == 6  # the rest holds
    assert p.ask("POST", "/check", b" " * 2000, JSON)[0] == 413
    assert p.get_ops("/readyz")[0] == 200
    assert not (tmp_path / "ops").exists()
    s = status(p)
    assert s["config"]["restart_required"] == ["listen.ops", "store.max_memory", "workers", "http.body_bytes"]
    assert s["store"]["bytes"] == 16 * 2**20
    # It waits until a restart, or until the file says again what runs.
    assert reload_ok(p, {**config, "drain": {"timeout": "9s"}})["restart_required"] == line["restart_required"]
    assert "restart_required" not in p.reload(one_limit("6/hour", http={"body_bytes": "1KiB"}))
    assert status(p)["config"]["restart_required"] == []


def test_callers_are_judged_for_the_listeners_that_there_are(postern):
    p = postern(one_limit(callers=["127.0.0.0/8"], listen={"http": "0.0.0.0:0"}))
    line = p.reload(one_limit(listen={"http": "127.0.0.1:0"}))
    assert line["event"] == "reload_failed" and "/listen/http" in line["fault"]
    assert ask(p)["decision"] == "allow"


# ---------------------------------------------------------------- tokens


def test_a_token_file_is_read_again(postern):
    config = one_limit(identities={"edge": {"token_file": "edge"}})
    p = postern(config, files={"edge": EDGE})
    assert ask(p, token=EDGE)["reason"] == "exempt"
    line = reload_ok(p, files={"edge": AGENT})
    assert line["identities"] == "0 kept; changed: edge"
    assert ask(p, token=AGENT)["reason"] == "exempt"
    assert ask(p, token=EDGE)["token"] == "unknown"
    line = p.reload(files={"edge": "short"})
    assert line["event"] == "reload_failed" and "shorter than 16" in line["fault"]
    assert ask(p, token=AGENT)["reason"] == "exempt"


def test_quick_flags_read_their_token_files_again(postern):
    p = postern(files={"edge": EDGE}, args=["--rate", "5/hour", "--identity", "edge=edge"])
    reasons(p, 2)
    assert p.reload()["event"] == "reload_unchanged"
    reload_ok(p, files={"edge": AGENT})
    assert ask(p, token=AGENT)["reason"] == "exempt"
    assert remaining(p) == 3


def test_without_a_file_there_is_nothing_to_take(postern):
    p = postern()
    line = p.reload()
    assert line["event"] == "reload_unchanged" and "no configuration file" in line["msg"]
    assert ask(p)["limits"][0]["quota"] == 300


class Load:
    """Threads that ask on connections that stay open, each as fast as it can; question() gives the next body."""

    def __init__(self, p, question, threads=4):
        self.question, self.stop = question, False
        self.answers, self.faults = [0] * threads, []
        self.threads = [threading.Thread(target=self.run, args=(p, i), daemon=True) for i in range(threads)]

    def run(self, p, index):
        connection = p.connect()
        try:
            while not self.stop:
                asked, fits = self.question()
                code, _, body = connection.ask("POST", "/check", json.dumps(asked).encode(), JSON)
                answer = json.loads(body)
                if code != 200 or not fits(answer):
                    self.faults.append((code, answer))
                self.answers[index] += 1
        except Exception as e:  # whatever it is, it must not get lost with the thread
            self.faults.append(repr(e))
        finally:
            connection.close()

    def a_round(self):
        """Until every thread has begun and ended a question from here on."""
        goal = [n + 2 for n in self.answers]
        until(lambda: self.faults or all(have >= want for have, want in zip(self.answers, goal)))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        self.a_round()
        return self

    def __exit__(self, *failure):
        self.stop = True
        for thread in self.threads:
            thread.join()
        assert not self.faults, self.faults[:3]


@pytest.mark.parametrize("workers", [1, 2])
def test_tokens_rotate_without_one_failed_request(postern, workers):
    config = one_limit(identities={"edge": {"token_file": "current", "previous_token_file": "previous"}}, workers=workers)
    config["rules"] = [{"name": "all", "limits": ["per-client"], "require": "identity"}]
    tokens = [f"postern_token-of-the-day-number-{i:04}" for i in range(12)]
    p = postern(config, files={"current": tokens[0]})
    shown = {"token": tokens[0]}

    def question():
        return {"remote_addr": "203.0.113.7", **shown}, lambda answer: answer["reason"] == "exempt" and answer["identity"] == "edge"

    with Load(p, question) as load:
        for old, new in zip(tokens, tokens[1:]):
            reload_ok(p, files={"current": new, "previous": old})
            load.a_round()  # the old one still holds
            shown["token"] = new
            load.a_round()
            (p.folder / "previous").unlink()
            reload_ok(p)
            load.a_round()
        slots = p.metrics()
    assert ask(p, token=tokens[0])["reason"] == "identity_required"
    assert slots['postern_identity_requests_total{identity="edge",slot="previous"}'] > 0


# ---------------------------------------------------------------- under load


def rules_of(turn):
    """A configuration whose names, order and number of rules differ from turn to turn."""
    config = one_limit("1000000/s", workers=2, identities={f"i{turn % 7}": {"token_sha256": sha256(EDGE)}})
    config["limits"][f"l{turn % 5}"] = {"rate": f"{1000000 + turn}/s", "key": ["client", "path"]}
    mine = [{"name": f"r{(turn + i) % 11}", "match": {"path": f"/{i}/*"}, "limits": ["per-client", f"l{turn % 5}"]} for i in range(turn % 4)]
    config["rules"] = mine + [{"name": f"rest{turn % 3}", "limits": ["per-client"]}]
    if turn % 2:
        config["client"] = {"strategy": "trusted_ranges", "trusted_proxies": ["10.0.0.0/8"]}
    return config


def test_a_hundred_reloads_under_load(postern):
    p = postern(rules_of(0))
    asked = threading.Lock()
    turn = [0]

    def question():
        with asked:
            turn[0] += 1
            n = turn[0]
        asking = {"remote_addr": "10.0.0.5", "path": f"/{n % 4}/x", "headers": {"X-Forwarded-For": f"203.0.113.{n % 200}"}}
        if n % 5 == 0:
            asking["token"] = EDGE
        reason = "exempt" if "token" in asking else "allowed"
        return asking, lambda answer: answer["reason"] == reason and answer["client"]["address"] in ("10.0.0.5", f"203.0.113.{n % 200}")

    sizes = []
    with Load(p, question) as load:
        for n in range(1, 101):
            reload_ok(p, rules_of(n))
            load.a_round()
            sizes.append(p.metrics()["process_resident_memory_bytes"])
    metrics = p.metrics()

    def total(family):
        return sum(value for name, value in metrics.items() if name.startswith(family + "{"))

    # Not one decision uncounted, whatever became of the names that it was counted under.
    assert total("postern_decisions_total") == sum(load.answers)
    assert total("postern_token_states_total") == sum(load.answers)
    exempt = sum(value for name, value in metrics.items() if name.startswith("postern_decisions_total{") and 'reason="exempt"' in name)
    assert total("postern_identity_requests_total") == exempt > 0
    assert metrics['postern_config_reloads_total{result="success"}'] == 100
    if os.environ.get("SAN", "none") == "none":
        assert max(sizes[50:]) < max(sizes[:50]) + 4 * 2**20


def test_many_signals_at_once(postern):
    p = postern(one_limit("5/hour"))
    for n in range(6, 40):
        # Renamed into place: what was read half written would be a fault, and rightly.
        p.write("next", p.config_path.read_text().replace(f'"{n - 1}/hour"', f'"{n}/hour"')).rename(p.config_path)
        p.signal(signal.SIGHUP)
    until(lambda: ask(p, peek=True)["limits"][0]["quota"] == 39)
    told = len(p.attempts())
    p.signal(signal.SIGHUP)
    p.wait_attempt(told)
    assert p.log("reload")[-1]["event"] == "reload" and not p.log("reload_failed")


def test_told_to_stop_while_it_reloads(postern):
    p = postern(rules_of(3))
    p.config_path.write_text(p._config_text(rules_of(2)))
    p.signal(signal.SIGHUP)
    p.signal(signal.SIGTERM)
    assert p.wait() == 0


def test_a_question_on_its_way_is_answered(postern):
    """Begun under one configuration, ended under the next."""
    head = b"POST /check HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(GOOD)
    p = postern(one_limit("5/hour"))
    with connect(p.http) as half:
        half.sendall(head + GOOD[:10])
        assert p.get_ops("/livez")[0] == 200
        reload_ok(p, one_limit("7/hour"))
        half.sendall(GOOD[10:])
        answer = read_answer(half)
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["limits"][0]["quota"] == 7


# ---------------------------------------------------------------- everything else that holds at once


def test_callers_hold_for_connections_that_are_open(postern):
    p = postern(one_limit("50/hour"))
    connection = p.connect()
    assert connection.ask("POST", "/check", GOOD, JSON)[0] == 200
    reload_ok(p, one_limit("50/hour", callers=["127.0.0.99"]))
    assert connection.ask("POST", "/check", GOOD, JSON)[0] == 403
    connection.close()
    connection = p.connect()
    reload_ok(p, one_limit("50/hour", callers=["127.0.0.1"]))
    assert connection.ask("POST", "/check", GOOD, JSON)[0] == 200
    connection.close()


def test_a_callers_key_is_read_again(postern):
    config = one_limit("50/hour", callers=["127.0.0.1"], caller_key_file="key")
    p = postern(config, files={"key": EDGE})
    assert p.ask("POST", "/check", GOOD, {**JSON, "X-Postern-Key": EDGE})[0] == 200
    assert reload_ok(p, files={"key": AGENT})["changed"] == "caller_key_file"
    assert p.ask("POST", "/check", GOOD, {**JSON, "X-Postern-Key": EDGE})[0] == 403
    assert p.ask("POST", "/check", GOOD, {**JSON, "X-Postern-Key": AGENT})[0] == 200


def test_drain_goes_by_the_configuration_in_force(postern):
    p = postern(one_limit())
    reload_ok(p, one_limit(drain={"delay": "5s"}))
    p.signal(signal.SIGTERM)
    until(lambda: p.get_ops("/readyz")[0] == 503)
    assert ask(p)["decision"] == "allow"
    p.may_end_with.add(1)
    p.signal(signal.SIGTERM)
    p.wait()


def test_grpc_goes_by_what_is_in_force(postern):
    """On one connection, which stays, all the time."""
    p = postern(one_limit("5/hour", workers=2))
    door = Door(p.grpc)
    assert [door.check("203.0.113.7").allowed for _ in range(6)] == [True] * 5 + [False]
    line = reload_ok(p, limited("5/hour", 8, workers=2, grpc={"max_streams": 5}))
    assert line["restart_required"] == "grpc.max_streams"
    assert [door.check("203.0.113.7").allowed for _ in range(4)] == [True] * 3 + [False]
    reload_ok(p, limited("5/hour", 8, workers=2, callers=["127.0.0.99"]))
    assert door.check("203.0.113.8").status == 403
    reload_ok(p, one_limit("100000/hour", workers=2))
    for n in range(20):
        calls = [door.check(f"198.51.100.{i}").allowed for i in range(20)]
        assert calls == [True] * 20 and reload_ok(p, one_limit(f"{100001 + n}/hour", workers=2))
    door.close()


# ---------------------------------------------------------------- the first story, cured without a restart


def visitors(p, n=200):
    """Many people behind one hop that says who they are; the reasons of what they were told."""
    connection = p.connect()
    answers = []
    for i in range(n):
        headers = {"X-Forwarded-For": f"203.0.113.{i % 199}", "Cookie": f"session={i % 199}"}
        body = json.dumps({"remote_addr": "172.18.0.5:40000", "headers": headers}).encode()
        answers.append(json.loads(connection.ask("POST", "/check", body, JSON)[2]))
    connection.close()
    return answers


@pytest.mark.parametrize("workers", [1, 2])
def test_the_cure_clears_the_warning(postern, workers):
    p = postern(one_limit("10/minute", workers=workers))
    wrong = visitors(p)
    assert all(answer["warnings"] == ["forwarded_header_ignored"] for answer in wrong)
    assert wrong[-1]["reason"] == "rate_limited"
    (warning,) = status(p)["warnings"]
    assert (warning["code"], warning["key"]) == ("shared_bucket", "172.18.0.5")
    cure = json.loads("{" + warning["cure"] + "}")
    assert p.wait_log("shared_bucket")
    line = reload_ok(p, one_limit("10/minute", workers=workers, **cure))
    assert line["changed"] == "client"
    assert status(p)["warnings"] == []
    right = visitors(p)
    assert all(answer["decision"] == "allow" and "warnings" not in answer for answer in right)
    assert {answer["client"]["reason"] for answer in right} == {"trusted_range"}
    assert status(p)["warnings"] == []
    assert p.wait_log("shared_bucket_cleared")


def test_a_cure_that_does_not_cure_is_said(postern):
    p = postern(one_limit("10/minute"))
    visitors(p, 3)
    assert len(p.log("forwarded_header_ignored")) == 1
    reload_ok(p, one_limit("10/minute", drain={"timeout": "9s"}))
    visitors(p, 3)
    assert len(p.log("forwarded_header_ignored")) == 1  # nothing about clients has changed
    edge = {"edge": {"token_sha256": "a8030d0e37732e4181fffe8d34749a7ad153a40a7137b57a710a12caf3557ea1"}}
    reload_ok(p, one_limit("10/minute", identities=edge))
    visitors(p, 3)
    assert len(p.log("forwarded_header_ignored")) == 1  # nor by a new token
    reload_ok(p, one_limit("10/minute", client={"strategy": "trusted_ranges", "trusted_proxies": ["172.19.0.5"]}))
    visitors(p, 3)
    first, second = p.log("forwarded_header_ignored")
    assert '"172.19.0.5", "172.18.0.5"' in second["cure"] or '"172.18.0.5"' in second["cure"]

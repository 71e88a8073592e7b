# SPDX-License-Identifier: MIT
"""The verbs: what they print where, and with which code they end."""
import hashlib
import json
import re
import socket
import threading

import pytest

from postern import run_postern
from questions import EDGE, FORGED, check_config, one_limit

VERBS = ("serve", "check-config", "explain", "token", "health", "probe", "top", "version", "help")


def test_no_verb_is_wrong_usage_and_helps():
    done = run_postern()
    assert done.returncode == 2
    assert all(f"  {verb} " in done.stdout for verb in VERBS)


@pytest.mark.parametrize("args", [["help"], ["--help"], ["-h"]])
def test_help(args):
    done = run_postern(*args)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(f"  {verb} " in done.stdout for verb in VERBS) and "Exit codes" in done.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb):
    done = run_postern("help", verb)
    assert done.returncode == 0 and f"postern {verb}" in done.stdout


@pytest.mark.parametrize("args", [["version"], ["--version"]])
def test_version(args):
    done = run_postern(*args)
    assert done.returncode == 0
    assert re.match(r"postern \d+\.\d+\.\d+ \(\w+\)\n", done.stdout)
    assert all(library in done.stdout for library in ("jansson 2.", "libsodium 1."))


@pytest.mark.parametrize(
    "args",
    [
        ["sevre"], ["help", "nothing"], ["help", "a", "b"], ["version", "x"], ["token"], ["token", "old"], ["token", "hash", "a", "b"],
        ["check-config"], ["check-config", "a", "b"], ["check-config", "--what", "a"], ["health", "a", "b"], ["health", "--x"],
        ["health", "nonsense"], ["serve", "x"], ["serve", "--rate"], ["serve", "--what"], ["explain", "--what"],
        ["serve", "--rate", "5/fortnight"], ["serve", "--rate", "0/hour"], ["serve", "--rate", "5/hour", "--rate", "6/hour"],
        ["serve", "--burst", "many"], ["serve", "--burst", "0"], ["serve", "--client", "leftmost"], ["serve", "--client", "hop_count"],
        ["serve", "--client", "hop_count:x"], ["serve", "--trusted-proxies", "10.0.0.1/8"], ["serve", "--trusted-proxies", ""],
        ["serve", "--caller", "everyone"], ["serve", "--identity", "edge"],
        ["serve", "--listen", "127.0.0.1"], ["serve", "--listen", "side=127.0.0.1:0"], ["serve", "--listen", "unix:"],
        ["probe"], ["probe", "a", "b"], ["probe", "shop.example"], ["probe", "https://shop.example/"], ["probe", "http://"], ["probe", "http://a@b/"],
        ["probe", "http://h:0/"], ["probe", "http://h:x/"], ["probe", "http://[::1/"], ["probe", "http://a b/"], ["probe", "http://h/", "--what"],
        ["probe", "http://h/", "--admin", "nonsense"], ["top", "--what"], ["top", "a", "b"], ["top", "nonsense"],
        ["explain"], ["explain", "--path", "/"], ["explain", "--door", "window"], ["explain", "--remote-addr", "1.2.3.4", "-H", "no colon"],
        ["explain", "--door", "forward_auth", "--remote-addr", "1.2.3.4"], ["explain", "--door", "auth_request", "--path", "/"],
        ["explain", "--door", "ext_authz_http", "--path", "x"], ["explain", "--door", "ext_authz_http", "--host", "x"], ["explain", "--remote-addr", "1.2.3.4", "x"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_wrong_usage(args):
    done = run_postern(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("postern")


@pytest.mark.parametrize(
    "args, said",
    [
        (["sevre"], 'did you mean "serve"?'), (["help", "sevre"], 'did you mean "serve"?'), (["chek-config"], 'did you mean "check-config"?'),
        (["x"], '"postern help" lists them'),
        (["explain"], "nothing is on stdin"), (["explain", "--json"], "/check body"),
        (["serve", "--client", "hop_count"], "write hop_count:N"), (["serve", "--client", "named_header"], "write named_header:NAME"),
        (["serve", "--client", "rightmost:2"], "takes no parameter"), (["explain", "--client", "peer:1"], "takes no parameter"),
        (["serve", "--client", "rigthmost:2"], 'did you mean "rightmost"?'),
        # A beginning of a flag's name is no flag: it would mean another one some day.
        (["serve", "--conf", "x"], '"--conf" is not known; did you mean "--config"?'),
        (["serve", "--conf=x"], '"--conf" is not known; did you mean "--config"?'),
        (["explain", "--js", "--remote-addr", "1.2.3.4"], '"--js" is not known'),
        (["explain", "x", "--remote-add", "1.2.3.4"], '"--remote-add" is not known; did you mean "--remote-addr"?'),
        (["explain", "--remote-add="], '"--remote-add" is not known'),
        (["probe", "http://h/", "--adm", "127.0.0.1:1"], '"--adm" is not known; did you mean "--admin"?'),
        (["serve", "--rtae", "1/s"], '"--rtae" is not known; did you mean "--rate"?'), (["serve", "--r", "1/s"], '"--r" is not known'),
        (["serve", "--rate"], '"--rate" lacks its value'), (["explain", "-H"], '"-H" lacks its value'),
        (["explain", "--json=1"], '"--json=1": this flag takes no value'), (["explain", "-x"], '"-x" is not known'), (["serve", "-x"], '"-x" is not known'),
    ],
    ids=lambda x: " ".join(x) if isinstance(x, list) else "",
)  # fmt: skip
def test_wrong_usage_is_told_with_what_is_right(args, said):
    done = run_postern(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr, done.stderr


def test_flags_with_their_whole_names(tmp_path):
    (tmp_path / "t").write_text(EDGE)
    for form in (["--remote-addr=1.2.3.4", "--path", "--json"], ["--path=--js", "--remote-addr", "1.2.3.4"], ["--remote-addr", "1.2.3.4", "--token-file", tmp_path / "t"]):
        assert run_postern("explain", *form).returncode == 0, form


def test_quick_flags_and_a_file_exclude_each_other(tmp_path):
    path = tmp_path / "postern.json"
    path.write_text("{}")
    for verb in ("serve", "explain"):
        done = run_postern(verb, "--config", path, "--rate", "5/hour")
        assert done.returncode == 2 and str(path) in done.stderr
        done = run_postern(verb, "--rate", "5/hour", env={"POSTERN_CONFIG": str(path)})
        assert done.returncode == 2 and "POSTERN_CONFIG" in done.stderr


@pytest.mark.parametrize("text", [None, "", "short"])
def test_a_flag_that_names_a_file_that_cannot_be_used(tmp_path, text):
    path = tmp_path / "edge"
    if text is not None:
        path.write_text(text)
    for verb in ("serve", "explain"):
        done = run_postern(verb, "--identity", f"edge={path}")
        assert done.returncode == 3 and "--identity" in done.stderr


def test_postern_config_names_the_file(tmp_path):
    path = tmp_path / "postern.json"
    path.write_text(json.dumps(one_limit("7/hour")))
    done = run_postern("explain", "--remote-addr", "1.2.3.4", env={"POSTERN_CONFIG": str(path)})
    assert done.returncode == 0 and "7 of 7 left" in done.stdout
    path.write_text("{")
    done = run_postern("explain", "--remote-addr", "1.2.3.4", env={"POSTERN_CONFIG": str(path)})
    assert done.returncode == 3 and f"{path}:1:2: " in done.stderr


# ---- check-config


def test_a_good_file():
    done = check_config(one_limit())
    assert (done.returncode, done.stderr) == (0, "")
    assert "OK (1 rule, 1 limit, 0 identities)" in done.said


def test_numbers_of_one_and_of_more():
    config = one_limit(identities={"edge": {"token_sha256": "0" * 64}})
    config["limits"]["more"] = {"rate": "1/s"}
    config["rules"].insert(0, {"name": "more", "match": {"path": "/more"}, "limits": ["more"]})
    assert "OK (2 rules, 2 limits, 1 identity)" in check_config(config).said


FAULTY = """{
  "version": 1,
  "clinet": {},
  "limits": {
    "a": {"rate": "5/hour", "burts": 3},
    "b": {"rate": "5/fortnight", "key": ["clients"]},
    "Big": {"rate": "1/s"}
  },
  "rules": [
    {"name": "x", "match": {"paths": "/a"}, "limits": ["c"]},
    {"name": "x", "action": "deny", "limits": ["a"]}
  ],
  "domains": {"edge": {}},
  "workers": "2"
}"""


def test_every_fault_is_named_with_its_place():
    done = check_config(FAULTY)
    assert done.returncode == 3
    lines = done.stderr.splitlines()
    for place, *said in (
        ("3:3", "/clinet", '"client"'), ("5:29", "/limits/a/burts", '"burst"'), ("6:19", "/limits/b/rate"),
        ("6:42", "/limits/b/key/0", '"client"'), ("7:5", "/limits/Big"), ("10:29", "/rules/0/match/paths", '"path"'),
        ("10:56", "/rules/0/limits/0", '"c"'), ("11:14", "/rules/1/name"), ("11:19", "/rules/1/action"), ("13:3", "/domains", "not_in_this_version"),
        ("14:14", "/workers"),
    ):  # fmt: skip
        assert any(f"postern.json:{place}" in line and all(w in line for w in said) for line in lines), (place, said, done.said)
    assert all(": error: " in line for line in lines)


@pytest.mark.parametrize("text, place", [("", "1:1"), ("{", "1:2"), ('{"a":1,}', "1:8"), ("[]", "1:1"), ('{"version": 2}', "1:13")])
def test_files_that_are_no_configuration(text, place):
    done = check_config(text)
    assert done.returncode == 3 and f"postern.json:{place}: " in done.said, done.said


def test_a_file_that_is_not_there(tmp_path):
    done = run_postern("check-config", tmp_path / "none")
    assert done.returncode == 3 and f"{tmp_path}/none" in done.stderr


def test_secrets_are_opened_unless_told_not_to():
    config = one_limit(identities={"edge": {"token_file": "nowhere"}}, caller_key_file="nowhere")
    done = check_config(config)
    assert done.returncode == 3 and "/identities/edge/token_file" in done.said and "/caller_key_file" in done.said
    assert check_config(config, "--without-secrets").returncode == 0
    assert check_config(one_limit(workers=0), "--without-secrets").returncode == 3


def test_a_previous_token_may_be_missing():
    config = one_limit(identities={"edge": {"token_file": "now", "previous_token_file": "nowhere"}})
    assert check_config(config, files={"now": EDGE}).returncode == 0


@pytest.mark.parametrize(
    "more, said",
    [
        ({"limits": {"per-client": {"rate": "5/hour", "key": ["header:X-Api-Key"]}}}, "/rules/0/limits"),
        ({"client": {"strategy": "rightmost", "trusted_proxies": "any"}}, "/client"),
        ({"client": {"strategy": "single_value"}}, "/client/strategy"),
        ({"rules": [{"name": "own", "match": {"client": "10.0.0.0/8"}, "action": "allow"}, {"name": "all", "limits": ["per-client"]}]},
         "/rules/0/match/client"),
    ],
)  # fmt: skip
def test_what_is_risky_is_a_warning(more, said):
    done = check_config({**one_limit(), **more})
    assert done.returncode == 0 and ": warning: " in done.said and said in done.said


@pytest.mark.parametrize(
    "config, said",
    [
        ({"limits": {"a": {"rate": "5/hour"}}}, "rules"),
        ({"rules": []}, "/rules"),
        (one_limit(client={"trusted_proxies": ["10.0.0.0/8"]}), '"trusted_ranges"'),
        ({**one_limit(), "rules": [{"name": "a", "limits": ["per-client"]}, {"name": "b", "limits": ["per-client"]}]}, "/rules/0"),
        ({**one_limit(), "rules": [{"name": "a", "match": {"path": "/a"}, "limits": ["per-client"]}]}, "/rules/0"),
        ({**one_limit(), "rules": [{"name": "a", "action": "allow", "limits": ["per-client"]}]}, "/rules/0"),
        ({**one_limit(), "rules": [{"name": "a", "require": "nobody", "limits": ["per-client"]}]}, "/rules/0/require"),
        (one_limit(store={"kind": "redis"}), "not_in_this_version"),
        (one_limit(domains={}), "not_in_this_version"),
        (one_limit(identities={"edge": {}}), "token_file"),
        (one_limit(identities={"edge": {"token_sha256": "abc"}}), "64 hex"),
        (one_limit(identities={"edge": {"token_sha256": "0" * 64, "limits": ["per-client"]}}), "identity in its key"),
    ],
)
def test_contradictions(config, said):
    done = check_config(config)
    assert done.returncode == 3 and said in done.said, done.said


# ---- explain

CHAIN = ["--trusted-proxies", "10.0.0.0/8", "--remote-addr", "10.0.0.5:99", "-H", "X-Forwarded-For: 6.6.6.6, 203.0.113.7",
    "-H", "X-Forwarded-For: 10.1.1.1"]  # fmt: skip


def test_explain_in_words():
    done = run_postern("explain", *CHAIN, "--path", "/a//b")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("allow: allowed")
    for words in (
        ["client: 203.0.113.7", "decided", "trusted_range"],
        ["10.0.0.5", "is a trusted proxy", "10.0.0.0/8"],
        ["entry -1", '"10.1.1.1"', "is a trusted proxy", "10.0.0.0/8"],
        ["entry -2", '"203.0.113.7" is the client'],
        ["1 entry further left was not looked at"],
        ["token: absent"], ["/a/b", "/a//b"], ["rule default", "matches"], ["limit per-client", "300 of 300 left"],
    ):  # fmt: skip
        assert any(all(word in line for word in words) for line in lines), (words, done.stdout)


def test_explain_as_json():
    answer = json.loads(run_postern("explain", "--json", *CHAIN).stdout)
    assert answer["client"] == {"address": "203.0.113.7", "reason": "trusted_range", "decided": True}
    explain = answer["explain"]
    assert [(s["step"], s["verdict"]) for s in explain["steps"]] == [
        ("remote_addr", "trusted"), ("entry", "trusted"), ("entry", "chosen")
    ]  # fmt: skip
    assert [s.get("line") for s in explain["steps"]] == [None, 2, 1]
    assert (explain["entries_unread"], explain["key"], explain["class"]) == (1, "4:203.0.113.7", "decided")


def test_explain_warns_of_the_naive_configuration():
    done = run_postern("explain", "--remote-addr", "172.18.0.5", "-H", "X-Forwarded-For: 203.0.113.7")
    assert done.returncode == 0
    assert "warning: forwarded_header_ignored" in done.stdout
    assert "client: 172.18.0.5" in done.stdout


def test_explain_tells_rule_by_rule(tmp_path):
    config = one_limit()
    config["rules"].insert(0, {"name": "login", "match": {"method": "POST", "path": "/login"}, "action": "deny"})
    path = tmp_path / "postern.json"
    path.write_text(json.dumps(config))
    ask = ["explain", "--config", path, "--remote-addr", "1.2.3.4", "--path", "/login", "--host", "a.example"]
    done = run_postern(*ask, "--method", "GET", "--exit-code")
    assert done.returncode == 0 and "rule login: does not match: method" in done.stdout and "rule all: matches" in done.stdout
    done = run_postern(*ask, "--method", "POST", "--exit-code")
    assert done.returncode == 5 and done.stdout.startswith("deny: blocked")
    assert run_postern(*ask, "--method", "POST").returncode == 0


def test_explain_with_a_header_door():
    lines = ["-H", "X-Forwarded-For: 6.6.6.6, 203.0.113.7", "-H", "X-Forwarded-Method: GET", "-H", "X-Forwarded-Uri: /login?x"]
    done = run_postern("explain", "--door", "forward_auth", *lines)
    assert done.returncode == 0 and "client: 203.0.113.7, decided: peer" in done.stdout and "path: /login" in done.stdout
    done = run_postern("explain", "--door", "forward_auth", *lines[:4], "--exit-code")
    assert done.returncode == 5 and "door_misconfigured" in done.stdout and "X-Forwarded-Uri" in done.stdout


def test_explain_with_the_doors_of_nginx_and_envoy(tmp_path):
    nginx = ["-H", "X-Real-IP: 203.0.113.7", "-H", "X-Original-Method: GET", "-H", "X-Original-URL: https://a.example/login?x"]
    done = run_postern("explain", "--door", "auth_request", *nginx)
    assert done.returncode == 0 and "client: 203.0.113.7, decided: peer" in done.stdout and "path: /login" in done.stdout
    done = run_postern("explain", "--door", "auth_request", *nginx[:4], "--exit-code")
    assert done.returncode == 5 and "door_misconfigured" in done.stdout and "X-Original-URL" in done.stdout
    envoy = ["--door", "ext_authz_http", "--method", "POST", "--path", "/login?x", "-H", "Host: a.example"]
    done = run_postern("explain", *envoy, "-H", "X-Postern-Remote-Addr: 203.0.113.7")
    assert done.returncode == 0 and "client: 203.0.113.7, decided: peer" in done.stdout and "path: /login" in done.stdout
    last = ["-H", "X-Forwarded-For: 6.6.6.6, 203.0.113.7"]
    done = run_postern("explain", *envoy, *last, "--exit-code")
    assert done.returncode == 5 and "X-Postern-Remote-Addr" in done.stdout
    path = tmp_path / "postern.json"
    path.write_text(json.dumps({"version": 1, "doors": {"ext_authz": {"remote_addr": "xff_last"}}}))
    done = run_postern("explain", "--config", path, *envoy, *last)
    assert done.returncode == 0 and "client: 203.0.113.7, decided: peer" in done.stdout


def test_explain_a_question_on_stdin():
    done = run_postern("explain", "--json", stdin='{"remote_addr": "203.0.113.7", "id": "x", "cost": 2}')
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["id"], answer["client"]["address"]) == (0, "x", "203.0.113.7")
    done = run_postern("explain", stdin='{"remote_adr": "x"}')
    assert done.returncode == 2 and "1:2" in done.stderr and '"remote_addr"' in done.stderr


def test_explain_a_token(tmp_path):
    (tmp_path / "edge").write_text(EDGE + "\n")
    (tmp_path / "forged").write_text(FORGED)
    for shown, said in (("edge", "token: valid, identity edge (current token)"), ("forged", "token: unknown")):
        done = run_postern("explain", "--identity", f"edge={tmp_path}/edge", "--remote-addr", "1.2.3.4", "--token-file", tmp_path / shown)
        assert said in done.stdout
        assert EDGE not in done.stdout and FORGED not in done.stdout


def test_explain_shows_hostile_text_harmlessly():
    hostile = "\u001b[2J\u0007" + "x" * 500
    for form in ([], ["--json"]):
        done = run_postern("explain", *form, "--client", "rightmost", "--trusted-proxies", "10.0.0.1", "--remote-addr", "10.0.0.1", "-H", "X-Forwarded-For: " + hostile)
        assert done.returncode == 0 and "\u001b" not in done.stdout and "x" * 65 not in done.stdout


# ---- token


def test_tokens_are_random_and_can_be_hashed(tmp_path):
    tokens = [run_postern("token", "new").stdout for _ in range(3)]
    assert len(set(tokens)) == 3
    assert all(re.fullmatch(r"postern_[A-Za-z0-9_-]{43}\n", token) for token in tokens)
    want = hashlib.sha256(tokens[0].strip().encode()).hexdigest() + "\n"
    assert run_postern("token", "hash", stdin=tokens[0]).stdout == want
    assert run_postern("token", "hash", stdin=tokens[0].strip()).stdout == want
    (tmp_path / "t").write_text(tokens[0].strip() + "\r\n")
    assert run_postern("token", "hash", tmp_path / "t").stdout == want


@pytest.mark.parametrize("text", ["", "short", "x" * 513, "has a space in it, really", "two-lines-of-a-token\nx", "caf\u00e9-with-an-accent-in-it"])
def test_what_is_no_token(text):
    done = run_postern("token", "hash", stdin=text)
    assert (done.returncode, done.stdout) == (3, "")
    assert len(text) < 6 or text not in done.stderr


def test_a_token_file_that_is_not_there(tmp_path):
    assert run_postern("token", "hash", tmp_path / "none").returncode == 3


# ---- health


def test_health_of_one_that_runs(postern):
    p = postern(one_limit())
    done = run_postern("health", p.ops)
    assert (done.returncode, done.stdout) == (0, "ready\n")


def test_health_of_nobody():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody else can answer there
        done = run_postern("health", "127.0.0.1:%d" % taken.getsockname()[1])
    assert done.returncode == 4


@pytest.mark.parametrize("answer, code", [(b"HTTP/1.1 503 x\r\n\r\ndraining\n", 5), (b"HTTP/1.1 200 OK\r\n\r\n", 0), (b"", 4)])
def test_health_of_others(answer, code):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            peer, _ = server.accept()
            with peer:
                peer.recv(1000)
                peer.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        done = run_postern("health", "127.0.0.1:%d" % server.getsockname()[1])
        thread.join()
    assert done.returncode == code

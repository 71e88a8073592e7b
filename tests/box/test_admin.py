# SPDX-License-Identifier: MIT
"""The admin listener: who may ask, explaining live, and looking at and forgiving one bucket."""
import http.client
import json

import pytest

from postern import Postern, until
from questions import EDGE, FORGED, IDENTITIES, ask, check_config, one_limit, reasons, remaining


def admin(p, path, method="GET", body=None, headers=()):
    """One question to the admin listener: (status, the answer's JSON)."""
    lines = [*headers, *([("Content-Type", "application/json")] if body is not None else [])]
    status, answer_headers, answer = p.ask(method, path, body, lines, listener="admin")
    assert answer_headers["Cache-Control"] == "no-store"
    return status, json.loads(answer)


def explain(p, **question):
    status, answer = admin(p, "/explain", "POST", json.dumps(question).encode())
    assert status == 200, answer
    return answer


# ---------------------------------------------------------------------------------------------------- who may ask


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9183", "127.0.0.1", "127.0.0.1:9183", "127.8.9.1:1", "[::1]", "[::1]:9183"])
def test_hosts_of_this_machine(postern, host):
    p = postern(one_limit())
    assert admin(p, "/keys/per-client/203.0.113.7", headers=[("Host", host)])[0] == 200


FOREIGN = ["evil.example", "evil.example:9183", "localhost.evil.example", "localhost.", "127.0.0.1.evil.example", "203.0.113.7", "[2001:db8::1]:9183",
    "0.0.0.0", "127.1", "2130706433", "0x7f.0.0.1", "localhost:x", "localhost:", "127.0.0.1:", "[::1", "::1x", " ", "admin", "[::ffff:203.0.113.7]"]  # fmt: skip


@pytest.mark.parametrize("host", FOREIGN)
def test_a_name_that_points_here_is_refused(postern, host):
    """DNS rebinding: a page of evil.example whose name now means 127.0.0.1."""
    p = postern(one_limit())
    for method, path in (("GET", "/keys/per-client/203.0.113.7"), ("GET", "/status"), ("DELETE", "/keys/per-client/203.0.113.7"), ("GET", "/x")):
        status, answer = admin(p, path, method, headers=[("Host", host)])
        assert (status, answer["code"]) == (403, "host_not_local")


@pytest.mark.parametrize("origin", ["http://127.0.0.1:9183", "http://localhost", "null", "https://evil.example", ""])
@pytest.mark.parametrize("method, path", [("POST", "/explain"), ("DELETE", "/keys/per-client/203.0.113.7"), ("GET", "/status"), ("OPTIONS", "/keys/x/y")])
def test_no_web_page_may_ask(postern, origin, method, path):
    p = postern(one_limit())
    reasons(p, 5)
    body = b'{"remote_addr": "203.0.113.7"}' if method == "POST" else None
    status, answer = admin(p, path, method, body, headers=[("Origin", origin)])
    assert (status, answer["code"]) == (403, "origin_not_allowed")
    assert remaining(p) == 0


def test_a_unix_socket_is_free_of_that(postern, tmp_path):
    p = postern(one_limit(listen={"admin": f"unix:{tmp_path}/admin.sock"}))
    for headers in ([("Host", "evil.example")], [("Origin", "https://evil.example")]):
        assert admin(p, "/keys/per-client/203.0.113.7", headers=headers)[0] == 200
    assert (tmp_path / "admin.sock").stat().st_mode & 0o777 == 0o660


@pytest.mark.parametrize("where", ["0.0.0.0:9183", "[::]:9183", "192.0.2.1:9183", "10.0.0.1:9183"])
def test_it_is_never_open_to_other_machines(where):
    done = check_config(one_limit(listen={"admin": where}))
    assert done.returncode == 3 and "/listen/admin" in done.said and "not_local" in done.said
    p = Postern(one_limit(), args=["--listen", f"admin={where}"])
    assert p.run_to_end() == 3 and "not_local" in p.output()


def test_it_may_be_off(postern):
    p = postern(one_limit(listen={"admin": None}))
    assert p.admin == "off"
    assert reasons(p, 1) == ["allowed"]


@pytest.mark.parametrize("method, path, status", [("GET", "/x", 404), ("GET", "/statusx", 404), ("GET", "/explain", 405), ("PUT", "/keys/a/b", 405), ("POST", "/probe/x", 405), ("GET", "/check", 404), ("POST", "/check", 404)])
def test_nothing_else_is_there(postern, method, path, status):
    p = postern(one_limit())
    got, headers, _ = p.ask(method, path, listener="admin")
    assert got == status and ("Allow" in headers) == (status == 405)


@pytest.mark.parametrize("path", ["/", "/status", "/top", "/explain", "/keys/per-client/203.0.113.7", "/probe/" + "0" * 32])
def test_nothing_of_it_is_elsewhere(postern, path):
    p = postern(one_limit())
    for listener in ("http", "ops"):
        for method in ("GET", "POST", "DELETE"):
            assert p.ask(method, path, listener=listener)[0] in (404, 405)


def test_a_body_where_none_is_taken_ends_the_connection(postern):
    p = postern(one_limit())
    got = p.raw(b"GET /keys/per-client/203.0.113.7 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n\r\n", listener="admin")
    assert got.count(b"HTTP/1.1 200") == 1 and got.count(b"HTTP/1.1") == 1


def test_a_connection_is_kept(postern):
    p = postern(one_limit())
    connection = p.connect(listener="admin")
    for path, status in (("/keys/per-client/203.0.113.7", 200), ("/x", 404), ("/keys/x/y", 400), ("/keys/per-client/203.0.113.8", 200)):
        assert connection.ask("GET", path)[0] == status
    connection.close()


# ---------------------------------------------------------------------------------------------------- explain


def test_explain_sees_the_live_buckets_and_spends_nothing(postern):
    p = postern(one_limit())
    assert reasons(p, 5) == ["allowed"] * 5
    for _ in range(3):
        answer = explain(p, remote_addr="203.0.113.7")
        assert (answer["decision"], answer["reason"]) == ("deny", "rate_limited")
        assert answer["explain"]["key"] == "4:203.0.113.7"
        assert explain(p, remote_addr="203.0.113.8")["limits"][0]["remaining"] == 5
    assert remaining(p, remote_addr="203.0.113.8") == 5


def test_explain_counts_nothing(postern):
    p = postern(one_limit(identities=IDENTITIES))
    before = p.metrics()
    assert explain(p, remote_addr="203.0.113.7", token=EDGE)["identity"] == "edge"
    assert explain(p, remote_addr="203.0.113.7", token=FORGED)["token"] == "unknown"
    after = p.metrics()
    moved = {name for name in after if after[name] != before[name] and not name.startswith("process_")}
    assert {name.partition("{")[0] for name in moved} <= {"postern_requests_total", "postern_connections"}


def test_explain_is_the_answer_of_check_and_more(postern):
    p = postern(one_limit())
    question = {"remote_addr": "10.0.0.1", "headers": {"X-Forwarded-For": "203.0.113.7"}, "path": "/a", "id": "x"}
    said = explain(p, **question)
    steps = said.pop("explain")["steps"]
    assert said == ask(p, peek=True, **question)
    assert steps[0]["verdict"] == "chosen"


def test_explain_names_what_is_wrong(postern):
    p = postern(one_limit())
    assert admin(p, "/explain", "POST", b"junk")[1]["code"] == "body_not_json"
    status, answer = admin(p, "/explain", "POST", b'{"remote_addr": "1.2.3.4", "pth": "/"}')
    assert (status, answer["code"], answer["pointer"]) == (400, "unknown_member", "/pth")
    assert p.ask("POST", "/explain", b"{}", [("Content-Type", "text/plain")], listener="admin")[0] == 415
    assert p.raw(b"POST /explain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 70000\r\n\r\n", listener="admin").startswith(b"HTTP/1.1 413")


# ---------------------------------------------------------------------------------------------------- keys


def key(p, path, method="GET"):
    status, answer = admin(p, path, method)
    assert status == 200, answer
    return answer


def test_one_key_is_shown_and_forgiven(postern):
    p = postern(one_limit())
    assert reasons(p, 6) == ["allowed"] * 5 + ["rate_limited"]
    assert reasons(p, 6, remote_addr="203.0.113.8") == ["allowed"] * 5 + ["rate_limited"]
    shown = key(p, "/keys/per-client/203.0.113.7")
    (limit,) = shown["limits"]
    assert shown["key"] == "4:203.0.113.7"
    assert (limit["name"], limit["quota"], limit["window"], limit["remaining"], limit["rules"]) == ("per-client", 5, 3600, 0, ["all"])
    assert 0 < limit["reset"] <= 720
    (forgiven,) = key(p, "/keys/per-client/4:203.0.113.7", "DELETE")["limits"]
    assert (forgiven["forgiven"], forgiven["remaining"], forgiven["reset"]) == (True, 5, 0)
    assert key(p, "/keys/per-client/4:203.0.113.7", "DELETE")["limits"][0]["forgiven"] is False
    assert reasons(p, 6) == ["allowed"] * 5 + ["rate_limited"]
    assert reasons(p, 1, remote_addr="203.0.113.8") == ["rate_limited"]
    line = p.wait_log("key_forgiven")
    assert (line["limit"], line["client"], line["remaining"], line["by"]) == ("per-client", "4:203.0.113.7", 0, "127.0.0.1")


@pytest.mark.parametrize("client, same", [("2001:db8:1:2::9", "6:2001:db8:1:2::/64"), ("6:2001:db8:1:2::/64", "6:2001:db8:1:2::/64"),
    ("2001%3Adb8:1:2::1", "6:2001:db8:1:2::/64"), ("::ffff:203.0.113.7", "4:203.0.113.7"), ("u:4:203.0.113.7", "u:4:203.0.113.7"), ("none", "none")])  # fmt: skip
def test_ways_to_name_a_client(postern, client, same):
    p = postern(one_limit())
    assert key(p, f"/keys/per-client/{client}")["key"] == same


def test_an_undecided_client_is_another(postern):
    p = postern(one_limit(client={"strategy": "rightmost", "trusted_proxies": ["10.0.0.1"]}))
    assert reasons(p, 6, remote_addr="10.0.0.1") == ["allowed"] * 5 + ["rate_limited"]
    assert key(p, "/keys/per-client/10.0.0.1")["limits"][0]["remaining"] == 5
    assert key(p, "/keys/per-client/u:4:10.0.0.1", "DELETE")["limits"][0]["forgiven"] is True
    assert reasons(p, 1, remote_addr="10.0.0.1") == ["allowed"]


def many_parts():
    return {
        "identities": {"edge": {**IDENTITIES["edge"], "limits": ["agent"]}},
        "limits": {"agent": {"rate": "7/hour", "key": ["identity"]}, "login": {"rate": "3/hour", "key": ["client", "path"]},
            "wide": {"rate": "9/hour", "key": ["network"]}, "api": {"rate": "4/hour", "key": ["header:X-Api-Key", "host", "method"]}},
        "rules": [{"name": "login", "match": {"path": ["/login", "/a b"]}, "limits": ["login", "wide"]}, {"name": "rest", "limits": ["wide", "api"]}],
    }  # fmt: skip


def test_keys_of_several_parts(postern):
    p = postern(many_parts())
    ask(p, path="/login")
    ask(p, path="/a%20b", cost=2)
    ask(p, token=EDGE)
    ask(p, host="h.example:80", method="PUT", headers={"x-api-key": "s e"})
    assert key(p, "/keys/login/203.0.113.7?path=/login")["limits"][0]["remaining"] == 2
    assert key(p, "/keys/login/203.0.113.7?path=/a%2520b")["limits"][0]["remaining"] == 1
    fallback = key(p, "/keys/login/203.0.113.7")["limits"][0]
    assert (fallback["remaining"], fallback["replaced_by_client"]) == (3, ["path"])
    assert key(p, "/keys/agent?identity=edge")["limits"][0]["remaining"] == 6
    assert key(p, "/keys/api?header:X-Api-Key=s%20e&host=H.example.&method=PUT")["limits"][0]["remaining"] == 3
    told = {limit["name"]: limit["remaining"] for limit in key(p, "/keys/*/203.0.113.9?path=/login")["limits"]}
    assert told == {"login": 3, "wide": 5}
    assert {limit["forgiven"] for limit in key(p, "/keys/*/203.0.113.7?path=/login", "DELETE")["limits"]} == {True}
    until(lambda: len(p.log("key_forgiven")) == 2)


@pytest.mark.parametrize("path, status, code", [("/keys/nothing/203.0.113.7", 404, "not_found"), ("/keys/agent", 400, "missing_member"), ("/keys/login", 400, "missing_member"),
    ("/keys/login/", 400, "missing_member"), ("/keys/agent?identity=nobody", 404, "not_found"), ("/keys/login/nonsense", 400, "out_of_range"), ("/keys/login/4:203.0.113.7/24", 400, "out_of_range"),
    ("/keys/login/6:2001:db8::/48", 400, "out_of_range"), ("/keys/login/%zz", 400, "out_of_range"), ("/keys/login/%4", 400, "out_of_range"), ("/keys/login/203.0.113.7?what=1", 400, "unknown_member"),
    ("/keys/login/203.0.113.7?header:a b=1", 400, None), ("/keys/", 404, "not_found"), ("/keys/login/<script>", 400, "out_of_range"), ("/keys/login/%00%ff", 400, "out_of_range"),
    ("/keys/api?" + "&".join(f"header:h{i}=1" for i in range(9)), 400, "unknown_member")])  # fmt: skip
def test_keys_that_are_none(postern, path, status, code):
    p = postern(many_parts())
    try:
        got, answer = admin(p, path)
    except http.client.InvalidURL:
        return
    assert (got, answer["code"]) == (status, code)
    assert admin(p, path, "DELETE")[0] == status


def test_no_key_shows_a_token(postern):
    p = postern(one_limit(identities=IDENTITIES))
    for token in (EDGE, FORGED):
        ask(p, headers={"X-Internal-Token": token})
    said = json.dumps([key(p, "/keys/*/203.0.113.7"), explain(p, remote_addr="203.0.113.7", headers={"X-Internal-Token": FORGED})])
    assert EDGE not in said and FORGED not in said

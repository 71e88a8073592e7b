# SPDX-License-Identifier: MIT
"""POST /check to the letter: what is a fair question, what is a malformed one, and what each is told."""
import json
import socket

import pytest

from postern import connect, read_answer
from questions import ask, one_limit, remaining

GOOD = b'{"remote_addr": "203.0.113.7"}'
DEEP = b'{"remote_addr": "203.0.113.7", "headers": ' + b"[" * 3000 + b"]" * 3000 + b"}"


def question(**members):
    return json.dumps({"remote_addr": "203.0.113.7", **members}).encode()


# body | status | code | pointer | line, column | a word of the detail
MALFORMED = [
    (b"", 400, "body_not_json", "", None, ""),
    (b" ", 400, "body_not_json", "", None, ""),
    (b'{"remote_addr": "203.0.113.7"', 400, "body_not_json", "", (1, 30), ""),
    (b'{"remote_addr": "203.0.113.7",}', 400, "body_not_json", None, (1, 31), ""),
    (b'{"remote_addr": \'203.0.113.7\'}', 400, "body_not_json", None, (1, 17), ""),
    (b"{'remote_addr': 1}", 400, "body_not_json", "", (1, 2), ""),
    (GOOD + b"x", 400, "body_not_json", None, (1, 31), ""),
    (GOOD + GOOD, 400, "body_not_json", None, (1, 31), ""),
    (b"nonsense", 400, "body_not_json", "", (1, 1), ""),
    (b'\xef\xbb\xbf' + GOOD, 400, "body_not_json", "", (1, 1), ""),
    (b'{"remote_addr":\n\n  "203.0.113.7" "x"}', 400, "body_not_json", None, (3, 17), ""),
    (b'{"remote_addr": "\xff"}', 400, "body_not_utf8", None, (1, 18), ""),
    (b'{"remote_addr": "\xc3"}', 400, "body_not_utf8", None, (1, 18), ""),
    (b'{"remote_addr": "\xed\xa0\x80"}', 400, "body_not_utf8", None, (1, 18), ""),
    (b'{"remote_addr": "\xc0\x80"}', 400, "body_not_utf8", None, (1, 18), ""),
    (DEEP, 400, "body_too_deep", None, None, ""),
    (b'{"remote_addr": "a", "remote_addr": "b"}', 400, "duplicate_member", None, (1, 22), "remote_addr"),
    (b'{"remote_addr": "a", "headers": {"A": "1", "A": "2"}}', 400, "duplicate_member", None, (1, 44), '"A"'),
    (b'{"remote_addr": "a", "remote\\u005faddr": "b"}', 400, "duplicate_member", None, (1, 22), "remote_addr"),
    (question(remote_adr="x"), 400, "unknown_member", "/remote_adr", (1, 32), '"remote_addr"'),
    (question(header={}), 400, "unknown_member", "/header", (1, 32), '"headers"'),
    (question(Cost=1), 400, "unknown_member", "/Cost", (1, 32), '"cost"'),
    (question(quite_different=1), 400, "unknown_member", "/quite_different", (1, 32), ""),
    (b"{}", 400, "missing_member", "", (1, 1), "remote_addr"),
    (b'{"headers": {}}', 400, "missing_member", "", (1, 1), "remote_addr"),
    (b"[]", 400, "wrong_type", "", (1, 1), "object"),
    (b'"x"', 400, "wrong_type", "", (1, 1), "object"),
    (b"null", 400, "wrong_type", "", (1, 1), "object"),
    (b'{"remote_addr": 5}', 400, "wrong_type", "/remote_addr", (1, 17), "string"),
    (b'{"remote_addr": null}', 400, "wrong_type", "/remote_addr", (1, 17), "string"),
    (question(token=1), 400, "wrong_type", "/token", (1, 41), "string"),
    (question(token=None), 400, "wrong_type", "/token", (1, 41), "string"),
    (question(method=["GET"]), 400, "wrong_type", "/method", (1, 42), "string"),
    (question(host=1), 400, "wrong_type", "/host", (1, 40), "string"),
    (question(path={}), 400, "wrong_type", "/path", (1, 40), "string"),
    (question(id=7), 400, "wrong_type", "/id", (1, 38), "string"),
    (question(peek=1), 400, "wrong_type", "/peek", (1, 40), "true"),
    (question(peek="true"), 400, "wrong_type", "/peek", (1, 40), "true"),
    (question(cost="1"), 400, "wrong_type", "/cost", (1, 40), "whole"),
    (question(cost=True), 400, "wrong_type", "/cost", (1, 40), "whole"),
    (GOOD[:-1] + b', "cost": 1.0}', 400, "wrong_type", "/cost", (1, 40), "whole"),
    (GOOD[:-1] + b', "cost": 1e0}', 400, "wrong_type", "/cost", (1, 40), "whole"),
    (question(cost=0), 400, "out_of_range", "/cost", (1, 40), "1 to 1000000"),
    (question(cost=-1), 400, "out_of_range", "/cost", (1, 40), "1 to 1000000"),
    (question(cost=1000001), 400, "out_of_range", "/cost", (1, 40), "1 to 1000000"),
    (question(id="x" * 257), 400, "out_of_range", "/id", (1, 38), "256"),
    (question(headers="x"), 400, "wrong_type", "/headers", (1, 43), "object"),
    (question(headers={"A": 5}), 400, "wrong_type", "/headers/A", None, "string"),
    (question(headers={"A": ["1", None]}), 400, "wrong_type", "/headers/A/1", None, "string"),
    (question(headers={"a/b~c": {}}), 400, "wrong_type", "/headers/a~1b~0c", None, "string"),
    (question(headers=["A"]), 400, "wrong_type", "/headers/0", None, "pair"),
    (question(headers=[["A"]]), 400, "wrong_type", "/headers/0", None, "pair"),
    (question(headers=[["A", "1", "2"]]), 400, "wrong_type", "/headers/0", None, "pair"),
    (question(headers=[["A", "1"], [1, "2"]]), 400, "wrong_type", "/headers/1/0", None, "string"),
    (question(headers=[["A", ["1"]]]), 400, "wrong_type", "/headers/0/1", None, "string"),
    (question(id="\u0100"), 400, "illegal_character", "/id", (1, 38), "U+00FF"),
    (question(id="x\U0001f600"), 400, "illegal_character", "/id", (1, 38), "U+00FF"),
    (question(headers=[["A", "1"]] * 257), 431, "headers_too_large", None, None, "256"),
]  # fmt: skip


@pytest.fixture(scope="module")
def one():
    """One program for all questions that must not be charged, with a bucket of 5."""
    from postern import Postern

    instance = Postern(one_limit()).start()
    yield instance
    instance.cleanup()


def problem_of(answer):
    """The problem document in (status, headers, body), which must be a whole one."""
    status, headers, body = answer
    problem = json.loads(body)
    assert headers["Content-Type"] == "application/problem+json", problem
    assert problem["status"] == status
    assert problem["type"] == "urn:postern:problem:" + problem["code"].replace("_", "-")
    assert problem["title"] and problem["detail"]
    assert {"type", "title", "status", "detail", "code"} <= set(problem) <= {
        "type", "title", "status", "detail", "code", "pointer", "line", "column"
    }  # fmt: skip
    return problem


@pytest.mark.parametrize("case", MALFORMED, ids=lambda case: f"{case[2]}-{case[0][-24:]!r}")
def test_malformed(one, case):
    body, status, code, pointer, place, word = case
    connection = one.connect()
    problem = problem_of(connection.ask("POST", "/check", body, {"Content-Type": "application/json"}))
    assert (problem["status"], problem["code"]) == (status, code), problem
    if pointer is not None:
        assert problem.get("pointer", "") == pointer
    if place is not None:
        assert (problem["line"], problem["column"]) == place
    assert word in problem["detail"] and problem["detail"].isascii()
    # The same connection goes on, and nobody was charged.
    status, _, answer = connection.ask("POST", "/check", GOOD[:-1] + b', "peek": true}')
    assert status == 200 and json.loads(answer)["limits"][0]["remaining"] == 5
    assert one.metrics()[f'postern_bad_requests_total{{code="{code}"}}'] >= 1
    connection.close()


def test_no_answer_repeats_what_was_asked(one):
    marker = "hostile\u0007marker"
    for body in (question(**{marker: 1}), question(headers={"A": {marker: 1}}), marker.encode() * 3):
        _, _, text = one.ask("POST", "/check", body, {"Content-Type": "application/json"})
        assert "hostile" not in json.loads(text)["detail"]


@pytest.mark.parametrize("line", [None, "application/json", "application/json; charset=utf-8", "APPLICATION/JSON ;x=y"])
def test_content_types_that_are_json(one, line):
    status, _, _ = one.ask("POST", "/check", GOOD[:-1] + b', "peek": true}', [("Content-Type", line)] if line else [])
    assert status == 200


@pytest.mark.parametrize(
    "lines",
    [
        ["application/x-www-form-urlencoded"], ["text/plain"], [""], ["application/jsonx"], ["application/problem+json"],
        ["application/json", "application/json"], ["application/json, text/plain"],
    ],
)  # fmt: skip
def test_content_types_that_are_not(one, lines):
    problem = problem_of(one.ask("POST", "/check", GOOD, [("Content-Type", line) for line in lines]))
    assert (problem["status"], problem["code"]) == (415, "unsupported_media_type")
    assert "--json" in problem["detail"]
    assert remaining(one) == 5


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW", "post"])
def test_other_methods(one, method):
    answer = one.ask(method, "/check")
    problem = problem_of(answer)
    assert (problem["status"], problem["code"], answer[1]["Allow"]) == (405, "method_not_allowed", "POST")


def test_head_is_another_method(one):
    status, headers, body = one.ask("HEAD", "/check")
    assert (status, headers["Allow"], body) == (405, "POST", b"")


@pytest.mark.parametrize(
    "path, hint", [("/", ""), ("/chek", "did you mean /check?"), ("/check/", "/check"), ("/Check", "/check"), ("/%63heck", ""),
        ("/forward_auth", "did you mean /forward-auth?"), ("/metrics", ""), ("/x?" + "y" * 2000, ""), ("/check%00", ""),
        ("//check", "/check"), ("http://localhost/checks", "")]
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_other_paths(one, path, hint, method):
    problem = problem_of(one.ask(method, path))
    assert (problem["status"], problem["code"]) == (404, "not_found")
    assert "/check, /forward-auth" in problem["detail"] and hint in problem["detail"]


def test_the_query_of_check_is_ignored(one):
    status, _, answer = one.ask("POST", "/check?remote_addr=6.6.6.6", GOOD[:-1] + b', "peek": true}')
    assert status == 200 and json.loads(answer)["client"]["address"] == "203.0.113.7"


def send(postern, head, body=b""):
    return postern.raw("\r\n".join(["POST /check HTTP/1.1", "Host: x", *head]).encode("latin-1") + b"\r\n\r\n" + body)


def test_too_large_a_body(one):
    body = GOOD[:-1] + b" " * 65536 + b"}"
    problem = problem_of(one.ask("POST", "/check", body))
    assert (problem["status"], problem["code"]) == (413, "body_too_large")
    answer = send(one, ["Content-Length: 100000000000"])
    assert answer.split(b" ", 2)[1] == b"413"
    answer = send(one, ["Transfer-Encoding: chunked"], b"".join(b"4000\r\n" + b" " * 0x4000 + b"\r\n" for _ in range(5)))
    assert answer.split(b" ", 2)[1] == b"413"
    assert remaining(one) == 5


def test_the_largest_body_that_may_come(one):
    body = GOOD[:-1] + b', "peek": true' + b" " * (65536 - len(GOOD) - 14) + b"}"
    assert len(body) == 65536
    assert one.ask("POST", "/check", body)[0] == 200


def test_too_large_a_head(one):
    answer = send(one, ["X-A: " + "x" * 40000, f"Content-Length: {len(GOOD)}"], GOOD)
    assert answer.split(b" ", 2)[1] == b"431"
    answer = send(one, [f"X-{i}: {'x' * 20}" for i in range(2000)] + [f"Content-Length: {len(GOOD)}"], GOOD)
    assert answer.split(b" ", 2)[1] == b"431"
    assert remaining(one) == 5


@pytest.mark.parametrize(
    "head",
    [
        ["Content-Length: 30", "Content-Length: 31"],
        ["Content-Length: 30", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: gzip, chunked"],
        ["Transfer-Encoding: identity"],
        ["Content-Length: +30"],
        ["Content-Length: 30, 30"],
        ["Content-Length: -1"],
        ["Content-Length: 0x1e"],
        ["Content-Length: 30", "Bad Name: x"],
        ["Content-Length: 30", "X-Bad\u00ff: x"],
    ],
)
def test_framing_that_two_readers_read_differently(one, head):
    """Whoever stands in front may have read it the other way: refuse, and end the connection."""
    body = b"1e\r\n" + GOOD + b"\r\n0\r\n\r\n" if "ransfer" in "".join(head) else GOOD
    with connect(one.http) as sock:
        sock.sendall("\r\n".join(["POST /check HTTP/1.1", "Host: x", *head]).encode("latin-1") + b"\r\n\r\n" + body)
        answer = read_answer(sock)
        assert answer.split(b" ", 2)[1] in (b"400", b"413", b"501"), answer
        try:
            assert sock.recv(1) == b""
        except ConnectionResetError:
            pass
    assert remaining(one) == 5


def test_chunked_questions_are_read(one):
    body = GOOD[:-1] + b', "peek": true}'
    chunks = b"".join(b"%x\r\n" % len(part) + part + b"\r\n" for part in (body[:5], body[5:6], body[6:])) + b"0\r\n\r\n"
    assert send(one, ["Transfer-Encoding: chunked", "Connection: close"], chunks).split(b" ", 2)[1] == b"200"


def test_a_question_may_come_in_pieces(one):
    body = GOOD[:-1] + b', "peek": true}'
    data = b"POST /check HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with connect(one.http) as sock:
        for i in range(len(data)):
            sock.sendall(data[i : i + 1])
        assert read_answer(sock).split(b" ", 2)[1] == b"200"


def test_questions_may_be_sent_ahead(one):
    body = GOOD[:-1] + b', "peek": true, "id": "%d"}'
    with connect(one.http) as sock:
        bodies = [body % i for i in range(20)]
        sock.sendall(b"".join(b"POST /check HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(b) + b for b in bodies[:-1]))
        last = bodies[-1]
        sock.sendall(b"POST /check HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(last) + last)
        data = b""
        while more := sock.recv(65536):
            data += more
    ids = [json.loads(part.partition(b"\r\n\r\n")[2])["id"] for part in data.split(b"HTTP/1.1 200")[1:]]
    assert ids == [str(i) for i in range(20)]


def test_expect_continue(one):
    body = GOOD[:-1] + b', "peek": true}'
    with connect(one.http) as sock:
        sock.sendall(b"POST /check HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
        go_on = b"HTTP/1.1 100 Continue\r\n\r\n"
        assert sock.recv(len(go_on), socket.MSG_WAITALL) == go_on
        sock.sendall(body)
        assert read_answer(sock).split(b" ", 2)[1] == b"200"


BEHIND = one_limit(client={"strategy": "single_value", "trusted_proxies": ["172.18.0.0/16"]})


@pytest.fixture(scope="module")
def behind():
    """One whose client stands in X-Forwarded-For, to see how header lines are understood."""
    from postern import Postern

    instance = Postern(BEHIND).start()
    yield instance
    instance.cleanup()


@pytest.mark.parametrize(
    "headers, reason",
    [
        ({"X-Forwarded-For": "203.0.113.9"}, "single_value"),
        ([["X-Forwarded-For", "203.0.113.9"]], "single_value"),
        ({"x-forwarded-for": "203.0.113.9"}, "single_value"),
        ({"X-Forwarded-For": ["203.0.113.9"]}, "single_value"),
        ({"X-Forwarded-For": ["203.0.113.9", "203.0.113.9"]}, "multiple_lines"),
        ({"X-Forwarded-For": "203.0.113.9", "x-forwarded-for": "203.0.113.9"}, "multiple_lines"),
        ([["X-Forwarded-For", "203.0.113.9"], ["A", "1"], ["X-FORWARDED-FOR", "203.0.113.9"]], "multiple_lines"),
        ({"X-Forwarded-For": []}, "header_missing"),
        ({}, "header_missing"),
        ([], "header_missing"),
        ({"X-Forwarded-For": ""}, "header_empty"),
        ({"X-Forwarded-For": "203.0.113.9\u0000"}, "illegal_bytes"),
        ({"X-Forwarded-For": "203.0.113.9\u0001"}, "illegal_bytes"),
        ({"X-Forwarded-For": "203.0.113.9\u00ff"}, "illegal_bytes"),
        ({"X-Forwarded-For": "\r\n203.0.113.9"}, "illegal_bytes"),
        ([["X-Forwarded-For\u0000", "203.0.113.9"]], "header_missing"),
        ([["X-Forwarded-For\u00e9", "203.0.113.9"]], "header_missing"),
        ([["", "203.0.113.9"]], "header_missing"),
        ([["X-Forwarded-For ", "203.0.113.9"]], "header_missing"),
        ({"X-Forwarded-For": "203.0.113.\u0669"}, "illegal_bytes"),
        ({"X-Forwarded-For\u20ac": "203.0.113.9"}, "header_missing"),
    ],
)
def test_header_lines(behind, headers, reason):
    client = ask(behind, "172.18.0.5:1", headers=headers, peek=True)["client"]
    assert client["reason"] == reason
    if reason == "single_value":
        assert client == {"address": "203.0.113.9", "reason": "single_value", "decided": True}
    else:
        assert client == {"address": "172.18.0.5", "reason": reason, "decided": False}


def test_every_byte_is_a_legal_value(one):
    for i in range(256):
        c = chr(i)
        answer = ask(one, remote_addr=c, token=c, method=c, host=c, path=c, id=c, headers={f"{c}" if i else "N": c}, peek=True)
        assert answer["id"] == c
        assert answer["client"]["reason"] == "peer_unusable" and answer["warnings"] == ["client_undecided"]
    every = "".join(map(chr, range(256)))
    assert ask(one, remote_addr=every, headers=[[every, every]], path=every, id=every, peek=True)["id"] == every


@pytest.mark.parametrize("id", ["", "a1b2", 'quote " backslash \\ \n\u0000\u007f\u00ff', "x" * 256])
def test_the_id_comes_back(one, id):
    assert ask(one, id=id, peek=True)["id"] == id


def test_what_an_answer_holds(postern):
    p = postern(one_limit())
    answer = ask(p)
    assert list(answer) == ["decision", "reason", "status", "client", "identity", "token", "rule", "limits",
        "response_headers", "upstream_headers", "remove_headers"]  # fmt: skip
    assert answer["upstream_headers"] == {"X-Postern-Client": "203.0.113.7", "X-Postern-Identity": ""}
    assert answer["remove_headers"] == ["X-Internal-Token"]
    assert answer["limits"] == [{"name": "per-client", "quota": 5, "window": 3600, "remaining": 4, "reset": answer["limits"][0]["reset"]}]
    assert 719 <= answer["limits"][0]["reset"] <= 720
    ask(p, cost=4)
    answer = ask(p)
    assert (answer["decision"], answer["status"]) == ("deny", 429)
    assert answer["limits"][0]["limited"] is True
    assert answer["retry_after"] == int(answer["response_headers"]["Retry-After"])


def test_the_widest_answer_is_json(postern):
    limits = {f"limit-{'x' * 56}{i}": {"rate": "5/hour"} for i in range(8)}
    rules = [{"name": "r" * 63, "limits": list(limits)}]
    p = postern({"limits": limits, "rules": rules, "headers": {"x_ratelimit": True}})
    answer = ask(p, id="\u0000" * 256, headers={"X-Forwarded-For": "1.2.3.4"})
    assert len(answer["limits"]) == 8 and answer["id"] == "\u0000" * 256
    assert ask(p, cost=5)["reason"] == "rate_limited"


def test_256_header_lines_are_fine_and_the_last_one_counts(behind):
    lines = [[f"X-{i}", "v"] for i in range(255)] + [["X-Forwarded-For", "203.0.113.9"]]
    assert ask(behind, "172.18.0.5", headers=lines, peek=True)["client"]["reason"] == "single_value"

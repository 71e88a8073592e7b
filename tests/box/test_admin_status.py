# SPDX-License-Identifier: MIT
"""/status, /top and the page: what they tell, in a browser as well, and what they never do."""
import json
import re

import pytest

from browser import Browser
from postern import TOP, until
from questions import EDGE, FORGED, IDENTITIES, ask, one_limit, reasons, sha256

HOSTILE = ["<script>document.title='run'</script>", "\"><img src=x onerror=\"document.title='run'\">", "&lt;", "'", "\x00\x1b[2J", "\u00ff", "</pre></article><h1>"]


def get(p, path, type_="application/json"):
    status, headers, body = p.ask("GET", path, listener="admin")
    assert status == 200 and headers["Content-Type"].startswith(type_) and headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"
    return body.decode("ascii")


def status(p):
    return json.loads(get(p, "/status"))


def page(p):
    return get(p, "/", "text/html; charset=utf-8")


def misread(p, requests=200):
    """Everybody comes by one hop, whose header nobody reads: the first story."""
    connection = p.connect()
    for i in range(requests):
        question = {"remote_addr": "172.18.0.5:53122", "headers": {"X-Forwarded-For": f"203.0.113.{i % 250}", "Cookie": f"session={i % 99}"}, "path": "/login"}
        assert connection.ask("POST", "/check", json.dumps(question).encode(), {"Content-Type": "application/json"})[0] == 200
    connection.close()


def test_status_of_a_new_instance(postern):
    p = postern(one_limit(identities=IDENTITIES))
    s = status(p)
    assert s["warnings"] == s["notes"] == s["own_service_refused"] == s["refused"] == s["busiest"] == []
    assert s["config"]["hash"] == p.log("start")[0]["config"]
    assert s["config"]["last_reload"] == {"ok": True, "error": None}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", s["config"]["loaded_at"])
    assert s["store"] == {"entries": 0, "capacity": s["store"]["capacity"], "overflow": 0, "bytes": 16 * 2**20}
    assert {(row["name"], row["slot"], row["requests"], row["last_used"]) for row in s["identities"]} == {("edge", "current", 0, None), ("agent", "current", 0, None)}
    assert "No warning" in page(p)


def test_status_tells_what_happened(postern):
    p = postern(one_limit(identities=IDENTITIES))
    assert reasons(p, 7) == ["allowed"] * 5 + ["rate_limited"] * 2
    for _ in range(3):
        ask(p, "10.0.0.7:1", token=EDGE)
    s = status(p)
    assert (s["decisions"]["allow"], s["decisions"]["deny"], s["decisions"]["error"]) == (8, 2, 0)
    assert s["decisions"]["reasons"]["rate_limited"] == 2 and s["decisions"]["reasons"]["exempt"] == 3
    assert s["store"]["entries"] == 1
    assert s["refused"] == [{"rule": "all", "key": "4:203.0.113.7", "refusals": 2, "error": 0}]
    assert s["busiest"] == [{"rule": "all", "key": "4:203.0.113.7", "requests": 7, "error": 0}]
    (edge,) = [row for row in s["identities"] if row["requests"]]
    assert (edge["name"], edge["slot"], edge["requests"], edge["addresses"]) == ("edge", "current", 3, ["10.0.0.7"])
    top = json.loads(get(p, "/top"))
    assert (top["refused"], top["busiest"], top["decisions"]) == (s["refused"], s["busiest"], {"allow": 8, "deny": 2, "error": 0})
    said = page(p)
    for text in ("4:203.0.113.7", "10.0.0.7", "rate_limited", "8 allowed, 2 denied", "per-client"):
        assert text in said


def test_a_shared_bucket_is_told_everywhere(postern):
    p = postern(one_limit())
    misread(p)
    (warning,) = status(p)["warnings"]
    assert (warning["code"], warning["rule"], warning["key"]) == ("shared_bucket", "all", "172.18.0.5")
    assert {"key_private", "forwarded_header_ignored", "many_behind_one_key"} <= set(warning["signals"])
    assert warning["cure"] == '"client": {"strategy": "trusted_ranges", "trusted_proxies": ["172.18.0.5"]}'
    line = p.wait_log("shared_bucket")
    assert line["key"] == "172.18.0.5" and warning["cure"] in line["msg"]
    assert p.metrics()['postern_findings{code="shared_bucket"}'] == 1
    said = page(p)
    assert said.index("shared_bucket") < said.index("Most refused") < said.index("Configuration in force")
    assert "1 warning" in said


def test_an_own_service_that_is_refused_is_told(postern):
    p = postern(one_limit(identities={"edge": IDENTITIES["edge"]}))
    for _ in range(7):
        ask(p, "10.0.0.9:4", headers={"X-Internal-Token": FORGED})
    (row,) = status(p)["own_service_refused"]
    assert (row["remote_addr"], row["client"], row["token"], row["identity_guess"], row["count"]) == ("10.0.0.9", "10.0.0.9", "unknown", "edge", 2)
    assert row["text"] in p.wait_log("own_service_refused")["msg"]
    assert "10.0.0.9, which seems to be edge: refused 2 times" in page(p)


def names(value):
    if isinstance(value, dict):
        return set(value) | set().union(*map(names, value.values()))
    return set().union(*map(names, value)) if isinstance(value, list) else set()


def test_every_member_is_described(postern):
    p = postern(one_limit(identities={"edge": IDENTITIES["edge"]}))
    misread(p)
    for _ in range(7):
        ask(p, "10.0.0.9:4", headers={"X-Internal-Token": FORGED})
    s = status(p)
    assert s["warnings"] and s["own_service_refused"] and s["refused"]
    told = names(s) | names(json.loads(get(p, "/top"))) | names(json.loads(get(p, "/keys/per-client/172.18.0.5")))
    described = set(re.findall(r"([a-z_]+):", (TOP / "api" / "openapi.yaml").read_text()))
    reasons_told = set(s["decisions"]["reasons"])
    assert told - reasons_told <= described


def test_top_of_one_rule(postern):
    p = postern({"limits": {"a": {"rate": "5/hour"}}, "rules": [{"name": "login", "match": {"path": "/login"}, "limits": ["a"]}, {"name": "rest", "limits": ["a"]}]})
    ask(p, path="/login")
    ask(p, "203.0.113.8", path="/")
    assert [row["key"] for row in json.loads(get(p, "/top?rule=login"))["busiest"]] == ["4:203.0.113.7"]
    assert [row["key"] for row in json.loads(get(p, "/top?rule=rest"))["busiest"]] == ["4:203.0.113.8"]
    for query, code in (("rule=none", 404), ("what=1", 400), ("rule=", 404)):
        assert p.ask("GET", f"/top?{query}", listener="admin")[0] == code


def test_what_ops_must_not_show(postern):
    p = postern(one_limit(identities={"edge": IDENTITIES["edge"]}))
    misread(p)
    for token in (EDGE, FORGED):
        for _ in range(7):
            ask(p, "10.0.0.9:4", headers={"X-Internal-Token": token})
    p.wait_log("shared_bucket")
    seen = "".join(p.get_ops(path)[1] for path in ("/metrics", "/livez", "/readyz", "/", "/status"))
    for secret in ("172.18.0.5", "203.0.113.", "10.0.0.9", EDGE, FORGED, sha256(EDGE)):
        assert secret not in seen
    for answer in (get(p, "/status"), get(p, "/top"), page(p), p.output()):
        for secret in (EDGE, FORGED, sha256(EDGE), "session="):
            assert secret not in answer


def test_hostile_text_stays_text(postern):
    p = postern(one_limit(identities={"edge": IDENTITIES["edge"]}))
    for text in HOSTILE:
        for _ in range(7):
            ask(p, text[:20], headers={"X-Internal-Token": FORGED, "User-Agent": text, "X-Forwarded-For": text}, path=text, host=text, method=text)
    s = status(p)
    assert s["own_service_refused"]
    said = page(p)
    assert not re.search(r"<(script|img)|onerror=\"", said) and "\x1b" not in said
    assert said.count("<h1>") == 1 and said.count("</pre>") == said.count("<pre>")


def test_the_page_needs_nothing_from_elsewhere(postern):
    p = postern(one_limit())
    _, headers, _ = p.ask("GET", "/", listener="admin")
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "style-src 'self'" in policy and "unsafe" not in policy and "script-src" not in policy
    assert set(re.findall(r'(?:src|href)="([^"]*)"', page(p))) == {"/style.css"}
    assert "http" not in get(p, "/style.css", "text/css")


def test_a_browser_shows_the_warning_without_scrolling(postern, tmp_path):
    p = postern(one_limit(identities={"edge": IDENTITIES["edge"]}))
    misread(p)
    for text in HOSTILE[:2]:
        for _ in range(7):
            ask(p, text[:20], headers={"X-Internal-Token": FORGED})
    until(lambda: status(p)["warnings"])
    with Browser(1280, 800) as browser:
        browser.open(f"http://{p.admin}/")
        seen = browser.evaluate(
            """(() => {
                const warning = document.querySelector('#warnings .warning'), cure = warning.querySelector('pre');
                const box = e => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
                const shown = e => { const r = e.getBoundingClientRect(); return e.contains(document.elementFromPoint((r.left + r.right) / 2, (r.top + r.bottom) / 2)); };
                return {window: [innerWidth, innerHeight, scrollY], warning: box(warning), cure: box(cure), shown: shown(warning) && shown(cure),
                    color: getComputedStyle(warning).backgroundColor, cureText: cure.textContent, title: document.title, scripts: document.scripts.length,
                    images: document.images.length, wide: document.documentElement.scrollWidth};
            })()"""
        )
        browser.screenshot(tmp_path / "page.png")
        assert seen["window"] == [1280, 800, 0]
        for left, top, right, bottom in (seen["warning"], seen["cure"]):
            assert 0 <= left < right <= 1280 and 0 <= top < bottom <= 800
        assert seen["shown"] and seen["color"] not in ("rgba(0, 0, 0, 0)", "rgb(255, 255, 255)")
        assert seen["cureText"] == '"client": {"strategy": "trusted_ranges", "trusted_proxies": ["172.18.0.5"]}'
        assert seen["title"] == "postern: 1 warning" and seen["scripts"] == seen["images"] == 0
        assert seen["wide"] <= 1280
        assert browser.console == []  # nothing was blocked, because nothing was tried
        assert (tmp_path / "page.png").stat().st_size > 10000

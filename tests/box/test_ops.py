# SPDX-License-Identifier: MIT
"""The ops listener: health and metrics, for machines that look on."""
import os
import re
import subprocess

import pytest

from postern import TOP
from questions import AGENT, EDGE, FORGED, IDENTITIES, ask, one_limit


def promtool():
    found = subprocess.run([TOP / "tests" / "tools.sh", "path", "promtool"], stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode != 0:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("no promtool: tests/tools.sh fetch brings it")
    return found.stdout.strip()


def test_health(postern):
    p = postern(one_limit())
    for path in ("/livez", "/readyz"):
        status, headers, _ = p.ask("GET", path, listener="ops")
        assert status == 200
        assert p.ask("HEAD", path, listener="ops")[0] == 200


@pytest.mark.parametrize("method, path, status", [("GET", "/", 404), ("GET", "/check", 404), ("POST", "/check", 404),
    ("POST", "/livez", 405), ("DELETE", "/metrics", 405), ("GET", "/metricsx", 404)])  # fmt: skip
def test_nothing_else_is_there(postern, method, path, status):
    p = postern(one_limit())
    got, headers, _ = p.ask(method, path, listener="ops")
    assert got == status
    if status == 405:
        assert "GET" in headers["Allow"]
    assert p.ask("GET", "/metrics")[0] == 404  # and it is nowhere else


def test_metrics_are_clean(postern):
    p = postern(one_limit(identities=IDENTITIES))
    ask(p)
    ask(p, token=EDGE)
    p.ask("POST", "/check", b"junk")
    for _ in range(2):
        status, headers, body = p.ask("GET", "/metrics", listener="ops")
        assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4")
        done = subprocess.run([promtool(), "check", "metrics"], input=body, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert (done.returncode, done.stdout) == (0, b"")


def test_every_family_is_there(postern):
    text = postern(one_limit(identities=IDENTITIES)).get_ops("/metrics")[1]
    rows = re.findall(r'^METRIC\(\w+, "(\w+)", "(\w+)", "(.*)"\)', (TOP / "api" / "metrics.def").read_text(), re.M)
    assert len(rows) > 20
    for name, kind, help_text in rows:
        assert f"# TYPE {name} {kind}\n" in text and f"# HELP {name} {help_text}\n" in text
        assert re.search(rf"^{name}(_bucket)?[{{ ]", text, re.M), f"{name} has no sample"


def words(table, macro):
    return re.findall(rf'^{macro}\(\w+, "(\w+)"', (TOP / "api" / table).read_text(), re.M)


def test_series_exist_before_anything_happens(postern):
    metrics = postern(one_limit(identities=IDENTITIES)).metrics()
    for door in words("reasons.def", "DOOR"):
        for reason in words("reasons.def", "REASON"):
            series = [name for name in metrics if f'door="{door}"' in name and f'reason="{reason}"' in name]
            assert series and all(metrics[name] == 0 for name in series)
    for reason in words("reasons.def", "CLIENT_REASON"):
        assert metrics[f'postern_client_address_total{{reason="{reason}"}}'] == 0
    for state in words("reasons.def", "TOKEN_STATE"):
        assert metrics[f'postern_token_states_total{{state="{state}"}}'] == 0
    for warning in words("reasons.def", "WARNING"):
        assert metrics[f'postern_request_warnings_total{{warning="{warning}"}}'] == 0
    for identity in IDENTITIES:
        for slot in ("current", "previous"):
            assert metrics[f'postern_identity_requests_total{{identity="{identity}",slot="{slot}"}}'] == 0
    problems = re.findall(r'^PROBLEM\(\w+, "(\w+)", ([1-9]\d*)', (TOP / "api" / "problems.def").read_text(), re.M)
    for code, _ in problems:
        assert metrics[f'postern_bad_requests_total{{code="{code}"}}'] == 0


def moved(before, after, family):
    return {name: after[name] - before.get(name, 0) for name in after if name.startswith(family) and after[name] != before.get(name, 0)}


def test_counters_move_as_told(postern):
    p = postern(one_limit(identities=IDENTITIES, workers=2))
    before = p.metrics()
    for _ in range(6):
        ask(p)
    for token in (EDGE, EDGE, AGENT, FORGED):
        ask(p, "192.0.2.1", token=token)
    ask(p, "junk")
    p.ask("GET", "/forward-auth")
    p.ask("POST", "/check", b"{}")
    p.ask("GET", "/nothing")
    after = p.metrics()

    def decision(door, decision, reason, rule):
        return f'postern_decisions_total{{door="{door}",decision="{decision}",reason="{reason}",rule="{rule}"}}'

    assert moved(before, after, "postern_decisions_total") == {
        decision("check", "allow", "allowed", "all"): 7,
        decision("check", "deny", "rate_limited", "all"): 1,
        decision("check", "allow", "exempt", "all"): 3,
        decision("forward_auth", "deny", "door_misconfigured", ""): 1,
    }
    assert moved(before, after, "postern_identity_requests_total") == {
        'postern_identity_requests_total{identity="edge",slot="current"}': 2,
        'postern_identity_requests_total{identity="agent",slot="current"}': 1,
    }
    assert moved(before, after, "postern_client_address_total") == {
        'postern_client_address_total{reason="peer"}': 10,
        'postern_client_address_total{reason="peer_unusable"}': 1,
    }
    assert moved(before, after, "postern_token_states_total") == {
        'postern_token_states_total{state="absent"}': 7,
        'postern_token_states_total{state="valid"}': 3,
        'postern_token_states_total{state="unknown"}': 1,
    }
    assert moved(before, after, "postern_bad_requests_total") == {
        'postern_bad_requests_total{code="missing_member"}': 1,
        'postern_bad_requests_total{code="not_found"}': 1,
    }
    http = moved(before, after, 'postern_requests_total{listener="http"')
    assert http == {
        'postern_requests_total{listener="http",code="200"}': 11,
        'postern_requests_total{listener="http",code="403"}': 1,
        'postern_requests_total{listener="http",code="400"}': 1,
        'postern_requests_total{listener="http",code="404"}': 1,
    }
    assert after['postern_decision_duration_seconds_count{door="check"}'] == 11
    assert after['postern_state_entries{store="memory"}'] == 3
    assert after['postern_state_capacity{store="memory"}'] > 100000
    assert after['postern_state_overflow_total{store="memory"}'] == 0


def test_process_and_build(postern):
    p = postern(one_limit())
    metrics = p.metrics()
    most = 256 if os.environ.get("SAN") == "tsan" else 64  # that sanitizer brings shadow memory of its own
    assert 1 < metrics["process_resident_memory_bytes"] / 2**20 < most
    assert 3 < metrics["process_open_fds"] < metrics["process_max_fds"]
    assert metrics["process_cpu_seconds_total"] >= 0
    (build,) = [name for name in metrics if name.startswith("postern_build_info{")]
    assert metrics[build] == 1 and 'version="' in build and "jansson" in build
    (config,) = [name for name in metrics if name.startswith("postern_config_info{")]
    assert p.log("start")[0]["config"] in config


def test_connections_are_counted(postern):
    p = postern(one_limit())
    connection = p.connect()
    assert connection.ask("POST", "/check", b'{"remote_addr": "203.0.113.7"}')[0] == 200
    assert p.metrics()['postern_connections{listener="http"}'] == 1
    connection.close()


def test_a_full_http_listener_never_blinds_the_health_check(postern):
    p = postern(one_limit(http={"max_connections": 4}))
    connections = [p.connect() for _ in range(6)]
    answered = 0
    for connection in connections:
        try:
            answered += connection.ask("POST", "/check", b'{"remote_addr": "203.0.113.7"}')[0] == 200
        except OSError:
            pass
    assert answered == 4
    assert p.get_ops("/readyz")[0] == 200
    assert p.metrics()['postern_connections_rejected_total{listener="http"}'] == 2
    for connection in connections:
        connection.close()


def test_ops_is_open_to_callers_that_may_not_ask(postern):
    p = postern(one_limit(callers=["127.0.0.99"]))
    assert p.ask("GET", "/metrics", listener="ops", source="127.0.0.12")[0] == 200


def test_ops_may_be_off_or_on_a_unix_socket(postern, tmp_path):
    p = postern(one_limit(listen={"ops": None}))
    assert p.ops in (None, "off")
    p = postern(one_limit(listen={"ops": f"unix:{tmp_path}/ops.sock"}))
    assert p.get_ops("/livez")[0] == 200

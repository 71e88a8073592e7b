# SPDX-License-Identifier: MIT
"""Envoy's door over gRPC, asked by the gRPC library of Python: decisions, callers, health, reflection, limits, the end."""
import concurrent.futures
import signal
import threading
import time

import grpc
import pytest

from grpc_door import (
    CHECK, HEALTH, REFLECTION, CheckRequest, CheckResponse, Decision, Door, HealthCheckRequest, HealthCheckResponse,
    check_request, message,
)  # fmt: skip
from postern import DEADLINE_S
from questions import EDGE, FORGED, IDENTITIES, ask, one_limit, remaining

SERVING, NOT_SERVING, SERVICE_UNKNOWN = 1, 2, 3
KEY = "the-callers-key-0123456789-abcdefghijk"


@pytest.fixture
def door():
    """door(postern) opens a channel to it."""
    opened = []

    def start(p, **options):
        opened.append(Door(p.grpc, **options))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


# ------------------------------------------------------------------------------------------------------- decisions


def test_allow_and_deny(postern, door):
    p = postern(one_limit("2/hour"))
    d = door(p)
    answer = d.check("203.0.113.7", headers=[("X-Forwarded-For", "203.0.113.7")])
    assert answer.allowed and answer.reason == "allowed"
    assert answer.upstream_headers == {"x-postern-client": "203.0.113.7"}
    assert answer.removed == ["x-postern-identity", "x-internal-token"]
    assert answer.client_headers == {"ratelimit-policy": '"per-client";q=2;w=3600', "ratelimit": '"per-client";r=1;t=1800'}
    assert answer.metadata == {"reason": "allowed", "rule": "all", "client": "203.0.113.7"}
    assert d.check("203.0.113.7").allowed
    answer = d.check("203.0.113.7")
    assert (answer.allowed, answer.status, answer.reason) == (False, 429, "rate_limited")
    assert answer.response.status.code == grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
    wait = int(answer.client_headers["retry-after"])
    assert 0 < wait <= 1800 and answer.body == f'{{"error": "rate_limited", "retry_after": {wait}}}\n'
    assert answer.client_headers["content-type"] == "application/json"
    assert answer.metadata["limit"] == "per-client"
    assert d.check("203.0.113.8").allowed


def test_the_bucket_is_that_of_every_door(postern, door):
    p = postern(one_limit("5/hour"))
    door(p).check("203.0.113.7")
    assert remaining(p, remote_addr="203.0.113.7") == 4
    ask(p, "203.0.113.7")
    assert door(p).check("203.0.113.7").client_headers["ratelimit"].startswith('"per-client";r=2')
    metrics = p.metrics()
    assert metrics['postern_decisions_total{door="ext_authz_grpc",decision="allow",reason="allowed",rule="all"}'] == 2
    assert metrics['postern_grpc_calls_total{service="envoy.service.auth.v3.Authorization",method="Check",code="OK"}'] == 2


def test_our_own_services_pass_by_token(postern, door):
    p = postern(one_limit("1/hour", identities=IDENTITIES))
    d = door(p)
    for _ in range(5):
        answer = d.check("203.0.113.7", headers=[("X-Internal-Token", EDGE)])
        assert answer.reason == "exempt" and answer.metadata["identity"] == "edge"
        assert answer.upstream_headers["x-postern-identity"] == "edge"
        assert answer.removed == ["x-internal-token"]
    answer = d.check("203.0.113.7", headers=[("Authorization", "Bearer " + EDGE)])
    assert answer.reason == "exempt" and set(answer.removed) == {"x-internal-token", "authorization"}
    assert d.check("203.0.113.7", headers=[("X-Internal-Token", FORGED)]).reason == "allowed"
    assert d.check("203.0.113.7", headers=[("X-Internal-Token", FORGED)]).status == 429


@pytest.mark.parametrize("raw", [False, True])
def test_a_token_on_two_lines_proves_nothing(postern, door, raw):
    p = postern(one_limit("1/hour", identities=IDENTITIES))
    lines = [("X-Internal-Token", EDGE), ("X-Internal-Token", EDGE)]
    assert door(p).check("203.0.113.7", headers=lines, raw=raw).reason == "allowed"
    assert door(p).check("203.0.113.7", headers=lines, raw=raw).reason == "rate_limited"


def test_a_forged_header_changes_nothing(postern, door):
    p = postern(one_limit("3/hour"))
    for i, forged in enumerate(["6.6.6.6", "6.6.6.6, 7.7.7.7", "junk", "", "203.0.113.7, 6.6.6.6"]):
        answer = door(p).check("203.0.113.7", headers=[("X-Forwarded-For", forged)])
        assert answer.metadata["client"] == "203.0.113.7" and answer.allowed == (i < 3)


def test_warnings_are_told(postern, door):
    p = postern(one_limit())
    answer = door(p).check("172.18.0.5", headers=[("X-Forwarded-For", "203.0.113.9,172.18.0.4")])
    assert answer.metadata["warnings"] == ["forwarded_header_ignored"]
    assert p.wait_log("forwarded_header_ignored")


def test_bytes_that_are_no_text(postern, door):
    p = postern(one_limit("5/hour", rules=[{"name": "a", "match": {"path": "/\u00e4"}, "action": "deny"}, {"name": "all", "limits": ["per-client"]}]))
    request = check_request("203.0.113.7", headers=[("x-a", b"\xff\x00\x80")], raw=True)
    assert door(p).check(request).allowed


def test_a_connection_instead_of_a_request(postern, door):
    p = postern(one_limit("1/hour"))
    request = CheckRequest()
    request.attributes.source.address.socket_address.address = "203.0.113.7"
    assert door(p).check(request).allowed
    assert door(p).check(request).status == 429


def test_peers_without_an_address(postern, door):
    p = postern(one_limit())
    for field, value in (("pipe", "/run/x.sock"), ("envoy_internal_address", "listener"), (None, None)):
        request = CheckRequest()
        if field == "pipe":
            request.attributes.source.address.pipe.path = value
        elif field:
            request.attributes.source.address.envoy_internal_address.server_listener_name = value
        answer = door(p).check(request)
        assert answer.allowed and "x-postern-client" in answer.removed and "client" not in answer.metadata
    assert door(p).call(CHECK, b"", CheckResponse).HasField("status")


def test_the_calls_own_metadata_is_not_the_client(postern, door):
    p = postern(one_limit("1/hour", client={"strategy": "rightmost", "trusted_proxies": "any"}))
    answer = door(p).check("203.0.113.7", headers=[("X-Forwarded-For", "198.51.100.1,203.0.113.7")], metadata=[("x-forwarded-for", "6.6.6.6")])
    assert answer.metadata["client"] == "198.51.100.1"


# --------------------------------------------------------------------------------------------------------- callers


def test_who_may_not_ask_is_denied_and_nothing_is_charged(postern, door):
    p = postern(one_limit("1/hour", callers=["10.0.0.0/8"]))
    d = door(p)
    answer = d.check("203.0.113.7")
    assert (answer.status, answer.reason, answer.body) == (403, "caller_not_allowed", '{"error": "caller_not_allowed"}\n')
    assert answer.removed == [] and answer.upstream_headers == {}
    assert d.fails("/x/y")[0] == grpc.StatusCode.PERMISSION_DENIED
    assert d.health() == SERVING
    reflect = d.channel.stream_stream(REFLECTION.format("v1"))(iter([b"\x3a\x00"]), timeout=DEADLINE_S)
    with pytest.raises(grpc.RpcError) as e:
        next(reflect)
    assert e.value.code() == grpc.StatusCode.PERMISSION_DENIED
    assert p.wait_log("caller_not_allowed")


def test_the_callers_key(postern, door):
    p = postern(one_limit(caller_key_file="key"), files={"key": KEY})
    d = door(p)
    assert d.check("203.0.113.7", metadata=[("x-postern-key", KEY)]).allowed
    for metadata in ([], [("x-postern-key", "")], [("x-postern-key", KEY + "x")], [("x-postern-key", KEY)] * 2):
        assert d.check("203.0.113.7", metadata=metadata).reason == "caller_not_allowed"
    assert d.health() == SERVING


# ---------------------------------------------------------------------------------------------- health, reflection


def test_health(postern, door):
    p = postern(one_limit())
    d = door(p)
    assert d.health() == d.health("envoy.service.auth.v3.Authorization") == SERVING
    code, _ = d.fails(HEALTH + "Check", HealthCheckRequest(service="no.such"))
    assert code == grpc.StatusCode.NOT_FOUND


def test_health_is_watched(postern, door):
    p = postern(one_limit(drain={"delay": "300ms", "timeout": "10s"}))
    watch = door(p).channel.unary_stream(HEALTH + "Watch", HealthCheckRequest.SerializeToString, HealthCheckResponse.FromString)
    known, unknown = watch(HealthCheckRequest()), watch(HealthCheckRequest(service="no.such"))
    assert next(known).status == SERVING and next(unknown).status == SERVICE_UNKNOWN
    p.signal(signal.SIGTERM)
    assert next(known).status == NOT_SERVING
    with pytest.raises(grpc.RpcError) as e:
        next(known)
    assert e.value.code() == grpc.StatusCode.UNAVAILABLE
    assert p.wait() == 0


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection(postern, door, version):
    request, response = (message(f"grpc.reflection.{version}.ServerReflection{kind}") for kind in ("Request", "Response"))
    reflect = door(postern(one_limit())).channel.stream_stream(
        REFLECTION.format(version), request.SerializeToString, response.FromString
    )
    questions = [
        request(list_services=""), request(file_containing_symbol="grpc.health.v1.Health"),
        request(file_containing_symbol="no.such"), request(file_by_filename="envoy/type/v3/http_status.proto"),
    ]  # fmt: skip
    services, health, nothing, file = reflect(iter(questions), timeout=DEADLINE_S)
    assert {s.name for s in services.list_services_response.service} == {
        "envoy.service.auth.v3.Authorization", "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection",
    }  # fmt: skip
    assert b"HealthCheckRequest" in health.file_descriptor_response.file_descriptor_proto[0]
    assert health.original_request == questions[1]
    assert nothing.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]
    assert len(file.file_descriptor_response.file_descriptor_proto) == 1
    with pytest.raises(grpc.RpcError) as e:
        list(reflect(iter([request()]), timeout=DEADLINE_S))
    assert e.value.code() == grpc.StatusCode.INVALID_ARGUMENT


# ------------------------------------------------------------------------------------------------- statuses, bounds


def test_statuses(postern, door):
    p = postern(one_limit(grpc={"message_bytes": "64KiB"}))
    d = door(p)
    status = grpc.StatusCode
    assert d.fails("/no.Such/Thing") == (status.UNIMPLEMENTED, "unknown service no.Such")
    assert d.fails("/envoy.service.auth.v3.Authorization/Nope")[0] == status.UNIMPLEMENTED
    code, text = d.fails("/envoy.service.auth.v2.Authorization/Check")
    assert code == status.UNIMPLEMENTED and "V3" in text
    assert p.wait_log("grpc_old_protocol")
    assert d.fails(CHECK, b"\xff\xff\xff")[0] == status.INTERNAL
    assert d.fails(CHECK, b"\x0a" * 70000)[0] == status.RESOURCE_EXHAUSTED
    assert d.fails(CHECK, compression=grpc.Compression.Gzip, request=b"\x0a\x00" * 2000)[0] == status.UNIMPLEMENTED
    assert d.fails(CHECK, metadata=[("x-long", "x" * 20000)])[0] == status.RESOURCE_EXHAUSTED
    assert d.fails("/x%/\u00e4")[0] in (status.UNIMPLEMENTED, status.INTERNAL)
    assert d.check("203.0.113.7").allowed
    calls = {key: n for key, n in p.metrics().items() if key.startswith("postern_grpc_calls_total") and n}
    assert calls['postern_grpc_calls_total{service="_other",method="_other",code="UNIMPLEMENTED"}'] >= 3


def test_a_large_message_in_many_frames(postern, door):
    p = postern(one_limit())
    headers = [(f"x-{i}", "v" * 1000) for i in range(200)] + [("X-Forwarded-For", "203.0.113.7")]
    for raw in (False, True):
        assert door(p).check("203.0.113.7", headers=headers, raw=raw).allowed


def test_a_message_of_a_megabyte_and_more(postern, door):
    p = postern(one_limit(grpc={"message_bytes": "4MiB"}))
    request = check_request("203.0.113.7")
    request.attributes.request.http.headers["x-big"] = "v" * (1 << 20)
    assert door(p).check(request).allowed
    request.attributes.request.http.headers["x-big"] = "v" * (5 << 20)
    assert door(p).fails(CHECK, request)[0] == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert door(p).check("203.0.113.7").allowed


@pytest.mark.parametrize("workers", [1, 2])
def test_a_hundred_calls_at_once_on_one_connection(postern, door, workers):
    p = postern(one_limit("50/hour", workers=workers))
    method = door(p).channel.unary_unary(CHECK, CheckRequest.SerializeToString, CheckResponse.FromString)
    calls = [method.future(check_request("203.0.113.7"), timeout=DEADLINE_S) for _ in range(100)]
    answers = [Decision(call.result()) for call in calls]
    assert sum(answer.allowed for answer in answers) == 50


def test_calls_given_up(postern, door):
    p = postern(one_limit("1000/hour"))
    method = door(p).channel.unary_unary(CHECK, CheckRequest.SerializeToString, CheckResponse.FromString)
    for _ in range(300):
        method.future(check_request("203.0.113.7"), timeout=DEADLINE_S).cancel()
    assert door(p).check("203.0.113.8").allowed


def test_over_a_unix_socket(postern, door, tmp_path):
    p = postern(one_limit(listen={"grpc": f"unix:{tmp_path}/grpc.sock"}))
    assert door(p).check("203.0.113.7").allowed


def test_without_the_listener(postern):
    p = postern(one_limit(listen={"grpc": None}))
    assert p.grpc in (None, "off")


# --------------------------------------------------------------------------------------------------------- the end


def test_old_connections_end_without_a_failed_call(postern, door):
    p = postern(one_limit("100000/hour", grpc={"max_connection_age": "100ms"}))
    d = door(p)
    end = time.monotonic() + 1.5
    n = 0
    while time.monotonic() < end:
        assert d.check("203.0.113.7").allowed
        n += 1
    assert n > 20


def test_sigterm_fails_no_call(postern):
    """Two instances; one is told to stop while calls go to both. The balancer of the library looks at their health."""
    config = one_limit("1000000/hour", drain={"delay": "1s", "timeout": "10s"})
    first, second = postern(config), postern(config)
    options = [
        ("grpc.lb_policy_name", "round_robin"),
        ("grpc.service_config", '{"loadBalancingConfig": [{"round_robin": {}}], "healthCheckConfig": {"serviceName": ""}}'),
    ]  # fmt: skip
    d = Door("ipv4:" + ",".join(p.grpc for p in (first, second)), options)
    failures, done, stop = [], [0, 0], threading.Event()

    def load(i):
        while not stop.is_set():
            try:
                d.check(f"203.0.113.{i}")
                done[0] += 1
            except grpc.RpcError as e:
                failures.append(e)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for i in range(4):
            pool.submit(load, i)
        try:
            while done[0] < 200 and not failures:
                time.sleep(0.01)  # until the load runs; what is judged is counted
            first.signal(signal.SIGTERM)
            assert first.wait() == 0
            before = done[0]
            while done[0] < before + 200 and not failures:
                time.sleep(0.01)
        finally:
            stop.set()
    d.close()
    assert failures == []

# SPDX-License-Identifier: MIT
"""Real Envoy, asking over gRPC, with the files of deploy/gateways/envoy.

What holds behind every gateway is inherited. Besides that: the settings of Envoy that move the client's address, each with
the setting of postern that fits it, and what only gRPC has.
"""
import concurrent.futures
import json
import signal
import threading

import grpc
import pytest

from behind import FORGERIES, Behind, shipped
from gateway import Envoy, send
from grpc_door import CheckRequest, CheckResponse
from net import IPV4, IPV6, inside
from postern import DEADLINE_S, Connection, connect, split_endpoint, until
from questions import EDGE, FORGED, IDENTITIES, ask, one_limit


def socket_address(endpoint):
    host, port = split_endpoint(endpoint)
    return f"address: {host}, port_value: {port}"


def configuration(name, postern, app, second=None):
    listens = 15006 if "sidecar" in name else 8443
    here = {
        f'address: "0.0.0.0", port_value: {listens}': 'address: "{HOST}", port_value: {PORT}',
        "address: 127.0.0.1, port_value: 9181": socket_address(postern),
        "address: 127.0.0.1, port_value: 8080": socket_address(app),
    }
    if second:
        here.update({"#two ": "", "address: 10.0.0.9, port_value: 9181": socket_address(second)})
    return shipped(f"envoy/{name}", here)


class TestEnvoyGrpc(Behind):
    LISTENER = "grpc"
    REFUSED_FORGERIES = ("dropped on the way",)  # a Connection line that names X-Forwarded-For
    ASKS_WHEN_LOST = 1
    STRIPS_UNJUDGED = False  # it knows no condition on Authorization

    def gateway(self, postern, app, hops, net, edit):
        name = "one-hop-grpc.yaml" if hops == 1 else "two-hops-grpc.yaml"
        return Envoy(edit(configuration(name, postern, app)), net.host)

    def forgotten(self):
        return {}  # what the door needs Envoy always says

    def opened(self, text):
        assert "failure_mode_allow: false" in text
        return text.replace("failure_mode_allow: false", "failure_mode_allow: true")

    def over_unix(self, text, path):
        written = "{socket_address: {address: postern.invalid, port_value: 9180}}"
        assert written in text
        return text.replace(written, "{pipe: {path: %s}}" % path)

    @pytest.mark.parametrize("mode", ("closed", "open"))
    def test_a_postern_that_cannot_decide(self, site, mode):
        """Its call fails, so the mode of Envoy applies."""
        with Undecided() as undecided:
            s = site(one_limit(), to=undecided.endpoint, edit=self.opened if mode == "open" else lambda text: text)
            assert s.send(IPV4.client(11)).status == (200 if mode == "open" else 503)
            assert undecided.asked == 1 and len(s.app.requests) == (mode == "open")

    # ------------------------------------------------------------------------------- settings that move the address

    @pytest.mark.parametrize("net", (IPV4, IPV6), ids=lambda net: net.family)
    @pytest.mark.parametrize("hops", (1, 2))
    @pytest.mark.parametrize("remote,trusted_hops,skip", [
        (True, 0, False), (True, 0, True), (True, 1, False), (True, 1, True), (False, 0, False), (False, 1, False),
    ])  # fmt: skip
    def test_every_address_setting(self, site, net, hops, remote, trusted_hops, skip):
        """Whatever Envoy makes of X-Forwarded-For, postern's own setting finds the client."""

        def edit(text):
            assert text.count("use_remote_address: true") == 1
            more = f"use_remote_address: {str(remote).lower()}\n                xff_num_trusted_hops: {trusted_hops}"
            return text.replace("use_remote_address: true", more + "\n                skip_xff_append: true" * skip)

        with inside(net):
            s = site(one_limit(f"{len(FORGERIES)}/hour"), hops, net, edit)
            a, b = map(net.client, (11, 12))
            for name, forged in FORGERIES.items():
                answer = s.send(a, headers=forged)
                if answer.status == 400 and name in self.REFUSED_FORGERIES:
                    answer = s.send(a)
                assert answer.status == 200, (name, answer.body)
                assert s.app.requests[-1].all("X-Postern-Client") == [a], name
            assert s.send(a).status == 429
            assert self.left(s, b, hops, net) == len(FORGERIES)

    def test_the_address_setting_that_is_wrong_is_told(self, site):
        """Two hops and nobody named: one bucket for everybody, and the answer, the log and the metadata say so."""
        s = site(one_limit(client={"strategy": "peer"}), 2, edit=with_access_log)
        assert s.send(IPV4.client(11)).status == 200
        assert s.postern.wait_log("forwarded_header_ignored")["cure"]
        until(lambda: "forwarded_header_ignored" in s.gateway.log())

    # ------------------------------------------------------------------------------------------------ what gRPC has

    def test_the_reason_is_in_the_access_log(self, site):
        s = site(one_limit("1/hour", identities=IDENTITIES), edit=with_access_log)
        s.send(IPV4.client(11))
        s.send(IPV4.client(11))
        s.send(IPV4.client(11), headers=[f"X-Internal-Token: {EDGE}"])
        until(lambda: len(logged(s.gateway)) == 3)
        lines = logged(s.gateway)
        assert lines[0] == {"reason": "allowed", "rule": "all", "client": IPV4.client(11)}
        assert lines[1] == {"reason": "rate_limited", "rule": "all", "client": IPV4.client(11), "limit": "per-client"}
        assert lines[2] == {"reason": "exempt", "rule": "all", "client": IPV4.client(11), "identity": "edge"}

    def test_headers_that_come_as_lines_and_bytes(self, site):
        """encode_raw_headers: a token on two lines is still seen as two, and bytes arrive as they are."""

        def edit(text):
            return text.replace("transport_api_version: V3", "transport_api_version: V3\n                      encode_raw_headers: true")

        s = site(one_limit("4/hour", identities=IDENTITIES), edit=edit)
        client = IPV4.client(11)
        assert s.send(client, headers=[f"X-Internal-Token: {EDGE}"]).status == 200
        assert s.app.requests[-1].all("X-Postern-Identity") == ["edge"]
        for lines in ([f"X-Internal-Token: {EDGE}"] * 2, [f"X-Internal-Token: {EDGE}, x"], ["X-A: \xff\x80", f"X-Internal-Token: {FORGED}"]):
            assert s.send(client, headers=lines).status == 200
            assert not any(s.app.requests[-1].all("X-Postern-Identity")), lines
        assert self.left(s, client, 1, IPV4) == 1

    @pytest.mark.parametrize("partial", (True, False))
    def test_with_request_body(self, site, partial):
        """Nobody needs it, some have it: the check then comes when the buffer is full, and postern does not wait for more."""

        def edit(text):
            body = "with_request_body: {max_request_bytes: 1024, allow_partial_message: %s}" % str(partial).lower()
            return text.replace("transport_api_version: V3", "transport_api_version: V3\n                      " + body)

        s = site(one_limit(), edit=edit)
        assert s.send(IPV4.client(11), "POST", body=b"tiny").status == 200
        assert s.app.requests[-1].body == b"tiny"
        answer = s.send(IPV4.client(11), "POST", body=bytes(range(256)) * 8)
        assert answer.status == (200 if partial else 413)

    def test_envoy_looks_at_our_health(self, site, postern):
        second = postern(one_limit())
        s = site(one_limit(drain={"delay": "2s"}), edit=lambda text: with_second(text, second.grpc))
        until(lambda: self.admin(s, "/clusters").count("health_flags::healthy") >= 2)
        s.postern.signal(signal.SIGTERM)
        until(lambda: "failed_active_hc" in self.admin(s, "/clusters"))
        assert s.postern.wait() == 0

    def admin(self, s, path):
        return Connection(f"unix:{s.gateway.folder}/admin.sock").ask("GET", path)[2].decode()

    def test_sigterm_fails_no_request(self, site, postern):
        """Two instances under load; one is told to stop, waits out its delay, and leaves."""
        config = {**one_limit("1000000/hour"), "drain": {"delay": "2s", "timeout": "10s"}}
        second = postern(config)
        s = site(config, edit=lambda text: with_second(text, second.grpc))
        with Load(s) as load:
            load.wait(200)
            s.postern.signal(signal.SIGTERM)
            assert s.postern.wait() == 0
            load.wait(200)
        assert load.statuses == {200}
        counted = "postern_decisions_total{door=\"ext_authz_grpc\",decision=\"allow\",reason=\"allowed\",rule=\"all\"}"
        assert second.metrics()[counted] > 100

    def test_a_killed_instance_is_left_out(self, site, postern):
        """SIGKILL loses what is in flight and no more; with failure_mode_allow false that is a 503, never a pass."""
        config = one_limit("1000000/hour")
        second = postern(config)
        s = site(config, edit=lambda text: with_second(text, second.grpc))
        with Load(s) as load:
            load.wait(200)
            s.postern.kill()
            load.wait(400)
            before = dict(load.counts)
            until(lambda: "failed_active_hc" in self.admin(s, "/clusters"))
            load.wait(200)
        assert load.statuses <= {200, 503}
        assert before[200] > 0

    def test_connections_end_by_age_without_a_failed_request(self, site):
        s = site(one_limit("1000000/hour", grpc={"max_connection_age": "100ms"}))
        with Load(s) as load:
            load.wait(1500)
        assert load.statuses == {200}
        assert s.postern.metrics()['postern_requests_total{listener="grpc",code="200"}'] >= 1500

    def test_a_cluster_without_http2_is_told_what_lacks(self, site):
        def edit(text):
            start = text.index("      typed_extension_protocol_options:")
            return text[:start] + text[text.index("      # With two instances") :]

        s = site(one_limit(), edit=edit)
        assert s.send(IPV4.client(11)).status == 503
        assert "http2_protocol_options" in s.postern.wait_log("grpc_over_http1")["msg"]

    def test_a_client_that_leaves_cancels_its_check(self, site, postern):
        s = site(one_limit("100000/hour"))
        s.postern.signal(signal.SIGSTOP)
        for _ in range(20):
            with connect(s.endpoint, IPV4.client(11)) as sock:
                sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        s.postern.signal(signal.SIGCONT)
        assert s.send(IPV4.client(12)).status == 200


class TestSidecar:
    """The ingress listener of one Pod: the gateway in front has settled X-Forwarded-For."""

    def test_the_client_is_the_one_before_the_gateway(self, postern, app):
        p = postern(one_limit("2/hour", client={"strategy": "trusted_ranges", "trusted_proxies": ["127.0.0.7"]}, identities=IDENTITIES))
        a = app()
        envoy = Envoy(configuration("sidecar-grpc.yaml", p.grpc, a.endpoint))
        try:
            envoy.start()
            def through_gateway(client, *lines):
                return send(envoy.endpoint, "127.0.0.7", headers=[f"X-Forwarded-For: {client}", *lines])

            assert [through_gateway("203.0.113.9").status for _ in range(3)] == [200, 200, 429]
            assert through_gateway("203.0.113.8").status == 200
            assert a.requests[-1].all("X-Forwarded-For") == a.requests[-1].all("X-Postern-Client") == ["203.0.113.8"]
            assert through_gateway("6.6.6.6, 203.0.113.9").status == 429  # typed by the client, in front of what the gateway wrote
            assert through_gateway("203.0.113.9", f"X-Internal-Token: {EDGE}").status == 200
            assert a.requests[-1].all("X-Postern-Identity") == ["edge"] and not a.requests[-1].all("X-Internal-Token")
            # Another Pod that comes past the gateway is itself, whatever it says.
            assert send(envoy.endpoint, "127.0.0.8", headers=["X-Forwarded-For: 203.0.113.1"]).status == 200
            assert a.requests[-1].all("X-Postern-Client") == ["127.0.0.8"]
        finally:
            envoy.cleanup()


# --------------------------------------------------------------------------------------------------------------- parts


def with_second(text, endpoint):
    for written, here in (("#two ", ""), ("address: 10.0.0.9, port_value: 9181", socket_address(endpoint))):
        assert written in text
        text = text.replace(written, here)
    return 'admin: {address: {pipe: {path: admin.sock}}}\n' + text


METADATA = "%DYNAMIC_METADATA(envoy.filters.http.ext_authz)%"


def with_access_log(text):
    log = """                access_log:
                  - name: envoy.access_loggers.stdout
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog
                      log_format: {text_format_source: {inline_string: "CHECK %s\\n"}}
""" % METADATA
    assert "                stat_prefix: site\n" in text
    return text.replace("                stat_prefix: site\n", "                stat_prefix: site\n" + log)


def logged(gateway):
    lines = [json.loads(line[len("CHECK ") :]) for line in gateway.log().splitlines() if line.startswith("CHECK {")]
    return [{key: value for key, value in line.items() if key != "ext_authz_duration"} for line in lines]


class Undecided:
    """A service whose every call fails as postern's does where there is no decision."""

    def __init__(self):
        self.asked = 0

    def __enter__(self):
        def check(request, context):
            self.asked += 1
            context.abort(grpc.StatusCode.UNAVAILABLE, "no decision can be made now")

        method = grpc.unary_unary_rpc_method_handler(check, CheckRequest.FromString, CheckResponse.SerializeToString)
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
        self._server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("envoy.service.auth.v3.Authorization", {"Check": method})])
        self.endpoint = "127.0.0.1:%d" % self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()
        return self

    def __exit__(self, *_):
        self._server.stop(None)


class Load:
    """Requests from four clients at once, for as long as it is entered."""

    def __init__(self, site):
        self._site = site
        self.counts = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._news = threading.Condition(self._lock)
        self._failure = None

    @property
    def statuses(self):
        return set(self.counts)

    def _run(self, client):
        try:
            while not self._stop.is_set():
                answer = self._site.send(client)
                with self._news:
                    self.counts[answer.status] = self.counts.get(answer.status, 0) + 1
                    self._news.notify_all()
        except BaseException as e:
            with self._news:
                self._failure = e
                self._news.notify_all()

    def wait(self, n):
        """For n more answers."""
        with self._news:
            goal = sum(self.counts.values()) + n
            assert self._news.wait_for(lambda: self._failure or sum(self.counts.values()) >= goal, 6 * DEADLINE_S)
            if self._failure:
                raise self._failure

    def __enter__(self):
        self._threads = [threading.Thread(target=self._run, args=(IPV4.client(20 + i),)) for i in range(4)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()

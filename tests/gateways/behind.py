# SPDX-License-Identifier: MIT
"""What must hold behind every gateway: a class of tests that each gateway's own file inherits.

The gateway runs the file of deploy/gateways as it stands, with the addresses of the test in the place of its own. The proxy
in front, where there is one, is nginx as most people have it: it appends its peer to whatever a client says.
"""
import signal
import socket
import threading
import time

import pytest

from gateway import App, Nginx, send
from net import IPV4, IPV6, inside
from postern import DEADLINE_S, TOP, connect, read_answer, run_postern
from questions import EDGE, FORGED, IDENTITIES, ask, one_limit
from relay import Relay

HOP = """server { listen {LISTEN}; location / { proxy_pass http://TO; proxy_bind FROM; proxy_http_version 1.1;
    proxy_set_header Host $http_host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; } }"""

# What a busy machine may add to a time that is promised: only a fault reaches it.
BUSY_S = DEADLINE_S / 2

KEY = "the-key-of-the-gateway-tests-0123456789"

FORGERIES = {
    "none": [],
    "forged": ["X-Forwarded-For: 6.6.6.6"],
    "two lines": ["X-Forwarded-For: 6.6.6.6", "X-Forwarded-For: 7.7.7.7, 8.8.8.8"],
    "junk": ["X-Forwarded-For: unknown, _x, ,::1%x", "X-Forwarded-For: \xff\xfe"],
    "empty": ["X-Forwarded-For:"],
    "our own hop": ["X-Forwarded-For: 127.0.0.7, 127.0.0.1"],
    "other families": ["Forwarded: for=6.6.6.6", "X-Real-IP: 6.6.6.6", "X-Postern-Remote-Addr: 6.6.6.6", "X_Forwarded_For: 6.6.6.6",
        "X-Envoy-External-Address: 6.6.6.6", "X-Original-URL: /free", "X-Original-Method: BREW", "X-Forwarded-Uri: /free",
        "X-Forwarded-Method: BREW", "X-Forwarded-Host: other.example"],
    "dropped on the way": ["Connection: close, X-Forwarded-For, X-Real-IP, X-Postern-Remote-Addr", "X-Forwarded-For: 6.6.6.6"],
    "said upstream": ["X-Postern-Client: 6.6.6.6", "X-Postern-Identity: edge", "x-postern-identity: agent"],
    "said in the spelling of CGI": ["X_Postern_Client: 6.6.6.6", "X-Postern_Identity: edge", "x_postern-identity: agent"],
    "dropped behind us": ["Connection: X-Postern-Client, x-postern-identity", "Connection: X-Forwarded-Method", "X_POSTERN_IDENTITY: edge"],
}  # fmt: skip


def as_cgi(request, name):
    """What applications of CGI's kind (WSGI, PHP) take for that header: an underscore is as good as a hyphen."""
    return [value for key, value in request.headers if key.lower().replace("_", "-") == name.lower()]


def shipped(path, replacements):
    """A file of deploy/gateways with each text replaced; each must be there."""
    text = (TOP / "deploy" / "gateways" / path).read_text()
    for written, here in replacements.items():
        assert written in text, f"{path} does not say {written}"
        text = text.replace(written, here)
    return text


def opened(text):
    """With the lines in force that let requests pass while postern is away."""
    assert "#open " in text
    return text.replace("#open ", "")


class Site:
    """Where clients connect, and what stands behind it."""

    def __init__(self, postern, app, gateway, endpoint):
        self.postern, self.app, self.gateway, self.endpoint = postern, app, gateway, endpoint

    def send(self, source, *args, **more):
        return send(self.endpoint, source, *args, **more)


class Behind:
    LISTENER = "http"  # of postern, that the gateway asks
    RATELIMIT_ON_ALLOW = True  # the file shows the RateLimit headers to an allowed client
    OPEN_WHEN_UNDECIDED = True  # the open mode also holds for postern's own 503
    # How often it asks when the answer is lost with a connection that it has kept, and when none comes; each is charged.
    ASKS_WHEN_LOST, ASKS_WHEN_MUTE = 2, 1
    READS_REFUSED_BODIES = False  # a client that waits for "go on" gets no answer before it goes on by itself
    MAY_FIND_OUT_AT_ONCE = False  # a killed postern, before the time that the page promises at most
    STRIPS_UNJUDGED = True  # our token goes from Authorization also where postern does not say so
    REFUSED_FORGERIES = ()  # what the gateway itself answers with 400
    STATUS_KILLED = STATUS_STOPPED = 503
    KILLED_S, STOPPED_S = 0, 0.5  # how long a client waits for that

    # ------------------------------------------------------------------------------------------------ to be told

    def gateway(self, postern, app, hops, net, edit):
        """A gateway, not started: the shipped file for that many hops, its text passed through edit. postern and app are
        endpoints."""
        raise NotImplementedError

    def forgotten(self):
        """Header by header that the door requires: an edit that forgets it."""
        raise NotImplementedError

    def opened(self, text):
        return opened(text)

    def keyed(self, text):
        return text.replace("#key ", "").replace("the key of caller_key_file", KEY)

    def over_unix(self, text, path):
        """The text with postern at the Unix socket of that path; it names postern as postern.invalid:9180."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------ built

    @pytest.fixture
    def site(self, postern):
        """site(configuration, hops, net, edit=..., app=..., to=...) gives a running Site. to: stands in postern's place."""
        parts = []

        def build(config, hops=1, net=IPV4, edit=lambda text: text, app=None, to=None, files=None):
            if hops == 2:
                config = {"client": {"strategy": "trusted_ranges", "trusted_proxies": [net.hop]}, **config}
            instance = postern(config, files=files)
            app = app or App()
            parts.append(app)
            gateway = self.gateway(to or getattr(instance, self.LISTENER), app.endpoint, hops, net, edit)
            parts.append(gateway)
            gateway.start()
            endpoint = gateway.endpoint
            if hops == 2:
                hop = Nginx(HOP.replace("TO", endpoint).replace("FROM", net.hop), net.host)
                parts.append(hop)
                endpoint = hop.start().endpoint
            return Site(instance, app, gateway, endpoint)

        build.parts = parts
        yield build
        for part in reversed(parts):
            part.cleanup()

    # ------------------------------------------------------------------------------------------------ the client's address

    @pytest.mark.parametrize("hops", (1, 2))
    @pytest.mark.parametrize("net", (IPV4, IPV6), ids=lambda net: net.family)
    def test_the_key_is_the_clients(self, site, postern, net, hops):
        with inside(net):
            s = site(one_limit(f"{len(FORGERIES)}/hour"), hops, net)
            a, b, c = map(net.client, (11, 12, 13))
            for name, forged in FORGERIES.items():
                answer = s.send(a, headers=forged)
                if name in self.REFUSED_FORGERIES and hops == 1:
                    assert answer.status == 400
                    answer = s.send(a)
                assert answer.status == 200, (name, answer.body)
                request = s.app.requests[-1]
                assert request.all("X-Postern-Client") == as_cgi(request, "X-Postern-Client") == [a], name
                assert request.all("X-Forwarded-For") == [a], name  # exactly one believed value for the next hop
                assert not any(as_cgi(request, "X-Postern-Identity")), name
                # The next hop must not be told to drop what postern says.
                assert "x-postern" not in " ".join(request.all("Connection")).lower(), name
            for name, forged in FORGERIES.items():
                refused = 400 if name in self.REFUSED_FORGERIES and hops == 1 else 429
                assert s.send(a, headers=forged).status == refused, name
            assert s.send(b).status == 200
            assert [self.left(s, client, hops, net) for client in (a, b, c)] == [0, len(FORGERIES) - 1, len(FORGERIES)]

            # The next postern, which believes this gateway, has one value to believe.
            following = postern(one_limit(client={"strategy": "single_value", "trusted_proxies": ["127.0.0.1"]}))
            lines = [["X-Forwarded-For", value] for value in s.app.requests[-1].all("X-Forwarded-For")]
            client = ask(following, "127.0.0.1:4711", headers=lines)["client"]
            assert client == {"address": b, "reason": "single_value", "decided": True}

    def left(self, s, client, hops, net):
        seen = {"remote_addr": net.hop, "headers": {"X-Forwarded-For": client}} if hops == 2 else {"remote_addr": client}
        (limit,) = ask(s.postern, peek=True, **seen)["limits"]
        return limit["remaining"]

    def test_nobody_is_believed_where_it_cannot_be_decided(self, site):
        s = site(one_limit(), 2)
        for forged in (["X-Forwarded-For: unknown"], ["X-Forwarded-For: 203.0.113.7,"], []):
            said = ["X-Postern-Client: 6.6.6.6", "X-Postern-Identity: edge"]
            assert send(s.gateway.endpoint, IPV4.hop, headers=forged + said).status == 200, forged
            request = s.app.requests[-1]
            for name in ("X-Postern-Client", "X-Postern-Identity", "X-Forwarded-For"):
                assert not any(request.all(name)), (name, forged)

    def test_a_hop_that_nobody_named_is_told_with_its_cure(self, site):
        s = site(one_limit(client={"strategy": "peer"}), 2)
        assert s.send(IPV4.client(11)).status == s.send(IPV4.client(12)).status == 200
        said = s.postern.wait_log("forwarded_header_ignored")
        assert said["remote_addr"] == IPV4.hop
        assert said["cure"] == '"client": {"strategy": "trusted_ranges", "trusted_proxies": ["127.0.0.7"]}'
        assert [request.all("X-Postern-Client") for request in s.app.requests] == [[IPV4.hop]] * 2

    @pytest.mark.parametrize("hops, client, code", ((1, None, 0), (2, None, 0), (2, {"strategy": "peer"}, 5)))
    def test_the_probe_tells_right_from_wrong(self, site, hops, client, code):
        s = site(one_limit("50/hour", **({"client": client} if client else {})), hops)
        done = run_postern("probe", f"http://{s.endpoint}/", "--admin", s.postern.admin)
        assert done.returncode == code, done.stdout + done.stderr

    # ------------------------------------------------------------------------------------------------ our own services

    def test_our_own_services_pass_by_their_token(self, site):
        s = site(one_limit("2/hour", identities=IDENTITIES))
        client = IPV4.client(11)
        for line in (f"X-Internal-Token: {EDGE}", f"Authorization: Bearer {EDGE}"):
            for _ in range(3):
                assert s.send(client, headers=[line, "X-Postern-Identity: agent"]).status == 200
                request = s.app.requests[-1]
                assert request.all("X-Postern-Identity") == ["edge"]
                assert not [value for _, value in request.headers if EDGE in value]
        login = "Authorization: Bearer eyJhbGciOiJ"
        assert s.send(client, headers=[f"X-Internal-Token: {EDGE}", login]).status == 200
        assert s.app.requests[-1].all("Authorization") == ["Bearer eyJhbGciOiJ"]
        assert not [value for _, value in s.app.requests[-1].headers if EDGE in value]
        # Ours does not reach the application beside a first header that proves nothing either.
        for first in ("", FORGED):
            s.send(IPV4.client(12), headers=[f"X-Internal-Token: {first}", f"Authorization: Bearer {EDGE}"])
            assert not [value for _, value in s.app.requests[-1].headers if EDGE in value]
        # Everybody else is counted, a forged token too, and keeps his own login.
        answers = [s.send(client, headers=[login, f"X-Internal-Token: {FORGED}"]).status for _ in range(3)]
        assert answers == [200, 200, 429]
        assert s.app.requests[-1].all("Authorization") == ["Bearer eyJhbGciOiJ"]
        assert not any(s.app.requests[-1].all("X-Postern-Identity") + s.app.requests[-1].all("X-Internal-Token"))

    # ------------------------------------------------------------------------------------------------ refusals

    def test_what_a_refused_client_sees(self, site):
        config = one_limit("1/hour", identities=IDENTITIES)
        config["rules"].insert(0, {"name": "secret-rule", "match": {"path": "/internal/*"}, "require": "identity", "limits": ["per-client"]})
        config["rules"].insert(0, {"name": "closed-rule", "match": {"path": "/closed"}, "action": "deny"})
        s = site(config)
        client = IPV4.client(11)
        unproven = s.send(client, path="/internal/x", headers=[f"X-Internal-Token: {FORGED}"])
        assert (unproven.status, unproven.get("WWW-Authenticate")) == (401, "Bearer")
        assert unproven.json() == {"error": "identity_required"}
        limited = s.send(client, "POST", "/x?y", body=b"x" * 1000)
        assert limited.status == 429
        wait_s = int(limited.get("Retry-After"))
        assert 3500 < wait_s <= 3600 and limited.json() == {"error": "rate_limited", "retry_after": wait_s}
        assert limited.get("RateLimit") == f'"per-client";r=0;t={wait_s}'
        assert limited.get("RateLimit-Policy") == '"per-client";q=1;w=3600'
        blocked = s.send(client, path="/closed")
        assert (blocked.status, blocked.json(), blocked.get("Retry-After")) == (403, {"error": "blocked"}, None)
        assert s.app.requests == []
        for answer in (unproven, limited, blocked):
            assert not [name for name, _ in answer.headers if name.lower().startswith(("x-postern", "x-envoy-auth"))]
            words = (b"127.0.0", b"secret-rule", b"closed-rule", b"per-client", b"edge")
            assert not [word for word in words if word in answer.body]

    def test_the_callers_key(self, site):
        """Without it the gateway may not ask; the file has a line for it."""
        config = one_limit(caller_key_file="key")
        s = site(config, files={"key": KEY})
        answer = s.send(IPV4.client(11))
        assert (answer.status, answer.json()) == (403, {"error": "caller_not_allowed"})
        s = site(config, files={"key": KEY}, edit=self.keyed)
        assert s.send(IPV4.client(11)).status == s.send(IPV4.client(11), headers=["X-Postern-Key: forged"]).status == 200
        assert not [value for request in s.app.requests for _, value in request.headers if KEY in value]

    def test_what_an_allowed_client_sees(self, site):
        s = site(one_limit())
        answer = s.send(IPV4.client(11))
        assert answer.status == 200
        assert not [name for name, _ in answer.headers if name.lower().startswith(("x-postern", "x-envoy-auth"))]
        policy = ['"per-client";q=5;w=3600'] if self.RATELIMIT_ON_ALLOW else []
        assert answer.all("RateLimit-Policy") == policy
        assert [value.startswith('"per-client";r=4;t=') for value in answer.all("RateLimit")] == [True] * len(policy)

    def test_a_forgotten_header_denies_and_is_named(self, site):
        """And a client cannot supply it in the gateway's place."""
        for header, edit in self.forgotten().items():
            s = site(one_limit(), edit=edit)
            for forged in ([], [f"{header}: 6.6.6.6"], [f"{header}: GET"]):
                answer = s.send(IPV4.client(11), headers=forged)
                assert answer.status == 403, (header, forged)
                assert answer.json()["error"].startswith("door_misconfigured")
                assert header.encode() in answer.body
            assert s.postern.wait_log("door_misconfigured")["header"] == header
            counted = [n for name, n in s.postern.metrics().items() if name.startswith("postern_door_misconfigured_total") and f'"{header}"' in name]
            assert sum(counted) == 3
            assert s.app.requests == [] and self.left(s, IPV4.client(11), 1, IPV4) == 5

    # ------------------------------------------------------------------------------------------------ connections

    def test_checks_share_a_connection(self, site, postern):
        instance = postern(one_limit())
        with Relay(getattr(instance, self.LISTENER)) as relay:
            s = site({}, to=relay.endpoint)
            answers = [s.send(IPV4.client(11)).status for _ in range(10)]
            assert answers == [200] * 5 + [429] * 5
            assert relay.connections == 1

    def test_a_connection_that_postern_has_ended_is_not_missed(self, site, postern):
        """The gateway's pooled connection is gone: the check is asked again on a new one, and charged once."""
        instance = postern(one_limit())
        with Relay(getattr(instance, self.LISTENER)) as relay:
            s = site({}, to=relay.endpoint)
            assert s.send(IPV4.client(11)).status == 200
            relay.end_idle()
            assert s.send(IPV4.client(11)).status == 200
            assert s.send(IPV4.client(11)).status == 200
            (limit,) = ask(instance, IPV4.client(11), peek=True)["limits"]
            assert limit["remaining"] == 2

    def test_a_lost_answer_is_asked_for_again(self, site, postern):
        """What the page of the gateway says about repeats: postern charges each."""
        instance = postern(one_limit("10/hour"))
        a, b = IPV4.client(11), IPV4.client(12)
        with Relay(getattr(instance, self.LISTENER)) as relay:
            s = site({}, to=relay.endpoint)
            assert s.send(a).status == 200
            relay.lose = 1
            answer = s.send(a)
            assert relay.lose == 0
            assert answer.status == (200 if self.ASKS_WHEN_LOST > 1 else self.STATUS_KILLED)
            assert s.send(b).status == 200
            relay.mute = True
            assert s.send(b).status == self.STATUS_STOPPED
            left = [ask(instance, client, peek=True)["limits"][0]["remaining"] for client in (a, b)]
            assert left == [9 - self.ASKS_WHEN_LOST, 9 - self.ASKS_WHEN_MUTE]

    def test_postern_over_a_unix_socket(self, site, tmp_path):
        path = tmp_path / "postern.sock"
        config = {**one_limit("2/hour"), "listen": {self.LISTENER: f"unix:{path}?mode=0666"}}
        s = site(config, to="postern.invalid:9180", edit=lambda text: self.over_unix(text, path))
        assert [s.send(IPV4.client(11)).status for _ in range(3)] == [200, 200, 429]
        assert s.send(IPV4.client(12)).status == 200
        assert s.app.requests[-1].all("X-Postern-Client") == [IPV4.client(12)]

    # ------------------------------------------------------------------------------------------------ postern away

    @pytest.mark.parametrize("mode", ("closed", "open"))
    @pytest.mark.parametrize("how", ("killed", "stopped"))
    def test_postern_away(self, site, how, mode):
        s = site(one_limit(identities=IDENTITIES), edit=self.opened if mode == "open" else lambda text: text)
        client = IPV4.client(11)
        assert s.send(client).status == 200
        if how == "killed":
            s.postern.kill()
        else:
            s.postern.signal(signal.SIGSTOP)
        forged = ["X-Postern-Client: 6.6.6.6", "X-Postern-Identity: edge", f"X-Internal-Token: {EDGE}", f"Authorization: Bearer {EDGE}"]
        began = time.monotonic()
        answer = s.send(client, headers=forged)
        took = time.monotonic() - began
        promised = self.KILLED_S if how == "killed" else self.STOPPED_S
        least = 0 if how == "killed" and self.MAY_FIND_OUT_AT_ONCE else 0.9 * promised
        assert least <= took < promised + BUSY_S, took
        if mode == "closed":
            assert answer.status == (self.STATUS_KILLED if how == "killed" else self.STATUS_STOPPED)
            assert len(s.app.requests) == 1 and b"postern" not in answer.body
        else:
            assert answer.status == 200
            request = s.app.requests[-1]
            # Unjudged is no licence to forge.
            for name in ("X-Postern-Client", "X-Postern-Identity", "X-Internal-Token"):
                assert not any(request.all(name)), name
            assert not (self.STRIPS_UNJUDGED and request.all("Authorization"))
        if how == "stopped":
            s.postern.signal(signal.SIGCONT)

    @pytest.mark.parametrize("mode", ("closed", "open"))
    def test_a_postern_that_cannot_decide(self, site, mode):
        undecided = App(lambda request: (503, [("Content-Type", "application/json")], b'{"error": "internal"}\n'))
        site.parts.append(undecided)
        s = site(one_limit(), to=undecided.endpoint, edit=self.opened if mode == "open" else lambda text: text)
        passes = mode == "open" and self.OPEN_WHEN_UNDECIDED
        assert s.send(IPV4.client(11)).status == (200 if passes else 503)
        assert len(s.app.requests) == passes

    def test_a_slow_postern_is_waited_for(self, site):
        s = site(one_limit())
        client = IPV4.client(11)
        assert s.send(client).status == 200
        s.postern.signal(signal.SIGSTOP)
        began = time.monotonic()
        waking = threading.Timer(0.2, s.postern.signal, (signal.SIGCONT,))
        waking.start()
        answer = s.send(client)
        waking.join()
        assert answer.status == 200 and time.monotonic() - began >= 0.2
        assert self.left(s, client, 1, IPV4) == 3

    # ------------------------------------------------------------------------------------------------ other requests

    def test_methods_bodies_and_expectations(self, site):
        s = site(one_limit("100/hour"))
        client = IPV4.client(11)
        body = bytes(range(256)) * 300
        answer = s.send(client, "POST", "/a%2Fb/c?x=1&y=%20z", body=body)
        request = s.app.requests[-1]
        assert (answer.status, request.method, request.body, request.path) == (200, "POST", body, "/a%2Fb/c?x=1&y=%20z")
        answer = s.send(client, "HEAD", "/x")
        assert (answer.status, answer.body, s.app.requests[-1].method) == (200, b"", "HEAD")
        for method in ("PUT", "DELETE", "OPTIONS", "PATCH"):
            assert s.send(client, method, "/x").status == 200
            assert s.app.requests[-1].method == method
        chunks = b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
        assert self.raw(s, client, b"POST /chunked HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks) == 200
        assert s.app.requests[-1].body == b"hello world"
        assert self.raw(s, client, b"POST /e HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n", b"ok") == 200
        assert s.app.requests[-1].body == b"ok"
        assert all(request.all("X-Postern-Client") == [client] for request in s.app.requests)
        assert self.left(s, client, 1, IPV4) == 100 - len(s.app.requests)

    def raw(self, s, client, head, body=b""):
        """The final status; the body follows the head at once, whatever the server says."""
        with connect(s.endpoint, client) as sock:
            sock.sendall(head + body)
            data = read_answer(sock)
        while data.startswith(b"HTTP/1.1 100"):
            data = data.partition(b"\r\n\r\n")[2]
        return int(data.split(b" ")[1])

    def test_many_header_lines_do_no_harm(self, site):
        """The gateway may refuse them; it must go on, and nobody may pass by them."""
        s = site(one_limit("1/hour"))
        client = IPV4.client(11)
        assert s.send(client).status == 200
        for n in range(88, 106):
            status = self.raw(s, client, b"GET /x HTTP/1.1\r\nHost: a\r\n" + b"".join(b"X-A%d: 1\r\n" % i for i in range(n)) + b"\r\n")
            assert status in (400, 429, 431), n
            assert s.gateway.process.poll() is None, n
        assert len(s.app.requests) == 1

    def test_a_limited_upload_is_refused_without_its_body(self, site):
        """Some gateways say "go on" before they ask."""
        s = site(one_limit("1/hour"))
        client = IPV4.client(11)
        assert s.send(client).status == 200
        with connect(s.endpoint, client) as sock:
            sock.sendall(b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\nExpect: 100-continue\r\n\r\n")
            if self.READS_REFUSED_BODIES:
                sock.sendall(b"x" * 100000)
            status = self.status(sock)
            while status == b"100":
                status = self.status(sock)
        assert status == b"429" and len(s.app.requests) == 1

    def status(self, sock):
        """Of the next head, which is taken off the socket."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = sock.recv(1)
            assert byte, head
            head += byte
        return head.split(b" ")[1]

    def test_a_websocket_is_checked_once_and_opens(self, site):
        app = UpgradingApp()
        s = site(one_limit("1/hour"), app=app)
        client = IPV4.client(11)
        upgrade = (
            b"GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        with connect(s.endpoint, client) as sock:
            sock.sendall(upgrade)
            data = b""
            while b"\r\n\r\n" not in data:
                data += sock.recv(4096)
            assert data.startswith(b"HTTP/1.1 101"), data
            sock.sendall(b"ping")
            rest = data.partition(b"\r\n\r\n")[2]
            while len(rest) < 4:
                rest += sock.recv(4096)
            assert rest == b"ping"
        with connect(s.endpoint, client) as sock:
            sock.sendall(upgrade)
            assert read_answer(sock).split(b" ")[1] == b"429"
        assert len(app.heads) == 1


class UpgradingApp:
    """Answers any request with 101 and echoes what comes then."""

    def __init__(self):
        self.heads = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = "127.0.0.1:%d" % self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        with sock:
            data = b""
            while b"\r\n\r\n" not in data:
                more = sock.recv(4096)
                if not more:
                    return
                data += more
            self.heads.append(data)
            sock.sendall(
                b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
            )
            while more := sock.recv(4096):
                sock.sendall(more)

    def cleanup(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

# SPDX-License-Identifier: MIT
"""Real Caddy, as Debian has it, with the files of deploy/gateways/caddy; test_caddy_stories.py tells the two stories with it."""
import socket
import threading

from behind import Behind, shipped
from gateway import Caddy
from net import IPV4
from questions import one_limit


class TestCaddy(Behind):
    PROGRAM = Caddy
    RATELIMIT_ON_ALLOW = False
    STATUS_KILLED, STATUS_STOPPED = 502, 504
    OPEN_WHEN_UNDECIDED = False

    def gateway(self, postern, app, hops, net, edit):
        name = "one-hop.Caddyfile" if hops == 1 else "two-hops.Caddyfile"
        here = {":8443 {": ":{$PORT} {", "127.0.0.1:9180": postern, "127.0.0.1:8080": app}
        if hops == 2:
            here["10.0.0.7/32"] = net.hop_range
        return self.PROGRAM(edit(shipped(f"caddy/{name}", here)), host=net.host)

    def forgotten(self):
        def without(header):
            return lambda text: text.replace("uri /forward-auth?\n", f"uri /forward-auth?\nheader_up -{header}\n")

        return {header: without(header) for header in ("X-Forwarded-For", "X-Forwarded-Method", "X-Forwarded-Uri")}

    def over_unix(self, text, path):
        assert "forward_auth postern.invalid:9180" in text
        return text.replace("forward_auth postern.invalid:9180", f"forward_auth unix/{path}")

    def test_long_headers(self, site):
        """Caddy 2.6 takes a megabyte of header; postern as much as it is told to, and says 431 beyond that."""
        s = site(one_limit("2/hour", http={"header_bytes": "64KiB"}))
        long = ["X-Long: " + "x" * 40000]
        assert s.send(IPV4.client(11), headers=long).status == 200
        assert s.send(IPV4.client(11), headers=long * 2).status == 431
        assert len(s.app.requests) == 1

    def test_an_application_that_fails_is_not_asked_again(self, site):
        """The open mode is for a postern that is away, not for an application."""
        application = FailingApp()
        s = site(one_limit(), app=application, edit=self.opened)
        assert s.send(IPV4.client(11), "POST", body=b"x").status == 502
        assert application.requests == 1


class FailingApp:
    """Takes a request and ends the connection."""

    def __init__(self):
        self.requests = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = "127.0.0.1:%d" % self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            with sock:
                self.requests += bool(sock.recv(65536))

    def cleanup(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

# SPDX-License-Identifier: MIT
"""The ways from a client to postern that the stories are about, built from the files that people copy."""
import http.client
import json

from gateway import App, Caddy
from postern import TOP, Connection, split_endpoint

FOLDER = TOP / "deploy" / "gateways" / "caddy"

# Hops of the tests connect from 127.0.0.1; clients come from 127.0.0.11 and so on.
TRUSTING_THE_HOP = {"strategy": "trusted_ranges", "trusted_proxies": ["127.0.0.1"]}


def copy_ready(name, postern, app, hop="127.0.0.1/32"):
    """A file of deploy/gateways/caddy with the addresses of this test in the place of its own."""
    text = (FOLDER / name).read_text()
    for written, here in ((":8443 {", ":{$PORT} {"), ("127.0.0.1:9180", postern.http), ("127.0.0.1:8080", app.endpoint)):
        assert written in text, f"{name} does not name {written}"
        text = text.replace(written, here)
    if "two-hops" in name:
        assert text.count("10.0.0.7/32") == 1
        text = text.replace("10.0.0.7/32", hop)
    return text


# A hop that knows nothing of postern: Caddy as it is, which replaces what a client says of itself.
FRONT = ":{$PORT} {\n\treverse_proxy {$TO}\n}"


class FrontEnd(App):
    """A front-end container that hands exactly one value on: the last entry of X-Forwarded-For, over all lines."""

    def __init__(self, to):
        super().__init__(self.forward)
        self._to = to

    def forward(self, request):
        last = ",".join(request.all("X-Forwarded-For")).rpartition(",")[2].strip()
        lines = [(name, value) for name, value in request.headers if name.lower() not in ("x-forwarded-for", "connection")]
        connection = http.client.HTTPConnection(*split_endpoint(self._to))
        connection.putrequest(request.method, request.path, skip_host=True, skip_accept_encoding=True)
        for name, value in [*lines, ("X-Forwarded-For", last)]:
            connection.putheader(name, value)
        connection.endheaders(request.body)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, [(n, v) for n, v in answer.getheaders() if n.lower() not in ("content-length", "date", "server")], body


class AskingApp(App):
    """An application that asks postern itself, as any program can: its RemoteAddr and the headers that it received."""

    def __init__(self, postern):
        super().__init__(self.decide)
        self._postern = postern
        self.verdicts = []
        self.served = []

    def decide(self, request):
        question = {"remote_addr": request.remote_addr, "headers": request.headers, "method": request.method,
            "host": request.all("Host")[0], "path": request.path}  # fmt: skip
        connection = Connection(self._postern.http)
        status, _, body = connection.ask("POST", "/check", json.dumps(question).encode(), {"Content-Type": "application/json"})
        connection.close()
        if status != 200:
            return 503, [], b""  # no decision: this application fails closed
        verdict = json.loads(body)
        self.verdicts.append(verdict)
        said = list(verdict["response_headers"].items())
        if verdict["decision"] != "allow":
            wait = {"retry_after": verdict["retry_after"]} if "retry_after" in verdict else {}
            return verdict["status"], said, json.dumps({"error": verdict["reason"], **wait}).encode()
        drop = {name.lower() for name in [*verdict["remove_headers"], *verdict["upstream_headers"]]}
        request.headers = [line for line in request.headers if line[0].lower() not in drop]
        request.headers += verdict["upstream_headers"].items()
        self.served.append(request)
        return 200, said, json.dumps(request.echo()).encode()


class Site:
    """Where clients connect, and what has been served behind it."""

    def __init__(self, postern, endpoint, app, parts):
        self.postern, self.endpoint, self.app, self._parts = postern, endpoint, app, parts

    def served(self):
        return self.app.served if isinstance(self.app, AskingApp) else self.app.requests

    def cleanup(self):
        for part in reversed(self._parts):
            part.cleanup()


def one_hop(postern):
    """client -> Caddy -> postern by forward_auth, then the application"""
    app = App()
    caddy = Caddy(copy_ready("one-hop.Caddyfile", postern, app)).start()
    return Site(postern, caddy.endpoint, app, [app, caddy])


def two_hops(postern, hop="127.0.0.1/32"):
    """client -> Caddy -> Caddy -> postern by forward_auth, then the application"""
    app = App()
    inner = Caddy(copy_ready("two-hops.Caddyfile", postern, app, hop)).start()
    outer = Caddy(FRONT, TO=inner.endpoint).start()
    return Site(postern, outer.endpoint, app, [app, inner, outer])


def front_end(postern):
    """client -> Caddy -> front end that rewrites X-Forwarded-For -> application that asks POST /check"""
    app = AskingApp(postern)
    rewriting = FrontEnd(app.endpoint)
    outer = Caddy(FRONT, TO=rewriting.endpoint).start()
    return Site(postern, outer.endpoint, app, [app, rewriting, outer])


# What each needs in postern's configuration to be right.
TOPOLOGIES = {
    "one-hop": (one_hop, {}),
    "two-hops": (two_hops, TRUSTING_THE_HOP),
    "front-end": (front_end, {"strategy": "single_value", "trusted_proxies": ["127.0.0.1"]}),
}

# SPDX-License-Identifier: MIT
"""What stands around postern in the gateway tests: real gateways, an application behind them, clients before them.

Nothing is installed: tests/tools.sh unpacks the gateways. A gateway cannot tell which port it was given for port 0, so
its port is reserved by a bound socket that never listens; Linux lets the gateway bind beside it, and nobody else gets it.
"""
import http.server
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import pytest

from postern import DEADLINE_S, TOP, clean_env, connect, read_answer


def require(tool):
    """The path of a program from tests/tools.sh. Without it the test is skipped, and fails where CI=true."""
    found = subprocess.run(
        [TOP / "tests" / "tools.sh", "path", tool], stdout=subprocess.PIPE, text=True, check=False
    )
    if found.returncode == 0:
        return found.stdout.strip()
    why = f"{tool} is not here: tests/tools.sh fetch brings it"
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)


class ReservedPort:
    """A free port of that address that stays ours until close."""

    def __init__(self, host="127.0.0.1"):
        self._socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # else Envoy could not bind beside it
        self._socket.bind((host, 0))
        self.number = self._socket.getsockname()[1]

    def close(self):
        self._socket.close()


class Gateway:
    """A running gateway.

    tool        its name in tests/tools.sh; where it is not here the test is skipped.
    endpoint    "127.0.0.1:PORT", or with the host that it was given.
    """

    tool = None

    def __init__(self, host="127.0.0.1"):
        self.program = require(self.tool)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{self.tool}-"))
        self.log_path = self.folder / "log"
        self.host, self.port = host, ReservedPort(host)
        self.endpoint = ("[%s]:%d" if ":" in host else "%s:%d") % (host, self.port.number)
        self.process = None

    def command(self):
        """What starts it in the foreground."""
        raise NotImplementedError

    def env(self):
        return clean_env()

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def start(self):
        command = self.command()
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env(), cwd=self.folder
            )
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                connect(self.endpoint).close()
                return self
            except ConnectionRefusedError:
                pass
            # The end of the process is the only event that a gateway offers; not ending for a moment is a reason to retry.
            try:
                code = self.process.wait(0.02)
            except subprocess.TimeoutExpired:
                code = None
            if code is not None or time.monotonic() > deadline:
                raise AssertionError(f"{self.tool} does not serve (exit code {code}):\n{self.log()}")

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def stop(self):
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def cleanup(self):
        self.stop()
        self.port.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Caddy(Gateway):
    """caddyfile   its site blocks; {$PORT} in it is the port of this Caddy, {$NAME} the value given as NAME=...:
                   Caddy("http://:{$PORT} {\\n reverse_proxy {$APP}\\n}", APP=app.endpoint)
    options     further lines of the global block.
    """

    tool = "caddy"

    def __init__(self, caddyfile, options="", host="127.0.0.1", **values):
        super().__init__(host)
        self._values = {"PORT": str(self.port.number), **{k: str(v) for k, v in values.items()}}
        self.write(
            "Caddyfile",
            f"{{\n\tadmin off\n\tauto_https off\n\tdefault_bind {host}\n"
            f"\tstorage file_system {self.folder}/storage\n\t{options}\n}}\n{caddyfile}\n",
        )

    def command(self):
        return [self.program, "run", "--config", "Caddyfile", "--adapter", "caddyfile"]

    def env(self):
        homes = {name: str(self.folder) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
        return {**clean_env(), **homes, **self._values}


class CurrentCaddy(Caddy):
    tool = "caddy-current"


class Nginx(Gateway):
    """http: what stands in the http context, with {LISTEN} where it says what to listen on. One worker, so that what it
    keeps between requests can be told."""

    tool = "nginx"

    def __init__(self, http, host="127.0.0.1"):
        super().__init__(host)
        temp = "\n".join(f"{kind}_temp_path temp_{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        user = "user root;\n" if os.geteuid() == 0 else ""
        self.write(
            "nginx.conf",
            f"{user}worker_processes 1;\npid pid;\nerror_log stderr info;\nevents {{}}\nhttp {{\naccess_log off;\n{temp}\n"
            + http.replace("{LISTEN}", self.endpoint)
            + "\n}\n",
        )

    def command(self):
        return [self.program, "-p", str(self.folder), "-e", "stderr", "-c", "nginx.conf", "-g", "daemon off;"]


class HAProxy(Gateway):
    """config with {LISTEN} where it says what to bind; files: what lies beside it."""

    tool = "haproxy"

    def __init__(self, config, host="127.0.0.1", files=None):
        super().__init__(host)
        self.write("haproxy.cfg", config.replace("{LISTEN}", self.endpoint))
        for name, text in (files or {}).items():
            self.write(name, text)

    def command(self):
        return [self.program, "-db", "-f", "haproxy.cfg"]


class Envoy(Gateway):
    """config with {HOST} and {PORT} where it says what to listen on."""

    tool = "envoy"

    def __init__(self, config, host="127.0.0.1"):
        super().__init__(host)
        self.write("envoy.yaml", config.replace("{HOST}", host).replace("{PORT}", str(self.port.number)))

    def command(self):
        return [self.program, "-c", "envoy.yaml", "--use-dynamic-base-id", "--concurrency", "1", "-l", "warning", "--file-flush-interval-msec", "50"]


class Request:
    """What an application received: headers as (name, value) lines in their order, names as written."""

    def __init__(self, handler, body):
        self.method, self.path, self.body = handler.command, handler.path, body
        self.headers = list(handler.headers.items())
        self.remote_addr = "%s:%d" % handler.client_address[:2]

    def all(self, name):
        """The values of every line of that name."""
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def echo(self):
        return {"method": self.method, "path": self.path, "headers": self.headers, "remote_addr": self.remote_addr}


class App:
    """An application behind the gateways: remembers its requests and answers 200 with an echo of them as JSON.

    answer   a function from Request to (status, header pairs, body bytes), for an application with a will of its own.
    """

    def __init__(self, answer=None):
        self.requests = []
        app = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle_any(self):
                body = self.read_body()
                request = Request(self, body)
                app.requests.append(request)
                if answer is not None:
                    status, headers, content = answer(request)
                else:
                    status, headers = 200, [("Content-Type", "application/json")]
                    content = json.dumps(request.echo()).encode()
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            def read_body(self):
                if self.headers.get("Transfer-Encoding") != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length") or 0))
                body = b""
                while True:
                    n = int(self.rfile.readline().split(b";")[0], 16)
                    body += self.rfile.read(n)
                    self.rfile.readline()
                    if n == 0:
                        return body

            do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = handle_any

            def log_message(self, *args):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 128

            def handle_error(self, request, client_address):
                if not isinstance(sys.exc_info()[1], ConnectionError):  # a gateway may end a connection as it likes
                    super().handle_error(request, client_address)

        self._server = Server(("127.0.0.1", 0), Handler)
        self.endpoint = "127.0.0.1:%d" % self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def cleanup(self):
        self._server.shutdown()
        self._thread.join(DEADLINE_S)
        self._server.server_close()


class Answer:
    def __init__(self, data):
        head, separator, self.body = data.partition(b"\r\n\r\n")
        while head[:13].endswith(b" 100 "):  # "go on", not yet the answer
            head, separator, self.body = self.body.partition(b"\r\n\r\n")
        assert separator, f"no answer: {data!r}"
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines[1:])]

    def all(self, name):
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def get(self, name):
        """The value of a header that must come at most once; None without it."""
        values = self.all(name)
        assert len(values) <= 1, f"{name} comes {len(values)} times"
        return values[0] if values else None

    def json(self):
        return json.loads(self.body)


def send(endpoint, source="127.0.0.11", method="GET", path="/", headers=(), body=b""):
    """One request from a chosen source address. headers: exact lines without line ends, str or bytes, sent as they
    stand and in this order, behind a Host line (unless one is given) and before Content-Length (if there is a body)."""
    lines = [line if isinstance(line, bytes) else line.encode("latin-1") for line in headers]
    if not any(line.lower().startswith(b"host:") for line in lines):
        lines.insert(0, b"Host: app.example")
    if body:
        lines.append(b"Content-Length: %d" % len(body))
    lines.append(b"Connection: close")
    head = b"\r\n".join([f"{method} {path} HTTP/1.1".encode("latin-1"), *lines])
    with connect(endpoint, source) as sock:
        sock.sendall(head + b"\r\n\r\n" + body)
        return Answer(dechunk(read_answer(sock, to_head=method == "HEAD")))


def dechunk(data):
    """The answer with its chunks put together, where it has any."""
    head, separator, rest = data.partition(b"\r\n\r\n")
    if b"\r\ntransfer-encoding: chunked" not in head.lower():
        return data
    body = b""
    while True:
        size, _, rest = rest.partition(b"\r\n")
        n = int(size.split(b";")[0], 16)
        if n == 0:
            return head + separator + body
        body, rest = body + rest[:n], rest[n + 2 :]

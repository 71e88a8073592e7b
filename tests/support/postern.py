# SPDX-License-Identifier: MIT
"""Starts the real program for a test, on free ports, and talks to it.

The program is told to listen on port 0 and says in its start line which ports it got, so tests never share a port.
Everything waits for an event (a line on stderr, an answer, the end of the process) with a deadline that only a fault
reaches; nothing here sleeps.
"""
import http.client
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("POSTERN") or str(TOP / "build" / "postern")
# Sanitizers slow the program down; a deadline must mean a fault there too.
DEADLINE_S = 10 * {"asan": 3, "tsan": 6, "cov": 2}.get(os.environ.get("SAN", ""), 1)


def run_postern(*args, stdin=None, env=None, cwd=None):
    """Runs a verb to its end. The result has returncode, stdout and stderr as text."""
    return subprocess.run(
        [PROGRAM, *map(str, args)],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=not isinstance(stdin, bytes),
        env={**clean_env(), **(env or {})},
        cwd=cwd,
        timeout=DEADLINE_S,
        check=False,
    )


def clean_env():
    """The environment without what would change the program's behaviour behind a test's back."""
    unwanted = {"POSTERN_CONFIG", "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "CREDENTIALS_DIRECTORY"}
    return {name: value for name, value in os.environ.items() if name not in unwanted}


def until(condition):
    """Asks again and again until it holds; what decides is the answer, or the deadline."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"did not come about within {DEADLINE_S} s"


def split_endpoint(text):
    """"127.0.0.1:80" or "[::1]:80" as (host, port); "unix:/path" as the path."""
    if text.startswith("unix:"):
        return text[len("unix:") :].partition("?")[0]
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def connect(endpoint, source=None):
    """A connected socket. source: the local address to come from, such as "127.0.0.11"."""
    where = split_endpoint(endpoint)
    if isinstance(where, str):
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.settimeout(DEADLINE_S)
            sock.connect(where)
        except BaseException:
            sock.close()
            raise
        return sock
    sock = socket.create_connection(where, timeout=DEADLINE_S, source_address=(source, 0) if source else None)
    # Else a body in a packet of its own waits for the peer's delayed acknowledgement: 40 ms a question.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


class Connection(http.client.HTTPConnection):
    """http.client over TCP or a Unix socket; stays open between requests."""

    def __init__(self, endpoint, source=None):
        super().__init__("localhost", timeout=DEADLINE_S)
        self._endpoint, self._source = endpoint, source

    def connect(self):
        self.sock = connect(self._endpoint, self._source)

    def ask(self, method, path, body=None, headers=()):
        """One exchange: (status, headers, body bytes). headers: pairs or a dict, sent in order; a name may come twice."""
        lines = list(headers.items() if isinstance(headers, dict) else headers)
        names = {name.lower() for name, _ in lines}
        self.putrequest(method, path, skip_host="host" in names, skip_accept_encoding=True)
        for name, value in lines:
            self.putheader(name, value)
        if body is not None and not names & {"content-length", "transfer-encoding"}:
            self.putheader("Content-Length", str(len(body)))
        try:
            self.endheaders(body)
        except BrokenPipeError:
            pass  # refused before the end of the body: what was answered can still be read
        answer = self.getresponse()
        return answer.status, answer.headers, answer.read()


def read_answer(sock, to_head=False):
    """Reads one HTTP answer, or what comes until the peer closes. Everything that arrived, as bytes.
    to_head: the question was a HEAD, whose answer announces a body that does not come."""
    data = b""
    want = None
    while want is None or len(data) < want:
        if want is None and b"\r\n\r\n" in data:
            want = data.index(b"\r\n\r\n") + 4 if to_head else answer_length(data)
            if want is not None:
                continue
        try:
            more = sock.recv(65536)
        except ConnectionResetError:
            break
        if not more:
            break
        data += more
    return data


def answer_length(data):
    """How long the answer that data begins with will be; None if only its end tells. 1xx answers count as heads."""
    head, _, _ = data.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    status = lines[0].split(b" ")[1:2]
    if status and status[0].startswith(b"1"):
        rest = data[len(head) + 4 :]
        after = answer_length(rest) if b"\r\n\r\n" in rest else None
        return None if after is None else len(head) + 4 + after
    for line in lines[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return len(head) + 4 + int(value)
    return None


class Postern:
    """One running program.

    config     the configuration as a dict; listeners that it does not name get a free port. None: no file, only args.
    args       further arguments of serve, such as ["--rate", "5/hour"].
    open_files   its limit of open files (RLIMIT_NOFILE).
    files      {name: text} to lie beside the configuration, for token files and the like.
    http, ops, grpc, admin   the endpoints as the program said it bound them, None for one that is off.
    may_end_with   exit codes that are no fault where a test lets it end; add to it where another one is meant.
    lines      everything it wrote to stderr; log(event) gives the JSON lines of one event.
    """

    def __init__(self, config=None, args=(), env=None, files=None, open_files=None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="postern-"))
        for name, text in (files or {}).items():
            self.write(name, text)
        self.config_path = None
        self.args = ["serve"]
        if config is not None:
            self.config_path = self.write("postern.json", self._config_text(config))
            self.args += ["--config", str(self.config_path)]
        else:
            for name, where in self.LISTEN.items():
                self.args += ["--listen", f"{name}={where}"]
        self.args += list(map(str, args))
        self.env = {**clean_env(), **(env or {})}
        self.open_files = open_files
        self.process = None
        self.may_end_with = {0, -signal.SIGKILL}
        self.lines = []
        self._ended = False
        self._news = threading.Condition()
        self.http = self.ops = self.grpc = self.admin = None

    LISTEN = {"http": "127.0.0.1:0", "grpc": "127.0.0.1:0", "ops": "127.0.0.1:0", "admin": "127.0.0.1:0"}

    def _config_text(self, config):
        return json.dumps({"version": 1, **config, "listen": {**self.LISTEN, **config.get("listen", {})}}, indent=1)

    def write(self, name, text, mode=0o600):
        """A file in the program's own folder, for token files and the like; gives its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def _launch(self):
        self.process = subprocess.Popen(
            [PROGRAM, *self.args], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=self.env, cwd=self.folder,
            preexec_fn=self._limit if self.open_files else None,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _limit(self):
        resource.setrlimit(resource.RLIMIT_NOFILE, (self.open_files, self.open_files))

    def run_to_end(self):
        """For one that must not come up: its exit code. output() has what it said."""
        self._launch()
        try:
            return self.wait()
        finally:
            self._clean_files()

    def start(self):
        self._launch()
        banner = self.wait_log("start")
        for name in ("http", "ops", "grpc", "admin"):
            setattr(self, name, banner.get(name) or None)
        return self

    def _read(self):
        for raw in self.process.stderr:
            with self._news:
                self.lines.append(raw.decode("utf-8", "replace").rstrip("\n"))
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    def log(self, event=None, **fields):
        """The JSON lines so far of that event whose fields have these values, as dicts."""
        found = []
        for line in list(self.lines):
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if not isinstance(entry, dict) or (event is not None and entry.get("event") != event):
                continue
            if all(entry.get(name) == value for name, value in fields.items()):
                found.append(entry)
        return found

    def wait_log(self, event, **fields):
        """The first such line; waits for it."""
        deadline = time.monotonic() + DEADLINE_S
        with self._news:
            while True:
                found = self.log(event, **fields)
                if found:
                    return found[0]
                if self._ended:
                    raise AssertionError(f"postern ended without the line {event!r} {fields}\n{self.output()}")
                if not self._news.wait(deadline - time.monotonic()):
                    raise AssertionError(f"no line {event!r} {fields} within {DEADLINE_S} s\n{self.output()}")

    def reload(self, config=None, files=None, text=None):
        """Writes a new configuration (a dict, completed as for a start, or a text) or files beside it, asks for a reload, and
        gives the line of the attempt."""
        for name, content in (files or {}).items():
            self.write(name, content)
        if config is not None:
            text = self._config_text(config)
        if text is not None:
            self.config_path.write_text(text)
        told = len(self.attempts())
        self.signal(signal.SIGHUP)
        return self.wait_attempt(told)

    def attempts(self):
        return [entry for entry in self.log() if str(entry.get("event")).startswith("reload")]

    def wait_attempt(self, told):
        """The line of the next attempt to reload, where there were so many."""
        deadline = time.monotonic() + DEADLINE_S
        with self._news:
            while len(self.attempts()) <= told:
                if self._ended or not self._news.wait(deadline - time.monotonic()):
                    raise AssertionError(f"no reload within {DEADLINE_S} s\n{self.output()}")
        return self.attempts()[told]

    def output(self):
        return "stderr of " + " ".join(self.args) + ":\n" + "\n".join(self.lines)

    def connect(self, source=None, listener="http"):
        """A keep-alive connection with ask(); the caller closes it."""
        return Connection(getattr(self, listener), source)

    def ask(self, method, path, body=None, headers=(), source=None, listener="http"):
        """One request on a connection of its own: (status, headers, body bytes)."""
        connection = self.connect(source, listener)
        try:
            return connection.ask(method, path, body, headers)
        finally:
            connection.close()

    def check(self, question, headers=(), source=None):
        """POST /check with a dict, or with bytes as they stand: (status, headers, parsed body)."""
        body = question if isinstance(question, bytes) else json.dumps(question).encode()
        lines = list(headers.items() if isinstance(headers, dict) else headers)
        if "content-type" not in {name.lower() for name, _ in lines}:
            lines.append(("Content-Type", "application/json"))
        status, answer_headers, answer = self.ask("POST", "/check", body, lines, source)
        return status, answer_headers, json.loads(answer)

    def raw(self, data, source=None, listener="http"):
        """Sends exactly these bytes; gives the bytes of the answer, b"" if the connection just closes."""
        with connect(getattr(self, listener), source) as sock:
            try:
                sock.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                pass  # refused before the end: what was answered can still be read
            return read_answer(sock, to_head=data.startswith(b"HEAD "))

    def get_ops(self, path):
        """GET on the ops listener: (status, text)."""
        status, _, body = self.ask("GET", path, listener="ops")
        return status, body.decode()

    def metrics(self):
        """/metrics as {"name{label=\\"x\\"}": value}."""
        status, text = self.get_ops("/metrics")
        assert status == 200, text
        samples = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
        return {name: float(value) for name, _, value in samples}

    def signal(self, number):
        os.kill(self.process.pid, number)

    def wait(self):
        """Waits for the end; gives the exit code (negative: the signal)."""
        try:
            code = self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"postern did not end within {DEADLINE_S} s\n{self.output()}") from None
        self._reader.join(DEADLINE_S)
        return code

    def stop(self):
        """SIGTERM; the program must leave with 0. Sanitizer reports make it something else."""
        self.signal(signal.SIGTERM)
        code = self.wait()
        assert code == 0, f"exit code {code} after SIGTERM\n{self.output()}"

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def cleanup(self):
        """What a fixture calls: stops a program that still runs, and fails if one fell over by itself."""
        try:
            if self.process is None:
                return
            code = self.process.poll()
            if code is None:
                self.stop()
            elif code not in self.may_end_with:
                self._reader.join(DEADLINE_S)
                raise AssertionError(f"postern ended by itself with {code}\n{self.output()}")
        finally:
            self.kill()
            self._clean_files()

    def _clean_files(self):
        if self.process is not None:
            self._reader.join(DEADLINE_S)
            self.process.stderr.close()
        shutil.rmtree(self.folder, ignore_errors=True)

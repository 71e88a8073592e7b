# SPDX-License-Identifier: MIT
"""Speed against yardsticks, all in one run on one machine. make bench

The figures are ratios: absolute numbers move by a factor of two with what else the machine does. A server is pinned to
one core and the load to another; what a request costs is the CPU time that the server spent (schedstat of its threads)
divided by the requests answered. Every server is loaded for a second in each round, in an order that turns round from
round to round; a ratio is taken inside a round, and the median of the rounds counts. One yardstick runs twice: how far its
two medians are apart is how far any figure can be trusted.

    bench.py BUILD [--rounds N] [--seconds S]

Exit code 1: a row missed what it must reach. A row whose yardstick or tool is not present is said, and is no failure.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests" / "support"))
import grpc_door
import h2
from postern import PROGRAM, Postern

SERVER_CPU, LOAD_CPU = 0, 1
CONNECTIONS = 48
GRPC_CONNECTIONS, GRPC_STREAMS = 8, 10
MIB = 1024 * 1024

HEADERS = {
    "Host": "shop.example.com",
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Encoding": "gzip, deflate, br",
    "X-Forwarded-For": "203.0.113.9",
}

# What an application behind one proxy of its own asks.
QUESTION = {
    "remote_addr": "172.18.0.5:53122",
    "headers": {**HEADERS, "Cookie": "session=4f9d8c27a1b3"},
    "method": "POST",
    "host": "shop.example.com",
    "path": "/api/v1/orders/4711?page=2",
}

# What Caddy's forward_auth sends for a browser's request.
FORWARDED = {
    **HEADERS,
    "Accept-Language": "en-US,en;q=0.5",
    "Cookie": "session=4f9d8c27a1b3",
    "X-Forwarded-Host": "shop.example.com",
    "X-Forwarded-Method": "GET",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Uri": "/api/v1/orders/4711?page=2",
}


def limits(rate, **more):
    rules = [{"name": "default", "limits": ["per-client"]}]
    return {"limits": {"per-client": {"rate": rate}}, "rules": rules, **more}


def http_request(method, path, headers, body=""):
    head = {**headers, "Content-Type": "application/json", "Content-Length": len(body)} if body else headers
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items())]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


def grpc_request():
    """What Envoy sends for a browser's request: about 900 bytes, a part of which postern does not read."""
    lines = [*FORWARDED.items(), ("X-Request-Id", "9d9c2b6e-4a0c-4f4f-8f62-3d1f2a7c5b11")]
    lines += [("X-Envoy-Expected-Rq-Timeout-Ms", "15000"), (":scheme", "https"), ("Sec-Fetch-Site", "same-origin")]
    lines += [("Sec-Fetch-Mode", "cors"), ("Referer", "https://shop.example.com/api/v1/orders?page=1")]
    request = grpc_door.check_request("203.0.113.9", "/api/v1/orders/4711?page=2", "GET", HEADERS["Host"], lines)
    request.attributes.request.http.id = "1234567890123456789"
    # Envoy's own end and empty metadata: fields 2, 11 and 13.
    rest = bytes.fromhex("12120a100a0e1209") + b"127.0.0.1" + bytes.fromhex("18904e") + bytes.fromhex("5a006a00")
    attributes = request.attributes.SerializeToString() + rest
    return h2.message(b"\x0a" + bytes([len(attributes) & 127 | 128, len(attributes) >> 7]) + attributes)


def check_request():
    return http_request("POST", "/check", {"Host": "127.0.0.1:9180"}, json.dumps(QUESTION))


@contextlib.contextmanager
def pinned(cpu):
    """What is started inside runs on this core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def cpu_ns(pids):
    """CPU time of all threads of these processes, the kernel's share included."""
    total = 0
    for pid in pids:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
    return total


def family(pid):
    """A process and its children."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


def values(text):
    """"name value" lines as a dict."""
    return {name: value for name, _, value in (line.partition(" ") for line in text.splitlines())}


def output_of(*args):
    return subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True).stdout


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def wait_until_listening(port):
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise


class Server:
    """Something that answers: where, which processes it is, the one request it gets and the status it answers with."""

    def __init__(self, endpoint, pid, request, status=200):
        self.endpoint, self.pids, self.request, self.status = endpoint, family(pid), request, status
        self.costs_us, self.rates, self.p50_us, self.p99_us = [], [], [], []

    def load(self, bench, seconds):
        """Loads it for so long; gives what bench_load says and the CPU time it cost."""
        path = bench.folder / "request"
        path.write_bytes(self.request)
        before = cpu_ns(self.pids)
        with pinned(LOAD_CPU):
            load = [bench.program("bench_load"), self.endpoint, path, self.status, CONNECTIONS, seconds]
            said = values(output_of(*map(str, load)))
        return {name: float(value) for name, value in said.items()}, cpu_ns(self.pids) - before

    def round(self, bench):
        said, spent_ns = self.load(bench, bench.seconds)
        self.costs_us.append(spent_ns / said["requests"] / 1000)
        self.rates.append(said["requests"] / said["seconds"])
        self.p50_us.append(said["p50_us"])
        self.p99_us.append(said["p99_us"])


class GrpcServer(Server):
    """The same for one that speaks gRPC; h2load is the load."""

    def load(self, bench, seconds):
        path = bench.folder / "message"
        path.write_bytes(self.request)
        url = f"http://{self.endpoint}{grpc_door.CHECK}"
        headers = [word for line in ("content-type: application/grpc", "te: trailers") for word in ("-H", line)]
        shape = ["-t1", f"-c{GRPC_CONNECTIONS}", f"-m{GRPC_STREAMS}", f"-D{seconds:g}"]
        log = bench.folder / "latencies"
        log.unlink(missing_ok=True)
        before = cpu_ns(self.pids)
        with pinned(LOAD_CPU):
            said = output_of("h2load", *shape, "-d", str(path), *headers, f"--log-file={log}", url)
        spent_ns = cpu_ns(self.pids) - before
        done = int(re.search(r"(\d+) succeeded", said).group(1))
        ok = int(re.search(r"status codes: (\d+) 2xx", said).group(1))
        if done == 0 or ok < done:
            sys.exit(f"bench.py: calls of {self.endpoint} failed:\n{said}")
        took = sorted(int(line.split()[2]) for line in log.read_text().splitlines())
        found = {"requests": done, "seconds": seconds, "p50_us": took[len(took) // 2], "p99_us": took[len(took) * 99 // 100]}
        return found, spent_ns


class Bench:
    def __init__(self, build, rounds, seconds):
        self.build, self.rounds, self.seconds = build, rounds, seconds
        self.stack = contextlib.ExitStack()
        self.folder = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        self.servers, self.versions, self.rows, self.notes = {}, {}, [], []

    def program(self, name):
        return str(self.build / "bench" / name)

    # ---------------------------------------------------------------------------------------- servers

    def spawn(self, *args, **kwargs):
        with pinned(SERVER_CPU):
            process = self.stack.enter_context(subprocess.Popen(args, stdin=subprocess.DEVNULL, **kwargs))
        self.stack.callback(process.terminate)
        return process

    def start_bare(self):
        process = self.spawn(self.program("bench_bare_http"), stdout=subprocess.PIPE, text=True)
        port = values(process.stdout.readline())["port"]
        self.versions["libmicrohttpd"] = values(process.stdout.readline())["library"].strip()
        return Server(f"127.0.0.1:{port}", process.pid, check_request())

    def start_postern(self, config, request, status=200):
        program = Postern(config)
        self.stack.callback(program.cleanup)
        with pinned(SERVER_CPU):
            program.start()
        return Server(program.http, program.process.pid, request, status)

    def start_bare_grpc(self, name):
        process = self.spawn(self.program(name), stdout=subprocess.PIPE, text=True)
        port = values(process.stdout.readline())["port"]
        self.versions[{"grpcpp": "grpc++"}.get(name, "nghttp2")] = values(process.stdout.readline())["library"].strip()
        return GrpcServer(f"127.0.0.1:{port}", process.pid, grpc_request())

    def start_grpc(self, config):
        if shutil.which("h2load") is None:
            self.notes.append("h2load is not present: the rows of gRPC are left out")
            return
        program = Postern(config)
        self.stack.callback(program.cleanup)
        with pinned(SERVER_CPU):
            program.start()
        self.servers["bare grpc"] = self.start_bare_grpc("bench_bare_grpc")
        self.servers["grpc"] = GrpcServer(program.grpc, program.process.pid, grpc_request())
        if pathlib.Path(self.program("grpcpp")).exists():
            self.servers["grpc++"] = self.start_bare_grpc("grpcpp")
        else:
            self.notes.append("libgrpc++-dev, libprotobuf-dev and protobuf-compiler-grpc are not installed: grpc++ is left out")

    def start_nginx(self, path):
        port = free_port()
        temporary = "".join(
            f"{kind}_temp_path {self.folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        config = self.folder / "nginx.conf"
        config.write_text(
            f"daemon off; worker_processes 1; pid {self.folder}/nginx.pid; error_log stderr crit;\n"
            "events { worker_connections 1024; }\n"
            f"http {{ access_log off; keepalive_requests 1000000000;\n{temporary}"
            f"server {{ listen 127.0.0.1:{port}; location / {{ return 204; }} }} }}\n"
        )
        process = self.spawn(path, "-p", str(self.folder), "-c", str(config))
        wait_until_listening(port)
        self.versions["nginx"] = output_of(path, "-v").strip().rpartition("/")[2]
        return Server(f"127.0.0.1:{port}", process.pid, http_request("GET", "/forward-auth", FORWARDED), 204)

    def start_all(self):
        nginx = subprocess.run([TOP / "tests/tools.sh", "path", "nginx"], stdout=subprocess.PIPE, text=True, check=False)
        client = {"strategy": "trusted_ranges", "trusted_proxies": ["172.18.0.0/16"]}
        fast, empty = limits("1000000/second", client=client), limits("1/hour", client=client)
        unix = {**fast, "listen": {"http": f"unix:{self.folder}/http.sock"}}
        direct = limits("1000000/second")
        bare = self.start_bare()
        again = Server(bare.endpoint, bare.pids[0], bare.request)
        self.servers = {
            "bare": bare,
            "check": self.start_postern(fast, check_request()),
            "check denied": self.start_postern(empty, check_request()),
            "check unix": self.start_postern(unix, check_request()),
            "forward-auth": self.start_postern(direct, http_request("GET", "/forward-auth", FORWARDED)),
            "bare again": again,
        }
        if nginx.returncode == 0:
            self.servers["nginx"] = self.start_nginx(nginx.stdout.strip())
        else:
            self.notes.append("nginx is not present: its row is left out")
        self.start_grpc(direct)

    # ---------------------------------------------------------------------------------------- rows

    def add(self, name, yardstick, value, form, must, aim=None, at_most=False):
        fits = value <= must if at_most else value >= must
        self.rows.append((name, yardstick, form(value), form(must), form(aim) if aim is not None else "", fits))

    def ratio(self, yardstick, server):
        """How many requests a CPU second of the server is worth, yardstick = 1."""
        pairs = zip(self.costs_us(yardstick), self.costs_us(server))
        return statistics.median(a / b for a, b in pairs)

    def costs_us(self, name):
        if name != "both bare":
            return self.servers[name].costs_us
        return [(a + b) / 2 for a, b in zip(self.costs_us("bare"), self.costs_us("bare again"))]

    def run_rounds(self):
        servers = list(self.servers.values())
        for i in range(self.rounds):
            for server in servers if i % 2 == 0 else reversed(servers):
                server.round(self)
            if sys.stderr.isatty():
                print(f"\rround {i + 1} of {self.rounds} ", end="", file=sys.stderr, flush=True)
        two = "{:.2f}".format
        self.add("POST /check, allowed", "bare libmicrohttpd", self.ratio("both bare", "check"), two, 0.60, 0.90)
        self.add("POST /check, denied", "bare libmicrohttpd", self.ratio("both bare", "check denied"), two, 0.60, 0.90)
        self.add("POST /check, Unix socket", "the same over TCP", self.ratio("check", "check unix"), two, 1.4, 1.7)
        if "nginx" in self.servers:
            self.add("GET /forward-auth", "nginx return 204", self.ratio("nginx", "forward-auth"), two, 0.80, 1.00)
        if "grpc" in self.servers:
            self.add("gRPC Check", "bare nghttp2", self.ratio("bare grpc", "grpc"), two, 0.80, 1.00)
        if "grpc++" in self.servers:
            self.add("gRPC Check", "grpc++, constant answer", self.ratio("grpc++", "grpc"), two, 1, 4)
        control = self.ratio("bare", "bare again")
        self.notes.append(f"the same server entered twice: {control:.3f} (1 would be perfect)")

    def count_syscalls(self):
        strace = shutil.which("strace")
        if strace is None:
            self.notes.append("strace is not present: system calls are not counted")
            return
        for name in ("check", "forward-auth", "grpc"):
            if name not in self.servers:
                continue
            server = self.servers[name]
            path = self.folder / "strace"
            tracer = subprocess.Popen(
                [strace, "-f", "-c", "-o", path, "-p", str(server.pids[0])], stderr=subprocess.PIPE, text=True
            )
            with tracer:
                attached = tracer.stderr.readline()
                if "attached" not in attached:
                    self.notes.append(f"system calls are not counted: {attached.strip()}")
                    tracer.kill()
                    return
                said, _ = server.load(self, 2 * self.seconds)
                tracer.send_signal(signal.SIGINT)
                tracer.stderr.read()
            total = [line.split() for line in path.read_text().splitlines() if line.endswith(" total")]
            calls = int(total[0][3]) / said["requests"]
            two = "{:.2f}".format
            if name == "grpc":
                load = f"{GRPC_CONNECTIONS} x {GRPC_STREAMS} streams"
                self.add(f"system calls, {name}", load, calls, two, 0.4, 0.25, at_most=True)
            else:
                self.add(f"system calls, {name}", f"{CONNECTIONS} connections", calls, two, 2.2, 2.1, at_most=True)

    def measure_inside(self):
        """Nanoseconds have no yardstick beside them, so the best of three runs counts: other load only ever adds."""
        said = {}
        for name in ("bench_decide", "bench_decide", "bench_decide", "bench_memory"):
            with pinned(LOAD_CPU):
                for row, value in values(output_of(self.program(name))).items():
                    said[row] = min(float(value), said.get(row, float(value)))
        count, two = "{:.0f} ns".format, "{:.2f}".format
        self.add("decision, 1 k keys", "one thread", said["decide_1k_ns"], count, 150, 80, at_most=True)
        self.add("decision, 1 M keys", "one thread", said["decide_1m_ns"], count, 350, 250, at_most=True)
        percent = "{:.1f} %".format
        self.add("watching, 1 k keys", "the same unwatched", said["watched_1k_percent"], percent, 5, 2, at_most=True)
        self.add("watching, 1 M keys", "the same unwatched", said["watched_1m_percent"], percent, 5, 2, at_most=True)
        self.add("bytes a key", "600 k live, 16 MiB", said["memory_bytes_per_key"], two, 28, at_most=True)
        shared = said["memory_overflow_percent"]
        self.add("keys sharing overflow", "600 k live, 16 MiB", shared, "{:.3f} %".format, 0.1, at_most=True)
        grown = (said["memory_rss_20m_bytes"] - said["memory_rss_1m_bytes"]) / MIB
        self.add("growth, 1 M to 20 M keys", "random keys", grown, "{:.2f} MiB".format, 0.1, at_most=True)

    def measure_start(self):
        program = Postern()
        self.stack.callback(program.cleanup)
        program.start()
        status = pathlib.Path(f"/proc/{program.process.pid}/status").read_text()
        rss_kib = int(re.search(r"^VmRSS:\s*(\d+)", status, re.M).group(1))
        self.add("resident at start", "no configuration", rss_kib / 1024, "{:.1f} MiB".format, 24, at_most=True)

    # ---------------------------------------------------------------------------------------- report

    def print_servers(self):
        print(f"\n{'server':<16}{'CPU us/request':>16}{'requests/CPU s':>16}{'seen/s':>10}{'p50 us':>9}{'p99 us':>9}")
        for name, server in self.servers.items():
            cost, rate, p50, p99 = map(statistics.median, (server.costs_us, server.rates, server.p50_us, server.p99_us))
            print(f"{name:<16}{cost:>16.2f}{1e6 / cost:>16,.0f}{rate:>10,.0f}{p50:>9.0f}{p99:>9.0f}")

    def print_rows(self):
        print(f"\n{'row':<28}{'yardstick':<22}{'measured':>10}{'must':>10}{'aim':>8}")
        for name, yardstick, value, must, aim, fits in self.rows:
            print(f"{name:<28}{yardstick:<22}{value:>10}{must:>10}{aim:>8}  {'pass' if fits else 'FAIL'}")

    def run(self):
        with self.stack:
            first = output_of(PROGRAM, "version").splitlines()[0].split()
            self.versions["postern"] = " ".join(first[1:])
            self.measure_start()
            self.start_all()
            self.run_rounds()
            self.count_syscalls()
            self.measure_inside()
        self.versions["Linux"] = os.uname().release
        print("\n" + ", ".join(f"{name} {version}" for name, version in self.versions.items()))
        print(f"{self.rounds} rounds of {self.seconds:g} s, {CONNECTIONS} connections, medians of ratios within a round")
        self.print_servers()
        self.print_rows()
        for note in self.notes:
            print(note)
        return 0 if all(row[-1] for row in self.rows) else 1


def main():
    parser = argparse.ArgumentParser(description="Speed against yardsticks.")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--seconds", type=float, default=1)
    options = parser.parse_args()
    if len(os.sched_getaffinity(0)) < 2:
        sys.exit("bench.py: two cores are needed, one for the servers and one for the load")
    sys.exit(Bench(options.build.resolve(), options.rounds, options.seconds).run())


if __name__ == "__main__":
    main()

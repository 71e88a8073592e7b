#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The programs around postern in the two examples, as small as they can be. Python's own library, nothing else.

  app.py front --listen ADDR /blog=ADDR /auth=ADDR      a front end: hands on, with X-Forwarded-For cut to its one believed value
  app.py app   --listen ADDR --name auth --postern ADDR an application that asks postern itself, POST /check
  app.py app   --listen ADDR --name api                 an application behind a gateway that has asked already
  app.py visit --to ADDR [--from 127.0.0.11] ...        visitors: each its own cookie, some requests; prints the statuses
  app.py service --to ADDR --name agent --token-file FILE --seconds 1   a service of ours that calls the API for ever
"""
import argparse
import collections
import http.client
import http.server
import ipaddress
import json
import sys
import time

TIMEOUT_S = 10


def split(address):
    host, _, port = address.rpartition(":")
    return host, int(port)


def call(address, method, path, headers, body=b"", source=None):
    """One request on a connection of its own: (status, header pairs, body)."""
    connection = http.client.HTTPConnection(*split(address), timeout=TIMEOUT_S, source_address=(source, 0) if source else None)
    try:
        connection.putrequest(method, path, skip_host=any(name.lower() == "host" for name, _ in headers), skip_accept_encoding=True)
        for name, value in headers:
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, answer.getheaders(), answer.read()
    finally:
        connection.close()


def serve(listen, answer):
    """answer: a function from (handler, body) to (status, header pairs, body)."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def handle_any(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                status, headers, content = answer(self, body)
            except OSError as e:
                status, headers, content = 502, [], f"{e}\n".encode()
            self.send_response(status)
            for name, value in headers:
                if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = handle_any

        def log_message(self, *_):
            pass

    class Server(http.server.ThreadingHTTPServer):
        request_queue_size = 128

    server = Server(split(listen), Handler)
    print("listening on %s:%d" % server.server_address[:2], flush=True)
    server.serve_forever()


def front(args):
    routes = [route.partition("=")[::2] for route in args.routes]

    def answer(handler, body):
        to = next(to for prefix, to in routes if handler.path.startswith(prefix))
        # The last entry is what the hop in front of us has written; what stands left of it, anybody can write.
        believed = ",".join(handler.headers.get_all("X-Forwarded-For", [])).rpartition(",")[2].strip()
        lines = [line for line in handler.headers.items() if line[0].lower() not in ("x-forwarded-for", "connection")]
        return call(to, handler.command, handler.path, [*lines, ("X-Forwarded-For", believed)], body)

    serve(args.listen, answer)


def app(args):
    def answer(handler, _):
        if args.postern is None:
            who = handler.headers.get("X-Postern-Identity") or handler.headers.get("X-Postern-Client")
            return 200, [], f"{args.name}: hello {who}\n".encode()
        question = {"remote_addr": "%s:%d" % handler.client_address[:2], "headers": handler.headers.items(), "method": handler.command,
            "host": handler.headers.get("Host", ""), "path": handler.path}  # fmt: skip
        json_type = [("Content-Type", "application/json")]
        body = json.dumps({**question, "headers": list(map(list, question["headers"]))}).encode()
        status, _, said = call(args.postern, "POST", "/check", [*json_type, ("Content-Length", str(len(body)))], body)
        if status != 200:  # no decision: this application fails closed
            return 503, [], b"cannot decide\n"
        verdict = json.loads(said)
        headers = list(verdict["response_headers"].items())
        if verdict["decision"] != "allow":
            return verdict["status"], headers, f"{verdict['reason']}\n".encode()
        return 200, headers, f"{args.name}: hello {verdict['client']['address']}\n".encode()

    serve(args.listen, answer)


def visit(args):
    statuses = collections.Counter()
    for i in range(args.visitors):
        source = str(ipaddress.ip_address(args.source) + i) if args.source else None
        for _ in range(args.requests):
            headers = [("Cookie", f"session={source or args.name}-{i}"), ("User-Agent", "Mozilla/5.0 (a visitor)")]
            statuses[call(args.to, "POST", args.path, [*headers, ("Content-Length", "0")], source=source)[0]] += 1
    print(json.dumps({str(status): n for status, n in sorted(statuses.items())}), flush=True)


def service(args):
    while True:
        headers = [("User-Agent", f"{args.name}/1.0")]
        if args.token_file:
            with open(args.token_file, encoding="ascii") as file:
                headers.append(("X-Internal-Token", file.read().strip()))
        statuses = collections.Counter(call(args.to, "GET", path, headers, source=args.source)[0] for path in args.paths * args.calls)
        print(json.dumps({str(status): n for status, n in sorted(statuses.items())}), flush=True)
        if args.seconds <= 0:
            return
        time.sleep(args.seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    verb = verbs.add_parser("front")
    verb.set_defaults(run=front)
    verb.add_argument("--listen", required=True)
    verb.add_argument("routes", nargs="+")
    verb = verbs.add_parser("app")
    verb.set_defaults(run=app)
    verb.add_argument("--listen", required=True)
    verb.add_argument("--name", required=True)
    verb.add_argument("--postern")
    verb = verbs.add_parser("visit")
    verb.set_defaults(run=visit)
    verb.add_argument("--to", required=True)
    verb.add_argument("--name", default="visitor")
    verb.add_argument("--path", default="/auth/login")
    verb.add_argument("--from", dest="source")
    verb.add_argument("--visitors", type=int, default=1)
    verb.add_argument("--requests", type=int, default=8)
    verb = verbs.add_parser("service")
    verb.set_defaults(run=service)
    verb.add_argument("--to", required=True)
    verb.add_argument("--name", required=True)
    verb.add_argument("--token-file")
    verb.add_argument("--from", dest="source")
    verb.add_argument("--calls", type=int, default=10)
    verb.add_argument("--seconds", type=float, default=1)
    verb.add_argument("paths", nargs="*", default=["/api/jobs"])
    args = parser.parse_args()
    try:
        args.run(args)
    except KeyboardInterrupt:
        sys.exit(130)


main()

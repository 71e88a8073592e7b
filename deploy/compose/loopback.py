#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The same two examples without containers: every program on loopback, with a real Caddy in front.

  deploy/compose/loopback.py login        or: household

Then type (or pipe in) commands: break, cure, visit, calls, status, probe, quit. Each answers with lines and ends with "ok".
Programs: POSTERN (default build/postern), CADDY (default caddy). On loopback every hop comes from 127.0.0.1; visitors come from
127.0.0.31 and so on, our services from 127.0.0.21 (edge) and 127.0.0.22 (agent).
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
POSTERN = os.environ.get("POSTERN") or str(HERE.parents[1] / "build" / "postern")
CADDY = os.environ.get("CADDY") or "caddy"
APP = [sys.executable, "-u", str(HERE / "app.py")]
DEADLINE_S = 30
SERVICES = {"edge": ("127.0.0.21", "edge.current"), "agent": ("127.0.0.22", "agent.previous")}


class Site:
    def __init__(self, story, port, admin):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="postern-compose-"))
        self.story, self.processes = story, []
        self.admin_wanted = admin
        # A port that is bound and does not listen stays free for Caddy, and for nobody else.
        self.reserved = socket.socket()
        self.reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.reserved.bind(("127.0.0.1", port))
        self.gateway = "127.0.0.1:%d" % self.reserved.getsockname()[1]

    # ------------------------------------------------------------------------------------------ programs

    def launch(self, command, log, env=None):
        with open(self.folder / log, "wb") as out:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env={**os.environ, **(env or {})}, cwd=self.folder)
        self.processes.append(process)
        return process

    def wait_for(self, process, log, pattern):
        """What the pattern finds in the log of a program that starts; waits for it."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            text = (self.folder / log).read_text(errors="replace")
            found = re.search(pattern, text)
            if found:
                return found
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"this did not start: {' '.join(map(str, process.args))}\n{text}")
            time.sleep(0.02)

    def app(self, name, *args):
        process = self.launch([*APP, *args], f"{name}.log")
        return self.wait_for(process, f"{name}.log", r"listening on (\S+)").group(1)

    def caddy(self, **values):
        text = (HERE / self.story / "Caddyfile").read_text()
        options = f"{{\n\tadmin off\n\tauto_https off\n\tdefault_bind 127.0.0.1\n\tstorage file_system {self.folder}/caddy\n}}\n"
        (self.folder / "Caddyfile").write_text(options + text)
        env = {"HOME": str(self.folder), "PORT": self.gateway.rpartition(":")[2], **values}
        process = self.launch([CADDY, "run", "--config", "Caddyfile", "--adapter", "caddyfile"], "caddy.log", env)
        deadline = time.monotonic() + DEADLINE_S
        host, _, port = self.gateway.rpartition(":")
        while True:
            try:
                socket.create_connection((host, int(port))).close()
                return
            except ConnectionRefusedError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"Caddy does not serve:\n{(self.folder / 'caddy.log').read_text()}") from None
                time.sleep(0.02)

    # ------------------------------------------------------------------------------------------ postern

    def write_config(self, name):
        """The example's own file, with the addresses of this machine in the place of the containers'."""
        config = json.loads((HERE / self.story / name).read_text())
        config["listen"] = {"http": "127.0.0.1:0", "ops": "127.0.0.1:0", "admin": self.admin_wanted}
        del config["callers"]
        if "client" in config:
            config["client"]["trusted_proxies"] = ["127.0.0.1"]
        text = json.dumps(config, indent=1)
        (self.folder / "postern.json.new").write_text(text)
        (self.folder / "postern.json.new").rename(self.folder / "postern.json")

    def start(self):
        if self.story == "household":
            (self.folder / "tokens").mkdir()
            for name in ("edge.current", "agent.current", "agent.previous"):
                token = subprocess.run([POSTERN, "token", "new"], stdout=subprocess.PIPE, check=True).stdout
                (self.folder / "tokens" / name).write_bytes(token)
                (self.folder / "tokens" / name).chmod(0o600)
        self.write_config("postern.json")
        self.postern = self.launch([POSTERN, "serve", "--config", str(self.folder / "postern.json")], "postern.log")
        banner = json.loads(self.wait_for(self.postern, "postern.log", r'.*"event":"start".*').group())
        self.admin = banner["admin"]
        if self.story == "login":
            asking = ["app", "--listen", "127.0.0.1:0", "--postern", banner["http"]]
            blog, auth = (self.app(name, *asking, "--name", name) for name in ("blog", "auth"))
            self.caddy(FRONT=self.app("front", "front", "--listen", "127.0.0.1:0", f"/blog={blog}", f"/auth={auth}"))
        else:
            self.caddy(POSTERN=banner["http"], API=self.app("api", "app", "--listen", "127.0.0.1:0", "--name", "api"))
        print(json.dumps({"gateway": f"http://{self.gateway}/", "page": f"http://{self.admin}/", "postern": self.postern.pid,
            "config": str(self.folder / "postern.json"), "log": str(self.folder / "postern.log")}), flush=True)  # fmt: skip

    def reload(self, name):
        before = self.status()["config"]["hash"]
        self.write_config(name)
        self.postern.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + DEADLINE_S
        while self.status()["config"]["hash"] == before and time.monotonic() < deadline:
            time.sleep(0.02)

    def status(self):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://{self.admin}/status", timeout=DEADLINE_S) as answer:
            return json.load(answer)

    # ------------------------------------------------------------------------------------------ commands

    def do_break(self):
        self.reload("postern.broken.json")

    def do_cure(self):
        self.reload("postern.json")

    def do_visit(self):
        """Forty visitors, eight logins each (household: reads)."""
        path = "/auth/login" if self.story == "login" else "/api/read"
        self.run_app("visit", "--to", self.gateway, "--from", "127.0.0.31", "--visitors", "40", "--path", path)

    def do_calls(self):
        """Our two services: 160 calls each of two paths, one of which is for services only."""
        if self.story != "household":
            return print("only in household")
        for name, (source, token) in SERVICES.items():
            print(name, end=": ", flush=True)
            self.run_app("service", "--name", name, "--to", self.gateway, "--from", source, "--calls", "160", "--seconds", "0",
                "--token-file", str(self.folder / "tokens" / token), "/api/jobs", "/internal/jobs")  # fmt: skip

    def do_status(self):
        status = self.status()
        for warning in status["warnings"]:
            print(f"warning {warning['code']}: {warning['text']}\n  cure: {warning['cure']}")
        for row in status["own_service_refused"]:
            print(f"own service refused: {row['remote_addr']}, {row['count']} times, token {row['token']}: {row['text']}")
        for row in status["identities"]:
            print(f"identity {row['name']} ({row['slot']}): {row['requests']} requests from {', '.join(row['addresses']) or 'nowhere'}")
        if not status["warnings"]:
            print("no warning")

    def do_probe(self):
        path = "/auth/login" if self.story == "login" else "/api/read"
        done = subprocess.run([POSTERN, "probe", f"http://{self.gateway}{path}", "--admin", self.admin], check=False)
        print(f"exit code {done.returncode}")

    def run_app(self, *args):
        subprocess.run([*APP, *args], check=True)

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            process.wait()
        self.reserved.close()
        shutil.rmtree(self.folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("story", choices=("login", "household"))
    parser.add_argument("--port", type=int, default=8080, help="of Caddy; 0: any free one")
    parser.add_argument("--admin", default="127.0.0.1:9183", help="of postern's admin listener")
    args = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    site = Site(args.story, args.port, args.admin)
    commands = {name[3:]: getattr(site, name) for name in dir(site) if name.startswith("do_")}
    try:
        site.start()
        for line in sys.stdin:
            word = line.strip()
            if word == "quit":
                break
            if word in commands:
                commands[word]()
                print("ok", flush=True)
            elif word:
                print(f"there is: {', '.join(commands)}, quit", flush=True)
    except KeyboardInterrupt:
        pass
    finally:
        site.stop()


main()

# SPDX-License-Identifier: MIT
"""The two examples of deploy/compose in their loopback form: broken, told, cured by a reload; and that the compose files mean the same."""
import json
import re
import select
import subprocess
import sys
import time
import urllib.request

import pytest

from gateway import require
from postern import DEADLINE_S, PROGRAM, TOP, clean_env

FOLDER = TOP / "deploy" / "compose"


class Example:
    def __init__(self, story):
        self.process = subprocess.Popen(
            [sys.executable, FOLDER / "loopback.py", story, "--port", "0", "--admin", "127.0.0.1:0"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, env={**clean_env(), "CADDY": require("caddy"), "POSTERN": PROGRAM}, bufsize=0,
        )  # fmt: skip
        self.data = b""
        self.told = json.loads(self.line())

    def line(self):
        deadline = time.monotonic() + 6 * DEADLINE_S
        while b"\n" not in self.data:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            more = self.process.stdout.read(65536) if ready else b""
            assert more, f"the example fell silent: {self.data!r}"
            self.data += more
        line, _, self.data = self.data.partition(b"\n")
        return line.decode()

    def do(self, command):
        """The lines that it answers."""
        self.process.stdin.write(command.encode() + b"\n")
        said = []
        while not said or said[-1] != "ok":
            said.append(self.line())
        return said[:-1]

    def get(self, path):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.told["page"].rstrip("/") + path, timeout=DEADLINE_S) as answer:
            return answer.read().decode()

    def status(self):
        return json.loads(self.get("/status"))

    def log(self):
        with open(self.told["log"], encoding="ascii") as file:
            return [json.loads(line) for line in file]

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(DEADLINE_S) == 0
        self.process.stdout.close()


@pytest.fixture
def example():
    started = []

    def start(story):
        started.append(Example(story))
        return started[-1]

    yield start
    for one in started:
        one.close()


def wait_for(condition):
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline


def test_the_login_that_everybody_shared(example):
    e = example("login")
    assert e.do("visit") == ['{"200": 320}']
    assert e.do("status") == ["no warning"]
    assert e.do("probe")[-1] == "exit code 0"

    e.do("break")
    (said,) = e.do("visit")
    statuses = json.loads(said)
    assert statuses["200"] < 20 and statuses["429"] > 300  # one bucket of ten for all of them
    (warning,) = e.status()["warnings"]
    assert (warning["code"], warning["rule"], warning["key"]) == ("shared_bucket", "login", "127.0.0.1")
    assert warning["cure"].startswith('"client": {')
    page = e.get("/")
    assert page.index('class="warning"') < page.index("Most refused") and "<title>postern: 1 warning</title>" in page
    wait_for(lambda: [line for line in e.log() if line["event"] == "shared_bucket"])
    probed = e.do("probe")
    assert "all clients share the address of 127.0.0.1" in probed[0] and warning["cure"] in probed[1] and probed[-1] == "exit code 5"

    e.do("cure")  # SIGHUP: nothing is restarted
    assert e.status()["warnings"] == [] and "No warning" in e.get("/")
    (said,) = e.do("visit")
    assert json.loads(said)["200"] >= 80  # everybody has kept what is left of its own ten
    assert e.status()["warnings"] == [] and e.status()["config"]["last_reload"] == {"ok": True, "error": None}
    assert e.do("probe")[-1] == "exit code 0"
    assert len([line for line in e.log() if line["event"] == "start"]) == 1


def test_the_household_that_was_refused(example):
    e = example("household")
    assert e.do("calls") == ['edge: {"200": 320}', 'agent: {"200": 320}']  # above 300 a minute, and on internal routes
    assert e.do("visit") == ['{"200": 320}']
    assert e.status()["own_service_refused"] == []
    rows = {(row["name"], row["slot"]): row for row in e.status()["identities"]}
    assert rows["agent", "previous"]["requests"] == 320 and rows["agent", "previous"]["addresses"] == ["127.0.0.22"]
    assert rows["agent", "current"]["requests"] == 0

    e.do("break")
    edge, agent = e.do("calls")
    refused = json.loads(agent.partition(": ")[2])
    assert edge == 'edge: {"200": 320}' and refused["401"] > 100 and refused["429"] >= 1
    (row,) = e.status()["own_service_refused"]
    assert (row["remote_addr"], row["token"], row["count"]) == ("127.0.0.22", "unknown", refused["401"] + refused["429"])
    assert "previous_token_file" in row["text"]
    assert "Own services refused" in e.get("/") and "127.0.0.22" in e.get("/")

    e.do("cure")
    assert e.do("calls") == ['edge: {"200": 320}', 'agent: {"200": 320}']
    assert sum(row["count"] for row in e.status()["own_service_refused"]) == refused["401"] + refused["429"]  # none since
    assert [line["event"] for line in e.log()].count("start") == 1


@pytest.mark.parametrize("story", ["login", "household"])
def test_the_compose_file_means_the_same(story):
    text = (FOLDER / story / "compose.yaml").read_text()
    config = json.loads((FOLDER / story / "postern.json").read_text())
    broken = json.loads((FOLDER / story / "postern.broken.json").read_text())
    for volume in re.findall(r'"(\.[^":]*):', text):
        assert volume in ("./live", "./run", "./live/tokens") or (FOLDER / story / volume).exists(), volume
    (subnet,) = re.findall(r"subnet: (\S+?),", text)
    assert config["callers"] == [subnet] == broken["callers"]
    if story == "login":
        assert re.search(r"front:.*?ipv4_address: (\S+?)\}", text, re.S).group(1) in config["client"]["trusted_proxies"]
        assert {**broken, "client": config["client"]} == config
    else:
        assert broken["identities"]["agent"] == {"token_file": "tokens/agent.current"}
        assert "agent.previous" in text and "agent.previous" in config["identities"]["agent"]["previous_token_file"]
    for name in re.findall(r"\{\$(\w+):(\w+):\d+\}", (FOLDER / story / "Caddyfile").read_text()):
        assert re.search(rf"^  {name[1]}:$", text, re.M), name

# SPDX-License-Identifier: MIT
"""A headless Chromium, told what to do over its debugging pipe: JSON messages that end in a zero byte.

Not fetched by tests/tools.sh: it is large. apt-get install chromium-headless-shell (or chromium) brings it; without it the
test is skipped, and fails where CI=true.
"""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

import pytest

from postern import DEADLINE_S

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run", "--no-proxy-server",
    "--force-device-scale-factor=1", "--remote-debugging-pipe"]  # fmt: skip


class Browser:
    """with Browser(1280, 800) as browser: browser.open(url); browser.evaluate(expression)"""

    def __init__(self, width, height):
        program = next(filter(None, map(shutil.which, NAMES)), None)
        if program is None:
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("no Chromium: apt-get install chromium-headless-shell")
        self._folder = tempfile.mkdtemp(prefix="chromium-")
        self._command = [program, *FLAGS, f"--user-data-dir={self._folder}", f"--window-size={width},{height}", "about:blank"]
        self._size = width, height
        self._ids = 0
        self._data = b""
        self._events = []
        self._session = None
        self.console = []

    def __enter__(self):
        (to_read, self._to), (self._from, from_write) = os.pipe(), os.pipe()
        redirect = f'exec "$0" "$@" 3<&{to_read} 4>&{from_write}'
        self._process = subprocess.Popen(
            ["bash", "-c", redirect, *self._command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, pass_fds=(to_read, from_write), env={**os.environ, "HOME": self._folder},
        )  # fmt: skip
        os.close(to_read)
        os.close(from_write)
        target = self._tell("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._tell("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        width, height = self._size
        self._tell("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        for domain in ("Page", "Log", "Runtime"):
            self._tell(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        os.close(self._to)
        os.close(self._from)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _receive(self, deadline):
        while b"\0" not in self._data:
            ready, _, _ = select.select([self._from], [], [], max(0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            more = os.read(self._from, 1 << 16)
            assert more, f"the browser ended with {self._process.wait()}"
            self._data += more
        message, _, self._data = self._data.partition(b"\0")
        return json.loads(message)

    def _next(self, deadline):
        message = self._receive(deadline)
        if message.get("method") == "Log.entryAdded":
            self.console.append(message["params"]["entry"]["text"])
        if "method" in message:
            self._events.append(message["method"])
        return message

    def _tell(self, method, **params):
        self._ids += 1
        message = {"id": self._ids, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 3 * DEADLINE_S
        while True:
            answer = self._next(deadline)
            if answer.get("id") == self._ids:
                assert "error" not in answer, answer
                return answer["result"]

    def open(self, url):
        """Waits until the page and its style are there."""
        self._events = []
        self._tell("Page.navigate", url=url)
        deadline = time.monotonic() + 3 * DEADLINE_S
        while "Page.loadEventFired" not in self._events:
            self._next(deadline)

    def evaluate(self, expression):
        answer = self._tell("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"]["value"]

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self._tell("Page.captureScreenshot", format="png")["data"]))

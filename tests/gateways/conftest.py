# SPDX-License-Identifier: MIT
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from fixtures import clean_all, postern  # noqa: E402,F401
from gateway import App, Caddy  # noqa: E402


@pytest.fixture
def caddy():
    """caddy(caddyfile, NAME=value...) starts one and gives it; see gateway.Caddy."""
    started = []

    def start(caddyfile, options="", **values):
        instance = Caddy(caddyfile, options, **values)
        started.append(instance)
        return instance.start()

    yield start
    clean_all(started)


@pytest.fixture
def app():
    """app(answer=None) starts an application; see gateway.App."""
    started = []

    def start(answer=None):
        instance = App(answer)
        started.append(instance)
        return instance

    yield start
    clean_all(started)

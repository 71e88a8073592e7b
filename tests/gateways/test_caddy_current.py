# SPDX-License-Identifier: MIT
"""The current Caddy, built with Go by "tests/tools.sh fetch go", with the same files."""
import os
import shutil

import pytest

from gateway import CurrentCaddy
from net import IPV4
from questions import one_limit
from test_caddy import TestCaddy as OfDebian


@pytest.mark.skipif(shutil.which("go") is None and os.environ.get("CI") != "true", reason="the current Caddy is built with Go, and there is none")
class TestCurrentCaddy(OfDebian):
    PROGRAM = CurrentCaddy
    READS_REFUSED_BODIES = True

    def test_long_headers(self, site):
        """It takes 16 KiB itself, with or without postern behind it."""
        s = site(one_limit("2/hour", http={"header_bytes": "64KiB"}))
        assert s.send(IPV4.client(11), headers=["X-Long: " + "x" * 14000]).status == 200
        assert s.send(IPV4.client(11), headers=["X-Long: " + "x" * 40000]).status == 431
        assert len(s.app.requests) == 1


del OfDebian

# SPDX-License-Identifier: MIT
"""What many tests ask and configure. Rates are so slow that nothing refills while a test runs, unless one says so."""
import hashlib
import json
import pathlib
import tempfile

from postern import run_postern

# Two of our services' tokens, and one that is not.
EDGE = "postern_edge-token-of-the-tests-0123456789"
AGENT = "postern_agent-token-of-the-tests-012345678"
FORGED = "postern_edge-token-of-the-tests-0123456788"


def sha256(token):
    return hashlib.sha256(token.encode()).hexdigest()


IDENTITIES = {"edge": {"token_sha256": sha256(EDGE)}, "agent": {"token_sha256": sha256(AGENT)}}


def one_limit(rate="5/hour", **more):
    """A configuration whose every request is charged to one limit "per-client"."""
    return {"limits": {"per-client": {"rate": rate}}, "rules": [{"name": "all", "limits": ["per-client"]}], **more}


def ask(postern, remote_addr="203.0.113.7:40000", **question):
    """POST /check; the answer as a dict. The question must have been fine."""
    status, headers, answer = postern.check({"remote_addr": remote_addr, **question})
    assert status == 200, answer
    assert headers["Content-Type"] == "application/json"
    return answer


def reasons(postern, times, **question):
    return [ask(postern, **question)["reason"] for _ in range(times)]


def remaining(postern, limit="per-client", **question):
    """What is left in the bucket that this question would be charged to."""
    limits = ask(postern, peek=True, **question)["limits"]
    return {entry["name"]: entry["remaining"] for entry in limits}[limit]


def check_config(config, *args, files=None):
    """postern check-config on this configuration (a dict or a text). stdout and stderr in one: .said"""
    with tempfile.TemporaryDirectory(prefix="postern-") as folder:
        for name, text in (files or {}).items():
            pathlib.Path(folder, name).write_text(text)
            pathlib.Path(folder, name).chmod(0o600)
        path = pathlib.Path(folder, "postern.json")
        path.write_text(config if isinstance(config, str) else json.dumps({"version": 1, **config}, indent=1))
        done = run_postern("check-config", *args, path)
        done.said = (done.stdout + done.stderr).replace(folder + "/", "")
        return done

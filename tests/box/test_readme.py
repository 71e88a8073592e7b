# SPDX-License-Identifier: MIT
"""Runs the README: every console block in order, in one shell's folder, against servers on free ports.

A line that begins with "$ " is a command; what follows is what it prints, where "..." stands for anything. A "postern serve"
command starts a server of the test's own, and the default ports in later commands become the ports it got. The two set-up
commands are the only sh blocks; the continuous integration script runs them in a fresh clone.
"""
import json
import os
import pathlib
import re
import shlex
import subprocess

import pytest

from postern import DEADLINE_S, PROGRAM, TOP, Postern, clean_env, run_postern

README = (TOP / "README.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def blocks(language):
    return [text for found, text in BLOCK.findall(README) if found == language]


def steps(block):
    """(command, expected output) pairs; a here-document or a backslash carries a command over several lines."""
    found = []
    ends_with = None
    for line in block.splitlines():
        if ends_with is not None:
            found[-1][0] += "\n" + line
            if line == ends_with:
                ends_with = None
        elif line.startswith("$ "):
            found.append([line[2:], ""])
            marker = re.search(r"<<'(\w+)'", line)
            ends_with = marker.group(1) if marker else None
        else:
            found[-1][1] += line + "\n"
    return found


def matches(expected, got):
    pattern = ".*".join(re.escape(part) for part in expected.rstrip("\n").split("..."))
    return re.fullmatch(pattern, got.rstrip("\n"), re.S) is not None


def test_console_blocks(tmp_path):
    path = tmp_path / "bin"
    path.mkdir()
    (path / "postern").symlink_to(PROGRAM)
    env = {**clean_env(), "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}
    server = Postern().start()
    ran = 0
    try:
        for command, expected in (step for block in blocks("console") for step in steps(block)):
            if command.startswith("postern serve"):
                server.cleanup()
                server = Postern(args=relative_to(tmp_path, shlex.split(command)[2:])).start()
                continue
            text = command
            for written, here in (("127.0.0.1:9180", server.http), ("127.0.0.1:9182", server.ops), ("127.0.0.1:9183", server.admin)):
                text = text.replace(written, here)
            done = subprocess.run(
                ["bash", "-c", text], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=DEADLINE_S, check=False
            )
            assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
            assert matches(expected, done.stdout), f"$ {command}\nexpected:\n{expected}\ngot:\n{done.stdout}{done.stderr}"
            ran += 1
    finally:
        server.cleanup()
    assert ran >= 8


def test_a_newcomer_finds_the_program():
    """Before the first block that runs it, and told of the terminal that it keeps."""
    commands = [command for block in blocks("console") for command, _ in steps(block)]
    assert commands[0] == 'export PATH="$PWD/build:$PATH"'
    told = README[: README.index(commands[0])]
    assert all(word in told for word in ("`curl`", "root or with `sudo`", "second terminal", "`build/postern`", "make install"))
    first_serve = README.index("$ postern serve")
    assert "end it before `postern serve`" in README[:first_serve]


def relative_to(folder, args):
    """The README's serve runs in the reader's folder; the test's server runs in its own."""
    return [re.sub(r"(=)(tokens/)", rf"\1{folder}/\2", arg) for arg in args]


def test_set_up_commands_are_the_two():
    assert [text.strip() for text in blocks("sh")] == ["make deps run", "make deps-test test"]


@pytest.mark.parametrize("text", blocks("json"))
def test_json_blocks_load(text, tmp_path):
    file = tmp_path / "postern.json"
    file.write_text(text)
    json.loads(text)
    done = run_postern("check-config", file)
    assert done.returncode == 0, done.stderr


def test_caddyfile_is_the_one_that_is_shipped():
    (text,) = blocks("caddyfile")
    shipped = (TOP / "deploy/gateways/caddy/one-hop.Caddyfile").read_text()
    code = [line for line in shipped.splitlines() if not line.lstrip().startswith("#") and line.strip()]
    assert [line for line in text.splitlines() if not line.lstrip().startswith("#") and line.strip()] == code


def test_every_reason_is_told():
    rows = re.findall(r'^REASON\(\w+, "(\w+)", (\w+), (\d+)', (TOP / "api/reasons.def").read_text(), re.M)
    assert rows
    for word, decision, status in rows:
        assert re.search(rf"^\| {decision.lower()} \| `{word}` \| {status} \|", README, re.M), word


def test_links_lead_somewhere():
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert (TOP / pathlib.Path(target)).exists(), target

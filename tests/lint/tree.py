# SPDX-License-Identifier: MIT
"""What the checks share: the files of the tree, C without its comments, and the way a fault is reported."""
import pathlib
import re
import sys


class Faults:
    """Prints each fault as file:line: text, at once; the check fails if there was any."""

    def __init__(self, root):
        self.root, self.n = root, 0

    def add(self, path, line, text):
        where = path.relative_to(self.root) if isinstance(path, pathlib.Path) else path
        print(f"{where}:{line}: {text}")
        self.n += 1

    def exit(self):
        sys.exit(1 if self.n else 0)


def files(root, *patterns):
    return sorted(path for pattern in patterns for path in root.glob(pattern) if path.is_file())


def read(path):
    return path.read_text(encoding="utf-8", errors="surrogateescape")


def without_comments(text):
    """The same text with comments, strings and characters blanked, line numbers kept."""
    token = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)

    def blank(match):
        found = match.group()
        if found[0] == "/":
            return re.sub(r"[^\n]", " ", found)
        return found[0] + " " * (len(found) - 2) + found[0]

    return token.sub(blank, text)


def arguments(usage):
    """The root of the tree, and where a check needs them the objects of the build."""
    if len(sys.argv) != len(usage.split()) + 1:
        sys.exit(f"usage: {sys.argv[0]} {usage}")
    return [pathlib.Path(argument).resolve() for argument in sys.argv[1:]]

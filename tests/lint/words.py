# SPDX-License-Identifier: MIT
"""Text: calls that are never right here, notes to oneself, line ends, and the licence line of each source."""
import re

from tree import Faults, arguments, files, read, without_comments

CALLS = {
    "inet_aton": "it takes octal and short forms; base/ip reads addresses",
    "inet_addr": "it takes octal and short forms; base/ip reads addresses",
    "getaddrinfo": "it resolves names; addresses are literals here",
    "gethostbyname": "it resolves names; addresses are literals here",
    "strcpy": "it knows no limit",
    "strcat": "it knows no limit",
    "sprintf": "it knows no limit",
    "vsprintf": "it knows no limit",
    "gets": "it knows no limit",
    "rand": "it can be guessed; base/digest has randomness",
    "random": "it can be guessed; base/digest has randomness",
    "atoi": "it takes anything for a number; str_to_u64 does not",
    "atol": "it takes anything for a number; str_to_u64 does not",
    "strtok": "it writes into its input and is not thread-safe",
    "alloca": "it knows no limit",
}
# Where a name is what the user gives, on the command line.
ALLOWED = {("cmd/postern/url.c", "getaddrinfo")}
CALL = re.compile(r"(?<![\w.>])(%s)\s*\(" % "|".join(CALLS))
NOTE = re.compile(r"\b(?:TODO|FIXME|XXX)\b")
SOURCES = ("lib/**/*", "cmd/**/*", "api/*", "tests/**/*", "deploy/**/*")
TEXT = {".c", ".h", ".def", ".py", ".sh", ".txt", ".json", ".yaml", ".proto", ".md", ""}


def check_text(path, text, faults):
    for number, line in enumerate(text.split("\n"), 1):
        if line.rstrip() != line:
            faults.add(path, number, "white space at the end of the line")
        if NOTE.search(line) and "lint" not in path.parts:
            faults.add(path, number, "a note to oneself: do it, or open an issue")
    if text and not text.endswith("\n"):
        faults.add(path, text.count("\n") + 1, "no newline at the end of the file")
    if text.endswith("\n\n"):
        faults.add(path, text.count("\n"), "empty lines at the end of the file")


def check_calls(path, root, text, faults):
    for number, line in enumerate(without_comments(text).split("\n"), 1):
        for match in CALL.finditer(line):
            if (path.relative_to(root).as_posix(), match.group(1)) in ALLOWED:
                continue
            faults.add(path, number, f"{match.group(1)} is forbidden: {CALLS[match.group(1)]}")


def main():
    (root,) = arguments("ROOT")
    faults = Faults(root)
    top = [path for path in files(root, "*", ".ci/*") if path.suffix in TEXT]
    sources = [path for path in files(root, *SOURCES) if path.suffix in TEXT and not {"corpus", "__pycache__"} & {*path.parts}]
    for path in [*top, *sources]:
        text = read(path)
        check_text(path, text, faults)
        if path.suffix in (".c", ".h", ".def") and not text.startswith("/* SPDX-License-Identifier: MIT */\n"):
            faults.add(path, 1, "the first line must be /* SPDX-License-Identifier: MIT */")
        if path.relative_to(root).parts[0] in ("lib", "cmd"):
            check_calls(path, root, text, faults)
    faults.exit()


main()

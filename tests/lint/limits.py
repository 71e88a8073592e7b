# SPDX-License-Identifier: MIT
"""Sizes: lines of files and functions, parameters, project includes.

The house style puts a function's braces into column 0, so a scanner of a few lines finds every function exactly; an
opening brace at the end of a function's first line is a fault of its own, or such a function would go unseen.
"""
import re

from tree import Faults, arguments, files, read, without_comments

FUNCTION_LINES, FUNCTION_LINES_EXCEPTED, MAIN_LINES, PARAMETERS, INCLUDES = 60, 100, 100, 6, 12
HEADER_LINES, SOURCE_LINES, FOLDER_LINES = 200, 500, {"core": 400, "adapter": 300}

NAME = re.compile(r"([A-Za-z_]\w*)\s*\(")
SAME_LINE = re.compile(r"^[A-Za-z_][^;:={}]*\)[ \t]*\{", re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s*"', re.M)


def functions(text):
    """(name, first line, number of lines with both braces, parameters) of each function defined in text."""
    lines = without_comments(text).split("\n")
    start = None
    for i, line in enumerate(lines):
        if line.rstrip() == "{":
            start = i
        elif line.rstrip() == "}" and start is not None:
            head, j = [], start - 1
            while j >= 0 and lines[j].strip() and lines[j].rstrip()[-1] not in ";}" and lines[j][0] != "#":
                head.insert(0, lines[j])
                j -= 1
            name, parameters = split_head(" ".join(head))
            yield name, j + 2, i - start + 1, parameters
            start = None


def split_head(head):
    """Name and number of parameters of "static int f(int a, void (*g)(int, int))"."""
    head = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", head)
    match = NAME.search(head)
    if match is None:
        return "?", 0
    depth, commas, inner = 0, 0, ""
    for c in head[match.end() - 1 :]:
        depth += (c == "(") - (c == ")")
        if depth == 0:
            break
        commas += c == "," and depth == 1
        inner += c
    return match.group(1), 0 if inner.strip("( \t") in ("", "void") else commas + 1


def exceptions_read(path, faults):
    """{(file, function): line} of exceptions.txt."""
    found = {}
    for number, line in enumerate(read(path).splitlines() if path.is_file() else [], 1):
        words = line.partition("#")[0].split()
        if len(words) == 2:
            found[tuple(words)] = number
        elif words:
            faults.add(path, number, "a line is: FILE FUNCTION")
    return found


def check_functions(path, root, exceptions, faults):
    text = read(path)
    name_of_file = path.relative_to(root).as_posix()
    for name, line, n, parameters in functions(text):
        limit = MAIN_LINES if name == "main" else FUNCTION_LINES
        excepted = (name_of_file, name) in exceptions and (n > limit or parameters > PARAMETERS)
        if excepted:
            exceptions.pop((name_of_file, name))
            limit = FUNCTION_LINES_EXCEPTED
        if parameters > PARAMETERS and not excepted:
            faults.add(path, line, f"{name} has {parameters} parameters, at most {PARAMETERS}: make them a struct")
        if n > limit:
            faults.add(path, line, f"{name} has {n} lines, at most {limit}")
    plain = without_comments(text)
    for match in SAME_LINE.finditer(plain):
        line = plain.count("\n", 0, match.end()) + 1
        faults.add(path, line, "a function's opening brace stands alone on the next line")


def main():
    (root,) = arguments("ROOT")
    faults = Faults(root)
    listed = root / "tests/lint/exceptions.txt"
    exceptions = exceptions_read(listed, faults)
    for path in files(root, "lib/**/*.[ch]", "cmd/**/*.[ch]"):
        text = read(path)
        n = text.count("\n")
        limit = HEADER_LINES if path.suffix == ".h" else FOLDER_LINES.get(path.parent.name, SOURCE_LINES)
        if n > limit:
            faults.add(path, n, f"has {n} lines, at most {limit}")
        includes = len(INCLUDE.findall(text))
        if path.suffix == ".c" and includes > INCLUDES:
            faults.add(path, 1, f"includes {includes} files of the project, at most {INCLUDES}")
        check_functions(path, root, exceptions, faults)
    for (name_of_file, name), line in exceptions.items():
        faults.add(listed, line, f"{name_of_file} {name} needs no exception any more: remove the line")
    faults.exit()


main()

# SPDX-License-Identifier: MIT
"""Holds every #include of lib, cmd and tests against layers.txt, and looks for headers that include each other."""
import fnmatch
import pathlib
import re

from tree import Faults, arguments, files, read

MINE = pathlib.Path(__file__).resolve().parent / "layers.txt"
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"][^>"\n]*[>"])', re.M)


def table_read(faults):
    """{unit: what it may include}, and libc's headers. A line may name only units above it, or its own folder."""
    table, libc = {}, []
    for number, line in enumerate(MINE.read_text().splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        unit, may = words[0], words[1:]
        if unit == "libc":
            libc += may
            continue
        if unit in table:
            faults.add("layers.txt", number, f"{unit} has two lines")
        for name in may:
            known = name[0] in '<"' or name == "lib/*" or inside(unit, name) or name in table
            if not known:
                faults.add("layers.txt", number, f"{unit} names {name}, which no line above it has")
        table[unit] = may
    return table, libc


def unit_of(path, root):
    """lib/base/ip.c is base/ip; other folders keep their whole path."""
    unit = path.relative_to(root).with_suffix("").as_posix()
    return unit[len("lib/") :] if unit.startswith("lib/") else unit


def layer_of(unit, table):
    while unit and unit not in table:
        unit = unit.rpartition("/")[0]
    return unit


def resolve(name, path, root):
    """The file that "name" means in path; None for a generated one. Within lib every path starts at lib."""
    beside = [] if path.is_relative_to(root / "lib") else [path.parent]
    for folder in (root / "lib", root / "api", *beside):
        if (folder / name).is_file():
            return (folder / name).resolve()
    return None


def inside(unit, folder):
    return unit == folder or unit.startswith(folder + "/")


def may_include(unit, layer, may, target, name, root):
    if target is not None and target.suffix == ".h":
        other = unit_of(target, root)
        if inside(other, layer):
            return True
        if "lib/*" in may and target.is_relative_to(root / "lib"):
            return True
        # A folder outside lib is one unit: cmd/postern/serve.c and its neighbours.
        if not target.is_relative_to(root / "lib") and target.parent == (root / unit).parent:
            return True
        return any(inside(other, allowed) for allowed in may)
    return any(fnmatch.fnmatch(f'"{name}"', allowed) for allowed in may)


def check_file(path, root, table, libc, faults):
    """Gives what it includes of the project, for the search for cycles."""
    unit = unit_of(path, root)
    layer = layer_of(unit, table)
    if not layer:
        faults.add(path, 1, "has no layer: no line of tests/lint/layers.txt fits it")
        return []
    included = []
    text = read(path)
    for match in INCLUDE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        form, name = match.group(1)[0], match.group(1)[1:-1]
        if form == "<":
            header = f"<{name}>"
            if not any(fnmatch.fnmatch(header, allowed) for allowed in libc + table[layer]):
                faults.add(path, line, f"{layer} may not include {header}")
            continue
        target = resolve(name, path, root)
        if name.endswith(".c"):
            faults.add(path, line, f"includes {name}; what needs it should have a header")
        elif target is None and not may_include(unit, layer, table[layer], None, name, root):
            faults.add(path, line, f'"{name}" is no path from lib/, nor a file beside this one')
        elif not may_include(unit, layer, table[layer], target, name, root):
            faults.add(path, line, f'{layer} may not include "{name}"')
        else:
            if not included and path.suffix == ".c" and path.with_suffix(".h").is_file():
                if target != path.with_suffix(".h").resolve():
                    faults.add(path, line, f'the first include must be its own header, not "{name}"')
            included.append(target)
    return [target for target in included if target is not None]


def check_cycles(graph, faults):
    done, stack = set(), []

    def visit(header):
        if header in stack:
            names = " -> ".join(h.name for h in stack[stack.index(header) :] + [header])
            faults.add(header, 1, f"headers include each other: {names}")
        elif header not in done:
            stack.append(header)
            for other in graph.get(header, []):
                visit(other)
            done.add(stack.pop())

    for header in sorted(graph):
        visit(header)


def main():
    (root,) = arguments("ROOT")
    faults = Faults(root)
    table, libc = table_read(faults)
    graph = {}
    for path in files(root, "lib/**/*.[ch]", "cmd/**/*.[ch]", "tests/*/*.[ch]"):
        included = check_file(path, root, table, libc, faults)
        if path.suffix == ".h":
            graph[path] = included
    check_cycles(graph, faults)
    faults.exit()


main()

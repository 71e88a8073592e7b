# SPDX-License-Identifier: MIT
"""What the object files need and offer, as nm tells it: purity, owners of foreign libraries, exported variables.

An include table cannot see a declaration written by hand, or a libc header used for what it must not be used; the
symbols can.
"""
import fnmatch
import pathlib
import subprocess

from tree import Faults, arguments, files

HERE = pathlib.Path(__file__).resolve().parent
PURE = ["lib/core/*.c", *(f"lib/base/{name}.c" for name in ("str", "text", "arena", "ip", "range"))]


def symbols(path):
    """[(kind letter of nm, name)]"""
    out = subprocess.run(["nm", "-P", str(path)], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = []
    for line in out.splitlines():
        name, kind = line.split()[:2]
        if not name.startswith(("__asan_", "__ubsan_", "__tsan_", "__gcov")):
            found.append((kind, name.partition("@")[0]))
    return found


def words_of(name):
    """The lines of a list, without comments, split into words."""
    lines = (line.partition("#")[0].split() for line in (HERE / name).read_text().splitlines())
    return [words for words in lines if words]


def check_pure(objects, root, faults):
    allowed = [word for words in words_of("pure.txt") for word in words]
    pure = {path: objects[path] for path in files(root, *PURE) if path in objects}
    own = {name for found in pure.values() for kind, name in found if kind in "TRDBVW"}
    for path, found in pure.items():
        for kind, name in found:
            if kind in "Uw" and name not in own and not any(fnmatch.fnmatch(name, a) for a in allowed):
                faults.add(path, 1, f"needs {name}, but this file must be pure (tests/lint/pure.txt)")


def check_owners(objects, root, faults):
    owners = [(pattern, owner) for owner, *patterns in words_of("owners.txt") for pattern in patterns]
    own = {name for found in objects.values() for kind, name in found if kind in "TRDBCVW"}
    for path, found in objects.items():
        for kind, name in found:
            for pattern, owner in owners:
                if kind in "Uw" and name not in own and fnmatch.fnmatch(name, pattern) and path != root / owner:
                    faults.add(path, 1, f"needs {name}, which only {owner} may use (tests/lint/owners.txt)")


def check_variables(objects, root, faults):
    for path, found in objects.items():
        if not path.is_relative_to(root / "lib"):
            continue
        for kind, name in found:
            if kind in "BDCGS":
                faults.add(path, 1, f"exports the writable variable {name}: make it static or const")


def main():
    root, build = arguments("ROOT BUILD")
    faults = Faults(root)
    objects = {}
    for path in files(root, "lib/*/*.c", "cmd/postern/*.c"):
        compiled = build / "obj" / path.relative_to(root).with_suffix(".o")
        if compiled.is_file():
            objects[path] = symbols(compiled)
        else:
            faults.add(path, 1, f"has no object in {build}: build first")
    check_pure(objects, root, faults)
    check_owners(objects, root, faults)
    check_variables(objects, root, faults)
    faults.exit()


main()

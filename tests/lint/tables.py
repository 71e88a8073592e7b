# SPDX-License-Identifier: MIT
"""Every row of the tables in api/ is used: its enum constant stands somewhere in lib or cmd.

Which constant a row becomes is read from the code itself: "#define REASON(id, ...) REASON_##id," before an include.
"""
import re

from tree import Faults, arguments, files, read, without_comments

MUST_BE_ENUM = {"metrics.def": ["METRIC"], "reasons.def": ["REASON", "CLIENT_REASON"], "problems.def": ["PROBLEM"]}
# Rows that code made of the whole table serves, each alike: they need nobody who names them.
SERVED_ALIKE = {"SETTING", "CHECKED", "REFUSED"}
ROW = re.compile(r"^([A-Z][A-Z_]*)\(\s*(\w+)", re.M)
ENUM = re.compile(r"^\s*#\s*define\s+([A-Z][A-Z_]*)\(\s*(\w+)[^)]*\)\s*([A-Z_]+_)##\2\s*,?\s*$", re.M)


def main():
    (root,) = arguments("ROOT")
    faults = Faults(root)
    code = "\n".join(without_comments(read(path)) for path in files(root, "lib/**/*.[ch]", "cmd/**/*.[ch]"))
    used = set(re.findall(r"\b[A-Z][A-Z0-9_]*\b", code))
    prefixes = {}
    for macro, _, prefix in ENUM.findall(code):
        prefixes.setdefault(macro, set()).add(prefix)
    for table in files(root, "api/*.def"):
        text = read(table)
        rows = list(ROW.finditer(text))
        for macro in MUST_BE_ENUM.get(table.name, []):
            if any(row.group(1) == macro for row in rows) and macro not in prefixes:
                faults.add(table, 1, f"no enum is made of the rows of {macro}")
        for row in rows:
            names = {prefix + row.group(2) for prefix in prefixes.get(row.group(1), ())}
            if names and not names & used and row.group(1) not in SERVED_ALIKE:
                line = text.count("\n", 0, row.start()) + 1
                faults.add(table, line, f"no code uses {' or '.join(sorted(names))}")
    faults.exit()


main()

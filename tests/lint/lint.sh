#!/bin/bash
# SPDX-License-Identifier: MIT
# make lint: every check runs, prints what is wrong as file:line, and the whole fails at the end if any did.
#   tests/lint/lint.sh BUILD    BUILD: the folder of a plain build, for the checks that read object files
set -u
cd "$(dirname "$0")/../.."
build=${1:?usage: tests/lint/lint.sh BUILD}
python=${PYTHON:-/usr/bin/python3}
export PYTHONDONTWRITEBYTECODE=1
failed=

check()
{
	local name=$1
	shift
	if "$@"; then
		echo "  LINT    $name"
	else
		echo "  LINT    $name: failed"
		failed="$failed $name"
	fi
}

check selftest tests/lint/selftest.sh
check layers "$python" tests/lint/layers.py .
check symbols "$python" tests/lint/symbols.py . "$build"
check limits "$python" tests/lint/limits.py .
check tables "$python" tests/lint/tables.py .
check words "$python" tests/lint/words.py .

[ -z "$failed" ] || { echo "lint:$failed failed" >&2; exit 1; }

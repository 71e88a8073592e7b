#!/bin/bash
# SPDX-License-Identifier: MIT
# Installs into a staging folder, uses what lies there, and looks for leftovers after uninstall.
# Called by make test-install with the folder of the build.
set -eu
cd "$(dirname "$0")/.."
build=${1:?usage: tests/install.sh BUILD}
build=${build#"$PWD"/} # as make itself spells it: another spelling is another command line and would build anew
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage=$work/stage

fail()
{
	echo "install: $*" >&2
	exit 1
}

staged_make()
{
	"${MAKE:-make}" --no-print-directory DESTDIR="$stage" PREFIX=/usr BUILD="$build" "$@" >"$work/log" 2>&1 || {
		cat "$work/log" >&2
		fail "make $* failed"
	}
}

staged_make install
for file in bin/postern share/postern/postern.json share/postern/config.schema.json share/postern/openapi.yaml; do
	[ -s "$stage/usr/$file" ] || fail "$file was not installed"
done
[ -z "$(find "$stage" -type f ! -path "$stage/usr/*")" ] || fail "something was installed outside PREFIX"

"$stage/usr/bin/postern" version | grep -q '^postern [0-9]' || fail "the staged program does not tell its version"
"$stage/usr/bin/postern" check-config "$stage/usr/share/postern/postern.json" >"$work/said" 2>&1 || {
	cat "$work/said" >&2
	fail "the sample configuration is refused"
}

staged_make uninstall
left=$(find "$stage" ! -type d)
[ -z "$left" ] || fail "uninstall left: $left"
echo "  TEST    install, run from there, uninstall"

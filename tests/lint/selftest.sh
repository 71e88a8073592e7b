#!/bin/bash
# SPDX-License-Identifier: MIT
# A checker that finds nothing may be blind. This one builds a small faultless tree, lets every check pass it, then plants
# one fault at a time and wants exactly that fault reported.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-/usr/bin/python3}
cc=${CC:-cc}
export PYTHONDONTWRITEBYTECODE=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
failures=0
spdx='/* SPDX-License-Identifier: MIT */'

put()
{
	mkdir -p "$tree/$(dirname "$1")"
	printf '%s\n' "$spdx" "${@:2}" > "$tree/$1"
}

good_tree()
{
	rm -rf "$tree"
	mkdir -p "$tree/tests/lint"
	cp "$here"/*.py "$here"/*.txt "$tree/tests/lint/"
	: > "$tree/tests/lint/exceptions.txt" # ours name functions that this tree does not have
	put api/metrics.def 'METRIC(SEEN, "seen_total", "counter", "Seen.")'
	put api/reasons.def '#ifdef REASON' 'REASON(ALLOWED, "allowed")' '#endif' '#ifdef CLIENT_REASON' 'CLIENT_REASON(PEER, "peer")' '#endif'
	put api/problems.def 'PROBLEM(BAD, "bad")'
	put lib/base/must.h '_Noreturn void must_fail(void);'
	put lib/base/str.h '#include <stddef.h>' 'size_t str_len(const char *s);'
	put lib/base/str.c '#include "base/str.h"' '#include "base/must.h"' '#include <string.h>' 'size_t str_len(const char *s)' '{' \
		'	if (s == NULL)' '		must_fail();' '	return strlen(s);' '}'
	put lib/base/metric.h 'enum metric {' '#define METRIC(id, name, type, help) METRIC_##id,' '#include "metrics.def"' '#undef METRIC' \
		'	METRIC_COUNT' '};'
	put lib/core/reason.h '#include "base/str.h"' 'enum reason {' '#define REASON(id, word) REASON_##id,' '#include "reasons.def"' '#undef REASON' '};' \
		'enum client_reason {' '#define CLIENT_REASON(id, word) CLIENT_REASON_##id,' '#include "reasons.def"' '};'
	put lib/core/decide.h '#include "core/reason.h"' 'int decide(int a, int b, int c, int d, int e, int f);'
	put lib/core/decide.c '#include "core/decide.h"' 'int decide(int a, int b, int c, int d, int e, int f)' '{' \
		'	return (int)str_len("x") + a + b + c + d + e + f + (REASON_ALLOWED | CLIENT_REASON_PEER);' '}'
	put lib/adapter/problem.h 'enum problem {' '#define PROBLEM(id, code) PROBLEM_##id,' '#include "problems.def"' '};'
	put lib/server/http.c '#include "base/metric.h"' 'int http_run(int unused);' 'int http_run(int unused)' '{' \
		'	return METRIC_SEEN + unused;' '}'
	put cmd/postern/main.c '#include "adapter/problem.h"' 'int main(void)' '{' '	return PROBLEM_BAD;' '}'
}

# Objects of the tree; those of unchanged files are kept from the first time.
compile()
{
	local file object
	for file in "$tree"/lib/*/*.c "$tree"/cmd/postern/*.c; do
		file=${file#"$tree/"}
		object=$work/build/obj/${file%.c}.o
		if ! cmp -s "$tree/$file" "$object.from"; then
			mkdir -p "$(dirname "$object")"
			"$cc" -w -O2 -fPIE -I"$tree/lib" -I"$tree/api" -c -o "$object" "$tree/$file"
			cp "$tree/$file" "$object.from"
		fi
	done
}

run()
{
	local arguments=("$tree")
	if [ "$1" = symbols ]; then
		compile
		arguments+=("$work/build")
	fi
	"$python" -S "$tree/tests/lint/$1.py" "${arguments[@]}" > "$work/said" 2>&1
}

# fault CHECK WHAT-IT-MUST-SAY COMMAND...: plants a fault with the command (in the tree) and wants it named.
fault()
{
	local check=$1 want=$2 code=0
	shift 2
	good_tree
	(cd "$tree" && "$@")
	run "$check" || code=$?
	if [ "$code" != 1 ] || ! grep -qE -- "$want" "$work/said"; then
		echo "tests/lint/selftest.sh:1: $check did not say \"$want\" (exit code $code) after: $*"
		sed 's/^/    /' "$work/said"
		failures=$((failures + 1))
	fi
}

# fine CHECK COMMAND...: what must not be taken for a fault.
fine()
{
	local check=$1
	shift
	good_tree
	(cd "$tree" && "$@")
	if ! run "$check"; then
		echo "tests/lint/selftest.sh:1: $check found a fault where none is, after: $*"
		sed 's/^/    /' "$work/said"
		failures=$((failures + 1))
	fi
}

add() { printf '%s\n' "${@:2}" >> "$1"; }
include() { sed -i "1a #include $2" "$1"; }
function_of() { add "$1" "void $2($3)" '{' "$(yes '	;' | head -n "$(($4 - 2))")" '}'; }
rewrite() { put "$@"; }

for check in layers symbols limits tables words; do
	fine "$check" true
done

fault layers 'cmd/postern/main.c:2: .*<jansson.h>' include cmd/postern/main.c '<jansson.h>'
fault layers 'lib/core/decide.h:2: core may not include <microhttpd.h>' include lib/core/decide.h '<microhttpd.h>'
fault layers 'lib/server/worker.c:2: server may not include <microhttpd.h>' rewrite lib/server/worker.c '#include <microhttpd.h>'
fault layers 'core may not include "base/metric.h"' include lib/core/decide.h '"base/metric.h"'
fault layers 'base/str may not include "core/reason.h"' include lib/base/str.h '"core/reason.h"'
fault layers 'server may not include "store/store.h"' eval 'put lib/store/store.h; put lib/server/worker.c "#include \"store/store.h\""'
fault layers 'base/log may not include "metrics.def"|base may not include "metrics.def"' rewrite lib/base/log.c '#include "metrics.def"'
fault layers 'lib/stray/a.c:1: has no layer' rewrite lib/stray/a.c
fault layers 'is no path from lib/' include lib/core/decide.h '"reason.h"'
fault layers 'includes .*decide.c' include cmd/postern/main.c '"core/decide.c"'
fault layers 'first include must be its own header' include lib/core/decide.c '"core/reason.h"'
fault layers 'headers include each other: decide.h -> reason.h -> decide.h' include lib/core/reason.h '"core/decide.h"'
fault layers 'io names core, which no line above' sed -i 's/^io  *base/& core/' tests/lint/layers.txt
fault layers 'base has two lines' add tests/lint/layers.txt 'base  base'
fine layers rewrite lib/base/json.h '#include <jansson.h>'

fault symbols 'lib/core/decide.c:1: needs time,' add lib/core/decide.c 'long time(long *); long decide_now(void) { return time(0); }'
fault symbols 'lib/core/decide.c:1: needs malloc' add lib/core/decide.c 'void *malloc(unsigned long);' 'void *volatile decide_p;' \
	'void decide_get(void) { decide_p = malloc(9); }'
fault symbols 'lib/base/str.c:1: needs snprintf' add lib/base/str.c 'int snprintf(char *, unsigned long, const char *, ...);' \
	'int str_put(char *s, int n) { return snprintf(s, 9, "%d", n); }'
fault symbols 'lib/base/log.c:1: needs sodium_init, which only lib/base/digest.c' rewrite lib/base/log.c 'int sodium_init(void);' \
	'int log_run(void) { return sodium_init(); }'
fault symbols 'cmd/postern/main.c:1: needs json_loads' add cmd/postern/main.c 'int json_loads(void); int main_x(void) { return json_loads(); }'
fault symbols 'exports the writable variable level' rewrite lib/base/log.c 'int level = 3;'
fault symbols 'exports the writable variable level' rewrite lib/base/log.c '_Thread_local int level;'
fine symbols rewrite lib/base/log.c 'static int level; const int log_fixed = 1; int *log_level(void) { return &level; }'

fault limits 'wide has 7 parameters' add lib/core/decide.c 'void wide(int a, int b, int c, int d, int e,' '	int f, void (*g)(int, int))' '{' '}'
fine limits add lib/core/decide.c 'void six(int a, int b, int c, int d, int e, void (*g)(int, int))' '{' '}'
fault limits 'decide.c:7: long_one has 61 lines, at most 60' function_of lib/core/decide.c long_one void 61
fine limits function_of lib/core/decide.c just_fits void 60
fine limits eval 'function_of lib/core/decide.c long_one void 61; add tests/lint/exceptions.txt "lib/core/decide.c long_one"'
fault limits 'long_one has 101 lines, at most 100' \
	eval 'function_of lib/core/decide.c long_one void 101; add tests/lint/exceptions.txt "lib/core/decide.c long_one"'
fine limits eval 'add lib/core/decide.c "void seven(int a, int b, int c, int d, int e, int f, int g)" "{" "}"; add tests/lint/exceptions.txt "lib/core/decide.c seven"'
fault limits 'needs no exception any more' add tests/lint/exceptions.txt 'lib/core/decide.c decide'
fault limits 'opening brace stands alone' add lib/core/decide.c 'int hidden(void) {' '	return 0;' '}'
fault limits 'decide.c:401: has 401 lines, at most 400' eval 'yes "" | head -n 395 >> lib/core/decide.c'
fault limits 'problem.c:301: has 301 lines, at most 300' eval 'put lib/adapter/problem.c; yes "" | head -n 300 >> lib/adapter/problem.c'
fault limits 'str.h:201: has 201 lines, at most 200' eval 'yes "" | head -n 198 >> lib/base/str.h'
fault limits 'includes 13 files' eval 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do include lib/core/decide.c "\"core/x$i.h\""; done'

fault tables 'api/metrics.def:3: no code uses METRIC_LOST' add api/metrics.def 'METRIC(LOST, "lost_total", "counter", "Lost.")'
fault tables 'no code uses REASON_LOST' add api/reasons.def 'REASON(LOST, "lost")'
fault tables 'no code uses CLIENT_REASON_LOST' add api/reasons.def 'CLIENT_REASON(LOST, "lost")'
fault tables 'no code uses PROBLEM_LOST' eval 'add api/problems.def "PROBLEM(LOST, \"lost\")"; add lib/core/decide.c "/* PROBLEM_LOST */"'
fault tables 'no enum is made of the rows of PROBLEM' sed -i /define/d lib/adapter/problem.h

fault words 'strcpy is forbidden' add lib/core/decide.c 'void f(char *a) { strcpy(a, "b"); }'
fault words 'atoi is forbidden' add cmd/postern/main.c 'int f(char *a) { return atoi (a); }'
fault words 'getaddrinfo is forbidden' add lib/core/decide.c 'int f(void) { return getaddrinfo(0, 0, 0, 0); }'
fine words rewrite cmd/postern/url.c 'int f(void) { return getaddrinfo(0, 0, 0, 0); }'
fine words add lib/core/decide.c '/* strcpy(a) */ const char *f = "gets(a)"; void my_rand(void);'
fault words 'note to oneself' add lib/core/decide.c '/* TO''DO: later */'
fault words 'white space at the end' add lib/core/decide.c 'int x; '
fault words 'no newline at the end' eval 'printf "int x;" >> lib/core/decide.c'
fault words 'first line must be' eval 'echo "int x;" > lib/core/decide.c'

[ "$failures" = 0 ]

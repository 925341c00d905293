#!/bin/bash
# Golden tests: every NAME.mlir, NAME.c and NAME.cpp here has a first line `// stc FLAGS…` and a sibling NAME.expect with the exit status, what stc printed to stdout and to stderr.
#   tests/golden/run.sh [--bless] [FOLDER|FILE …]     --bless renews the .expect files; look at `git diff` then
# stc runs in the folder of the test, with the file as last argument; %o in FLAGS is an output folder that does not exist yet and is thrown away.
# STC names the program (default: build/stc).
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
stc=${STC:-$root/build/stc}
bless=no
[ "${1:-}" != --bless ] || { bless=yes; shift; }
[ $# -gt 0 ] || set -- "$root/tests/golden"
[ -x "$stc" ] || { echo "no $stc: build it first" >&2; echo "0 passed, 1 failed"; exit 1; }
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
passed=0
failed=0

# The test's output as it stands in .expect.
actual()
{
	local folder=${1%/*} name=${1##*/} first status
	local -a flags
	IFS= read -r first <"$1"
	read -r -a flags <<<"${first#// stc}"
	rm -rf "$temporary/out"
	(cd "$folder" && exec timeout 120 "$stc" "${flags[@]//%o/$temporary/out}" "$name" >"$temporary/stdout" 2>"$temporary/stderr" </dev/null)
	status=$?
	echo "exit $status"
	sed "s|$temporary|TEMPORARY|g" "$temporary/stdout" "$temporary/stderr"
	[ "$status" = 0 ] || [ ! -e "$temporary/out" ] || echo "left an output folder behind"
}

while IFS= read -r -d '' test; do
	case $(head -c 7 "$test") in
	"// stc "*) ;;
	*) echo "FAIL $test: the first line is not \`// stc FLAGS\`"; failed=$((failed + 1)); continue ;;
	esac
	expect=${test%.*}.expect
	actual "$test" >"$temporary/actual"
	if [ "$bless" = yes ]; then
		cmp -s "$temporary/actual" "$expect" || { cp "$temporary/actual" "$expect"; echo "renewed ${expect#"$root/"}"; }
		passed=$((passed + 1))
	elif diff -u --label expected --label found "$expect" "$temporary/actual" >"$temporary/diff" 2>&1; then
		passed=$((passed + 1))
	else
		echo "FAIL ${test#"$root/"}"
		head -n 40 "$temporary/diff"
		failed=$((failed + 1))
	fi
done < <(find "$@" \( -name '*.mlir' -o -name '*.c' -o -name '*.cpp' \) -print0 | sort -z)
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" != 0 ]

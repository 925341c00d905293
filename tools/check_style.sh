#!/bin/bash
# Rules of the tree that a compiler cannot check.  Ends with: N passed, N failed.  Run by tests/run.sh.
set -u
shopt -s lastpipe
cd "$(dirname "$0")/.." || exit 1
passed=0
failed=0

# The place where work is shared is no part of the project; written in two parts so that this file passes.
outside='\.\.''/shared|/work/''(main|shared)'
folders=(include src runtime python platforms share tests fuzz bench examples docs tools .ci)
# The rooms of src/, low to high: a room includes only what stands before it.
rooms='base ir image platform itensor options predict solve poly import frontend raise tensor fusion layers quantize attention process ports
	engine converter schedule folding lowering streams emit evaluate simulate fifo floorplan pipeline report explore hls_model driver main'

# The rooms of python/streamtensor, low to high; its own files are seen from every room.
packages='lowering checkpoints quantization onnx images language exploration commands'

rule() # NAME, offending lines on stdin
{
	local found
	found=$(cat)
	if [ -z "$found" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "style: $1"
		echo "$found" | head -n 20 | sed 's/^/    /'
	fi
}

tree()
{
	find "${folders[@]}" -type f -not -path '*/__pycache__/*' 2>/dev/null
	find . -maxdepth 1 -type f -not -name .git | sed 's,^\./,,'
}

sources() { find src runtime/src -name '*.[ch]' 2>/dev/null | sort; }

# Code without comments and string literals, as FILE:LINE:TEXT.
code()
{
	xargs -r awk '
		FNR == 1 { inside = 0 }
		{
			line = $0
			gsub(/\\./, "", line)
			gsub(/"[^"]*"/, "\"\"", line)
			gsub(/\/\*([^*]|\*[^\/])*\*\//, "", line)
			if (inside && match(line, /\*\//)) { line = substr(line, RSTART + 2); inside = 0 }
			if (inside) next
			if (match(line, /\/\*/)) { line = substr(line, 1, RSTART - 1); inside = 1 }
			sub(/\/\/.*/, "", line)
			print FILENAME ":" FNR ":" line
		}'
}

long_files()
{
	tree | grep -E '\.(c|h|def|cpp|hpp|py|sh)$' | xargs -r wc -l | awk '$2 != "total" && $1 > ($2 ~ /\.py$/ ? 1800 : 1050) { print $2 ": " $1 " lines" }'
}

banned_calls()
{
	sources | grep -v -x -e src/base/arena.c -e src/main.c | grep '^src/' | code |
		grep -E '(^|[^A-Za-z0-9_.>])(malloc|calloc|realloc|free|exit|_exit|printf|puts|putchar|vprintf)[ ]*\('
	sources | grep -v -x src/main.c | grep '^src/' | code | grep -E '(fprintf|fputs|fputc|fwrite|vfprintf)[ ]*\(.*\bstdout\b'
}

include_direction()
{
	sources | grep '^src/' | xargs -r grep -H -n -E '^#include "[a-z]+/' | awk -v table="$(echo $rooms)" '
		BEGIN { n = split(table, rows, " "); for (i = 1; i <= n; i++) rank[rows[i]] = i }
		{
			split($0, part, ":")
			folders = split(part[1], path, "/")
			from = folders == 2 ? "main" : path[2]
			match($0, /"[a-z]+\//)
			to = substr($0, RSTART + 1, RLENGTH - 2)
			if (!(from in rank)) print part[1] ": folder " from " has no place in the include order"
			else if ((to in rank) && to != from && rank[to] >= rank[from]) print part[1] ":" part[2] ": " from " includes " to
		}'
}

import_direction()
{
	grep -r -H -n -E --include='*.py' '^ *from \.\.[a-z]+' python/streamtensor | awk -v table="$packages" '
		BEGIN { n = split(table, rows, " "); for (i = 1; i <= n; i++) rank[rows[i]] = i }
		{
			split($0, part, ":")
			split(part[1], path, "/")
			match($0, /from \.\.[a-z]+/)
			to = substr($0, RSTART + 7, RLENGTH - 7)
			if (!(path[3] in rank)) print part[1] ": package " path[3] " has no place in the import order"
			else if ((to in rank) && rank[to] >= rank[path[3]]) print part[1] ":" part[2] ": " path[3] " imports " to
		}'
}

full_rooms()
{
	find src -mindepth 2 -name '*.c' | awk -F / '{ count[$2]++ } END { for (room in count) if (count[room] > 30) print "src/" room ": " count[room] }'
	find python/streamtensor -name '*.py' | awk -F / '{ $NF = ""; count[$0]++ } END { for (room in count) if (count[room] > 30) print room ": " count[room] }'
}

# Needs the objects of a build; where there is none, the build has failed before.
call_circles() { python3 tools/call_graph.py "${BUILD:-build}"; }

# The formatter decides, of the version that tools/setup.sh installs.
unformatted()
{
	git ls-files src runtime include fuzz tests/unit | grep -E '\.[ch]$' | xargs clang-format-19 --dry-run 2>&1 |
		grep 'Wclang-format-violations' | cut -d: -f1 | sort | uniq -c
	.venv/bin/ruff format --check --quiet python bench tools tests/python examples || echo "ruff format: python bench tools tests/python examples"
	.venv/bin/ruff check --quiet python bench tools tests/python examples
}

counted_rules() { .venv/bin/python tools/style_rules.py; }

mentions_outside() { tree | xargs -r -d '\n' grep -I -n -E "$outside"; }

trailing_space() { tree | grep -E '\.(c|h|def|cpp|py|sh|md)$' | xargs -r -d '\n' grep -n -E '[ 	]+$'; }

long_files | rule "no file over 1050 lines, no Python test over 1800"
banned_calls | rule "only src/base/arena.c allocates; the library neither exits nor prints"
include_direction | rule "includes go one way, down the table of rooms in tools/check_style.sh"
import_direction | rule "imports go one way between the packages of python/streamtensor"
full_rooms | rule "no room with more than 30 .c or .py files"
call_circles | rule "no circle of calls between rooms, none of more than ten files (tools/call_graph.py)"
unformatted | rule "clang-format and ruff change nothing"
{ .venv/bin/mypy --cache-dir /dev/null --no-error-summary 2>&1 || true; } | rule "mypy agrees with the types of what users call"
counted_rules | rule "no count of tools/style_counts.json rises"
mentions_outside | rule "the tree names nothing outside itself"
trailing_space | rule "no white space at the end of a line"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]

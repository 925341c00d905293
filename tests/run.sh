#!/bin/bash
# Runs every part of the tests and ends with one line: N passed, N failed.
#   tests/run.sh [long|asan]     long: the slow ones too; asan: only the C tests under the sanitizers
# Parts: style, C unit tests, golden tests, Python tests, C unit tests under ASan and UBSan.
# A part that is a program of its own (style, golden) ends its output with the same kind of line.
# BUILD names another build folder than build/ (the stress build does).
set -u
cd "$(dirname "$0")/.." || exit 1
mode=${1:-short}
build=${BUILD:-build}
jobs=${JOBS:-$(nproc)}
results=$build/results
passed=0
failed=0
failures=()

export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 TOKENIZERS_PARALLELISM=false
export PYTHONPATH=$PWD/python PYTHONDONTWRITEBYTECODE=1
export STC=$PWD/$build/stc STREAMTENSOR_CORE=$PWD/$build STC_TEST_MODE=$mode
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1

add()
{
	echo "   $3: $1 passed, $2 failed"
	passed=$((passed + $1))
	failed=$((failed + $2))
}

# A JUnit file, and the exit status of what wrote it: a failure that the file does not show still counts.
add_junit()
{
	local lines pair
	mapfile -t lines < <(.venv/bin/python tests/count.py "$1" 2>/dev/null || echo "0 1")
	read -r -a pair <<<"${lines[0]}"
	failures+=("${lines[@]:1}")
	[ "$2" = 0 ] || [ "${pair[1]}" != 0 ] || pair[1]=1
	add "${pair[0]}" "${pair[1]}" "$3"
}

run_ctest()
{
	echo "== $2"
	rm -f "$results/$3.xml"
	ctest --test-dir "$1" --output-on-failure --no-tests=ignore -j "$jobs" --test-output-size-passed 1000000 \
		--test-output-size-failed 1000000 --output-junit "$PWD/$results/$3.xml" 2>&1 | grep -v -e '^Internal ctest' -e '^Test project'
	add_junit "$results/$3.xml" "${PIPESTATUS[0]}" "$2"
}

run_script()
{
	echo "== $1"
	local log=$results/$2.log status last
	"${@:3}" 2>&1 | tee "$log"
	status=${PIPESTATUS[0]}
	last=$(tail -n 1 "$log")
	if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
		local bad=${BASH_REMATCH[2]}
		[ "$status" = 0 ] || [ "$bad" != 0 ] || bad=1
		add "${BASH_REMATCH[1]}" "$bad" "$1"
	else
		echo "$1: ended without its counts, exit $status"
		add 0 1 "$1"
	fi
}

# Runs side by side share the files: each takes the next one that no other has.
run_pytest()
{
	echo "== Python tests"
	local select=("-m" "not long") share runs=() run
	[ "$mode" != long ] || select=()
	[ "$mode" = long ] || local -x CXX=$PWD/tests/cxx
	share=$(mktemp -d)
	for ((run = 0; run < (jobs < 4 ? jobs : 4); run++)); do
		rm -f "$results/python$run.xml"
		(
			set -o pipefail
			STC_TEST_SHARE=$share .venv/bin/python -m pytest -q -p no:cacheprovider --continue-on-collection-errors "${select[@]}" \
				--junitxml="$results/python$run.xml" tests/python | sed -u "s/^/$run: /"
		) &
		runs+=($!)
	done
	for run in "${!runs[@]}"; do
		wait "${runs[run]}"
		local status=$?
		[ "$status" != 5 ] || status=0 # nothing selected
		add_junit "$results/python$run.xml" "$status" "Python tests, run $run"
	done
	rm -r "$share"
}

run_asan()
{
	echo "== building with the sanitizers (build-asan)"
	if cmake -S . -B build-asan -G Ninja --log-level=WARNING -DSTC_SANITIZE=ON -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-O1 -g1" >/dev/null &&
		cmake --build build-asan -j "$jobs" | tail -n 20 && [ "${PIPESTATUS[0]}" = 0 ]; then
		run_ctest build-asan "C unit tests, ASan and UBSan" asan
	else
		add 0 1 "sanitizer build"
	fi
}

has() { compgen -G "$1" >/dev/null; }

mkdir -p "$results"
if [ "$mode" != asan ]; then
	run_script "style" style tools/check_style.sh
	run_ctest "$build" "C unit tests" unit
	! has tests/golden/run.sh || run_script "golden tests" golden tests/golden/run.sh
	! has 'tests/python/test_*.py' || run_pytest
fi
[ "$build" != build ] || run_asan
if [ "$mode" != short ] && [ "$build" = build ] && has tests/golden/run.sh; then
	STC=$PWD/build-asan/stc run_script "golden tests, ASan and UBSan" golden-asan tests/golden/run.sh
fi

[ "${#failures[@]}" = 0 ] || printf 'failed: %s\n' "${failures[@]}"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" != 0 ]

#!/bin/bash
# Runs one fuzz target for a bounded number of inputs, starting from its seeds: the same inputs each time, unless
# FUZZ_SECONDS asks for a long hunt with a seed of its own. Exit 77 (a counted skip) where the target was not built
# because this machine has no clang.
set -euo pipefail
source=$1 name=$2
program=$source/build/fuzz/tests/fuzz/$name
[ -x "$program" ] || { echo "$name: not built (no clang here)"; exit 77; }
corpus=$(mktemp -d)
trap 'rm -rf "$corpus"' EXIT
seeds=$source/tests/fuzz/seeds/${name#fuzz_}
[ ! -d "$seeds" ] || cp -r "$seeds"/. "$corpus"
cd "$corpus"
bounds=(-runs=100000 -max_total_time=10 -seed=1)
[ -z "${FUZZ_SECONDS:-}" ] || bounds=(-max_total_time="$FUZZ_SECONDS")
# The sanitizer keeps freed memory from reuse, which counts as resident: little of it leaves the limit to the parser.
export ASAN_OPTIONS=quarantine_size_mb=8
"$program" "${bounds[@]}" -rss_limit_mb=1024 -timeout=10 -max_len=65536 -print_final_stats=1 "$corpus" 2>&1 | tail -20

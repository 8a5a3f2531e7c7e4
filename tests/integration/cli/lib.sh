# Shared by the tests of muster's command line. Each test is called with the build folder.
set -u
build=$(cd "${1:?usage: $0 BUILD_FOLDER}" && pwd) || exit 1
muster=$build/muster
scratch=$(mktemp -d "${TMPDIR:-/tmp}/muster-cli-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
failures=0
cases=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# Runs muster with a deadline; leaves $code, $scratch/out and $scratch/err.
call() {
  code=0
  (cd "$scratch" && timeout --kill-after=5 "${deadline:-60}" "$muster" "$@") \
    >"$scratch/out" 2>"$scratch/err" </dev/null || code=$?
  cases=$((cases + 1))
}

# refused CODE PATTERN ARGUMENTS: exit code, one line on standard error that matches, nothing on standard output.
refused() {
  local expected=$1 pattern=$2
  shift 2
  call "$@"
  [ "$code" -eq "$expected" ] || fail "muster $*: exit code $code, not $expected: $(cat "$scratch/err")"
  [ "$(wc -l <"$scratch/err")" -eq 1 ] || fail "muster $*: not one line: $(cat "$scratch/err")"
  grep -qE -- "$pattern" "$scratch/err" || fail "muster $*: '$pattern' is not in: $(cat "$scratch/err")"
  grep -q '^muster: ' "$scratch/err" || fail "muster $*: does not say who speaks: $(cat "$scratch/err")"
  [ ! -s "$scratch/out" ] || fail "muster $*: standard output is not empty: $(head -3 "$scratch/out")"
}

# says PATTERN: standard output of the last call.
says() {
  grep -qE -- "$1" "$scratch/out" || fail "'$1' is not in the output: $(head -40 "$scratch/out")"
}

finish() {
  echo "$cases calls, $failures failures"
  [ "$failures" -eq 0 ] && [ "$cases" -gt 0 ]
  exit
}

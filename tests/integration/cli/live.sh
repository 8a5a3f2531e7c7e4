#!/bin/bash
# The live view: lines in a pipe, a view that refreshes itself on a terminal and leaves nothing behind, silence on --quiet.
. "$(dirname "$0")/lib.sh"
small="--clients 4 --rate 50 --warmup 1s --duration 3s"

# What is shown does not depend on the verdict, and a busy machine makes a run invalid (3).
ended() { # CODE WHAT
  [ "$1" -eq 0 ] || [ "$1" -eq 3 ] || fail "exit $1 $2"
}

call run private $small --output "$scratch/pipe.json"
ended "$code" "in a pipe: $(cat "$scratch/err")"
[ "$(grep -cE '^(warm-up|measure) .* 4/4 connected  scheduled [0-9]+/s, acked' "$scratch/err")" -ge 2 ] ||
  fail "a pipe gets a line a second: $(cat "$scratch/err")"
if grep -q $'\033' "$scratch/err"; then fail "escape sequences in a pipe"; fi

call run private $small --quiet --output "$scratch/quiet.json"
[ ! -s "$scratch/err" ] || fail "--quiet is not quiet: $(cat "$scratch/err")"

if command -v script >/dev/null; then
  TERM=xterm timeout 60 script -qec "$muster run private $small --output $scratch/tty.json" "$scratch/tty" \
    >/dev/null </dev/null || ended $? "on a terminal"
  for row in 'measure +\[' '4 of 4 established' 'scheduled [0-9]+/s   acked' 'observed [0-9]+/s' 'worst core'; do
    grep -qE "$row" "$scratch/tty" || fail "'$row' is not in the view"
  done
  rows=$(grep -c $'\033\\[J' "$scratch/tty")
  [ "$rows" -ge 10 ] || fail "the view refreshed itself $rows times only"
  TERM=dumb timeout 60 script -qec "$muster run private $small --output $scratch/dumb.json" "$scratch/dumb" \
    >/dev/null </dev/null || ended $? "on a dumb terminal"
  if grep -q $'\033' "$scratch/dumb"; then fail "escape sequences on a dumb terminal"; fi
fi
finish

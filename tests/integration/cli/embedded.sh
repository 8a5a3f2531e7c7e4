#!/bin/bash
# The embedded server: its store is temporary, a failure is one line, and an interrupted run leaves nothing behind.
. "$(dirname "$0")/lib.sh"
mkdir "$scratch/tmp"
export TMPDIR=$scratch/tmp

left_behind() {
  [ -z "$(ls "$TMPDIR")" ] || fail "$1: left behind: $(ls "$TMPDIR")"
}

call run private --clients 6 --rate 30 --warmup 0s --duration 300ms --quiet
[ "$code" -eq 0 ] || [ "$code" -eq 3 ] || fail "exit code $code: $(cat "$scratch/err")"
left_behind 'a finished run'

TMPDIR=/proc/nowhere refused 3 '/proc/nowhere' run private
TMPDIR=$(printf '/x%.0s' $(seq 300)) refused 2 'TMPDIR is too long' run private

# Waits until the children of muster (the server, then the workers) are there: a run is under way.
children() {
  cat /proc/"$1"/task/"$1"/children 2>/dev/null | wc -w
}
start() {
  (cd "$scratch" && exec env --default-signal=HUP "$muster" run private --clients 6 --rate 30 --warmup 0s \
    --duration 60s --quiet "$@") \
    >"$scratch/out" 2>"$scratch/err" </dev/null &
  pid=$!
  for _ in $(seq 200); do
    [ "$(children "$pid")" -ge 2 ] && break
    sleep 0.05
  done
  sleep 1.5
  cases=$((cases + 1))
}
stopped() {
  code=0
  wait "$pid" || code=$?
}
# Children that outlive muster would keep its folder; they get a moment to remove it.
eventually_clean() {
  for _ in $(seq 100); do
    [ -z "$(ls "$TMPDIR")" ] && return
    sleep 0.05
  done
  left_behind "$1"
}

start
kill -INT "$pid"
stopped
[ "$code" -eq 3 ] || fail "interrupted once: exit code $code: $(cat "$scratch/err")"
says 'interrupted'
says '^verdict +invalid'
left_behind 'an interrupted run'

# A terminal that goes away tells the whole group of processes, and may do so twice.
start
kill -HUP "$pid" $(cat "/proc/$pid/task/$pid/children")
kill -HUP "$pid" 2>/dev/null
stopped
[ "$code" -eq 3 ] || fail "hung up: exit code $code: $(cat "$scratch/err")"
says 'interrupted'
left_behind 'a run whose terminal went away'

start
kill -INT "$pid"
kill -INT "$pid"
sleep 0.05
kill -INT "$pid" 2>/dev/null
stopped
case $code in
  130 | 3) ;; # 3: two signals at once count as one, and the third came too late
  *) fail "interrupted twice: exit code $code: $(cat "$scratch/err")" ;;
esac
eventually_clean 'a run that was interrupted twice'

# A limit on file sizes is a failed write of the server, which says so.
code=0
(ulimit -f 100 && cd "$scratch" && exec timeout --kill-after=5 60 "$muster" run private --clients 6 --rate 400 \
  --warmup 0s --duration 3s --quiet) >"$scratch/out" 2>"$scratch/err" </dev/null || code=$?
cases=$((cases + 1))
[ "$code" -eq 3 ] || fail "a limit on file sizes: exit code $code: $(cat "$scratch/err")"
grep -q 'embedded musterd.*cannot' "$scratch/err" || fail "a limit on file sizes says: $(cat "$scratch/err")"
left_behind 'a run whose server could not write'

start --duration 5s
server=$(cut -d' ' -f1 "/proc/$pid/task/$pid/children")
kill -KILL "$server"
stopped
[ "$code" -eq 3 ] || fail "the server was killed: exit code $code: $(cat "$scratch/err")"
grep -q 'embedded musterd died from signal 9' "$scratch/err" || fail "a killed server says: $(cat "$scratch/err")"
says '^verdict +invalid'
left_behind 'a run whose server was killed'

start
kill -KILL "$pid"
stopped
eventually_clean 'a killed run'

finish

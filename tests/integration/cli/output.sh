#!/bin/bash
# What muster prints when asked, where reports go, and that a lost output is not silence.
. "$(dirname "$0")/lib.sh"

ok() {
  call "$@"
  [ "$code" -eq 0 ] || fail "muster $*: exit code $code: $(cat "$scratch/err")"
  [ ! -s "$scratch/err" ] || fail "muster $*: standard error is not empty: $(cat "$scratch/err")"
}

for help in help --help -h; do
  ok "$help"
  says '^Usage: muster COMMAND'
  says 'Exit codes: 0 valid'
done
for help in 'help run' 'run --help' 'run -h' 'run private --clients 5 --help'; do
  ok $help
  says '^Usage: muster run WORKLOAD'
  [ "$(wc -l <"$scratch/out")" -le 40 ] || fail "muster $help: more than a screen"
  says 'Exit codes: 0 valid, 1 .*, 2 usage, 3 invalid'
  awk 'length > 100 { exit 1 }' "$scratch/out" || fail "muster $help: a line is wider than 100 columns"
done
ok help run all
says '--delivery-grace TIME'
awk 'length > 100 { exit 1 }' "$scratch/out" || fail "muster help run all: a line is wider than 100 columns"
awk '/:$/ { n = 0 } { if (++n > 25) exit 1 }' "$scratch/out" || fail "muster help run all: a group is longer than 24 lines"
ok help run phases
says '--delivery-grace TIME .*; in full where more may come, when given'
if grep -q -- '--payload-bytes' "$scratch/out"; then fail 'one group is one group'; fi
ok help compare
says 'put_document get_document batch_put'
says 'put_document\.p99'
says 'succeeded_per_second'
says 'items_per_second'
awk 'length > 100 { exit 1 }' "$scratch/out" || fail "muster help compare: a line is wider than 100 columns"
ok report --help
says '^Usage: muster report FILE'
ok help report
says '  markdown +a summary'
ok version
says '^muster [0-9]+\.[0-9]+\.[0-9]+ \(commit '
ok --version
ok drivers
says '^driver +acks +private +group '
says '^juggle +yes +yes +yes +yes +- '
says '^ack +PUBACK'
says '^delivery +'
awk 'length > 100 { exit 1 }' "$scratch/out" || fail "muster drivers: a line is wider than 100 columns"
ok drivers --json
says '"document": "drivers"'
says '"schemes": \["nats", "nats\+tls"\],'

for call in help 'help run' version drivers 'drivers --json'; do
  code=0
  "$muster" $call >/dev/full 2>"$scratch/err" || code=$?
  [ "$code" -eq 3 ] || fail "muster $call on a full disk: exit code $code"
  grep -q 'No space left' "$scratch/err" || fail "muster $call on a full disk says: $(cat "$scratch/err")"
done

# 3: a busy machine may make a short run invalid; what is tested here does not depend on that.
run() {
  call run "$@" --clients 6 --rate 30 --warmup 100ms --duration 1s --delivery-grace 2s
  [ "$code" -eq 0 ] || [ "$code" -eq 3 ] || fail "muster run $*: exit code $code: $(cat "$scratch/err")"
}

run private
says '^publishes +scheduled +attempted +acked +rejected +timed out +unsent$'
says '^deliveries +expected +observed +lost +duplicate +reordered'
says '^verdict +(valid|invalid)'
saved=$(sed -n 's/^report: //p' "$scratch/err")
case $saved in
  results/*Z-*-private.json) [ -s "$scratch/$saved" ] || fail "no report in $saved" ;;
  *) fail "the report's path is not printed: $(cat "$scratch/err")" ;;
esac

run group --group-senders 2 --output folder/report.json --hlog folder/run.hlog --quiet
[ ! -s "$scratch/err" ] || fail "--quiet is not quiet: $(cat "$scratch/err")"
grep -q '"name": "group"' "$scratch/folder/report.json" || fail 'no report in --output'
grep -q '^Tag=ack,' "$scratch/folder/run.hlog" || fail 'no ack clock in --hlog'
run group --group-senders 2 --output folder
ls "$scratch"/folder/*Z-*-group.json >/dev/null || fail 'no report in the folder of --output'

# Go's way of writing options, as jimbench's users do.
rm -rf "$scratch/results"
run private -store-messages=false --json - --environment lab -arrivals poisson --seed=12
[ "$(head -c1 "$scratch/out")" = '{' ] || fail '--json - prints something else than JSON'
says '"store_messages": false'
says '"environment_label": "lab"'
says '"arrivals": "poisson"'
says '"seed": "12"'
says '"rate_limits": "off"'
[ ! -e "$scratch/results" ] || fail '--json - saves a file all the same'

run private --ack received --rate-limits on --plain --json -
says '"ack_policy": "received"'
says '"rate_limits": "on"'
says '"obfuscate": false'

call run private --clients 0.006k -rate=0.03k --warmup 0.1s --duration 1000ms --delivery-grace 0.05m --json -
for figure in '"clients": 6' '"rate_per_second": 30' '"warmup_s": 0.1' '"duration_s": 1' '"delivery_grace_s": 3'; do
  says "$figure,\$"
done

small='--clients 6 --rate 30 --warmup 0s --duration 300ms'
code=0
(cd "$scratch" && "$muster" run private $small --quiet >/dev/full 2>err) || code=$?
[ "$code" -eq 3 ] || fail "a report on a full disk: exit code $code"
grep -q 'No space left' "$scratch/err" || fail "a report on a full disk says: $(cat "$scratch/err")"
(cd "$scratch" && "$muster" run private $small --quiet 2>err; echo $? >code) | true
[ "$(cat "$scratch/code")" -eq 3 ] || fail "a report into a closed pipe: exit code $(cat "$scratch/code")"
grep -q 'Broken pipe' "$scratch/err" || fail "a report into a closed pipe says: $(cat "$scratch/err")"

finish

#!/bin/bash
# Objectives, find and calibrate: bad input gets one line that says what and how to mend it.
. "$(dirname "$0")/lib.sh"
export MUSTER_APP_SECRET=0123456789abcdef

refused 2 'character 1: name a clock as delivery,.*muster help run objectives' run private --slo 'delivry.p99<1s'
refused 2 'character 17: a time needs its unit' run private --slo 'delivery.p99<250'
refused 2 'character 13: an operator must follow' run private --slo 'delivery.p99'
refused 2 'an objective is empty' run private --slo 'lost=0,'
refused 2 '--slo needs a value' run private --slo

refused 2 'say which workload' find
refused 2 "unknown workload 'prvate': did you mean private" find prvate
refused 2 '--vary x: give one of rate.clients' find private --vary x
refused 2 '--from 10 is above --to 5' find private --from 10 --to 5
refused 2 '--from 0: give publishes' find private --from 0
refused 2 'whole number of clients' find private --vary clients --from 2.5
refused 2 '--resolution 60%: give a share' find private --resolution 60%
refused 2 '--initial-clients means' find private --initial-clients 5 --from 5
refused 2 '--limit-rtt 5: give a time' find private --limit-rtt 5
refused 2 '--concurrent 20 is more than the 10 clients of the first test' find broadcast -c 20 --initial-clients 10
refused 2 '--initial-clients 0: give a whole' find broadcast -c 4 --initial-clients 0
refused 2 '--vary clients works' find broadcast -c 4 --step-size 10
refused 2 '--limit-percentile 100: give a whole' find private --limit-percentile 100
refused 2 '--keep-server is for the embedded' find private --keep-server --target ws://127.0.0.1:1 --app-key a
refused 2 '--hlog belongs to one run' find private --hlog x
refused 2 '--keep-server takes no value' find private --keep-server=1
refused 2 'would have to last' find private --from 1 --slo 'delivery.p99.99<1s'
refused 4 'nothing listens|cannot call' find private --target ws://127.0.0.1:1 --api-url http://127.0.0.1:1 --app-key a \
  --json -

refused 2 'say which load' calibrate
refused 2 'mqtts:// cannot be calibrated' calibrate private --target mqtts://127.0.0.1:1
refused 2 'driver stomp, which cannot be calibrated' calibrate private --driver stomp
refused 2 "'queue' cannot be calibrated over nats" calibrate queue --driver nats
refused 2 "'room' cannot be calibrated over juggle" calibrate room
refused 2 'leave it out' calibrate private --slo lost=0
for option in --csv=a.csv --jsonl=a --trials=2 --ui=0 --metrics=0 --observe=pid:1; do
  refused 2 "${option%%=*} belongs to .muster run.*leave it out" calibrate private "$option"
done
refused 2 "unknown option --vary" calibrate private --vary clients

export XDG_STATE_HOME=$scratch/state
call calibrate --show
[ "$code" -eq 0 ] || fail "calibrate --show: exit code $code"
says '^0 calibrations in .*/state/muster/calibrations.json$'
for command in find calibrate; do
  call help "$command"
  [ "$code" -eq 0 ] || fail "help $command: exit code $code"
  says "^Usage: muster $command"
  says '--resolution SHARE'
done

finish

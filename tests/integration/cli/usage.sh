#!/bin/bash
# Bad input: exit code 2, one line that says what and how to mend it, nothing on standard output.
. "$(dirname "$0")/lib.sh"

refused 2 'muster run private' # no command
refused 2 "unknown command 'rnu': did you mean run" rnu
refused 2 'muster run private' private
refused 2 'muster help' --frobnicate
refused 2 'takes no arguments' drivers now
refused 2 'takes no arguments' version 2
refused 2 "no group of options is called 'frob'.*all, scenario" help run frob
refused 2 "unknown command 'frob'" help frob
refused 2 "'foo' is no address, as /ip4/.*-protocol NAME" ricochet foo
refused 2 '--slo foo<1: objective .foo<1., character 1: name a clock' run private --slo 'foo<1'
[ "$(wc -c <"$scratch/err")" -lt 240 ] || fail "an overlong line: $(cat "$scratch/err")"
call help run objectives
says '^clocks +connect .*recover'
says '^counters +connections.attempted .*dropped'
call -V
[ "$code" -eq 0 ] || fail 'muster -V'
says '^muster'

refused 2 'private.*group' run
refused 2 'private.*group' run --clients 5
refused 2 "unknown workload 'grups': did you mean group" run grups
refused 2 "unknown workload 'x'" run x
refused 2 "unknown workload ''" run ''
refused 2 'one workload at a time' plan private group
refused 2 'one workload at a time' plan private --clients 5 private
refused 2 'two workloads are named private' run private --clients 5 private

refused 2 'unknown option --client: did you mean --clients' run private --client 5
refused 2 'did you mean --payload-bytes' run private --payload-byte=5
refused 2 'did you mean --rate' run private -rat 5
refused 2 'unknown option --frobnicate.*muster help run all' run private --frobnicate
refused 2 'unknown option --ws-url.*--target' run private --ws-url ws://127.0.0.1:1
refused 2 'unknown option --scenario.*muster run private' run --scenario private
refused 2 'unknown option --' run private --
long=$(printf 'a%.0s' $(seq 2000))
refused 2 'unknown option' run private "--$long"
refused 2 '--clients' run private --clients "$long"
refused 2 'unknown workload' run "$long"

refused 2 '--target: .*no password.*MUSTER_PASSWORD' run private --target nats://me:wonderland@127.0.0.1:1
! grep -q wonderland "$scratch/err" || fail "a password in a URL is repeated: $(cat "$scratch/err")"
refused 2 '--clients needs a value' run private --clients
refused 2 '--duration needs a value.*TIME' run private --duration

for value in '' 0 -5 five 5x 1.5 0x10 1e99 nan inf ' 5' '5 ' 99999999999 16000001; do
  refused 2 '--clients.*whole number from 1 to 16000000' run private --clients "$value"
done
for value in '' 0 -1 fast 1/2 nan inf 0x10 101M; do
  refused 2 '--rate.*publishes per second' run private --rate "$value"
done
for value in '' 5 -5s 5x 5sec s 1h1 nan 0x5s 5h '3 s' 0s 0; do
  refused 2 '--duration.*500ms, 30s, 2m or 1h' run private --duration "$value"
done
for value in '' -1s 10 2h 1d; do
  refused 2 '--delivery-grace.*500ms' run private --delivery-grace "$value"
done
refused 2 '--payload-bytes 0.*whole number' run private --payload-bytes 0
refused 2 '--payload-bytes' run private --payload-bytes 2M
refused 2 'payload' run private --payload-bytes 10
refused 2 '--workers 0.*1 to 1024' run private --workers 0
refused 2 '--connect-concurrency' run private --connect-concurrency 0
refused 2 '--setup-concurrency' run private --setup-concurrency many
refused 2 '--connect-timeout' run private --connect-timeout 0s
refused 2 '--ack-timeout' run private --ack-timeout never
refused 2 '--seed.*whole number' run private --seed 0
refused 2 '--seed' run private --seed 18446744073709551616
refused 2 '--seed' run private --seed=-1
refused 2 '--arrivals bursty: give one of constant.poisson' run private --arrivals bursty
refused 2 '--arrivals' run private --arrivals 'constant|poisson'
refused 2 '--arrivals' run private --arrivals=
refused 2 '--ack maybe: give one of durable.received' run private --ack maybe
refused 2 '--rate-limits' run private --rate-limits 1
refused 2 '--push-window' run private --push-window 0
refused 2 '--plain 1: give true or false' run private --plain=1
refused 2 '--store-messages' run private --store-messages=yes
refused 2 '--output' run private --output ''
refused 2 '--target' run private --target ''

refused 2 'somebody has to listen' run private --clients 1
refused 2 'even number' run pairs --clients 5
refused 2 '--group-senders belongs to group' run private --group-senders 2
refused 2 '--senders belongs to star' run private --senders 2
refused 2 '--clients belongs to' run star --clients 20
refused 2 '--groups belongs to' run group --groups 3
refused 2 '--group-senders 6 of --members 5' run groups --group-senders 6 --members 5
refused 2 '--receivers-online 41: there are only 40' run star --receivers-online 41
refused 2 'too|more than 16000000' run groups --groups 1M --members 100
refused 2 '--outstanding makes.*leave --rate out' run private --outstanding 2 --rate 5
refused 2 '--rounds says how many' run private --rounds 2 --count 5
refused 2 '--interval belongs to --rounds' run private --interval 1s
refused 2 '--max-rate belongs to closed' run private --max-rate 10
refused 2 '--steps: give' run private --steps 100,x
refused 2 '--steps: give' run private --steps 100@1s,200
refused 2 '--steps with lengths make the duration' run private --steps 100@1s --duration 5s
refused 2 '--steps are the rate' run private --steps 100 --rate 5
refused 2 '--count does not go with a rate that changes' run private --ramp-to 100 --count 5
refused 2 'has no chatrooms' run room --driver shootout-json
refused 2 'has no echoes' run echo --driver juggle
refused 2 '--driver nobody: .muster drivers. lists' run private --driver nobody
refused 2 '--group-senders 6 of --clients 5' run group --group-senders 6 --clients 5
refused 2 '--app-key needs --target' run private --app-key k

# The options of websocket-bench.
for value in '' 0 -1 1.5 many; do
  refused 2 '--concurrent .*whole number from 1' run echo --concurrent "$value"
  refused 2 '^muster: -c .*whole number from 1' run broadcast -c "$value"
  refused 2 '--sample-size .*whole number from 1' run broadcast --sample-size "$value"
  refused 2 '^muster: -s .*whole number from 1' run echo -s "$value"
  refused 2 '--payload-padding .*whole number from 1' run echo --payload-padding "$value"
done
refused 2 '^muster: -c needs a value: -c N' run echo -c
refused 2 'needs at least' run echo --payload-padding 5
refused 2 'did you mean --sample-size' run echo --sample-siz 5
refused 2 '--server-type xml: give one of json.binary.phoenix.actioncable' run echo --server-type xml
refused 2 '--server-type and --driver' run echo --server-type json --driver shootout-json
refused 2 '--server-type belongs to echo and broadcast runs' run private --server-type json
refused 2 '--concurrent belongs to echo and broadcast runs' run private --concurrent 4
refused 2 '--concurrent 7 does not divide among 3 clients' run echo --clients 3 --concurrent 7
refused 2 '--concurrent 7 does not divide among 3 clients' run broadcast --clients 3 --concurrent 7
refused 2 '--outstanding 100000: driver shootout-json takes' run echo --clients 1 --concurrent 100k
refused 2 '--concurrent and rounds' run echo --concurrent 4 --rounds 3
for other in '--senders 3' '--outstanding 3'; do
  refused 2 "all senders together await: leave ${other% *} out" run broadcast --concurrent 4 $other
done
refused 2 '--concurrent makes answers.*leave --rate out' run echo --concurrent 4 --rate 5
refused 2 '^muster: -l is there already: give one list' run echo -l 127.0.0.2 -l 127.0.0.3
refused 2 '-l|--local-addr' run echo -l ''
refused 2 '--origin needs --target' run echo -o http://127.0.0.1
for option in initial-clients step-size limit-rtt limit-percentile; do
  refused 2 "unknown option --$option: searches have it.*muster find" run broadcast --$option 5
done
refused 2 'unknown option --total-steps: a search ends' run broadcast --total-steps 5
refused 2 'unknown option --w: .*--workers' run broadcast -w 127.0.0.1:3000
refused 2 'unknown option --worker-addr: .*--workers' run broadcast --worker-addr 127.0.0.1:3000
refused 2 '--api-url needs --target' run private --api-url http://127.0.0.1:1
refused 2 '--navigator needs --target' run private --navigator http://127.0.0.1:1
refused 2 '--insecure needs --target' run private --insecure
refused 2 '--ack belongs to the embedded' run private --target ws://127.0.0.1:1 --ack received
refused 2 '--rate-limits belongs to the embedded' run private --target ws://127.0.0.1:1 --rate-limits on
refused 2 '--push-window belongs to the embedded' run private --target ws://127.0.0.1:1 --push-window 3
refused 2 'give one of them' run private --output a --json b

# What the driver does not read is refused, and so is what the workload does not use.
refused 2 '^muster: --qos has no effect with driver nats, only with mqtt: leave it out$' \
  run private --target nats://127.0.0.1:1 --qos 1
refused 2 '--ca-file has no effect with target ws://127.0.0.1:1, only .*https' run private --target ws://127.0.0.1:1 --ca-file x
refused 2 '--insecure has no effect' plan private --target redis://127.0.0.1:1 --insecure
refused 2 '--key has no effect with target .*mqtts' find private --target mqtt://127.0.0.1:1 --key x
refused 2 '--origin has no effect' run private --trials 2 --target stomp://127.0.0.1:1 --origin http://127.0.0.1
refused 2 '--user has no effect with driver juggle, only with mqtt' run private --target ws://127.0.0.1:1 --user u
refused 2 '--user has no effect with driver shootout-json' run echo --server-type json --target ws://127.0.0.1:1 --user u
refused 2 '--app-key has no effect with driver mqtt, only with juggle' run private --target mqtt://127.0.0.1:1 --app-key k
refused 2 '--store-messages has no effect' run private --target redis://127.0.0.1:1 --store-messages=false
refused 2 '--setup-concurrency has no effect' run private --target redis://127.0.0.1:1 --setup-concurrency 5
refused 2 '--keep-alive has no effect with driver ricochet' run msa --keep-alive 5s
refused 2 '--ack has no effect with driver shootout-json, only with juggle, ricochet' run echo --ack durable
refused 2 '--user u: NATS takes no user without a password: set MUSTER_PASSWORD' \
  run private --target nats://127.0.0.1:1 --user u
refused 2 '--user u: Redis takes no user without' run private --target redis://127.0.0.1:1 --user u
refused 2 'cannot read the certificate in nowhere .PEM.: No such file' \
  run private --target mqtts://127.0.0.1:1 --cert nowhere --key nowhere
refused 2 '--target: driver nats takes no redis:// but nats,nats.tls' run private --driver nats --target redis://127.0.0.1:1
refused 2 '--target: driver mqtt takes no ws:// but mqtt,' run private --driver mqtt --target ws://127.0.0.1:1
refused 2 'has no scheme' run private --driver mqtt --target 127.0.0.1:1883
refused 2 'unknown option --t: .muster help run all' run private -t ws://127.0.0.1:1
refused 2 'do not publish: leave --payload-bytes out' run hold --payload-bytes 100
refused 2 '--docs belongs to sync' run msa --docs 5
refused 2 '--batch-size belongs to sda-batch' run sfa --batch-size 5
printf 'name: a\ntitle: b\ndriver: nats\nmqtt:\n  qos: 2\n' >"$scratch/nats.yaml"
refused 2 '^muster: ./nats.yaml:5:3: qos has no effect with driver nats, only with mqtt' \
  run ./nats.yaml --target nats://127.0.0.1:1
printf 'name: a\ntitle: b\ndriver: juggle\nserver:\n  app-key: k\n' >"$scratch/key.yaml"
refused 2 '^muster: ./key.yaml:5:3: app-key needs a target, in this file or as --target' run ./key.yaml

export MUSTER_APP_SECRET=not-a-real-secret
refused 2 '--target' run private --target '://'
refused 2 'ws://127.0.0.1:9003' run private --target 127.0.0.1:9003
refused 2 "no driver speaks 'gopher'" run private --target gopher://127.0.0.1:70
refused 2 '--target.*65536' run private --target ws://127.0.0.1:65536
refused 2 '192.0.2.1 is not this machine.*--allow-non-loopback' run private --target ws://192.0.2.1:9003 --app-key k
refused 2 '--api-url.*--allow-non-loopback' run private --target ws://127.0.0.1:9 --api-url http://192.0.2.1 --app-key k
refused 2 '--navigator.*--allow-non-loopback' \
  run private --target ws://127.0.0.1:9 --navigator http://192.0.2.1 --app-key k
grep -q not-a-real-secret "$scratch/err" && fail 'the secret is printed'

# What messages below the command line advise must be options.
for command in find compare 'run all'; do
  call help $command
  cat "$scratch/out" >>"$scratch/help"
done
cp "$scratch/help" "$scratch/out"
cases=$((cases - 3))
advised=$(cd "$(dirname "$0")/../../../src" && grep -hoE '"[^"]*--[a-z][^"]*"' load/*.c driver/*.c net/*.c report/*.c |
  grep -oE -- '--[a-z][a-z-]+' | sort -u)
[ -n "$advised" ] || fail 'no message advises an option: the pattern is wrong'
for option in $advised; do
  cases=$((cases + 1))
  says "^  $option( |$)"
done

echo old >"$scratch/old"
refused 2 'exists already' run private --output old
refused 2 'exists already' run private --json old
refused 2 '--csv -: name a file' run private --csv -
refused 2 'exists already' run private --hlog old
refused 2 'is a folder' run private --hlog .
# A path that fits, but not with the number of a trial in it.
long=$(printf './%.0s' $(seq 2044))
refused 2 'the path is too long' run private --trials 2 --hlog "${long}a.hlog"
refused 2 'exists already' run private --html old
refused 2 'is a folder' run private --html .
[ "$(cat "$scratch/old")" = old ] || fail 'a file was overwritten'

finish

#!/bin/bash
# musterd's command line: what it refuses, what it prints when it is ready, how it ends, and that wss works.
set -u
build=$(cd "${1:?usage: $0 BUILD_FOLDER}" && pwd) || exit 1
musterd=$build/musterd
scratch=$(mktemp -d "${TMPDIR:-/tmp}/musterd-cli-XXXXXX")
server=
trap '[ -z "$server" ] || kill -KILL "$server" 2>/dev/null; rm -rf "$scratch"' EXIT
failures=0
unset MUSTERD_APP_SECRET MUSTERD_ADMIN_SECRET

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# refused PATTERN ARGUMENTS: exit code 2 and a line on standard error that matches.
refused() {
  local pattern=$1 code=0
  shift
  (cd "$scratch" && timeout --kill-after=5 20 "$musterd" "$@") >"$scratch/out" 2>"$scratch/err" </dev/null || code=$?
  [ "$code" -eq 2 ] || fail "musterd $*: exit code $code, not 2: $(cat "$scratch/err")"
  grep -qE -- "$pattern" "$scratch/err" || fail "musterd $*: '$pattern' is not in: $(cat "$scratch/err")"
  [ ! -s "$scratch/out" ] || fail "musterd $*: standard output is not empty"
}

free_ports='--api-port 0 --navigator-port 0 --ws-port 0 --admin-port 0'

# A limit on file sizes ends the server like a full disk, with a line.
check_file_limit() {
  local code=0
  # shellcheck disable=SC2086
  (ulimit -f 1 && exec timeout --kill-after=5 20 "$musterd" $free_ports --data "$scratch/limited") \
    >"$scratch/out" 2>"$scratch/err" </dev/null || code=$?
  [ "$code" -eq 1 ] || fail "with a limit on file sizes: exit code $code, not 1"
  [ "$(wc -l <"$scratch/err")" -eq 1 ] || fail "with a limit on file sizes: not one line: $(cat "$scratch/err")"
}

# started ARGUMENTS: runs a server on free ports; leaves $server and its line in $ready.
started() {
  rm -f "$scratch/ready" # else the line of the server before might be read
  # shellcheck disable=SC2086
  env --default-signal=HUP "$musterd" $free_ports --data "$scratch/data" "$@" >"$scratch/ready" 2>"$scratch/err" </dev/null &
  server=$!
  for _ in $(seq 100); do
    [ -s "$scratch/ready" ] && break
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  ready=$(cat "$scratch/ready" 2>/dev/null)
  [ -n "$ready" ] || fail "musterd $*: never ready: $(cat "$scratch/err")"
}

# ended SIGNAL: the server ends with 0 after it.
ended() {
  local code=0
  kill "-$1" "$server"
  wait "$server" || code=$?
  server=
  [ "$code" -eq 0 ] || fail "exit code $code after SIG$1: $(cat "$scratch/err")"
}

check_file_limit
refused "unknown option" --frobnicate
refused "no-such|option" no-such
refused "^musterd: --ws-port needs a value" --ws-port
for value in '' -1 65536 five 5x 0x10 99999999999; do
  refused "--ws-port: .*whole number from 0 to 65535" --ws-port "$value"
done
refused "--ack: \"maybe\" is neither durable nor received" --ack maybe
refused "--gateways: .*1 to 1024" --gateways 0
refused "--push-window: .*1 to 16384" --push-window 0
refused "--message-max-bytes: .*1024 to 67108864" --message-max-bytes 67108865
refused "--message-max-bytes" --message-max-bytes 10
refused "no loopback address.*--allow-non-loopback" --host 0.0.0.0
refused "MUSTERD_APP_SECRET" --app-key demo
MUSTERD_APP_SECRET=short refused "16 characters" --app-key demo
# shellcheck disable=SC2086
refused "certificate" $free_ports --data "$scratch/none" --tls-cert only.pem

"$musterd" --help >"$scratch/out" || fail "--help: exit code $?"
for option in host api-port navigator-port ws-port admin-port data ack gateways no-rate-limits rate-limit push-window \
  session-out-bytes message-max-bytes slow-reader app-key tls-cert tls-key allow-non-loopback; do
  grep -q -- "--$option" "$scratch/out" || fail "--help does not name --$option"
done
"$musterd" --version | grep -qE '^musterd [0-9]+\.[0-9]+\.[0-9]+$' || fail "--version"

line='^musterd ready: ws 127\.0\.0\.1:[0-9]+ api 127\.0\.0\.1:[0-9]+ navigator 127\.0\.0\.1:[0-9]+ admin 127\.0\.0\.1:[0-9]+ data .* ack'
export MUSTERD_APP_SECRET=0123456789abcdef
started --app-key demo
echo "$ready" | grep -qE "$line durable\$" || fail "ready line: $ready"
port=$(echo "$ready" | sed -E 's/.* api [^ ]*:([0-9]+) .*/\1/')
taken=0
"$musterd" --navigator-port 0 --ws-port 0 --admin-port 0 --api-port "$port" --data "$scratch/other" \
  >/dev/null 2>"$scratch/err" || taken=$?
[ "$taken" -eq 1 ] || fail "a port that is in use: exit code $taken"
grep -q "HTTP API: cannot listen" "$scratch/err" || fail "a port that is in use: $(cat "$scratch/err")"
ended TERM
started --ack received
echo "$ready" | grep -qE "$line received\$" || fail "ready line: $ready"
ended INT
umask 022
started --ricochet=127.0.0.1:0
echo "$ready" | grep -qE ' ricochet /ip4/127\.0\.0\.1/udp/[1-9]' || fail "a free port of Ricochet: $ready"
[ -z "$(find "$scratch/data" -type f -perm /077)" ] || fail "open to others: $(ls -l "$scratch/data")"
ended HUP

if command -v openssl >/dev/null && command -v curl >/dev/null; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
    -addext subjectAltName=IP:127.0.0.1 -keyout "$scratch/key.pem" -out "$scratch/cert.pem" 2>/dev/null ||
    fail "openssl made no certificate"
  started --tls-cert "$scratch/cert.pem" --tls-key "$scratch/key.pem"
  port=$(echo "$ready" | sed -E 's/.* wss [^ ]*:([0-9]+) .*/\1/')
  answer=$(curl -sS --max-time 10 --cacert "$scratch/cert.pem" "https://127.0.0.1:$port/health")
  [ "$answer" = '{"status":"ok"}' ] || fail "/health over TLS: $answer"
  ended TERM
fi

echo "$failures failures"
[ "$failures" -eq 0 ]

# Sourced by the helpers that start a real server for tests; $dir is the folder of the one that is started.

# DIR/ca.pem, and DIR/server.pem with DIR/server.key for localhost and 127.0.0.1.
make_certificate() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=muster test authority" \
    -keyout "$dir/ca.key" -out "$dir/ca.pem" 2>/dev/null
  echo "subjectAltName=DNS:localhost,IP:127.0.0.1" >"$dir/names"
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$dir/server.key" -out "$dir/server.csr" \
    -subj "/CN=localhost" 2>/dev/null
  openssl x509 -req -in "$dir/server.csr" -CA "$dir/ca.pem" -CAkey "$dir/ca.key" -CAcreateserial -days 2 \
    -extfile "$dir/names" -out "$dir/server.pem" 2>/dev/null
}

# Below the ports that the system hands out by itself.
random_port() {
  echo $((20000 + $(od -An -N2 -tu2 /dev/urandom) % 12000))
}

# Waits until LOG has a line that matches PATTERN; fails when PID ended first (a port was taken).
wait_for() { # PID LOG PATTERN
  for _ in $(seq 1200); do # a minute: a busy machine
    grep -q "$3" "$2" 2>/dev/null && return 0
    kill -0 "$1" 2>/dev/null || return 1
    sleep 0.05
  done
  return 1
}

# Ends the processes whose ids stand in DIR/pid.
stop_servers() {
  for pid in $(cat "$dir/pid"); do
    kill "$pid" 2>/dev/null || continue
    for _ in $(seq 100); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.05
    done
    kill -9 "$pid" 2>/dev/null || true
  done
  rm "$dir/pid"
}

#!/usr/bin/env bash
# Deploys a Flower app on loopback with real processes: one SuperLink, one
# SuperNode per site, then `flwr run`. Stops everything at the end. Needs Flower
# 1.40 or 1.41 on PATH (or VENV=DIR), and openssl for --secure.
#
#   deploy.sh APP_DIR [--nodes 10] [--only "0 1 2"]
#             [--simulate | --secure [--check-refusals] [--check-restart]]
#             [--work DIR] [--run-config "k=v ..."] [--exec CMD]
#
# --nodes N         num-partitions told to every SuperNode
# --only "I ..."    partitions that get a SuperNode (default: 0 .. N-1)
# --names "A ..."   client-name of each of those, in their order
# --simulate        no SuperNodes: Flower's simulation engine plays them
# --secure          TLS, and SuperNodes authenticated by registered keys
# --check-refusals  (with --secure) an unregistered key and plaintext must fail
# --check-restart   (with --secure) a SuperLink killed with -9 must know its keys again
# --work DIR        holds logs, FLWR_HOMEs, keys; each process works in a folder
#                   of its own there (default: temporary, removed after success)
# --exec CMD        bash command to run in place of `flwr run`; it finds DEPLOY_WORK,
#                   DEPLOY_APP, and FLWR_HOME with the connection as the default
# Exit code: 0 if the run ended as finished:completed (with --exec: that of CMD).
set -euo pipefail

die() { echo "deploy: $*" >&2; exit 1; }
say() { echo "deploy: $*"; }
usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; }

app='' nodes=10 only='' names='' simulate='' secure='' refusals='' restart='' work='' run_config='' cmd=''
while [ $# -gt 0 ]; do
  case $1 in
    --nodes) nodes=${2:?value missing}; shift ;;
    --only) only=${2:?value missing}; shift ;;
    --names) names=${2:?value missing}; shift ;;
    --work) work=${2:?value missing}; shift ;;
    --run-config) run_config=${2:?value missing}; shift ;;
    --exec) cmd=${2:?value missing}; shift ;;
    --simulate) simulate=1 ;;
    --secure) secure=1 ;;
    --check-refusals) refusals=1 ;;
    --check-restart) restart=1 ;;
    -h|--help) usage; exit 0 ;;
    -*) die "unknown option $1" ;;
    *) [ -z "$app" ] || die "more than one APP_DIR"; app=$1 ;;
  esac
  shift
done
[[ $nodes =~ ^[0-9]+$ ]] || die "--nodes needs a number"
[ -n "$app" ] || { usage >&2; exit 2; }
[ -f "$app/pyproject.toml" ] || die "no pyproject.toml in $app"
app=$(cd "$app" && pwd)
[ -z "$refusals$restart" ] || [ -n "$secure" ] || die "--check-refusals and --check-restart need --secure"
[ -z "$simulate" ] || [ -z "$secure$only" ] || die "--simulate goes with neither --secure nor --only"
[ -n "$only" ] || only=$(seq -s ' ' 0 $((nodes - 1)))
read -ra sites <<<"$only"
read -ra called <<<"$names"
[ -z "$names" ] || [ ${#called[@]} = ${#sites[@]} ] || die "--names needs one for each node"
[ -z "$simulate" ] || sites=()

# SuperLink and SuperNode find their helpers (flower-superexec, flwr-serverapp,
# flwr-clientapp) by PATH, so Flower's venv has to come first there.
[ -z "${VENV:-}" ] || [ -d "$VENV/bin" ] || die "VENV=$VENV: no such virtual environment"
[ -z "${VENV:-}" ] || PATH=$(cd "$VENV" && pwd)/bin:$PATH
flwr=$(command -v flwr) || die "flwr is not on PATH (or set VENV=DIR)"
export PATH="${flwr%/*}:$PATH"

made=''
[ -n "$work" ] || { work=$(mktemp -d "${TMPDIR:-/tmp}/deploy.XXXXXX"); made=1; }
mkdir -p "$work"
chmod 700 "$work"
work=$(cd "$work" && pwd) log=$work/log
export FLWR_HOME=$work/flwr DEPLOY_WORK=$work DEPLOY_APP=$app
export FLWR_TELEMETRY_ENABLED=0 FLWR_DISABLE_UPDATE_CHECK=1 PYTHONUNBUFFERED=1
export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost
mkdir -p "$FLWR_HOME" "$log"
rm -f "$log"/*

# Flower moves the SuperLink's SuperExec and ServerApp into another session, so
# what we start carries a mark in its environment and is found by that.
mark=DEPLOY_ID=$work/$$
ours() { { grep -lszxF "$mark" /proc/[0-9]*/environ || true; } | cut -d/ -f3 | xargs; }
gone() { # gone SECONDS: wait until none of ours is left
  local i
  for ((i = 0; i < $1 * 5; i++)); do [ -n "$(ours)" ] || return 0; sleep 0.2; done
  return 1
}
nodes_started=() # process groups
start() { # start NAME CMD...: in a session, folder and FLWR_HOME of its own
  local name=$1; shift
  mkdir -p "$work/$name/flwr"
  : >"$log/$name.log"
  setsid env -C "$work/$name" "$mark" FLWR_HOME="$work/$name/flwr" "$@" \
    >>"$log/$name.log" 2>&1 </dev/null &
  started=$!
  disown
}
stop() {
  local rc=$? pid
  trap '' INT TERM
  trap - EXIT
  for pid in "${nodes_started[@]}"; do kill -TERM -- "-$pid" 2>/dev/null || true; done
  sleep 1 # the nodes sign off
  # shellcheck disable=SC2046
  kill -TERM $(ours) 2>/dev/null || true
  # shellcheck disable=SC2046
  gone 10 || kill -KILL $(ours) 2>/dev/null || true
  gone 5 || { echo "deploy: still running: $(ours)" >&2; rc=1; }
  if [ "$rc" = 0 ] && [ -n "$made" ]; then rm -rf "$work"; else say "work directory: $work"; fi
  exit "$rc"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Ports: SuperLink, one per SuperNode, two for --check-refusals.
read -ra ports < <(python3 - $((${#sites[@]} + 3)) <<'PY'
import socket, sys
s = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*[x.getsockname()[1] for x in s])
PY
)
address=127.0.0.1:${ports[0]}

if [ -n "$secure" ]; then
  tls=$work/tls keys=$work/keys
  mkdir -p "$tls" "$keys"
  {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-384 -nodes -days 30 \
      -subj '/CN=deploy CA' -addext 'keyUsage=critical,keyCertSign,cRLSign' \
      -keyout "$tls/ca.key" -out "$tls/ca.crt"
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-384 -nodes \
      -subj '/CN=localhost' -keyout "$tls/server.key" -out "$tls/server.csr"
    openssl x509 -req -in "$tls/server.csr" -CA "$tls/ca.crt" -CAkey "$tls/ca.key" \
      -CAcreateserial -days 30 -out "$tls/server.crt" -extfile <(printf '%s\n' \
        subjectAltName=DNS:localhost,IP:127.0.0.1 extendedKeyUsage=serverAuth)
  } >"$log/openssl.log" 2>&1 || { cat "$log/openssl.log" >&2; die "openssl failed"; }
  # Flower reads OpenSSH key files; cryptography is one of its dependencies.
  python3 - "$keys" "${sites[@]}" stranger <<'PY'
import os, sys
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
os.umask(0o077)
for name in sys.argv[2:]:
    key = ec.generate_private_key(ec.SECP384R1())
    with open(f"{sys.argv[1]}/{name}", "wb") as f:
        f.write(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    with open(f"{sys.argv[1]}/{name}.pub", "wb") as f:
        f.write(key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))
PY
  link_args=(--ssl-ca-certfile "$tls/ca.crt" --ssl-certfile "$tls/server.crt"
    --ssl-keyfile "$tls/server.key" --enable-supernode-auth)
  node_args=(--root-certificates "$tls/ca.crt")
  connection="root-certificates = \"$tls/ca.crt\""
else
  link_args=(--insecure ${simulate:+--simulation}) node_args=(--insecure) connection='insecure = true'
fi
printf '[superlink]\ndefault = "deploy"\n\n[superlink.deploy]\naddress = "%s"\n%s\n' \
  "$address" "$connection" >"$FLWR_HOME/config.toml"

say "SuperLink on $address${secure:+ (TLS, SuperNode authentication)}"
start_link() { # keys and runs are kept in the database
  local i
  start superlink flower-superlink "${link_args[@]}" --host 127.0.0.1 --port "${ports[0]}" \
    --database "$work/superlink/superlink.db" --disable-runtime-dependency-installation
  link=$started
  for ((i = 0; i < 300; i++)); do
    kill -0 "$link" 2>/dev/null || { tail -n 20 "$log/superlink.log" >&2; die "SuperLink died"; }
    (: <"/dev/tcp/127.0.0.1/${ports[0]}") 2>/dev/null && break
    sleep 0.2
  done
}
start_link
if [ -n "$secure" ]; then
  for s in "${sites[@]}"; do
    flwr supernode register "$keys/$s.pub" --name "site-$s" >>"$log/register.log" 2>&1 </dev/null ||
      { tail -n 20 "$log/register.log" >&2; die "could not register the key of site $s"; }
  done
  say "registered ${#sites[@]} public keys"
fi

if [ -n "$simulate" ]; then
  for ((i = 0; ; i++)); do # a SuperLink on a busy machine listens before it answers
    flwr federation simulation-config @none/default deploy --num-supernodes "$nodes" \
      >"$log/simulation.log" 2>&1 </dev/null && break
    [ "$i" -lt 9 ] || { cat "$log/simulation.log" >&2; die "no simulation"; }
    sleep 2
  done
  say "$nodes SuperNodes, simulated"
fi

own_name=''
node() { # node NAME PORT SITE ARGS...
  start "$1" flower-supernode "${@:4}" --superlink "$address" --port "$2" \
    --node-config "partition-id=$3 num-partitions=$nodes${own_name:+ client-name=\"$own_name\"}"
  nodes_started+=("$started")
}
online() { # how many SuperNodes the SuperLink has online
  flwr supernode list --format json </dev/null | python3 -c '
import json, sys
print(sum(n["status"] == "online" for n in json.load(sys.stdin)["nodes"]))'
}
for k in "${!sites[@]}"; do
  s=${sites[k]} own_name=${called[k]:-}
  node "node-$s" "${ports[k + 1]}" "$s" "${node_args[@]}" \
    ${secure:+--auth-supernode-private-key "$keys/$s"}
done
own_name=''
for k in "${!sites[@]}"; do
  file=$log/node-${sites[k]}.log
  for ((i = 0; i < 600; i++)); do
    if grep -q 'SuperNode ID:' "$file"; then break; fi
    kill -0 "${nodes_started[k]}" 2>/dev/null || { tail -n 20 "$file" >&2; die "SuperNode ${sites[k]} died"; }
    sleep 0.5
  done
done
if [ -z "$simulate" ]; then
  up=$(online)
  [ "$up" = ${#sites[@]} ] || die "$up of ${#sites[@]} SuperNodes online"
  say "$up SuperNodes online: ${sites[*]}"
fi

refused() { # refused WHAT PORT PATTERN ARGS...: this SuperNode must be turned away
  local i file=$log/refused-${1// /-}.log
  node "refused-${1// /-}" "$2" 0 "${@:4}" --max-retries 1
  for ((i = 0; i < 300; i++)); do
    if grep -q 'SuperNode ID:' "$file"; then die "let in: $1"; fi
    kill -0 "$started" 2>/dev/null || break
    sleep 0.2
  done
  grep -qE "$3" "$file" || { cat "$file" >&2; die "no clear refusal: $1"; }
  echo "refused: $1"
}
if [ -n "$refusals" ]; then
  k=${#sites[@]}
  refused 'unregistered key' "${ports[k + 1]}" 'code: 2004' "${node_args[@]}" \
    --auth-supernode-private-key "$keys/stranger"
  refused plaintext "${ports[k + 2]}" 'reset by peer|disconnected' --insecure
  [ "$(online)" = "$k" ] || die "the number of SuperNodes online changed"
fi

if [ -n "$restart" ]; then
  kill -KILL -- "-$link"
  start_link
  for ((i = 0; i < 300; i++)); do [ "$(online)" = ${#sites[@]} ] && break || sleep 0.5; done
  [ "$(online)" = ${#sites[@]} ] || die "after a restart $(online) of ${#sites[@]} SuperNodes are online"
  echo "restarted: the SuperLink knows its ${#sites[@]} keys"
fi

# In the background, so that a signal to this script acts at once.
if [ -n "$cmd" ]; then
  rc=0; env "$mark" bash -c "$cmd" & wait $! || rc=$?
  exit "$rc"
fi
env "$mark" flwr run "$app" deploy --stream ${run_config:+--run-config "$run_config"} </dev/null 2>&1 |
  tee "$log/run.log" & wait $! || true
# `flwr run --stream` exits 0 also when the run failed: ask for its status.
run_id=$(grep -oE 'Successfully started run [0-9]+' "$log/run.log" | grep -oE '[0-9]+') ||
  die "the run did not start"
status=$(flwr list deploy --run-id "$run_id" --format json </dev/null | python3 -c '
import json, sys
print(json.load(sys.stdin)["runs"][0]["status"])')
say "run $run_id: $status"
[ "$status" = finished:completed ]

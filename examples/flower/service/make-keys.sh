#!/usr/bin/env bash
# Makes what TLS and node authentication need: a certificate authority, the server's certificate, a key for every node.
#
#   make-keys.sh FOLDER SERVER NODE...
#
# SERVER is the server's name or IP address, as nodes will call it; the SuperLink's own processes call it
# 127.0.0.1, so that the certificate names that too. FOLDER then holds
#   server/{ca.crt,server.crt,server.key}   for the server
#   NODE/{ca.crt,node.key}                  for that node; nobody else needs its key
#   NODE.pub                                to register it: flwr supernode register FOLDER/NODE.pub --name NODE
#   ca.key                                  to sign further certificates; keep it off both
set -euo pipefail
[ $# -ge 3 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2; }
folder=$1 server=$2
shift 2
[ ! -e "$folder" ] || { echo "make-keys: $folder exists" >&2; exit 2; }
umask 077
mkdir -p "$folder/server"
if [[ $server =~ ^[0-9.]+$|: ]]; then name=IP:$server; else name=DNS:$server; fi
curve=(-newkey ec -pkeyopt ec_paramgen_curve:P-384 -nodes)
openssl req -x509 "${curve[@]}" -days 3650 -subj '/CN=safari' -addext 'keyUsage=critical,keyCertSign,cRLSign' \
  -keyout "$folder/ca.key" -out "$folder/server/ca.crt" 2>/dev/null
openssl req "${curve[@]}" -subj "/CN=$server" -keyout "$folder/server/server.key" -out "$folder/server.csr" 2>/dev/null
openssl x509 -req -in "$folder/server.csr" -CA "$folder/server/ca.crt" -CAkey "$folder/ca.key" -CAcreateserial \
  -days 825 -out "$folder/server/server.crt" \
  -extfile <(printf '%s\n' "subjectAltName=$name,DNS:localhost,IP:127.0.0.1" extendedKeyUsage=serverAuth) 2>/dev/null
rm -f "$folder/server.csr" "$folder/server/ca.srl" "$folder/ca.srl"
for node in "$@"; do
  mkdir "$folder/$node"
  cp "$folder/server/ca.crt" "$folder/$node/ca.crt"
  ssh-keygen -q -t ecdsa -b 384 -N '' -C "$node" -f "$folder/$node/node.key"
  mv "$folder/$node/node.key.pub" "$folder/$node.pub"
done

#!/usr/bin/env bash
# Stores a first file while the program is not built yet: builds agents and a gateway, which is a part of all that there is to build, puts a
# file into a cluster of them and reads it, and leaves them running while the rest is built, of which it shows how far it is.
#
#   begin.sh COMMAND...    what builds the rest, with go build
set -euo pipefail
cd "$(dirname "$0")/../.."

say() { echo "$SECONDS s: $*"; }

work=$(mktemp -d)
started=()
finish() {
  kill "${started[@]}" 2>/dev/null || true
  wait
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

# serve NAME ARGUMENT...: starts a part of the cluster, and waits until it has said at which address it listens.
serve() {
  local name=$1
  shift
  bin/restripe-agent "$@" --listen 127.0.0.1:0 >"$work/$name.log" 2>&1 &
  started+=($!)
  until address=$(sed -n 's/.* listening on \([0-9.:]*\).*/\1/p' "$work/$name.log") && [ -n "$address" ]; do
    kill -0 $! 2>/dev/null || { cat "$work/$name.log" >&2; exit 1; }
    sleep 0.1
  done
}

say "building agents and a gateway, which come first"
CGO_ENABLED=0 go build -trimpath -tags grpcnotrace -ldflags '-s -w' -o bin/ ./tui/restripe-agent
echo "nodes:" >"$work/nodes.yaml"
for node in n1 n2 n3; do
  serve $node agent --id $node --store "file:$work/$node"
  echo "- {id: $node, address: \"$address\"}" >>"$work/nodes.yaml"
done
echo 'classes: [{name: first, ladder: "rep(3)", prefixes: [""]}]' >"$work/classes.yaml"
serve gateway gateway --catalog "sqlite:$work/catalog.db" --nodes "$work/nodes.yaml" --classes "$work/classes.yaml"
if command -v curl >/dev/null; then
  curl --silent --show-error --fail --retry 20 --retry-all-errors --retry-delay 1 --upload-file README.md "http://$address/v1/objects/README.md" >/dev/null
  curl --silent --show-error --fail "http://$address/v1/objects/README.md" | cmp - README.md
  say "README.md is stored on three nodes and was read again: curl http://$address/v1/objects/README.md"
else
  say "three nodes and a gateway serve at http://$address"
fi

say "building the rest, which takes minutes the first time: a Kubernetes API server is among it"
GOFLAGS="${GOFLAGS:-} -v" "$@" >"$work/build.log" 2>&1 &
build=$!
since=$SECONDS
while kill -0 $build 2>/dev/null; do
  sleep 0.5
  [ $((SECONDS - since)) -ge 10 ] || continue
  since=$SECONDS
  say "building; $(grep -c '^[a-z0-9][^ ]*$' "$work/build.log") packages so far"
done
wait $build || { tail -n 30 "$work/build.log" >&2; exit 1; }
say "everything is built"

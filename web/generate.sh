#!/usr/bin/env bash
# Writes the TypeScript of the console's contract from operator/api/console/v1/*.proto into src/gen. It needs protoc with
# the files of google/protobuf (Debian: protobuf-compiler and libprotobuf-dev) and the packages of `npm ci`. The first
# argument, if given, is the root of another copy of the repository to write to.
set -eu -o pipefail
cd "$(dirname "$0")/.."
root=$(realpath "${1:-.}")
if ! command -v protoc >/dev/null || [ ! -e /usr/include/google/protobuf/timestamp.proto ]; then
  echo "protoc and google/protobuf/timestamp.proto are needed: apt-get install protobuf-compiler libprotobuf-dev" >&2
  exit 1
fi
generator=web/node_modules/.bin/protoc-gen-es
if [ ! -e "$generator" ]; then
  echo "$generator is needed: cd web && npm ci" >&2
  exit 1
fi
rm -rf "$root/web/src/gen"
mkdir -p "$root/web/src/gen"
protoc -I operator/api --plugin=protoc-gen-es="$generator" \
  --es_out="$root/web/src/gen" --es_opt=target=ts \
  operator/api/console/v1/*.proto

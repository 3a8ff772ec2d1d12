#!/usr/bin/env bash
# Writes the Go of the console's contract from operator/api/console/v1/*.proto. It needs protoc with the files of
# google/protobuf (Debian: protobuf-compiler and libprotobuf-dev); the generators are modules of pinned versions. The
# first argument, if given, is the root of another copy of the repository to write to.
set -eu -o pipefail
cd "$(dirname "$0")/../.."
root=$(realpath "${1:-.}")
if ! command -v protoc >/dev/null || [ ! -e /usr/include/google/protobuf/timestamp.proto ]; then
  echo "protoc and google/protobuf/timestamp.proto are needed: apt-get install protobuf-compiler libprotobuf-dev" >&2
  exit 1
fi
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
GOBIN="$tools" go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
GOBIN="$tools" go install connectrpc.com/connect/cmd/protoc-gen-connect-go@v1.21.1
mkdir -p "$root/operator/api/console/v1"
# The version of protoc is left out of what is written, so that any one gives the same.
PATH="$tools:$PATH" protoc -I operator/api \
  --go_out="$root" --go_opt=module=github.com/restripe/restripe \
  --connect-go_out="$root" --connect-go_opt=module=github.com/restripe/restripe,simple \
  operator/api/console/v1/*.proto
sed -i '/^\/\/ \tprotoc  *v/d' "$root"/operator/api/console/v1/*.pb.go

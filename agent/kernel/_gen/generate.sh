#!/usr/bin/env bash
# Writes the assembly of package kernel and its Go declarations, one file of each for every instruction set.
set -eu
cd "$(dirname "$0")"
go vet .
for isa in avx512 avx2gfni avx2; do
  go run . -isa "$isa" -pkg kernel -out "../${isa}_amd64.s" -stubs "../${isa}_amd64.go"
done

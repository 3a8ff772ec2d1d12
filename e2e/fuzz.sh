#!/usr/bin/env bash
# Runs every fuzz target of the module for a few seconds each.
set -eu -o pipefail
cd "$(dirname "$0")/.."
time_each=${FUZZ_TIME:-3s}
grep -rlE '^func Fuzz[A-Z]' --include='*_test.go' . | sort | while read -r file; do
  directory=$(dirname "$file")
  grep -oE '^func Fuzz[A-Za-z0-9_]+' "$file" | sed 's/^func //' | while read -r target; do
    echo "$directory $target"
    go test -run '^$' -fuzz "^${target}\$" -fuzztime "$time_each" "$directory"
  done
done

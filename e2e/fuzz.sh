#!/usr/bin/env bash
# Runs every fuzz target of the module for a few seconds each (FUZZ_TIME), and all of them even if one fails.
set -u
cd "$(dirname "$0")/.."
time_each=${FUZZ_TIME:-3s}
failed=()
count=0
mapfile -t files < <(grep -rlE '^func Fuzz[A-Z]' --include='*_test.go' . | sort)
for file in "${files[@]}"; do
  directory=$(dirname "$file")
  mapfile -t targets < <(grep -oE '^func Fuzz[A-Za-z0-9_]+' "$file" | sed 's/^func //')
  for target in "${targets[@]}"; do
    count=$((count + 1))
    echo "$directory $target"
    go test -run '^$' -fuzz "^${target}\$" -fuzztime "$time_each" "$directory" </dev/null || failed+=("$directory $target")
  done
done
if [ ${#failed[@]} -gt 0 ]; then
  printf 'failed: %s\n' "${failed[@]}"
  exit 1
fi
echo "$count fuzz targets ran for $time_each each"

#!/usr/bin/env bash
# Runs every fuzz target of the module for a few seconds each (FUZZ_TIME), and all of them even if one fails.
set -u -o pipefail
cd "$(dirname "$0")/.."
time_each=${FUZZ_TIME:-3s}
failed=()
count=0
output=$(mktemp)
trap 'rm -f "$output"' EXIT
mapfile -t files < <(grep -rlE '^func Fuzz[A-Z]' --include='*_test.go' . | sort)
for file in "${files[@]}"; do
  directory=$(dirname "$file")
  mapfile -t targets < <(grep -oE '^func Fuzz[A-Za-z0-9_]+' "$file" | sed 's/^func //')
  for target in "${targets[@]}"; do
    count=$((count + 1))
    echo "$directory $target"
    if go test -run '^$' -fuzz "^${target}\$" -fuzztime "$time_each" "$directory" </dev/null 2>&1 | tee "$output"; then
      continue
    fi
    # The toolchain at times reports the end of the time itself as a failure; a real one names its input.
    if grep -q '^    context deadline exceeded$' "$output" && ! grep -q 'Failing input' "$output"; then
      echo "no input failed; the time ended in the middle of a call"
      continue
    fi
    failed+=("$directory $target")
  done
done
if [ ${#failed[@]} -gt 0 ]; then
  printf 'failed: %s\n' "${failed[@]}"
  exit 1
fi
echo "$count fuzz targets ran for $time_each each"

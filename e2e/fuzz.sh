#!/usr/bin/env bash
# Runs every fuzz target of the module a number of times (FUZZ_RUNS), and all of them even if one fails. It is a number and
# no time since the toolchain at times reports the end of the time itself as a failure.
set -u
cd "$(dirname "$0")/.."
runs=${FUZZ_RUNS:-4000}
failed=()
count=0
mapfile -t files < <(grep -rlE '^func Fuzz[A-Z]' --include='*_test.go' . | sort)
for file in "${files[@]}"; do
  directory=$(dirname "$file")
  mapfile -t targets < <(grep -oE '^func Fuzz[A-Za-z0-9_]+' "$file" | sed 's/^func //')
  for target in "${targets[@]}"; do
    count=$((count + 1))
    echo "$directory $target"
    go test -run '^$' -fuzz "^${target}\$" -fuzztime "${runs}x" "$directory" </dev/null || failed+=("$directory $target")
  done
done
if [ ${#failed[@]} -gt 0 ]; then
  printf 'failed: %s\n' "${failed[@]}"
  exit 1
fi
echo "$count fuzz targets ran $runs times each"

#!/usr/bin/env bash
# Runs every fuzz target of the module a number of times (FUZZ_RUNS), and all of them even if one fails. It is a number and
# no time since the toolchain at times reports the end of the time itself as a failure. With arguments, those of these folders.
set -u
cd "$(dirname "$0")/.."
runs=${FUZZ_RUNS:-2000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=()
count=0
mapfile -t directories < <(grep -rlE '^func Fuzz[A-Z]' --include='*_test.go' "${@:-.}" | xargs -n1 dirname | sort -u)
for directory in "${directories[@]}"; do
  # One program for all targets of a package, as it is linked for each otherwise. It finds new inputs where go test would.
  if ! go test -c -fuzz . -o "$work/fuzz" "./$directory"; then
    failed+=("$directory")
    continue
  fi
  mapfile -t targets < <(grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$directory"/*_test.go | sed 's/^func //')
  for target in "${targets[@]}"; do
    count=$((count + 1))
    echo "$directory $target"
    (cd "$directory" && "$work/fuzz" -test.run '^$' -test.fuzz "^${target}\$" -test.fuzztime "${runs}x" -test.fuzzcachedir "$work/cache" -test.timeout 10m </dev/null) ||
      failed+=("$directory $target")
  done
done
if [ ${#failed[@]} -gt 0 ]; then
  printf 'failed: %s\n' "${failed[@]}"
  exit 1
fi
echo "$count fuzz targets ran $runs times each"

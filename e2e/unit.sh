#!/usr/bin/env bash
# Runs the unit and property tests, prints a line for each package, and names every test that was skipped with its reason.
set -u
cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
mapfile -t packages < <(go list ./... | grep -v '/e2e$')
if ! go test -v "${packages[@]}" >"$log" 2>&1; then
  cat "$log"
  exit 1
fi
grep -E '^ok' "$log"
echo "Skipped here, and why:"
awk '
  $1 == "===" && ($2 == "RUN" || $2 == "NAME" || $2 == "CONT") { test = $3 }
  /^ +[a-z_]+\.go:[0-9]+: / { said[test] = $0 }
  $1 == "---" && $2 == "SKIP:" { print "  " $3 ":" said[$3]; any = 1 }
  END { if (!any) print "  nothing" }' "$log"

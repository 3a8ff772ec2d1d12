#!/usr/bin/env bash
# Runs the unit and property tests, prints a line for each package, and names every test that was skipped with its reason. A
# skip that skips.txt does not expect fails the check.
set -u
cd "$(dirname "$0")/.."
source e2e/report.sh
log=$(mktemp)
trap 'rm -f "$log"' EXIT
mapfile -t packages < <(go list ./... | grep -v '/e2e$')
if ! go test -timeout 20m -v "${packages[@]}" >"$log" 2>&1; then
  report_failures "$log"
  exit 1
fi
grep -E '^ok' "$log"
report_skips unit "$log"

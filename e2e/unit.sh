#!/usr/bin/env bash
# Runs the unit and property tests, prints a line for each package, and names every test that was skipped with its reason. A
# skip that skips.txt does not expect fails the check. The packages of RACE_PACKAGES are left out: `make race` has them.
set -u
cd "$(dirname "$0")/.."
source e2e/report.sh
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Those that take longest begin first, and more at a time than there are processors, as most of their time they wait.
longest='/(operator|operator/console|agent/gateway|agent/sim/host|e2e/bench)$'
read -ra concurrent <<<"${RACE_PACKAGES-}"
mapfile -t concurrent < <(go list "${concurrent[@]}")
all=$(go list ./... | grep -vE '/e2e(/clients)?$' | grep -vxF "$(printf '%s\n' "${concurrent[@]}")")
mapfile -t packages < <(grep -E "$longest" <<<"$all" && grep -vE "$longest" <<<"$all")
if ! go test -timeout 45m -p 4 -v "${packages[@]}" >"$log" 2>&1; then
  report_failures "$log"
  exit 1
fi
grep -E '^ok' "$log"
report_skips unit "$log"

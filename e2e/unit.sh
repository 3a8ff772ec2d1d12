#!/usr/bin/env bash
# Runs the unit and property tests, prints a line for each package, and names every test that was skipped with its reason. A
# skip that skips.txt does not expect fails the check. The packages of RACE_PACKAGES are left out: `make race` has them.
set -u
cd "$(dirname "$0")/.."
source e2e/report.sh
# Those that take longest begin first, and more at a time than there are processors, as most of their time they wait.
longest='/(operator|operator/console|agent/gateway|agent/sim/host|e2e/bench)$'
all=$(go list ./... | grep -vE '/e2e(/clients)?$')
read -ra concurrent <<<"${RACE_PACKAGES-}"
if [ ${#concurrent[@]} -gt 0 ]; then all=$(grep -vxF "$(go list "${concurrent[@]}")" <<<"$all"); fi
mapfile -t packages < <(grep -E "$longest" <<<"$all" && grep -vE "$longest" <<<"$all")
quiet_tests unit -p 4 "${packages[@]}"

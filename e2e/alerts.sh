#!/usr/bin/env bash
# Has promtool look at the alerts and at what dashboards ask, and run the tests of the alerts; then a Prometheus ask a real cluster, to which
# happens what the alerts are about. Both come with Debian's prometheus.
set -eu -o pipefail
cd "$(dirname "$0")/.."
source e2e/packages.sh

mapfile -t packages < <(packages_missing alerts)
if [ ${#packages[@]} -gt 0 ]; then
  echo "alerts: installing Debian's ${packages[*]}"
  packages_prepare || {
    echo "alerts: $packages_hindrance: install ${packages[*]} and try again" >&2
    exit 1
  }
  packages_install "${packages[@]}" >/dev/null
fi
promtool --version | head -n 1
asked=$(mktemp --suffix .yaml)
trap 'rm -f "$asked"' EXIT
{
  echo "groups: [{name: dashboards, rules: ["
  sed -nE 's/^ *"expr": (".*"),$/{record: "asked", expr: \1},/p' playbooks/monitoring/dashboards/*.json | awk '{ sub(/"asked"/, "\"asked:" NR "\""); print }'
  echo "]}]"
} >"$asked"
if [ "$(grep -c '^{record' "$asked")" -ne "$(grep -ho '"expr":' playbooks/monitoring/dashboards/*.json | wc -l)" ]; then
  echo "alerts: not everything that the dashboards ask was found in their files" >&2
  exit 1
fi
promtool check rules playbooks/monitoring/alerts.yaml "$asked"
promtool test rules playbooks/monitoring/alerts_test.yaml
RESTRIPE_PROMETHEUS=$(command -v prometheus) go test -count=1 -timeout 20m -v ./e2e/alerts/

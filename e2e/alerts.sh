#!/usr/bin/env bash
# Has promtool look at the alerts and at what dashboards ask, and run the tests of the alerts. It comes with Debian's prometheus.
set -eu -o pipefail
cd "$(dirname "$0")/.."
source e2e/packages.sh

if ! command -v promtool >/dev/null; then
  mapfile -t packages < <(packages_of promtool)
  echo "alerts: promtool is not here: installing Debian's ${packages[*]}"
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

#!/usr/bin/env bash
# Runs clients of Redis, of memcached and of S3 that know nothing of this project against a real cluster, and tests of S3 that others have
# written. It installs the programs among them from Debian, and those in Python from PyPI, as e2e/clients/requirements.txt pins them.
set -eu -o pipefail
cd "$(dirname "$0")/.."
source e2e/packages.sh

mapfile -t packages < <(packages_missing clients)
if [ ${#packages[@]} -gt 0 ]; then
  echo "clients: installing Debian's ${packages[*]}"
  packages_prepare || {
    echo "clients: $packages_hindrance: install ${packages[*]} and try again" >&2
    exit 1
  }
  packages_install "${packages[@]}" >/dev/null
fi
e2e/clients/setup.sh
go test -count=1 -timeout 20m -v ./e2e/clients/

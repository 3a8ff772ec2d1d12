#!/usr/bin/env bash
# A browser before the whole program: the suite that does what people do, or another script of web/package.json that needs
# one (pictures, bench). Chromium comes from Debian's package. What cannot be tested here is said, loudly and once; for
# the others a missing browser is a failure.
set -eu -o pipefail
what=${1:-browser}
cd "$(dirname "$0")/.."
source e2e/packages.sh

missing() {
  echo "**********************************************************************"
  echo "$what: NO BROWSER WAS STARTED: $1"
  echo "**********************************************************************"
  [ "$what" = browser ]
  exit
}

oldest=20
if ! command -v npm >/dev/null || [ "$(node -p 'process.versions.node.split(".")[0]')" -lt $oldest ]; then
  missing "Node.js $oldest or newer with npm is needed"
fi
make --no-print-directory web/dist/index.html
program=$PWD/bin/restripe-pages
# Built as tests are, with no other settings of the compiler than the pages, most of what goes into it is compiled already.
go build -tags pages -o "$program" .
if ! command -v chromium >/dev/null; then
  packages_prepare || missing "there is no chromium, and $packages_hindrance"
  mapfile -t packages < <(packages_of chromium)
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  echo "$what: installing chromium"
  if ! packages_install "${packages[@]}" >"$log" 2>&1; then
    tail -n 20 "$log"
    missing "chromium could not be installed"
  fi
fi
echo "$what: $(chromium --version)"
RESTRIPE=$program npm --prefix web run --silent "$what"

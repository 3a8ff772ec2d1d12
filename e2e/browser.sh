#!/usr/bin/env bash
# A browser before the whole program: the suite that does what people do, or another script of web/package.json that needs
# one (pictures, bench). Chromium comes from Debian's package. What cannot be tested here is said, loudly and once; for
# the others a missing browser is a failure.
set -eu -o pipefail
what=${1:-browser}
cd "$(dirname "$0")/.."

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
make --no-print-directory build
as_root=()
if ! command -v chromium >/dev/null; then
  command -v apt-get >/dev/null || missing "there is no chromium and no apt-get to install it"
  if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || missing "installing chromium takes root"
    as_root=(sudo -n)
  fi
  install() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium fonts-dejavu-core; }
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  echo "$what: installing chromium"
  if ! install >"$log" 2>&1 && ! { "${as_root[@]}" apt-get update >"$log" 2>&1 && install >>"$log" 2>&1; }; then
    tail -n 20 "$log"
    missing "chromium could not be installed"
  fi
fi
echo "$what: $(chromium --version)"
RESTRIPE=$PWD/bin/restripe npm --prefix web run --silent "$what"

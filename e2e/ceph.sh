#!/usr/bin/env bash
# Installs Ceph from Debian's packages and runs the suite over real Ceph clusters: the store's conformance and faults, pools
# for nodes, adoption, and whole clusters. Where Ceph cannot be installed this is said, loudly and once, and nothing is tested.
# FULL=1 also kills everything as over the other stores. With arguments, they go to `go test` instead of the suite's packages:
# e2e/ceph.sh -run TestConformance ./agent/store/ceph
set -u
cd "$(dirname "$0")/.." || exit
source e2e/report.sh
source e2e/packages.sh
PATH="$PATH:/usr/sbin:/sbin"

mapfile -t packages < <(packages_of ceph)
suite=(./agent/store/ceph/... ./agent/store/open/ ./agent/adopt/ ./e2e/bench/ceph/ ./e2e/ceph/)

installed() { [ -z "$(packages_missing ceph)" ]; }

missing() {
  echo "**********************************************************************"
  echo "ceph: NOTHING WAS TESTED OVER CEPH: $1"
  echo "ceph: install ${packages[*]} and run e2e/ceph.sh again"
  echo "**********************************************************************"
  exit 0
}

if ! installed; then
  packages_prepare || missing "$packages_hindrance"
  log=$(mktemp)
  echo "ceph: installing ${packages[*]}"
  if ! packages_install "${packages[@]}" >"$log" 2>&1; then
    tail -n 20 "$log"
    rm -f "$log"
    missing "the packages could not be installed"
  fi
  rm -f "$log"
  installed || missing "the packages do not bring what the tests start"
fi
echo "ceph: $(ceph-osd --version)"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
# One package at a time: each starts clusters of its own.
run() { go test -tags ceph -count=1 -p 1 -timeout 30m -v "$@" >>"$log" 2>&1; }
code=0
if [ $# -gt 0 ]; then
  run "$@" || code=1
else
  # What stands behind the build tag is seen by no other check. The linter would take longer than all of this.
  mapfile -t tagged < <(grep -rlE '^//go:build .*\bceph\b' --include='*.go' . | xargs -n1 dirname | sort -u)
  go vet -tags ceph "${tagged[@]}" >>"$log" 2>&1 || code=1
  run "${suite[@]}" || code=1
  # The other tests of the commands and of whole clusters need no Ceph.
  run -run Adoption ./tui/cli/ || code=1
  # Everything is killed over Ceph in the suite already; with FULL=1 as over the other stores too, which takes minutes.
  if [ -n "${FULL:-}" ]; then run -run OverCeph ./e2e/ || code=1; fi
fi
if [ $code -ne 0 ]; then
  report_failures "$log"
  exit $code
fi
grep -E '^ok|^--- PASS' "$log"
report_skips ceph "$log"

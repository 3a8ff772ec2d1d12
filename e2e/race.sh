#!/usr/bin/env bash
# Runs the packages of RACE_PACKAGES, in which much goes on at a time, under the race detector, and of the gateway's tests those of
# RACE_TESTS; then what it is too slow for. It says as much as unit.sh, and fails by the same skips.
set -u
cd "$(dirname "$0")/.."
source e2e/report.sh
read -ra packages <<<"$RACE_PACKAGES"
# Those of the gateway mostly wait, so that more run at a time than there are processors; those that start servers do not.
quiet_tests race -race -short "${packages[@]}" &&
  quiet_tests race -race -short -parallel 6 -run "$RACE_TESTS" ./agent/gateway &&
  quiet_tests race -gcflags=all=-d=checkptr ./agent/kernel/ && # the race detector brings these checks of pointers too
  quiet_tests race -run '^TestFull' ./agent/catalog/etcd ./agent/catalog/postgres # what -short leaves out

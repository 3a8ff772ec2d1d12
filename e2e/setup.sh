#!/usr/bin/env bash
# Installs what packages.txt lists for the tests: the programs that they start, a C compiler for the race detector, the
# compiler of the console's contract. With arguments, what those install, or everything: e2e/setup.sh ceph browser,
# e2e/setup.sh all. What cannot be installed is named, and the tests that need it fail with the same words, or are
# skipped, which e2e/skips.txt does not expect and so fails their check; nothing else is touched.
set -u
cd "$(dirname "$0")/.." || exit
source e2e/packages.sh

if [ $# -eq 0 ]; then set -- setup; fi
mapfile -t packages < <(packages_of "$@")
if [ ${#packages[@]} -eq 0 ]; then
  echo "setup: e2e/packages.txt has nothing for: $*" >&2
  exit 2
fi
mapfile -t missing < <(packages_missing "$@")
if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: installed are ${packages[*]}"
  exit 0
fi
if ! packages_prepare; then
  echo "setup: not installed: ${missing[*]}; $packages_hindrance, install them by hand: apt-get install ${missing[*]}"
  exit 0
fi
echo "setup: installing ${missing[*]}"
packages_install "${missing[@]}" || echo "setup: could not install all of: ${missing[*]}"
exit 0

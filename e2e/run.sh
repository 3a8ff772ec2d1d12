#!/usr/bin/env bash
# Runs every check of the project, one after the other, and says how long each took. All run even if one fails; the exit
# code tells whether all passed.
set -u
cd "$(dirname "$0")/.."

e2e/setup.sh

checks=(vet format lint generate-check spec sim-short unit race fuzz e2e kube ceph web browser)
failed=()
began=$SECONDS
for i in "${!checks[@]}"; do
  check=${checks[$i]}
  echo "=== $((i + 1))/${#checks[@]} $check ($((SECONDS - began)) s so far)"
  since=$SECONDS
  if make --no-print-directory "$check"; then
    echo "=== $check passed in $((SECONDS - since)) s"
  else
    echo "=== $check FAILED after $((SECONDS - since)) s"
    failed+=("$check")
  fi
done
echo
if [ ${#failed[@]} -gt 0 ]; then
  echo "FAILED: ${failed[*]} ($((SECONDS - began)) s)"
  exit 1
fi
echo "All checks passed in $((SECONDS - began)) s: ${checks[*]}"

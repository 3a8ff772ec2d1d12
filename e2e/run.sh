#!/usr/bin/env bash
# Runs every check of the project, or those named, one after the other, and says how long each took. All run even if one
# fails; the exit code tells whether all passed.
#
#   e2e/run.sh                every check
#   e2e/run.sh vet unit       these
#   e2e/run.sh --list         their names, a line each
#
# A test that is skipped and that skips.txt does not expect to be fails its check, and running it again would not help.
#
# A check that fails is run once more. If it passes then, the run goes on, and a line says so of each test that failed the
# first time, there and once more at the end: FLAKY, the check, the test, and the seed that the test printed; "unknown"
# where no test was named, "none" where no seed was.
set -u
cd "$(dirname "$0")/.." || exit
source e2e/report.sh

checks=(vet format lint generate-check spec sim-short unit race fuzz e2e kube ceph alerts web browser playbooks)
case ${1:-} in
--list)
  printf '%s\n' "${checks[@]}"
  exit 0
  ;;
-*)
  echo "usage: e2e/run.sh [--list | check...]; the checks are: ${checks[*]}" >&2
  exit 2
  ;;
esac
if [ $# -gt 0 ]; then checks=("$@"); fi

e2e/setup.sh

log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT

# attempt CHECK: runs it, shows what it says while it says it, and keeps that in the log.
attempt() {
  local code=0 copier
  exec 3> >(exec tee "$log")
  copier=$!
  make --no-print-directory "$1" >&3 2>&1 3>&- || code=$?
  exec 3>&-
  # The log is whole when the copier has ended. A process that the check has left behind may hold its other end for ever.
  for _ in {1..100}; do
    kill -0 "$copier" 2>/dev/null || break
    sleep 0.1
  done
  return "$code"
}

failed=()
flaky=()
began=$SECONDS
for i in "${!checks[@]}"; do
  check=${checks[$i]}
  echo "=== $((i + 1))/${#checks[@]} $check ($((SECONDS - began)) s so far)"
  since=$SECONDS
  if attempt "$check"; then
    unexpected=$(unexpected_skips "$check" "$log")
    if [ -z "$unexpected" ]; then
      echo "=== $check passed in $((SECONDS - since)) s"
      continue
    fi
    echo "=== $check FAILED: these were skipped, and e2e/skips.txt does not expect it:"
    echo "$unexpected"
    failed+=("$check")
    continue
  fi
  if grep -q '^  UNEXPECTED SKIP ' "$log"; then
    echo "=== $check FAILED after $((SECONDS - since)) s, by what was skipped"
    failed+=("$check")
    continue
  fi
  mapfile -t suspects < <(failing_tests "$log")
  echo "=== $check failed after $((SECONDS - since)) s: running it once more"
  since=$SECONDS
  if attempt "$check" && [ -z "$(unexpected_skips "$check" "$log")" ]; then
    echo "=== $check passed in $((SECONDS - since)) s, the second time"
    for suspect in "${suspects[@]}"; do
      flaky+=("FLAKY $check $suspect")
      echo "FLAKY $check $suspect"
    done
  else
    echo "=== $check FAILED after $((SECONDS - since)) s, the second time too"
    failed+=("$check")
  fi
done
echo
if [ ${#flaky[@]} -gt 0 ]; then
  echo "These failed, and passed when their checks were run once more:"
  printf '%s\n' "${flaky[@]}"
fi
if [ ${#failed[@]} -gt 0 ]; then
  echo "FAILED: ${failed[*]} ($((SECONDS - began)) s)"
  exit 1
fi
echo "All checks passed in $((SECONDS - began)) s: ${checks[*]}"

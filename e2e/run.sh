#!/usr/bin/env bash
# Runs every check of the project, or those named, and says how long each took, and how much of the processors. All run even if
# one fails; the exit code tells whether all passed.
#
#   e2e/run.sh                every check
#   e2e/run.sh vet unit       these
#   e2e/run.sh --list         their names, a line each
#
# Those that mostly wait for servers run one after the other beside the others, which run one after the other too. What these say is
# seen while they say it, and of those beside when they have ended.
#
# A test that is skipped and that skips.txt does not expect to be fails its check, and running it again would not help.
#
# A check that fails is run once more, when the others of its kind have ended: what was busy or out of reach may not be then. If it
# passes, the run goes on, and a line says so of each test that failed the first time, there and once more at the end: FLAKY, the
# check, the test, and the seed that the test printed; "unknown" where no test was named, "none" where no seed was.
set -u
cd "$(dirname "$0")/.." || exit
source e2e/report.sh

checks=(vet format lint generate-check spec sim-short fuzz unit race e2e clients ceph kube alerts web browser playbooks rollout-short)
beside=" clients ceph kube alerts web browser playbooks rollout-short "
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

# What became of each check: log, what it says; again, the tests that failed the first time; failed, where it did the second time too;
# flaky, a line for each test; said, of one beside, all of it.
results=$(mktemp -d)
lane=
trap '[ -z "$lane" ] || kill -- "-$lane" 2>/dev/null; rm -rf "$results"' EXIT
trap 'exit 130' INT TERM

# attempt CHECK LOG: runs it, shows what it says while it says it, and keeps that in the log.
attempt() {
  local code=0 copier
  exec 3> >(exec tee "$2")
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

began=$SECONDS

# spent: the seconds of processor time, in used, that the commands of this shell have taken that have ended.
spent() {
  local file=$results/times.$BASHPID
  times >"$file" # no pipe: in another shell there would be no commands
  used=$(awk -F '[ms ]+' 'NR == 2 { printf "%d", $1 * 60 + $2 + $3 * 60 + $4 }' "$file")
}

# measure: in took, the time and what of the processors a check took that began at since, when before had been used of them.
measure() {
  spent
  took="$((SECONDS - since)) s, with $((used - before)) s of processors"
}

# check I: runs a check, for the first time.
check() {
  local check=${checks[$1]} log=$results/$1.log since=$SECONDS unexpected used before took
  spent
  before=$used
  echo "=== $(($1 + 1))/${#checks[@]} $check ($((SECONDS - began)) s so far)"
  if attempt "$check" "$log"; then
    unexpected=$(unexpected_skips "$check" "$log")
    if [ -z "$unexpected" ]; then
      measure
      echo "=== $check passed in $took"
      return
    fi
    echo "=== $check FAILED: these were skipped, and e2e/skips.txt does not expect it:"
    echo "$unexpected"
    touch "$results/$1.failed"
    return
  fi
  measure
  if grep -q '^  UNEXPECTED SKIP ' "$log"; then
    echo "=== $check FAILED after $took, by what was skipped"
    touch "$results/$1.failed"
    return
  fi
  failing_tests "$log" >"$results/$1.again"
  echo "=== $check failed after $took: it is run once more later"
}

# again I: runs a check that failed a second time.
again() {
  local check=${checks[$1]} log=$results/$1.log since=$SECONDS suspects suspect used before took code=0
  spent
  before=$used
  mapfile -t suspects <"$results/$1.again"
  echo "=== $check, once more ($((SECONDS - began)) s so far)"
  attempt "$check" "$log" || code=$?
  measure
  if [ $code -eq 0 ] && [ -z "$(unexpected_skips "$check" "$log")" ]; then
    echo "=== $check passed in $took, the second time"
    for suspect in "${suspects[@]}"; do
      echo "FLAKY $check $suspect" | tee -a "$results/$1.flaky"
    done
  else
    echo "=== $check FAILED after $took, the second time too"
    touch "$results/$1.failed"
  fi
}

# show: what checks beside have said that have ended since.
show() {
  local i
  for i in "${aside[@]}"; do
    if [ -e "$results/$i.ended" ]; then
      cat "$results/$i.said"
      rm "$results/$i.ended"
    fi
  done
}

alone=()
aside=()
for i in "${!checks[@]}"; do
  if [[ $beside == *" ${checks[$i]} "* ]]; then aside+=("$i"); else alone+=("$i"); fi
done
if [ ${#alone[@]} -eq 0 ]; then
  alone=("${aside[@]}")
  aside=()
fi
if [ ${#aside[@]} -gt 0 ]; then
  set -m # with a group of processes of its own, so that it can be ended
  for i in "${aside[@]}"; do
    check "$i" >"$results/$i.said" 2>&1 </dev/null
    [ -e "$results/$i.again" ] || touch "$results/$i.ended"
  done && for i in "${aside[@]}"; do
    [ -e "$results/$i.again" ] || continue
    again "$i" >>"$results/$i.said" 2>&1 </dev/null
    touch "$results/$i.ended"
  done &
  lane=$!
  set +m
fi
for i in "${alone[@]}"; do
  check "$i"
  show
done
for i in "${alone[@]}"; do
  [ -e "$results/$i.again" ] || continue
  again "$i"
  show
done
if [ -n "$lane" ]; then
  echo "=== waiting for the checks beside ($((SECONDS - began)) s so far)"
  wait "$lane"
  lane=
  show
fi

failed=()
for i in "${!checks[@]}"; do
  [ -e "$results/$i.failed" ] || continue
  failed+=("${checks[$i]}")
  echo "The end of what ${checks[$i]} said:"
  tail -n 25 "$results/$i.log"
done
echo
if cat "$results"/*.flaky >/dev/null 2>&1; then
  echo "These failed, and passed when their checks were run once more:"
  for i in "${!checks[@]}"; do
    if [ -e "$results/$i.flaky" ]; then cat "$results/$i.flaky"; fi
  done
fi
if [ ${#failed[@]} -gt 0 ]; then
  echo "FAILED: ${failed[*]} ($((SECONDS - began)) s)"
  exit 1
fi
echo "All checks passed in $((SECONDS - began)) s: ${checks[*]}"

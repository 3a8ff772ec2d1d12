#!/usr/bin/env bash
# Runs a command that downloads something, and again half a minute later where that fails, five times at most: what it asks may be out
# of reach for a while.
#
#   e2e/retry.sh go run example.org/tool@v1.2.3 version
set -u
for try in 1 2 3 4 5; do
  "$@" >/dev/null && exit 0
  code=$?
  if [ "$try" -lt 5 ]; then
    echo "retry: this ended with $code, and is tried again in 30 s: $*" >&2
    sleep 30
  fi
done
exit "$code"

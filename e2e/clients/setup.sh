#!/usr/bin/env bash
# Makes what the tests beside this script use: an environment with the clients in Python, as requirements.txt pins them, and in it a program
# with the tests that versitygw has for servers of S3, as _versitygw/go.mod pins them. It is .cache/clients at the root of the repository, or
# what RESTRIPE_CLIENTS says. What is there already stays.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
environment=${RESTRIPE_CLIENTS:-$(cd "$here/../.." && pwd)/.cache/clients}

command -v python3 >/dev/null || { echo "setup: there is no python3 here; install python3 and python3-venv" >&2; exit 1; }
if ! cmp -s "$here/requirements.txt" "$environment/installed.txt"; then
  echo "setup: installing $(grep -v '^#' "$here/requirements.txt" | paste -sd' ') into $environment"
  python3 -m venv "$environment" || { echo "setup: python3 makes no environments; install python3-venv" >&2; exit 1; }
  "$environment/bin/pip" install --quiet --disable-pip-version-check --no-deps --requirement "$here/requirements.txt"
  cp "$here/requirements.txt" "$environment/installed.txt"
fi
"$here/_versitygw/build.sh" "$environment/bin/versitygw-tests"

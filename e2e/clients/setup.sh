#!/usr/bin/env bash
# Makes an environment with the clients in Python that the tests beside this script use, as requirements.txt pins them: .cache/clients at the
# root of the repository, or where RESTRIPE_CLIENTS says. What is there already stays.
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

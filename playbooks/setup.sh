#!/usr/bin/env bash
# Makes an environment with Ansible, as requirements.txt pins it, and this collection in it: .cache/ansible beside this folder's
# parent, or where RESTRIPE_ANSIBLE says. What is there already stays. Prints what to type next.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
environment=${RESTRIPE_ANSIBLE:-$(dirname "$here")/.cache/ansible}

command -v python3 >/dev/null || { echo "setup: there is no python3 here; install python3 and python3-venv" >&2; exit 1; }
if ! cmp -s "$here/requirements.txt" "$environment/installed.txt"; then
  echo "setup: installing $(grep -v '^#' "$here/requirements.txt" | paste -sd' ') into $environment"
  python3 -m venv "$environment" || { echo "setup: python3 makes no environments; install python3-venv" >&2; exit 1; }
  "$environment/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt"
  cp "$here/requirements.txt" "$environment/installed.txt"
fi
collections=$environment/collections/ansible_collections/restripe
mkdir -p "$collections"
ln -sfn "$here" "$collections/storage"
cat >"$environment/env" <<END
export PATH=$environment/bin:\$PATH
export ANSIBLE_COLLECTIONS_PATH=$environment/collections
export ANSIBLE_CONFIG=$here/ansible.cfg
END
echo "setup: now type: . $environment/env"

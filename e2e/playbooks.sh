#!/usr/bin/env bash
# Checks the playbooks without a machine to run them on: syntax, ansible-lint, and the tests of modules and filters. It installs
# Ansible from PyPI, as playbooks/requirements.txt pins it.
set -euo pipefail
cd "$(dirname "$0")/.."
source e2e/packages.sh
if [ -n "$(packages_missing playbooks)" ]; then
  packages_prepare || { echo "playbooks: $packages_hindrance" >&2; exit 1; }
  mapfile -t needed < <(packages_of playbooks)
  packages_install "${needed[@]}"
fi
playbooks/setup.sh
environment=${RESTRIPE_ANSIBLE:-.cache/ansible}
source "$environment/env"
python=$(realpath --no-symlinks "$environment/bin/python")

echo "playbooks: modules and filters"
(cd playbooks/tests/unit && PYTHONPATH=$ANSIBLE_COLLECTIONS_PATH "$python" -B -m unittest)

echo "playbooks: syntax"
for inventory in playbooks/inventories/*/hosts.yml; do
  ansible-playbook --syntax-check --inventory "$inventory" playbooks/playbooks/*.yml >/dev/null
done

echo "playbooks: ansible-lint"
cd playbooks
ansible-lint -q

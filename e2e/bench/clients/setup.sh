#!/usr/bin/env bash
# Gets what the part s3 of this benchmark is measured beside: Ceph, with its gateway for S3, from Debian's packages, and versitygw, built from
# its module at the version that e2e/clients/_versitygw/go.mod pins, into .cache/clients/bin at the root of the repository, or below what
# RESTRIPE_CLIENTS says. What is there already stays. Where something cannot be had this is said, and the benchmark goes without.
set -u
cd "$(dirname "$0")/../../.." || exit
source e2e/packages.sh

mapfile -t packages < <(packages_missing bench-clients)
if [ ${#packages[@]} -gt 0 ]; then
  echo "setup: installing Debian's ${packages[*]}"
  if ! packages_prepare; then
    echo "setup: $packages_hindrance: install ${packages[*]}, or measure without" >&2
  elif ! packages_install "${packages[@]}" >/dev/null; then
    echo "setup: ${packages[*]} could not be installed: measuring without" >&2
  fi
fi

environment=${RESTRIPE_CLIENTS:-$PWD/.cache/clients}
version=$(go -C e2e/clients/_versitygw list -m -f '{{.Version}}' github.com/versity/versitygw) || exit
if ! go version -m "$environment/bin/versitygw" 2>/dev/null | grep -qF "github.com/versity/versitygw	$version	"; then
  echo "setup: building versitygw $version into $environment/bin"
  mkdir -p "$environment/bin"
  GOBIN=$(cd "$environment/bin" && pwd) go install "github.com/versity/versitygw/cmd/versitygw@$version" ||
    echo "setup: versitygw could not be built: measuring without" >&2
fi

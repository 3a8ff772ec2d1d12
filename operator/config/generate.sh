#!/usr/bin/env bash
# Writes what follows from the types of operator/api: their deep copies and the CustomResourceDefinitions. The first
# argument, if given, is the root of another copy of the repository to write to.
set -eu -o pipefail
cd "$(dirname "$0")/../.."
generator=sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0
root=${1:-.}
go run "$generator" object crd:crdVersions=v1 paths=./operator/api/... \
  output:object:dir="$root/operator/api/v1alpha1" output:crd:dir="$root/operator/config/crd"

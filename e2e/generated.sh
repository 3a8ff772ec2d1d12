#!/usr/bin/env bash
# Generates the assembly of agent/kernel, what follows from the types of operator/api, and the Go and the TypeScript of the
# console's contract a second time, elsewhere, and compares it with what is in the repository.
set -u -o pipefail
cd "$(dirname "$0")/../agent/kernel"
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

cp -r _gen "$copy/_gen" # writes next to its folder
if ! "$copy/_gen/generate.sh"; then
  echo "agent/kernel/_gen does not run; it needs the module proxy, or its modules in the cache"
  exit 1
fi
differing=()
count=0
for file in $(ls "$copy" . | grep -E '_amd64\.(s|go)$' | sort -u); do
  if [ ! -e "$copy/$file" ] && ! head -1 "$file" | grep -q '^// Code generated'; then
    continue # written by hand
  fi
  count=$((count + 1))
  if ! diff -u "$file" "$copy/$file" | head -20; then
    differing+=("agent/kernel/$file")
  fi
done
if [ ${#differing[@]} -gt 0 ]; then
  echo "not what agent/kernel/_gen generates: ${differing[*]}; run make generate"
  exit 1
fi
if [ "$count" -eq 0 ]; then
  echo "agent/kernel/_gen generates nothing"
  exit 1
fi
echo "$count generated files of agent/kernel are what agent/kernel/_gen generates"

cd ../..
if ! operator/config/generate.sh "$copy"; then
  echo "operator/config/generate.sh does not run; it needs the module proxy, or its modules in the cache"
  exit 1
fi
for made in operator/api/v1alpha1/zz_generated.deepcopy.go operator/config/crd/restripe.io_*.yaml; do
  if ! diff -ru "$made" "$copy/$made" | head -20; then
    echo "$made is not what operator/config/generate.sh generates; run make generate"
    exit 1
  fi
done
echo "the deep copies and CustomResourceDefinitions are what operator/config/generate.sh generates"

if ! operator/config/generate-console.sh "$copy"; then
  echo "operator/config/generate-console.sh does not run; it needs protoc, and the module proxy or its modules in the cache"
  exit 1
fi
for made in operator/api/console/v1/*.pb.go operator/api/console/v1/consolev1connect/*.connect.go; do
  if ! diff -ru "$made" "$copy/$made" | head -20; then
    echo "$made is not what operator/config/generate-console.sh generates; run make generate"
    exit 1
  fi
done
echo "the console's contract is what operator/config/generate-console.sh generates"

if ! command -v npm >/dev/null; then
  echo "there is no npm here: whether web/src/gen is what web/generate.sh generates was NOT CHECKED"
  exit 0
fi
if ! make --no-print-directory web/node_modules/.package-lock.json || ! web/generate.sh "$copy"; then
  echo "web/generate.sh does not run; it needs protoc, and the npm registry or its packages in the cache"
  exit 1
fi
if ! diff -ru web/src/gen "$copy/web/src/gen" | head -20; then
  echo "web/src/gen is not what web/generate.sh generates; run make generate"
  exit 1
fi
echo "the TypeScript of the console's contract is what web/generate.sh generates"

#!/usr/bin/env bash
# Writes the images restripe-agent and restripe, for every processor of ARCHITECTURES, into bin/images: an OCI layout of each, which
# skopeo, crane, oras and buildah take, and an archive for each processor, for `podman load`, `docker load` and `ctr image import`. No
# container engine is needed. The same sources make the same digests: each image is written twice, and both have to be the same.
#
#   VERSION        the tag of the images, and what the programs say that they are; default: the release of the chart, whose default tag
#                  that is, too; the programs then say what git says after it
#   ARCHITECTURES  default: amd64 arm64
#   PROGRAMS       default: restripe-agent restripe
#   OUT            default: bin/images
#   TAGS           as go build takes them, beside grpcnotrace
#   BILLS          directory with PROGRAM.cdx.json, what is in each program, as `make sbom` writes it; default: none is attached
set -euo pipefail
cd "$(dirname "$0")/../.."
umask 022

version=${VERSION:-$(sed -n 's/^appVersion: //p' playbooks/chart/Chart.yaml)}
says=${VERSION:-$version+$(git describe --always --dirty --exclude '*')}
out=${OUT:-bin/images}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

rm -rf "$out"
mkdir -p "$out" "$work/again"
(cd playbooks/images/_build && go build -o "$work/images" .)
declare -A sources=([restripe]=. [restripe-agent]=./tui/restripe-agent)
declare -A links=([restripe]="-link kubectl-restripe -link kubectl_complete-restripe")
for name in ${PROGRAMS:-restripe-agent restripe}; do
  for arch in ${ARCHITECTURES:-amd64 arm64}; do
    GOARCH=$arch CGO_ENABLED=0 go build -trimpath -buildvcs=false -tags "grpcnotrace ${TAGS:-}" \
      -ldflags "-s -w -X github.com/restripe/restripe/tui/cli/program.release=$says" -o "$work/$arch/$name" "${sources[$name]}"
  done
  for into in "$out" "$work/again"; do
    "$work/images" -program "$name" -builds "$work" -version "$version" -revision "$(git rev-parse HEAD)" -created "$(git log -1 --format=%ct)" \
      ${links[$name]:-} ${BILLS:+-bill "$BILLS/$name.cdx.json"} -into "$into" >"$work/said"
  done
  diff -r "$out/$name" "$work/again/$name" >/dev/null || {
    echo "images: the same program makes another image of $name each time" >&2
    exit 1
  }
  sed "s#$work/again#$out#" "$work/said"
done

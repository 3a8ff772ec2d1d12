#!/usr/bin/env bash
# Builds the Debian packages restripe-agent and restripe for every processor of ARCHITECTURES, in bin/packages. The same sources make
# the same bytes, whoever builds them, wherever and when: each is packed twice, and both have to be the same.
#
#   VERSION        what the programs say that they are; default: what git says
#   ARCHITECTURES  default: amd64 arm64
#   NFPM           what packs: a module of Go at a version
#   TAGS           as go build takes them, beside grpcnotrace
#   QUICK          programs as tests build them, most of which is compiled already: for tries on this machine, not for others
#
# The descriptions are NAME.yaml. They take programs and pages from bin/packages/build, and ARCH and DEB_VERSION from the environment.
set -euo pipefail
cd "$(dirname "$0")/../.."
umask 022

packages=(restripe-agent restripe)
out=bin/packages
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

# A release is tagged v1.2.3; what is between is older than any release, and the later the newer.
version=${VERSION:-$(git describe --always --dirty)}
case $version in
v[0-9]*) DEB_VERSION=${version#v} ;;
*) DEB_VERSION=0~$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d.%H%M%S)+git.$version ;;
esac
link="-s -w -X github.com/restripe/restripe/tui/cli/program.release=$version"
DEB_VERSION=$(tr -- -_ .. <<<"$DEB_VERSION")
export DEB_VERSION

# pack NAME FILE: makes the package of that name for ARCH.
pack() { bin/tools/nfpm package --packager deb --config "playbooks/package/$1.yaml" --target "$2" >/dev/null; }

if [ -n "${QUICK:-}" ]; then
  flags=(-buildvcs=false -tags "${TAGS:-}")
else
  export CGO_ENABLED=0
  flags=(-trimpath -buildvcs=false -tags "grpcnotrace ${TAGS:-}")
fi

rm -rf "$out"
mkdir -p "$out/build/doc"
# As the programs are built, so that nothing is compiled twice.
go run "${flags[@]}" ./tui/manual "$out/build/doc"
# The page of the program restripe-agent has the name that the page of the command would have, which is the same command.
rm "$out/build/doc/restripe/man1/restripe-agent.1"
gzip -9n "$out"/build/doc/*/man1/*.1
for name in "${packages[@]}"; do
  printf '%s (%s) unstable; urgency=medium\n\n  * https://github.com/restripe/restripe/blob/main/CHANGELOG.md\n\n -- %s  %s\n' "$name" "$DEB_VERSION" \
    "The authors of Restripe <noreply@restripe.io>" "$(date -R -u -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$out/build/doc/$name.gz"
done
GOBIN=$PWD/bin/tools GOFLAGS= go install "$NFPM"

for ARCH in ${ARCHITECTURES:-amd64 arm64}; do
  export ARCH
  GOARCH=$ARCH go build "${flags[@]}" -ldflags "$link" -o "$out/build/" . ./tui/restripe-agent
  for name in "${packages[@]}"; do
    file=$out/${name}_${DEB_VERSION}_$ARCH.deb
    pack "$name" "$out/once.deb"
    find "$out/build" -exec touch {} + # whose times are not to matter
    pack "$name" "$file"
    cmp "$out/once.deb" "$file" || { echo "package: the same files make another $file each time; see what cmp says" >&2; exit 1; }
    rm "$out/once.deb"
    echo "$file, $(du -h --apparent-size "$file" | cut -f1)"
  done
done
rm -r "$out/build"

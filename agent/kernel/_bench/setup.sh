#!/usr/bin/env bash
# Installs what the benchmark is compiled with: a C compiler and ISA-L. Distributions may have an ISA-L from before its
# GFNI kernels (2.31), two to three times slower than those; then Debian's newer package is unpacked beside this script,
# where the program looks first. What cannot be installed is named; nothing else is touched.
set -u
cd "$(dirname "$0")" || exit
source ../../../e2e/packages.sh

wanted=2.31
suite=trixie
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

if [ "$(uname -s)/$(uname -m)" != Linux/x86_64 ]; then
  echo "setup: the benchmark needs Linux on amd64, this is $(uname -s)/$(uname -m)"
  exit 1
fi

version() { # of the ISA-L whose header is given
  awk '$1 == "#define" && $2 ~ /^ISAL_(MAJOR|MINOR|PATCH)_VERSION$/ { printf "%s%s", dot, $3; dot = "." }' "$1" 2>/dev/null
}
recent() { [ -n "$1" ] && [ "$(printf '%s\n' "$wanted" "$1" | sort -V | head -n1)" = "$wanted" ]; }

wants=(bench-kernel)
[ ! -e isal/include/isa-l.h ] || wants=(gcc /usr/include/stdlib.h) # the newer ISA-L is there already
mapfile -t missing < <(packages_missing "${wants[@]}")
if [ ${#missing[@]} -gt 0 ]; then
  if ! packages_prepare; then
    echo "setup: not installed: ${missing[*]}; $packages_hindrance, install them by hand: apt-get install ${missing[*]}"
    exit 1
  fi
  echo "setup: installing ${missing[*]}"
  packages_install "${missing[@]}" || {
    echo "setup: could not install all of: ${missing[*]}"
    exit 1
  }
fi

for header in isal/include/isa-l.h /usr/include/isa-l.h; do
  if recent "$(version "$header")"; then
    echo "setup: gcc and ISA-L $(version "$header") are installed"
    exit 0
  fi
done

# unpack_newer gets the packages of the newer suite with lists and a cache of its own, and takes headers and library.
unpack_newer() {
  local scratch mirror
  mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -oE 'https?://[^] ]+/debian/?( |$)' | head -n1)
  [ -n "$mirror" ] || return 1
  scratch=$(mktemp -d) || return 1
  trap 'rm -rf "$scratch"' RETURN
  mkdir -p "$scratch"/{lists,cache,sources,packages} || return 1
  printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' "$mirror" "$suite" "$keyring" \
    >"$scratch/sources/newer.sources"
  local apart=(-qq -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$scratch/sources" -o "Dir::State::Lists=$scratch/lists"
    -o "Dir::Cache=$scratch/cache" -o APT::Sandbox::User=)
  apt-get "${apart[@]}" update || return 1
  (cd "$scratch/packages" && apt-get "${apart[@]}" download "libisal2/$suite" "libisal-dev/$suite") || return 1
  mkdir -p isal/include isal/lib || return 1
  local package
  for package in "$scratch"/packages/*.deb; do
    dpkg-deb -x "$package" "$scratch/root" || return 1
  done
  cp -a "$scratch"/root/usr/include/. isal/include/ && cp -a "$scratch"/root/usr/lib/x86_64-linux-gnu/libisal.so* isal/lib/
}

echo "setup: ISA-L $(version /usr/include/isa-l.h) is older than $wanted; unpacking that of Debian $suite into $(pwd)/isal"
if [ -e "$keyring" ] && command -v apt-get dpkg-deb >/dev/null && unpack_newer; then
  echo "setup: gcc and ISA-L $(version isal/include/isa-l.h) are installed"
else
  rm -rf isal
  echo "setup: could not get a newer ISA-L; measuring $(version /usr/include/isa-l.h), which has no GFNI kernels"
fi

#!/usr/bin/env bash
# Installs the programs that tests over real processes start, and the compiler of the console's contract. What cannot be installed is named, and the tests that need
# it fail with the same words; nothing else is touched.
set -u

declare -A package=(
  [memcached]=memcached
  [redis-server]=redis-server
  [ip]=iproute2
  [protoc]="protobuf-compiler libprotobuf-dev"
)

missing=()
for program in "${!package[@]}"; do
  if ! PATH="$PATH:/usr/sbin:/sbin" command -v "$program" >/dev/null; then
    missing+=(${package[$program]}) # one word for each package
  fi
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: memcached, redis-server, ip and protoc are installed"
  exit 0
fi
if ! command -v apt-get >/dev/null; then
  echo "setup: not installed: ${missing[*]}; there is no apt-get here, install them by hand"
  exit 0
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
  else
    echo "setup: not installed: ${missing[*]}; run as root: apt-get install ${missing[*]}"
    exit 0
  fi
fi

# Packages bring services of their own; the tests start their own servers, so none is started here.
install() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y --no-install-recommends "$@"
}
echo "setup: installing ${missing[*]}"
if install "${missing[@]}" || { "${as_root[@]}" apt-get update && install "${missing[@]}"; }; then
  exit 0
fi
echo "setup: could not install all of: ${missing[*]}"
exit 0

#!/usr/bin/env bash
# Builds what the nodes of a kind cluster run, and kind itself, from their sources, unless they are there, and prints the folder
# they are in. Everything comes through the module proxy; no program is downloaded. What ../../kube/_build builds is linked
# from there. The first time takes 16 minutes of one processor, 8 or 9 of two, and 8 GB of cache beside the modules.
set -eu -o pipefail
cd "$(dirname "$0")"
# Looked for first: runc, which is linked with it, comes after minutes of building.
if ! command -v gcc >/dev/null || ! pkg-config --exists libseccomp 2>/dev/null; then
  echo "kind: runc cannot be built without gcc, pkg-config and libseccomp: install what e2e/packages.txt has for kind" >&2
  exit 1
fi
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/restripe/kind-$version
kube=$(../../kube/_build/build.sh kubernetes helm)
mkdir -p "$folder"

# One builds, the others wait for it.
exec 9>"$folder/lock"
if ! flock -n 9; then
  echo "kind: waiting for another build in $folder" >&2
  flock 9
fi
for program in etcd kube-apiserver kubectl helm; do
  ln -sf "$kube/$program" "$folder/$program"
done

began=$SECONDS
say() { echo "kind: building $1 from source ($((SECONDS - began)) s so far)" >&2; }
fail() {
  echo "kind: $1 cannot be built; this needs the module proxy ($(go env GOPROXY)) or its modules in the cache, and about 4 GB of memory" >&2
  exit 1
}

kept=k8s.io/component-base/version
minor=${version#v1.}
flags="-s -w -X $kept.gitVersion=$version -X $kept.gitMajor=1 -X $kept.gitMinor=${minor%%.*} -X $kept.gitTreeState=clean"
# What is there was made of the same modules.
if ! cmp -s go.sum "$folder/go.sum"; then
  for program in kube-controller-manager kube-scheduler kubelet kubeadm kube-proxy; do
    say "$program of Kubernetes $version"
    CGO_ENABLED=0 nice -n 10 go build -trimpath -ldflags "$flags" -o "$folder/$program" "k8s.io/kubernetes/cmd/$program" >&2 || fail "$program"
  done
  cp go.sum "$folder/go.sum"
fi

# What is in another module each has a version of its own; the list of them says what is in the folder.
containerd=v2.4.2
runc=v1.5.2
cni=v1.9.1
kind=v0.33.0
coredns=v1.15.0
versions="containerd $containerd runc $runc cni $cni kind $kind coredns $coredns"
export GOBIN=$folder GOFLAGS=
# install CGO TAGS EXTRA PACKAGE...: outside of this module, as each has its own.
install() {
  local cgo=$1 tags=$2 extra=$3
  shift 3
  say "$*"
  (cd / && CGO_ENABLED=$cgo nice -n 10 go install -trimpath -tags "$tags" -ldflags "-s -w $extra" "$@" >&2) || fail "$*"
}
if [ "$(cat "$folder/versions" 2>/dev/null)" != "$versions" ]; then
  source=github.com/containerd/containerd/v2/cmd
  install 0 no_btrfs,no_devmapper,no_zfs,no_aufs "" "$source/containerd@$containerd" "$source/ctr@$containerd" "$source/containerd-shim-runc-v2@$containerd"
  # Without seccomp, no container starts; the library is linked in.
  install 1 seccomp,netgo,osusergo "-extldflags -static" "github.com/opencontainers/runc@$runc"
  source=github.com/containernetworking/plugins/plugins
  install 0 "" "" "$source/main/bridge@$cni" "$source/main/loopback@$cni" "$source/ipam/host-local@$cni" "$source/meta/portmap@$cni"
  install 0 "" "" "sigs.k8s.io/kind@$kind"
  install 0 "" "" "github.com/coredns/coredns@$coredns"
  echo "$versions" >"$folder/versions"
fi
if [ $((SECONDS - began)) -gt 5 ]; then echo "kind: built in $((SECONDS - began)) s" >&2; fi
echo "$folder"

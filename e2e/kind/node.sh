# The image of the nodes; to be sourced by setup.sh, of which it takes $work, $programs, say and fail. kind's own build takes Docker
# and images of a registry, so this does what it does, over a root made of Debian's packages.

node_packages=systemd,systemd-sysv,dbus,conntrack,iptables,nftables,iproute2,ethtool,util-linux,mount,kmod,libseccomp2,procps,ca-certificates,curl,jq,e2fsprogs,bash,hostname,socat,pigz

# node_build: makes $node_image, unless it is there, and says with $etcd_tag and $coredns_tag which images are in it.
node_build() {
  local kubernetes versions key
  kubernetes=$(node_module k8s.io/kubernetes)
  versions=$(cat "$programs/versions")
  etcd_tag=$(node_module go.etcd.io/etcd/server/v3)-0
  etcd_tag=${etcd_tag#v}
  coredns_tag=$(sed 's/.*coredns \([^ ]*\).*/\1/' <<<"$versions")
  key=$(cat "$programs/go.sum" "$programs/versions" "$here/node.sh" | sha256sum | cut -c 1-12)
  node_image=localhost/restripe-node:$key
  podman image exists "$node_image" && return
  rm -rf "$work/system" "$work/root"
  mkdir -p "$work/system" "$work/root"
  node_root
  node_system
  node_assemble
  rm -rf "$work/system" "$work/root"
  local other
  for other in $(podman images --format '{{.Repository}}:{{.Tag}}' --filter reference=localhost/restripe-node); do
    [ "$other" = "$node_image" ] || podman rmi --force "$other" >/dev/null
  done
}

# node_module PATH: the version of a module that the programs are built of.
node_module() { go -C "$here/_build" list -m -f '{{.Version}}' "$1"; }

# node_root: Debian's packages as an archive, once for each list of them.
node_root() {
  base=$work/base-$(sha256sum <<<"$node_packages" | cut -c 1-12).tar
  [ ! -e "$base" ] || return 0
  say "making the root of nodes from Debian's packages, which takes minutes the first time"
  timeout 1200 nice -n 10 bash -c 'source "$1"; podman_root "$2" --format=tar "$3"' root e2e/podman.sh "$node_packages" "$base.part" \
    >"$work/root.log" 2>&1 || { tail -n 20 "$work/root.log" >&2; fail "making the root of nodes"; }
  mv "$base.part" "$base"
}

# node_system: the images of the control plane, and one of Redis, as archives in $work/system. There is nothing in them but their
# programs.
node_system() {
  local program folder
  say "making the images of the control plane"
  for program in kube-apiserver kube-controller-manager kube-scheduler; do
    folder=$(mktemp -d)
    install -D -m 755 "$programs/$program" "$folder/usr/local/bin/$program"
    node_pack "$program" "$kubernetes" "$folder"
  done
  folder=$(mktemp -d)
  install -D -m 755 "$programs/etcd" "$folder/usr/local/bin/etcd"
  node_pack etcd "$etcd_tag" "$folder"
  folder=$(mktemp -d)
  mkdir "$folder/tmp"
  install -D -m 755 "$programs/kube-proxy" "$folder/usr/local/bin/kube-proxy"
  node_copy /usr/sbin/nft "$folder" # which kube-proxy calls
  node_pack kube-proxy "$kubernetes" "$folder"
  folder=$(mktemp -d)
  install -D -m 755 "$programs/coredns" "$folder/coredns"
  node_pack coredns "$coredns_tag" "$folder" 'ENTRYPOINT ["/coredns"]'
  folder=$(mktemp -d)
  gcc -Os -static -DVERSION="$node_pause" -o "$folder/pause" "$(go -C "$here/_build" list -m -f '{{.Dir}}' k8s.io/kubernetes)/build/pause/linux/pause.c"
  node_pack pause "$node_pause" "$folder" 'ENTRYPOINT ["/pause"]'
  folder=$(mktemp -d)
  node_copy "$(command -v redis-server)" "$folder"
  node_pack redis debian "$folder"
}

# node_copy PROGRAM FOLDER: a program of this machine, with the libraries that it is linked against.
node_copy() {
  local file
  for file in "$1" $(ldd "$1" | grep -o '/[^ ]*'); do
    install -D -m 755 "$(readlink -f "$file")" "$2$file"
  done
}

# The version of the container that holds a pod's namespaces, as kubeadm of this Kubernetes names it.
node_pause=3.10.2

# node_pack NAME TAG FOLDER [LINE]: an archive of an image of that folder, which is gone then.
node_pack() {
  printf 'FROM scratch\nCOPY . /\nENV PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n%s\n' "${4:-}" >"$work/Containerfile"
  timeout 300 podman build --quiet --isolation chroot --tag "localhost/k8s/$1:$2" --file "$work/Containerfile" "$3" >/dev/null
  timeout 300 podman save --quiet --output "$work/system/$1.tar" "localhost/k8s/$1:$2"
  podman rmi --force "localhost/k8s/$1:$2" >/dev/null
  rm -r "$3"
}

# node_assemble: the root, kind's files, the programs and the images, as kind's images/base/Dockerfile puts them together.
node_assemble() {
  local root=$work/root files version
  say "making the image of nodes"
  version=$(sed 's/.*kind \([^ ]*\).*/\1/' <<<"$versions")
  files=$(cd / && go mod download -json "sigs.k8s.io/kind@$version" | jq -r .Dir)/images/base/files
  tar -C "$root" -xf "$base"
  cp -r --no-preserve=mode,ownership "$files/kind" "$files/etc" "$files/usr" "$root/"
  chmod 755 "$root"/usr/local/bin/* "$root/kind" "$root/kind/bin" "$root"/kind/bin/*
  (
    cd "$root/lib/systemd/system"
    rm -f multi-user.target.wants/* ../../../etc/systemd/system/*.wants/* local-fs.target.wants/* sockets.target.wants/*udev* \
      sockets.target.wants/*initctl* basic.target.wants/* sysinit.target.wants/systemd-tmpfiles-setup.service
  )
  echo "ReadKMsg=no" >>"$root/etc/systemd/journald.conf"
  ln -sf /usr/lib/systemd/systemd "$root/sbin/init"
  mkdir -p "$root"/etc/kubernetes/manifests "$root"/opt/cni/bin "$root"/etc/cni/net.d "$root"/kind/{manifests,images,sysctl}
  install -m 755 "$programs"/{kubelet,kubeadm,kubectl} "$root/usr/bin/"
  install -m 755 "$programs"/{containerd,ctr,containerd-shim-runc-v2} "$root/usr/local/bin/"
  install -m 755 "$programs/runc" "$root/usr/local/sbin/runc"
  install -m 755 "$programs"/{bridge,loopback,host-local,portmap} "$root/opt/cni/bin/"
  cp "$work"/system/*.tar "$root/kind/images/"
  echo -n "$kubernetes" >"$root/kind/version"
  node_containerd "$root"
  node_sysctls "$root/usr/local/bin/entrypoint"
  chroot "$root" systemctl -q enable kubelet.service containerd.service undo-mount-hacks.service
  chroot "$root" systemctl -q mask systemd-binfmt.service
  rm -rf "$root/etc/apt/sources.list" "$root"/etc/apt/sources.list.d/*
  : >"$root/etc/machine-id"
  tar -C "$root" -c . | timeout 600 podman import --quiet --change 'ENV container=docker' --change 'STOPSIGNAL SIGRTMIN+3' \
    --change 'ENTRYPOINT ["/usr/local/bin/entrypoint","/sbin/init"]' - "$node_image" >/dev/null
}

# node_containerd ROOT: containerd raises no limits, which takes a capability that containers on containers lack; drives control
# groups itself; takes the images in the node and no others; and gives pods addresses of what the node was given for them.
node_containerd() {
  local root=$1
  "$programs/ctr" oci spec | jq 'del(.process.rlimits) | .hooks.createContainer = [{"path": "/kind/bin/mount-product-files.sh"}]' \
    >"$root/etc/containerd/cri-base.json"
  sed -i -e 's/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' -e 's/SystemdCgroup = true/SystemdCgroup = false/' \
    -e "s#sandbox_image = .*#sandbox_image = \"localhost/k8s/pause:$node_pause\"#" "$root/etc/containerd/config.toml"
  cat >>"$root/etc/containerd/config.toml" <<'END'
  [plugins."io.containerd.grpc.v1.cri".cni]
    conf_template = "/etc/cni/bridge.conflist.tmpl"
END
  cat >"$root/etc/cni/bridge.conflist.tmpl" <<'END'
{"cniVersion": "1.0.0", "name": "bridge", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "{{.PodCIDR}}"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
END
  mkdir -p "$root/etc/systemd/system/containerd.service.d"
  cat >"$root/etc/systemd/system/containerd.service.d/10-node.conf" <<'END'
[Service]
LimitNPROC=
LimitCORE=
LimitNOFILE=
OOMScoreAdjust=
ExecStartPost=/bin/sh -c 'for archive in /kind/images/*.tar; do /usr/local/bin/ctr -n k8s.io images import --no-unpack $archive; done'
END
  printf '[Unit]\nAfter=containerd.service\n' >"$root/etc/systemd/system/kubelet.service.d/20-node.conf"
}

# node_sysctls ENTRYPOINT: kubelet sets a few values of the kernel, which are the whole machine's: it is shown files that have them.
node_sysctls() {
  local edited
  edited=$(mktemp)
  awk '
    /^# validate state$/ {
      print "show_sysctls() {"
      print "  local pair file"
      print "  for pair in kernel/panic=10 kernel/panic_on_oops=1 vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do"
      print "    file=/kind/sysctl/$(tr / . <<<\"${pair%=*}\")"
      print "    echo \"${pair#*=}\" >\"$file\""
      print "    mount --bind \"$file\" \"/proc/sys/${pair%=*}\""
      print "  done"
      print "}"
      print ""
    }
    { print }
    /^fix_mount$/ { print "show_sysctls" }' "$1" >"$edited"
  [ "$(grep -c '^show_sysctls' "$edited")" = 2 ] || fail "the entrypoint of kind's nodes is not what it was"
  cat "$edited" >"$1"
  rm "$edited"
}

# Podman with a storage and settings of its own, for guests and for nodes of Kubernetes; to be sourced. They are those of $work alone, so
# that nothing else on the machine is touched or seen.

# podman_hindrance WHAT: why this machine cannot have containers with systemd, of which WHAT is made; nothing where it can.
podman_hindrance() {
  [ "$(uname -s)" = Linux ] || { echo "it takes Linux"; return; }
  [ "$(id -u)" -eq 0 ] || { echo "it takes root, for $1 with systemd"; return; }
  unshare --mount --net --pid --fork true 2>/dev/null || { echo "there are no namespaces here for $1 to live in"; return; }
  unshare --mount sh -c 'mount -t tmpfs none /mnt && mknod /mnt/null c 1 3 && : >/mnt/null' 2>/dev/null ||
    { echo "nothing can be mounted here, or no device made, which the root of $1 takes"; return; }
  [ -d /sys/fs/cgroup/systemd ] || [ -e /sys/fs/cgroup/cgroup.controllers ] || echo "there are no control groups here, which systemd needs"
}

# podman_settings: writes them to $work, podman.env among them, which tells podman where they are, and takes them.
podman_settings() {
  cat >"$work/storage.conf" <<END
[storage]
driver = "overlay"
graphroot = "$work/podman"
runroot = "$work/podman-run"
END
  # No limit is raised, which takes a capability that containers on containers lack; runc knows hybrid control groups.
  cat >"$work/containers.conf" <<END
[containers]
default_ulimits = ["nofile=$(ulimit -Hn):$(ulimit -Hn)", "nproc=16384:16384"]
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
[network]
network_config_dir = "$work/networks"
END
  cat >"$work/podman.env" <<END
export CONTAINERS_STORAGE_CONF='$work/storage.conf' CONTAINERS_CONF='$work/containers.conf' KIND_EXPERIMENTAL_PROVIDER=podman
END
  source "$work/podman.env"
}

# podman_root PACKAGES: what makes a root of Debian's packages; further arguments are of mmdebstrap, the last of them where it goes.
# Packages come from where the machine's own apt takes them.
podman_root() {
  local packages=$1 sources
  shift
  sources=$(ls /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list 2>/dev/null || true)
  # shellcheck disable=SC2086 # several files
  mmdebstrap --quiet --variant=minbase --mode=root --aptopt='Acquire::Check-Valid-Until "false"' --include="$packages" "${@:1:$#-1}" \
    bookworm "${!#}" $sources
}

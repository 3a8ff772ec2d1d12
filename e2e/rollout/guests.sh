# Guests with systemd and sshd of their own, each with an address of its own on a bridge, as containers of podman; to be
# sourced after podman.sh. No image comes from a registry: the root is made of Debian's packages, once, and kept in $work.

guests_packages=systemd,systemd-sysv,dbus,openssh-server,python3,python3-apt,iproute2,procps,ca-certificates,adduser,sudo,faketime,memcached,redis-server,etcd-server

# guests_prepare: settings, the image and the network.
guests_prepare() {
  podman_settings
  guests_stop
  guests_image
  guests_subnet=$(guests_free_subnet)
  podman network create --disable-dns --subnet "$guests_subnet.0/24" rollout >/dev/null
  [ -e "$work/key" ] || ssh-keygen -q -t ed25519 -N '' -C rollout -f "$work/key"
}

# guests_image: the image of which every guest begins. It is made anew when the list of packages has changed.
guests_image() {
  guests_image_name=localhost/rollout:$(sha256sum <<<"$guests_packages" | cut -c 1-12)
  podman image exists "$guests_image_name" && return
  say "making the root of guests from Debian's packages, which takes minutes the first time"
  podman_root "$guests_packages" \
    --customize-hook='rm -f "$1"/etc/ssh/ssh_host_*; : >"$1"/etc/machine-id' \
    --customize-hook='systemctl --root="$1" --quiet disable memcached redis-server etcd' - |
    podman import --quiet --change 'STOPSIGNAL SIGRTMIN+3' --change 'CMD ["/sbin/init"]' - "$guests_image_name" >/dev/null
}

# guests_free_subnet: the first three numbers of a network that this machine does not know.
guests_free_subnet() {
  local third
  for third in $(seq 0 255); do
    ip -4 route show table all | grep -qF "10.77.$third." || break
  done
  echo "10.77.$third"
}

# guests_hindrance: why no guest can be started, though there is an image of them; nothing where one can.
guests_hindrance() {
  local said since=$SECONDS
  said=$(losetup --find 2>&1) || { echo "there are no loop devices here, which the disks of guests are: $said"; return; }
  said=$(guest_run trial 2>&1) || { echo "podman cannot start a container here: $said"; return; }
  until podman exec trial systemctl is-active --quiet multi-user.target 2>/dev/null; do
    if [ "$(podman inspect --format '{{.State.Status}}' trial)" != running ] || [ $((SECONDS - since)) -ge 300 ]; then
      echo "systemd does not start in a container here: $(podman logs trial 2>&1 | tail -n 5)"
      return
    fi
    sleep 0.2
  done
  guest_kill trial
}

# guest_run NAME ARGUMENT...: starts a container with systemd in it; arguments are of podman.
guest_run() {
  local name=$1
  shift
  podman run --detach --quiet --name "$name" --hostname "$name" --network rollout --systemd=always \
    --cap-add SYS_ADMIN,NET_ADMIN,SYS_PTRACE --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
    --tmpfs /run --tmpfs /tmp "$@" "$guests_image_name"
}

# guest_start NAME NUMBER [LABEL]: starts an empty guest with an address of that number, and a disk with that label if there is
# one, and waits until one can log in.
guest_start() {
  local name=$1 address=$guests_subnet.$2 label=${3:-} device='' more=()
  if [ -n "$label" ]; then
    device=$(guest_disk "$label")
    more=(--device "$device")
  fi
  guest_run "$name" --ip "$address" "${more[@]}" >/dev/null
  # What udev does on a machine.
  [ -z "$label" ] || podman exec "$name" sh -ec "mkdir -p /dev/disk/by-label; ln -s $device /dev/disk/by-label/$label"
  podman exec --interactive "$name" sh -ec '
    mkdir -p -m 700 /root/.ssh
    cat >/root/.ssh/authorized_keys
    ssh-keygen -A >/dev/null
    # What a guest in a container has no right to: namespaces of users within, and limits above its own.
    mkdir -p /etc/systemd/system/service.d
    printf "[Service]\nPrivateUsers=no\nLimitNOFILE=$(ulimit -Hn)\n" >/etc/systemd/system/service.d/guest.conf
    systemctl daemon-reload' <"$work/key.pub"
  until guest "$2" systemctl is-active --quiet ssh multi-user.target; do
    podman exec "$name" systemctl start ssh 2>/dev/null || true
    [ "$(podman inspect --format '{{.State.Status}}' "$name")" = running ] || fail "guest $name has ended: podman logs $name"
    sleep 0.2
  done
}

# guest_disk LABEL: makes an empty disk with a file system of that label, and prints its device. It is a file of $work.
guest_disk() {
  local file=$work/disks/$1
  mkdir -p "$work/disks"
  rm -f "$file"
  truncate --size 2G "$file"
  mkfs.ext4 -q -L "$1" "$file"
  losetup --find --show "$file"
}

# guest NUMBER COMMAND...: runs a command in the guest with that address.
guest() {
  local number=$1
  shift
  ssh -n -q -i "$work/key" -o BatchMode=yes -o ConnectTimeout=60 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "root@$guests_subnet.$number" "$@"
}

# guest_kill NAME: it is gone at once, with all that it had.
guest_kill() { podman rm --force --time 0 "$1" >/dev/null; }

# guests_stop: ends every guest, and takes their disks and the network away.
guests_stop() {
  local file
  podman rm --all --force --time 0 >/dev/null 2>&1
  for file in "$work"/disks/*; do
    [ -e "$file" ] || continue
    losetup --associated "$file" | cut -d: -f 1 | xargs -r -n 1 losetup --detach
    rm -f "$file"
  done
  podman network rm --force rollout >/dev/null 2>&1 || true
}

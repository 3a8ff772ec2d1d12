#!/usr/bin/env bash
# Installs packages on a machine that is this one but for what changes there, with systemd as its first process and without a network,
# and sees that services start under their limits, that one which hangs is started anew, and what is left behind by a purge. It
# takes the rights of root, and systemd-nspawn.
#
#   playbooks/package/try.sh bin/packages/*_amd64.deb
set -euo pipefail

place=${RESTRIPE_TRY:-}
if [ -z "$place" ]; then
  place=$(mktemp -d)
  trap 'rmdir "$place"' EXIT
  RESTRIPE_TRY=$place unshare --mount "$0" "$@" # with which its mounts end
  exit
fi
mount -t tmpfs tmpfs "$place"
mkdir "$place"/{upper,work,machine}
mount -t overlay overlay -o "lowerdir=/,upperdir=$place/upper,workdir=$place/work" "$place/machine"
machine=$place/machine
rm -rf "$machine"/etc/systemd/system/*.wants
mkdir -p "$machine/try" "$machine/etc/systemd/system/multi-user.target.wants"
cp "$@" "$machine/try/"

cat >"$machine/try/script" <<'TRY'
set -Eeuo pipefail
trap 'echo "try: it ends in line $LINENO: $BASH_COMMAND"' ERR
cd /try
dpkg --install ./*.deb
[[ $(kubectl-restripe --help) = *'kubectl restripe [command]'* ]]
[[ $(kubectl_complete-restripe rend) = render* ]]
cp /usr/share/doc/restripe-agent/examples/agent.yaml /etc/restripe/agent/n1.yaml
echo 'nodes: [{id: n1, address: "127.0.0.1:7481"}]' >/etc/restripe/nodes.yaml
sed -i 's/^# nodes:/nodes:/' /etc/restripe/gateway.yaml
runuser -u restripe -- restripe-agent check-config /etc/restripe/gateway.yaml /etc/restripe/agent/n1.yaml
mkdir /etc/systemd/system/restripe-agent@n1.service.d
printf '[Service]\nWatchdogSec=2\nRestartSec=0\n' >/etc/systemd/system/restripe-agent@n1.service.d/soon.conf
systemctl daemon-reload
systemctl start restripe-agent@n1 restripe-gateway
until curl -fs http://127.0.0.1:7480/readyz; do sleep 0.1; done

# It lives on for longer than its watchdog waits; and one that hangs is started anew.
sleep 5
[ "$(systemctl show -P NRestarts restripe-agent@n1)" = 0 ]
kill -STOP "$(systemctl show -P MainPID restripe-agent@n1)"
until [ "$(systemctl show -P NRestarts restripe-agent@n1)" = 1 ]; do sleep 0.1; done
until curl -fs http://127.0.0.1:7480/readyz; do sleep 0.1; done

dpkg --purge restripe restripe-agent
systemctl is-active restripe-agent@n1 restripe-gateway && exit 1
[ -d /var/lib/restripe/n1 ] && [ -e /var/lib/restripe/catalog.db ] && [ -e /etc/restripe/agent/n1.yaml ] && [ ! -e /etc/restripe/gateway.yaml ]
touch /try/passed
TRY
cat >"$machine/etc/systemd/system/try.service" <<'TRY'
[Unit]
After=basic.target
[Service]
ExecStart=/bin/bash -c '/bin/bash /try/script >/try/said 2>&1; systemctl poweroff'
TRY
ln -s ../try.service "$machine/etc/systemd/system/multi-user.target.wants/"

timeout 120 systemd-nspawn --register=no --keep-unit --quiet --private-network --link-journal=no --directory="$machine" --boot --console=pipe \
  </dev/null >"$place/boot" 2>&1 || true
cat "$machine/try/said"
[ -e "$machine/try/passed" ] || { echo "try: the packages do not do what they are for; above is how far it came" >&2; exit 1; }
echo "try: services start, are watched, and leave the data"

#!/usr/bin/env bash
# Rolls Restripe out over guests of this machine with the playbooks, as over machines of metal: mistakes that preflight has to
# find, a cluster from nothing over directories, a disk, memcached and Redis, a second run that changes nothing, real files stored
# and read, a guest lost and replaced, certificates rotated, an upgrade under load that is broken off and goes on, and back again, a node emptied and removed, the catalog and what
# was declared restored on an empty guest; the catalog moved to three members of etcd, for two gateways, backed up and restored there; what is run twice changes nothing the second time and says so. Where the
# machine cannot have guests this is said, loudly and once, and nothing is tested. SHORT=1 ends when the lost guest is replaced, and packs
# programs as tests build them; KEEP=1 leaves the guests at the end.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=$PWD/e2e/rollout
work=$PWD/.cache/rollout
packages=$work/packages${SHORT:+-short}
program=$packages/v0.0.1/restripe # what the controller has
source e2e/packages.sh
source e2e/podman.sh
source e2e/rollout/guests.sh
source e2e/rollout/inventory.sh

say() { echo "rollout: $SECONDS s: $*"; }

fail() {
  echo "rollout: FAILED after $SECONDS s: $*" >&2
  exit 1
}

whole() { [ -z "${SHORT:-}" ]; }

# hindered WHY: ends where the machine cannot have guests.
hindered() {
  echo "**********************************************************************"
  echo "rollout: NOTHING WAS ROLLED OUT: $1"
  echo "**********************************************************************"
  exit 0
}

# play NAME EXPECTED PLAYBOOK ARGUMENT...: runs a playbook of the collection, keeps what it says in $work/NAME.log, and shows
# the end of that where the exit code is not what is expected: 0, or "mistakes" for any other.
play() {
  local name=$1 expected=$2 code=0
  shift 2
  say "$name"
  log=$work/$name.log
  ansible-playbook --inventory "$work/inventory.yml" "restripe.storage.$1" "${@:2}" >"$log" 2>&1 </dev/null || code=$?
  if { [ "$expected" = 0 ] && [ $code -ne 0 ]; } || { [ "$expected" != 0 ] && [ $code -eq 0 ]; }; then
    tail -n 60 "$log"
    fail "$name ended with $code, and $expected was expected; all of it is in $log"
  fi
}

# unchanged: that the last playbook changed nothing.
unchanged() {
  if grep -E 'changed=[1-9]' "$log"; then
    grep -B 20 '^changed:' "$log" | grep -E '^(TASK|changed)' || true
    fail "a run that had nothing to do changed something; all of it is in $log"
  fi
}

# says TEXT...: that the last playbook said all of it.
says() {
  local text
  for text in "$@"; do
    grep -qF -- "$text" "$log" || { tail -n 40 "$log"; fail "nothing says: $text; all of it is in $log"; }
  done
}

# client COMMAND...: the program as a client of the cluster, at the gateway $gateway.
client() {
  RESTRIPE_GATEWAY=https://$guests_subnet.${gateway#*:}:7480 RESTRIPE_ACCESS_KEY=TESTER:$secret RESTRIPE_CA=$work/authority/ca.crt "$program" "$@"
}

# stored PREFIX: that every file of docs is there, and is what it was.
stored() {
  local file
  while read -r file; do
    client get --stored "$1$file" "$work/read" || fail "reading $1$file"
    cmp -s "$work/read" "docs/$file" || fail "$1$file is not what was stored"
  done < <(cd docs && find . -type f -size +0 -printf '%P\n' | sort)
}

# answers PORT PATH TEXT: waits until the machine of the gateway shows a text there, over TLS and to the user of Prometheus.
answers() {
  local since=$SECONDS said=
  until grep -q "$3" <<<"$said"; do
    [ $((SECONDS - since)) -lt 300 ] || fail "port $1 of ${gateway%:*} does not show $3 at $2: $(head -c 500 <<<"$said")"
    said=$(curl --silent --show-error --fail --max-time 60 --cacert "$work/authority/ca.crt" --header "Authorization: Bearer $secret" \
      "https://$guests_subnet.${gateway#*:}:$1$2" 2>&1) || sleep 0.5
  done
}

# watched: that gateway, console and operator show what alerts are about, and the console its page.
watched() {
  answers 7480 /metrics '^restripe_node_up{.*} 1$'
  answers 7482 /metrics '^restripe_console_audit_failures_total 0$'
  answers 7482 / '<title>'
  answers 7483 /metrics '^restripe_condition{condition="Ready",kind="StorageBackend",name="rollout".*} 1$'
}

# memcached_says NUMBER NAME: what memcached says of itself in the guest with that address, as a setting or as a count.
memcached_says() {
  guest "$1" bash -c "'exec 3<>/dev/tcp/127.0.0.1/11211; printf \"stats\r\nstats settings\r\nquit\r\n\" >&3; cat <&3'" |
    tr -d '\r' | awk -v name="$2" '$2 == name { last = $3 } END { print last }'
}

# other_package FILE: a package for another processor, with nothing in it.
other_package() {
  local root=$work/other
  rm -rf "$root"
  mkdir -p "$root/DEBIAN"
  printf 'Package: restripe-agent\nVersion: 0\nArchitecture: arm64\nMaintainer: nobody\nDescription: nothing\n' >"$root/DEBIAN/control"
  dpkg-deb --build --root-owner-group -Zgzip "$root" "$1" >/dev/null
}

# sources: what the packages are made of, in one word.
sources() {
  local parts=('*.go' go.mod go.sum web playbooks/package)
  { git log -1 --format=%H -- "${parts[@]}"; git diff HEAD -- "${parts[@]}"; } | sha256sum | cut -c 1-40
}

# pack VERSION: the packages of this tree under that version, unless they are there.
pack() {
  local into=$packages/$1
  [ "$(cat "$into/sources" 2>/dev/null)" != "$(sources)" ] || return 0
  say "packing $1"
  make --no-print-directory package VERSION="$1" ARCHITECTURES=amd64 QUICK="${SHORT:-}" >"$work/pack.log" 2>&1 || { tail -n 20 "$work/pack.log"; fail "packing $1"; }
  mkdir -p "$into"
  mv bin/packages/restripe-agent_*_amd64.deb "$into/restripe-agent.deb"
  mv bin/packages/restripe_*_amd64.deb "$into/restripe.deb"
  dpkg-deb --fsys-tarfile "$into/restripe.deb" | tar --extract --directory "$into" --strip-components 3 ./usr/bin/restripe
  sources >"$into/sources"
}

# patiently COMMAND...: a client that tries again for two minutes: a gateway that is the only one is away while it starts anew.
patiently() {
  local since=$SECONDS
  until client "$@"; do
    [ $((SECONDS - since)) -lt 120 ] || return 1
    sleep 0.2
  done
  away=$((SECONDS - since > ${away:-0} ? SECONDS - since : ${away:-0}))
}

# everywhere VERSION: that every machine has a version and runs it, agents and gateways.
everywhere() {
  local agent numbers=("${gateway#*:}") number runs
  for agent in "${agents[@]}"; do
    number=${agent#*:}
    numbers+=("${number%%:*}")
  done
  for number in "${numbers[@]}"; do
    [[ $(guest "$number" restripe-agent version) = *" $1,"* ]] || fail "the machine with address $number has another version than $1"
    runs=$(guest "$number" 'for pid in $(pgrep -f "^/usr/(bin|lib/restripe)/restripe"); do readlink /proc/$pid/exe || true; done')
    [ -n "$runs" ] || fail "nothing of Restripe runs on the machine with address $number"
    [[ $runs != *" (deleted)"* ]] || fail "the machine with address $number still runs what it had before $1: $runs"
  done
}

# load: stores a file and reads it, again and again, until the file load.stop is there; ends with an error if that fails.
load() {
  local count=0 away=0
  rm -f "$work/load.stop"
  until [ -e "$work/load.stop" ]; do
    patiently put CONTRIBUTING.md "files/load/$count" || return 1
    patiently get --stored "files/load/$count" "$work/load.read" || return 1
    cmp "$work/load.read" CONTRIBUTING.md || return 1
    count=$((count + 1))
  done >"$work/load.log" 2>&1
  echo "$count files were stored and read during the upgrade; the longest took $away s" >>"$work/load.log"
}

hindrance=$(podman_hindrance guests)
[ -z "$hindrance" ] || hindered "$hindrance"
if [ -n "$(packages_missing rollout)" ]; then
  mapfile -t needed < <(packages_of rollout)
  packages_prepare || fail "not installed: ${needed[*]}; $packages_hindrance"
  say "installing ${needed[*]}"
  packages_install "${needed[@]}" >/dev/null 2>&1 || fail "the packages could not be installed: ${needed[*]}"
fi
mkdir -p "$work"
pack v0.0.1
! whole || pack v0.0.2
playbooks/setup.sh >"$work/setup.log" 2>&1 || { cat "$work/setup.log"; fail "Ansible could not be installed"; }
source "${RESTRIPE_ANSIBLE:-.cache/ansible}/env"

finish() {
  local code=$?
  jobs -p | xargs -r kill 2>/dev/null || true
  if [ -n "${KEEP:-}" ]; then
    echo "rollout: the guests stay: ssh -i $work/key root@$guests_subnet.11"
  else
    guests_stop
  fi
  exit $code
}
trap finish EXIT
trap 'exit 130' INT TERM

guests_prepare
hindrance=$(guests_hindrance)
[ -z "$hindrance" ] || hindered "$hindrance"
rm -rf "$work/authority" "$work/expired" "$work/backup" "$work/backup-etcd" "$work"/*.log
version=v0.0.1
secret=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
kubeconfig=/var/lib/restripe/api/kubeconfig
gateway=c1:10
agents=(r1:11:a:disk r2:12:a:memcached r3:13:b r4:14:b:redis r5:15:c)

say "starting guests"
guest_start c1 10 &
guest_start r1 11 restripe-r1 &
for guest in r2:12 r3:13 r4:14 r5:15; do guest_start "${guest%:*}" "${guest#*:}" & done
wait

# On r1 a full disk; on r2 a name that is used already; on r3 a port that is taken; on r4 a user who may not become root; on r5 a
# clock that is five minutes ahead, for what Ansible runs, and packages for another machine; no r9 at all; two members of etcd; an authority that has expired.
say "planting mistakes"
guest 11 mount -t tmpfs -o size=64m none /mnt
guest 13 systemd-run --quiet --unit=squatter python3 -m http.server 7400
guest 14 'useradd --create-home visitor && cp -r .ssh /home/visitor && chown -R visitor /home/visitor/.ssh'
guest 15 'printf "#!/bin/sh\nexec faketime -f +300s /usr/bin/python3 \"\$@\"\n" >/usr/local/bin/python-ahead && chmod +x /usr/local/bin/python-ahead'
other_package "$work/other.deb"
members='r1 r2' inventory "$work/inventory.yml" "${agents[@]}" r9:99:c
sed -i "$work/inventory.yml" \
  -e 's/{disk: restripe-r1}/{store: "file:\/mnt\/r1"}/' \
  -e 's/store_servers: \[memcached\], agent_nodes: .*}/agent_nodes: [{id: r1}]}/' \
  -e 's/ r4: {/&ansible_user: visitor, /' \
  -e "s| r5: {|&ansible_python_interpreter: /usr/local/bin/python-ahead, program_packages: {agent: $work/other.deb, restripe: \"\"}, |"
sed 's/"rs(2,2)"/"rs(12,2)"/' "$here/policies.yaml" >"$work/policies.yaml"
sed -i "s|$here/policies.yaml|$work/policies.yaml|" "$work/inventory.yml"
"$program" pki init rollout --ca "$work/expired" --life 1ns >/dev/null
play preflight mistakes preflight --extra-vars "pki_authority=$work/expired"
says "10 mistakes" "$work/expired/ca.crt: the authority has expired at " "restripe_etcd: 2 members of etcd survive the loss of no more than 1 would" "r1: /mnt/r1 has 6" "r1, r2: the name r1 is used 2 times" "policy files: rs(12,2) takes 14 nodes" \
  "r3: python3 listens on port 7400" "r4: one can log in, and not become root" "--ask-become-pass" "r5: its clock is" "s ahead of that of the controller" \
  "r5: $work/other.deb: the package is for arm64, and the machine is amd64" "r9: it does not answer"
guest 13 systemctl stop squatter

# As they run where somebody has installed them: with the settings of the package, by which memcached forgets.
guest 12 systemctl start memcached
guest 14 systemctl start redis-server

inventory "$work/inventory.yml" "${agents[@]}"
if whole; then
  play site-check-first 0 site --check --diff
  guest 11 test ! -e /etc/restripe || fail "check mode installed something"
fi
play site 0 site
play site-again 0 site
unchanged
if whole; then
  play site-check 0 site --check --diff
  unchanged
fi

say "storing files, and reading them"
client put docs files/ >/dev/null
stored files/
watched
guest 11 "grep -q '/var/lib/restripe/r1 ext4' /proc/mounts" || fail "the disk of r1 is not mounted"
[ -n "$(guest 11 find /var/lib/restripe/r1 -type f -size +0 -print -quit)" ] || fail "nothing is on the disk of r1"
guest 12 grep -qx -e -M /etc/memcached.conf || fail "memcached of r2 may forget"
[ "$(memcached_says 12 evictions)" = off ] || fail "memcached of r2 runs as the package has it"
[ "$(memcached_says 12 curr_items)" -gt 20 ] || fail "nothing is in memcached of r2"
[ "$(guest 14 "REDISCLI_AUTH=$secret redis-cli dbsize")" -gt 20 ] || fail "nothing is in Redis of r4"

say "killing r3, and replacing it by r6"
guest_kill r3
guest_start r6 16
agents=(r1:11:a:disk r2:12:a:memcached r4:14:b:redis r5:15:c r6:16:b)
inventory "$work/inventory.yml" "${agents[@]}"
play replace_node 0 replace_node --extra-vars 'replace_node=r3 replace_with=r6'
stored files/
if ! whole; then
  echo "rollout: so far all of it passed, in $SECONDS s; the rest is that of make rollout"
  exit 0
fi
play replace_node-again 0 replace_node --extra-vars 'replace_node=r3 replace_with=r6'
unchanged
says "r3 was no member before this run, and has no valid certificate"
play site-after-replacement 0 site
unchanged

podman exec --interactive c1 restripe apply --kubeconfig "$kubeconfig" -f - >/dev/null <<END
apiVersion: restripe.io/v1alpha1
kind: RedundancyPolicy
metadata: {name: by-hand, labels: {team: blue}}
spec: {backendRef: rollout, selector: {prefixes: [by-hand/]}, ladder: [rep(3)]}
END
play backup 0 backup --extra-vars "backup_directory=$work/backup"
client put README.md files/after-the-backup >/dev/null

before=$(guest "${gateway#*:}" cat /etc/restripe/tls/admin-c1/tls.crt)
play rotate_certificates 0 rotate_certificates
[ "$before" != "$(guest "${gateway#*:}" cat /etc/restripe/tls/admin-c1/tls.crt)" ] || fail "the certificates are what they were"
stored files/
watched

say "upgrading while files are stored and read"
version=v0.0.2
inventory "$work/inventory.yml" "${agents[@]}"
load &
load=$!
# r5, which is alone in the last failure domain, cannot start its agent again: half of the cluster runs what is new.
guest 15 systemctl mask --runtime --quiet restripe-agent@r5.service
play upgrade-broken-off mistakes upgrade
says "systemctl enable restripe-agent@r5.service" "masked"
[[ $(guest 11 restripe-agent version) = *" v0.0.2,"* ]] || fail "r1 was not upgraded before r5 was tried: $(guest 11 restripe-agent version)"
[[ $(guest "${gateway#*:}" restripe-agent version) = *" v0.0.1,"* ]] || fail "the gateway was upgraded before all agents were"
guest 15 systemctl unmask --runtime --quiet restripe-agent@r5.service
play upgrade 0 upgrade
everywhere v0.0.2
say "going one release back, while files are stored and read"
version=v0.0.1
inventory "$work/inventory.yml" "${agents[@]}"
play upgrade-back 0 upgrade
everywhere v0.0.1
touch "$work/load.stop"
wait $load || fail "a client saw the upgrade: $(tail -n 3 "$work/load.log")"
say "$(tail -n 1 "$work/load.log")"
stored files/
say "adding r7"
guest_start r7 17
agents+=(r7:17:c)
inventory "$work/inventory.yml" "${agents[@]}"
play add_node 0 add_node --extra-vars add_node=r7

play drain-nobody mistakes drain --extra-vars drain_node=r55
says "there is no node r55: the members are r1 r2 r4 r5 r6 r7"
play drain 0 drain --extra-vars 'drain_node=r5 drain_rate=200MiB/s'
play drain-again 0 drain --extra-vars 'drain_node=r5 drain_rate=200MiB/s'
unchanged
says "nothing lies on r5, which was being emptied before this run"
play remove 0 remove --extra-vars remove_node=r5
says "r5 is no member any more, and its certificate is revoked; take it out of the inventory"
[ "$(guest 15 systemctl is-active restripe-agent@r5.service)" != active ] || fail "the agent of r5 runs on"
play remove-again 0 remove --extra-vars remove_node=r5
unchanged
says "r5 is no member, so that there is nothing to empty" "r5 was no member before this run, and has no valid certificate"
agents=(r1:11:a:disk r2:12:a:memcached r4:14:b:redis r6:16:b r7:17:c)
inventory "$work/inventory.yml" "${agents[@]}"
play status 0 status
stored files/

say "losing the machine of the gateway, and restoring its catalog on an empty one"
guest_kill "${gateway%:*}"
gateway=c2:20
guest_start c2 20
inventory "$work/inventory.yml" "${agents[@]}"
play restore-nothing mistakes restore --extra-vars "restore_from=$work/backup"
says "there is no $work/backup/catalog.db: name a folder that the playbook backup made"
play restore 0 restore --extra-vars "restore_from=$(echo "$work"/backup/*)"
stored files/
client get --stored files/after-the-backup "$work/read"
cmp "$work/read" README.md || fail "what was stored after the backup is not what it was"
guest 20 restripe get policies by-hand -o yaml --kubeconfig "$kubeconfig" >"$work/by-hand.yaml" || fail "what was declared by hand did not come back"
grep -q 'team: blue' "$work/by-hand.yaml" || fail "what was declared by hand came back without its labels"
play restore-accept 0 restore --extra-vars "restore_from=$(echo "$work"/backup/*) restore_accept=true"
says "was put there already, and the catalog is left as it is"
play site-after-restore 0 site
unchanged

say "a second gateway, which takes a catalog that both reach: etcd on three guests"
guest_start c3 21
second=c3:21
inventory "$work/inventory.yml" "${agents[@]}"
play preflight-two-gateways mistakes preflight
says "c2, c3: a file is the catalog of one gateway, and the inventory has 2" "put three machines into the group restripe_etcd"
members='r1 r6 r7'
inventory "$work/inventory.yml" "${agents[@]}"
play site-other-catalog mistakes site
says "the catalog of c2 is sqlite:/var/lib/restripe/catalog.db, and the inventory names" "run the playbook restripe.storage.move_catalog"
client put README.md files/before-the-move >/dev/null
play move-check 0 move_catalog --check
client get --stored files/before-the-move "$work/read" || fail "check mode stopped the gateway"
guest 20 "grep -q '^catalog: sqlite:' /etc/restripe/gateway.yaml" || fail "check mode moved the catalog"
play move 0 move_catalog
says "records of sqlite:/var/lib/restripe/catalog.db are in etcds://"
play move-again 0 move_catalog
unchanged
says "the catalog of c2 is etcds://" "the catalog of c3 is etcds://"
play site-after-move 0 site
unchanged
stored files/
gateway=$second client get --stored files/before-the-move "$work/read"
cmp "$work/read" README.md || fail "the second gateway reads something else than what was stored before the move"
guest 16 systemctl stop restripe-etcd.service
gateway=$second patiently put CONTRIBUTING.md files/without-a-member
patiently get --stored files/without-a-member "$work/read"
cmp "$work/read" CONTRIBUTING.md || fail "without a member of etcd a gateway reads something else than the other has stored"
guest 16 systemctl start restripe-etcd.service

say "asking the members as somebody who is no gateway"
etcds=etcds://$guests_subnet.11:2379,$guests_subnet.16:2379,$guests_subnet.17:2379
as() { guest 20 "restripe catalog backup /root/$1.db --catalog '$etcds?cacert=/etc/restripe/tls/$1/ca.crt&cert=/etc/restripe/tls/$1/tls.crt&key=/etc/restripe/tls/$1/tls.key'" >"$work/as-$1.log" 2>&1; }
as gateway-c2 || fail "who has the certificate of a gateway is not let in: $(cat "$work/as-gateway-c2.log")"
! as operator-c2 || fail "who has the certificate of an operator is let in"

play backup-etcd 0 backup --extra-vars "backup_directory=$work/backup-etcd"
client put SECURITY.md files/after-the-backup-of-etcd >/dev/null
play restore-full mistakes restore --extra-vars "restore_from=$(echo "$work"/backup-etcd/*)"
says "the destination holds records; name one that is empty"
inventory_more='    gateway_catalog_name: restored'
inventory "$work/inventory.yml" "${agents[@]}"
play restore-etcd 0 restore --extra-vars "restore_from=$(echo "$work"/backup-etcd/*) restore_accept=true"
stored files/
client get --stored files/after-the-backup-of-etcd "$work/read"
cmp "$work/read" SECURITY.md || fail "what was stored after the backup of etcd is not what it was"
play site-after-restore-etcd 0 site
unchanged

echo "rollout: all of it passed in $SECONDS s"

#!/usr/bin/env bash
# Makes a real cluster of Kubernetes on this machine with kind, of one control plane and two workers, as containers of podman, runs
# a command beside it and takes it away: e2e/kind/setup.sh go test ./e2e/kind/. No image comes from a registry: every program is
# built from source, the root of the nodes is made of Debian's packages, the images of Restripe are those of `make images`. The
# command finds in RESTRIPE_KIND a folder with kubectl, helm, podman.env (what podman needs to know), kubeconfig and versions (those
# of the two images that the nodes have). It takes root. KEEP=1 leaves the cluster, and says how to reach it.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=$PWD/e2e/kind
work=$PWD/.cache/kind
cluster=restripe
old=v0.0.1 # what the chart is installed with
new=v0.0.2 # what it is upgraded to
source e2e/packages.sh
source e2e/podman.sh
source e2e/kind/node.sh

say() { echo "kind: $SECONDS s: $*"; }

fail() {
  echo "kind: FAILED after $SECONDS s: $*" >&2
  exit 1
}

# hindrance: why this machine cannot have a cluster; nothing where it can.
hindrance() {
  local why
  why=$(podman_hindrance nodes)
  [ -z "$why" ] || { echo "$why"; return; }
  [ "$(git rev-parse --git-dir)" = "$(git rev-parse --git-common-dir)" ] ||
    echo "this is a linked worktree of git, where what lists the modules in images cannot find its way: clone it"
}

# sources: what the images of Restripe are made of, in one word.
sources() {
  local parts=('*.go' go.mod go.sum web playbooks/images ':!e2e')
  { git log -1 --format=%H -- "${parts[@]}"; git diff HEAD -- "${parts[@]}"; } | sha256sum | cut -c 1-40
}

# images VERSION: those of this tree under that version, unless they are there.
images() {
  local into=$work/images/$1
  [ "$(cat "$into/sources" 2>/dev/null)" != "$(sources)" ] || return 0
  say "making the images of $1"
  timeout 1800 nice -n 10 make --no-print-directory images VERSION="$1" ARCHITECTURES="$(go env GOARCH)" OUT="$into" >"$work/images.log" 2>&1 ||
    { tail -n 20 "$work/images.log" >&2; fail "making the images of $1"; }
  sources >"$into/sources"
}

# create: the cluster, with routes between what its nodes give pods, as kind's own network would have, and with the images.
create() {
  # kind shows it to its nodes; where there are no modules it is missing.
  [ -d /lib/modules ] || { mkdir /lib/modules && touch "$work/modules"; }
  sed "s#IMAGE#$node_image#; s#ETCD#$etcd_tag#; s#DNS#$coredns_tag#" "$here/cluster.yaml" >"$work/cluster.yaml"
  say "creating the cluster"
  timeout 600 "$programs/kind" create cluster --name "$cluster" --config "$work/cluster.yaml" --kubeconfig "$work/kubeconfig" --retain --wait 300s \
    >"$work/create.log" 2>&1 || { tail -n 40 "$work/create.log" >&2; fail "creating the cluster; all of it is in $work/create.log"; }
  local routes node range address other
  routes=$("$programs/kubectl" --kubeconfig "$work/kubeconfig" get nodes -o \
    jsonpath='{range .items[*]}{.metadata.name}{" "}{.spec.podCIDR}{" "}{.status.addresses[?(@.type=="InternalIP")].address}{"\n"}{end}')
  for other in $(cut -d ' ' -f 1 <<<"$routes"); do
    while read -r node range address; do
      [ "$node" = "$other" ] || timeout 60 podman exec "$other" ip route replace "$range" via "$address"
    done <<<"$routes"
  done
  local version program
  for version in "$old" "$new"; do
    for program in restripe restripe-agent; do
      for node in $(grep -v control-plane <<<"$routes" | cut -d ' ' -f 1); do
        tar -C "$work/images/$version/$program" -c . |
          timeout 300 podman exec --interactive "$node" ctr --namespace k8s.io images import --base-name "localhost/$program" - >>"$work/load.log" 2>&1 ||
          { tail -n 20 "$work/load.log" >&2; fail "loading $program $version into $node"; }
      done
    done
  done
  say "the cluster is there, with the images of $old and $new"
}

# delete: the cluster, whole or half, and its network.
delete() {
  timeout 120 "$programs/kind" delete cluster --name "$cluster" --kubeconfig "$work/kubeconfig" >"$work/delete.log" 2>&1 || true
  podman rm --all --force --time 0 >/dev/null 2>&1 || true
  podman network rm --force kind >/dev/null 2>&1 || true
  if [ -e "$work/modules" ]; then rmdir /lib/modules 2>/dev/null && rm "$work/modules"; fi
  return 0
}

why=$(hindrance)
[ -z "$why" ] || fail "there can be no cluster here: $why"
if [ -n "$(packages_missing kind)" ]; then
  packages_prepare || fail "$packages_hindrance; install by hand: $(packages_missing kind | xargs)"
  mapfile -t needed < <(packages_missing kind)
  say "installing ${needed[*]}"
  packages_install "${needed[@]}" >/dev/null 2>&1 || fail "the packages could not be installed: ${needed[*]}"
fi
mkdir -p "$work"
# One makes a cluster in this folder, for its name is that of nodes.
exec 8>"$work/lock"
flock -n 8 || fail "another run has its cluster in $work"
programs=$(timeout 5400 e2e/kind/_build/build.sh)
podman_settings
finish() {
  local code=$?
  if [ -n "${KEEP:-}" ]; then
    echo "kind: the cluster stays: KUBECONFIG=$work/kubeconfig $programs/kubectl get pods -A; source $work/podman.env for podman"
  else
    delete
  fi
  exit $code
}
trap finish EXIT
trap 'exit 130' INT TERM
delete
rm -f "$work"/*.log
images "$old"
images "$new"
node_build
create 8>&- # nodes that stay would hold the lock
printf '%s\n%s\n' "$old" "$new" >"$work/versions"
for program in kubectl helm; do ln -sf "$programs/$program" "$work/$program"; done
RESTRIPE_KIND=$work "$@" 8>&-

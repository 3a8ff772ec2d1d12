#!/usr/bin/env bash
# Builds etcd, kube-apiserver, kubectl, helm and cert-manager from their sources, unless they are there, and prints the folder they are in.
# Everything comes through the module proxy; no program is downloaded. The first time takes 6 to 9 minutes of two
# processors and 3 GB of cache. Arguments name what is wanted, of which the default is all: kubernetes (with etcd), helm, prometheus (its
# kinds alone), cert-manager.
set -eu -o pipefail
cd "$(dirname "$0")"
parts=" ${*:-kubernetes helm prometheus cert-manager} "
for part in $parts; do
  case $part in
  kubernetes | helm | prometheus | cert-manager) ;;
  *)
    echo "kube: there is no part $part to build: kubernetes, helm, prometheus, cert-manager" >&2
    exit 1
    ;;
  esac
done
wanted() { [[ $parts == *" $1 "* ]]; }

helm=v4.3.1
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/restripe/kube-$version
mkdir -p "$folder"

# One builds, the others wait for it.
exec 9>"$folder/lock"
if ! flock -n 9; then
  echo "kube: waiting for another build in $folder" >&2
  flock 9
fi

kept=k8s.io/component-base/version
minor=${version#v1.}
flags="-s -w -X $kept.gitVersion=$version -X $kept.gitMajor=1 -X $kept.gitMinor=${minor%%.*} -X $kept.gitTreeState=clean"
began=$SECONDS
# Built as tests are, with no other settings of the compiler, most of what goes into them is compiled already. What is there was made of the same modules.
if wanted kubernetes && ! cmp -s go.sum "$folder/go.sum"; then
  for program in etcd kube-apiserver kubectl; do
    source=k8s.io/kubernetes/cmd/$program
    if [ "$program" = etcd ]; then source=go.etcd.io/etcd/server/v3; fi
    echo "kube: building $program of Kubernetes $version from source ($((SECONDS - began)) s so far)" >&2
    if ! nice -n 10 go build -ldflags "$flags" -o "$folder/$program" "$source" >&2; then
      echo "kube: $program cannot be built; this needs the module proxy ($(go env GOPROXY)) or its modules in the cache, and about 4 GB of memory" >&2
      exit 1
    fi
  done
  cp go.sum "$folder/go.sum"
  echo "kube: built in $((SECONDS - began)) s" >&2
fi
if wanted helm; then
  if [ ! -x "$folder/helm-$helm" ]; then
    echo "kube: building helm $helm from source" >&2
    GOBIN=$folder GOFLAGS= nice -n 10 go install -ldflags "-s -w" "helm.sh/helm/v4/cmd/helm@$helm" >&2
    mv "$folder/helm" "$folder/helm-$helm"
  fi
  ln -sf "helm-$helm" "$folder/helm"
fi
# The kinds of the operator of Prometheus, of which the chart makes objects; nothing of it runs.
prometheus=v0.85.0
if wanted prometheus; then
  if [ ! -e "$folder/prometheus-$prometheus.yaml" ]; then
    source=$(cd / && GOFLAGS='' go mod download -json "github.com/prometheus-operator/prometheus-operator@$prometheus" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
    cat "$source"/example/prometheus-operator-crd/monitoring.coreos.com_{servicemonitors,prometheusrules}.yaml >"$folder/prometheus.part"
    mv "$folder/prometheus.part" "$folder/prometheus-$prometheus.yaml"
  fi
  ln -sf "prometheus-$prometheus.yaml" "$folder/prometheus.yaml"
fi
# Of cert-manager also its kinds, in one file.
if wanted cert-manager && ! cat ../_certificates/main.go ../_certificates/go.sum | cmp -s - "$folder/cert-manager.made"; then
  echo "kube: building cert-manager from source" >&2
  nice -n 10 go -C ../_certificates build -ldflags "-s -w" -o "$folder/cert-manager" . >&2
  cat "$(go -C ../_certificates list -m -f '{{.Dir}}' github.com/cert-manager/cert-manager)"/deploy/crds/*.yaml >"$folder/cert-manager.yaml"
  cat ../_certificates/main.go ../_certificates/go.sum >"$folder/cert-manager.made"
fi
echo "$folder"

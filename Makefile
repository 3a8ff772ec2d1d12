# make run    a demonstration: needs only Go
# make test   everything that checks the project
# make help   the other targets

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

BINARY := bin/restripe
VERSION ?= $(shell git describe --always --dirty 2>/dev/null)
LDFLAGS := -s -w

# What `make run` stores, what its nodes keep blocks in, and whether it stays up at the end (KEEP=1).
DIR ?= $(shell go env GOROOT)/src
STORE ?= file
KEEP ?=

# Linter: run through the module proxy at a pinned version, so that nothing needs to be installed.
GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# What lists the modules in the program with their licences, and what looks them up among known weaknesses.
CYCLONEDX := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

# What packs Debian packages.
NFPM := github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.0

# Packages with concurrency, tested under the race detector; and of the gateway's own tests, of which there are hundreds, those by their
# names in which much goes on at a time. `go test -race ./agent/gateway` has all.
RACE_PACKAGES := ./agent/adopt/... ./agent/catalog/... $(patsubst %,./%...,$(filter-out %/testdata/,$(wildcard agent/gateway/*/))) ./agent/heat/... ./agent/kernel/... ./agent/launch/... ./agent/node/... ./agent/store/... ./agent/wire/...
RACE_TESTS := Under|Together|Clients|While|During|Pause|Share|Readers|Pipeline|Stream|Windows|Once|GoesOn|Wider|TakenOver

# How often each fuzz target runs, and of which folders; those of the benchmarks' own reports and of what people type are fuzzed on demand.
FUZZ_RUNS ?= 2000
FUZZ_FOLDERS ?= agent policies

.PHONY: help build package images run test vet format lint race unit fuzz e2e clients failover kube kind ceph alerts web browser playbooks rollout rollout-short pictures spec sim sim-short sim-long sim-canaries bench bench-kernel bench-operator bench-console bench-ceph bench-security bench-catalog bench-clients bench-small generate generate-check sbom vulnerable clean

help:
	@sed -n 's/^# make /make /p' Makefile
	@echo "make build|package|images|vet|format|lint|race|unit|fuzz|e2e|clients|failover|kube|kind|ceph|alerts|web|browser|playbooks|rollout|rollout-short|pictures|spec|sim|sim-short|sim-long|sim-canaries|bench|bench-kernel|bench-operator|bench-console|bench-ceph|bench-security|bench-catalog|bench-clients|bench-small|generate|generate-check|sbom|vulnerable|clean"

# TAGS=ceph builds the Ceph store in, for which it takes a C compiler and librados-dev.
TAGS ?=

# The whole program, by its name and by those of a plugin of kubectl, and the one for machines that run agents and gateways alone.
# The web interface is built in where npm is there to build it. With grpcnotrace gRPC does without templates, with which the linker would
# keep every method of every type: restripe-agent is a third smaller.
PAGES := $(if $(shell command -v npm),pages)

build: $(if $(PAGES),web/dist/index.html)
	@mkdir -p bin
	@[ -e $(BINARY) ] || echo "Building for the first time, which takes minutes: a Kubernetes API server is among what is built."
	@$(if $(PAGES),,echo "There is no npm here: building without the web interface. Install Node.js 20 or newer for it.")
	CGO_ENABLED=$(if $(filter ceph,$(TAGS)),1,0) go build -trimpath -tags '$(strip grpcnotrace $(TAGS) $(PAGES))' -ldflags '$(LDFLAGS)' -o bin/ . ./tui/restripe-agent
	@ln -sf restripe bin/kubectl-restripe && ln -sf restripe bin/kubectl_complete-restripe

web/node_modules/.package-lock.json: web/package.json web/package-lock.json
	npm --prefix web ci --silent
	@touch $@

web/dist/index.html: web/node_modules/.package-lock.json web/index.html web/vite.config.ts $(shell find web/src web/public -type f 2>/dev/null)
	npm --prefix web run --silent build

# The Debian packages restripe-agent and restripe, in bin/packages; ARCHITECTURES= says for which processors.
ARCHITECTURES ?= amd64 arm64

package: $(if $(PAGES),web/dist/index.html)
	@VERSION='$(VERSION)' ARCHITECTURES='$(ARCHITECTURES)' NFPM='$(NFPM)' TAGS='$(PAGES)' QUICK='$(QUICK)' playbooks/package/build.sh

# Images of containers of both programs, in bin/images, without a container engine; ARCHITECTURES= says for which processors. Their tag
# is the release, which the chart runs, unless VERSION is typed.
images: sbom $(if $(PAGES),web/dist/index.html)
	@VERSION='$(if $(filter file,$(origin VERSION)),,$(VERSION))' ARCHITECTURES='$(ARCHITECTURES)' TAGS='$(PAGES)' BILLS="$$PWD/bin" playbooks/images/build.sh

# Where nothing is built yet a first file is stored by what is built first.
run:
	@[ -e $(BINARY) ] || tui/demo/begin.sh $(MAKE) --no-print-directory build
	@$(MAKE) --no-print-directory build
	@$(BINARY) demo --store $(STORE) $(if $(KEEP),--keep) "$(DIR)"

test:
	@e2e/run.sh

# The kernel is also vetted for processors that it has no assembly for, and for small addresses.
vet:
	go vet ./...
	GOARCH=arm64 go vet ./agent/kernel/
	GOARCH=386 go vet ./agent/kernel/

format:
	@unformatted=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not gofmt'd:"; echo "$$unformatted"; exit 1; fi

# LINT_PACKAGES= lints these alone.
LINT_PACKAGES ?= ./...

lint:
	go run $(GOLANGCI_LINT) run --allow-parallel-runners $(LINT_FLAGS) $(LINT_PACKAGES)

# All packages but those of race.
unit:
	@RACE_PACKAGES='$(RACE_PACKAGES)' e2e/unit.sh

# The packages of race, with the race detector.
race:
	@RACE_PACKAGES='$(RACE_PACKAGES)' RACE_TESTS='$(RACE_TESTS)' e2e/race.sh

fuzz:
	@FUZZ_RUNS=$(FUZZ_RUNS) e2e/fuzz.sh $(FUZZ_FOLDERS)

e2e:
	go test -count=1 -timeout 60m -v ./e2e/

# Clients of Redis, of memcached and of S3 that know nothing of this project, against a real cluster.
clients:
	@e2e/clients.sh

# Catalogs that fail over: each fault FAILOVERS times at whoever leads, of three members of etcd and of PostgreSQL with a synchronous
# standby, while clients work; takes root.
FAILOVERS ?= 10

failover:
	go test -count=1 -timeout 6h -v -run 'TestNetworkFaults/two-gateways-with-(etcd|postgres)' ./e2e/ -chaos.failovers=$(FAILOVERS)

# The declared kinds on Kubernetes itself, which is built from source the first time: 5 to 7 minutes of two processors.
kube:
	@programs=$$(e2e/kube/_build/build.sh); \
	echo "kube: testing with etcd, kube-apiserver and kubectl of $$programs"; \
	RESTRIPE_KUBE=$$programs go test -count=1 -timeout 45m -v ./e2e/kube/

# The chart on a real cluster of Kubernetes, of kind on podman and all from source, which takes root; KEEP=1 leaves the cluster.
kind:
	@KEEP=$(KEEP) e2e/kind/setup.sh go test -count=1 -timeout 60m -v ./e2e/kind/

# A real Ceph cluster: the store, transitions, adoption, and what goes wrong with them.
ceph:
	@FULL=$(FULL) e2e/ceph.sh

# The alerts for Prometheus, over series of their own and over a real cluster, and what the dashboards ask.
alerts:
	@e2e/alerts.sh

# The web interface; a browser before the whole program, in about two minutes.
web:
	@e2e/web.sh

browser:
	@e2e/browser.sh

# The playbooks alone: syntax, ansible-lint, what modules and filters make of what they are given. Needs no guests and no root.
playbooks:
	@e2e/playbooks.sh

# The playbooks, over guests with systemd on this machine, which takes root; KEEP=1 leaves the guests. The short one ends when a lost guest
# is replaced.
rollout:
	@KEEP=$(KEEP) NFPM='$(NFPM)' e2e/rollout/run.sh

rollout-short:
	@SHORT=1 KEEP=$(KEEP) NFPM='$(NFPM)' e2e/rollout/run.sh

# The pictures of docs/pictures, of a cluster that is started for them, in about two minutes; pngquant makes them small.
pictures:
	@e2e/browser.sh pictures

# The protocol, as TLC explores it: the quick configurations, or all of them with FULL=1.
spec:
	@FULL=$(FULL) docs/spec/check.sh

# The simulation (docs/simulation.md): one seed with its journal; the first short seeds; new long seeds for as long as
# DURATION says, over all processors; mistakes put in on purpose, each of which must be found.
SEED ?= 1
SIZE ?= short
SEEDS ?= 150
DURATION ?= 1h
FROM ?= $(shell date +%s)000
SIM := go run ./agent/sim/host -guest bin/sim

sim:
	@mkdir -p bin
	@$(SIM) -seed $(SEED) -size $(SIZE)

sim-short:
	@mkdir -p bin
	@$(SIM) -count $(SEEDS) -size short

sim-long:
	@mkdir -p bin
	@$(SIM) -duration $(DURATION) -from $(FROM) -size $(SIZE)

sim-canaries:
	RESTRIPE_CANARIES=all go test -count=1 -timeout 1h -v -run Canaries ./agent/sim/host/

bench:
	go test -run '^$$' -bench . -benchmem ./agent/...
	go run ./e2e/bench -write

# Tiering on traces (RESTRIPE_TRACES names their folder), and what the operator costs.
bench-operator:
	go run ./e2e/bench/tiering -write
	go run ./e2e/bench/control -write

# The web page before a console with a thousand policies, ten thousand transitions and five hundred nodes: ten minutes.
bench-console:
	go build -o bin/bench-console ./e2e/bench/console
	@e2e/browser.sh bench

# A module of its own, as it needs cgo for one of the kernel's peers.
bench-kernel:
	@agent/kernel/_bench/setup.sh
	go -C agent/kernel/_bench run -ldflags '-X main.commit=$(VERSION)' . -write

# Changing k and m: a new pool of Ceph and a copy, next to a transition in place.
bench-ceph:
	go run -tags ceph ./e2e/bench/ceph -write

# What certificates cost, and what slow clients cost others.
bench-security:
	go run ./e2e/bench/security -write

# Puts and gets of all engines of the catalog beside one another; with OBJECTS= catalogs of up to so many objects instead.
OBJECTS ?=

bench-catalog:
	@mkdir -p bin
	go run ./e2e/bench/catalog -write $(if $(OBJECTS),-objects $(OBJECTS) -keep bin/catalog-sizes.json)

# A gateway by the protocols of Redis, memcached, HTTP and S3, beside a plain Redis, a plain memcached, twemproxy (Debian's nutcracker),
# Ceph's gateway for S3 and versitygw, as far as they can be had. ONLY names some of its parts. BEFORE names the program of an earlier
# commit, whose HTTP is measured too. Ceph takes a C compiler and librados-dev.
ONLY ?=
BEFORE ?=

bench-clients:
	@e2e/bench/clients/setup.sh
	go run $(if $(wildcard /usr/include/rados/librados.h),-tags ceph) ./e2e/bench/clients -write $(if $(ONLY),-only $(ONLY)) $(if $(BEFORE),-before $(BEFORE))

# The room that small objects leave when they die, what puts of them take by when they wait for company, and what is sent for them.
bench-small:
	go run ./e2e/bench/small -write

# Writes anew: the kernels' assembly; the deep copies and CustomResourceDefinitions of the declared kinds; the Go of the
# console's contract and the TypeScript.
generate: web/node_modules/.package-lock.json
	agent/kernel/_gen/generate.sh
	operator/config/generate.sh
	operator/config/generate-console.sh
	web/generate.sh

generate-check:
	@e2e/generated.sh

# What is in the programs and in the pages, with licences, in the form of CycloneDX: restripe, restripe-agent and pages, in bin.
sbom:
	@mkdir -p bin
	go run $(CYCLONEDX) app -json -licenses -std -main . -output bin/restripe.cdx.json .
	go run $(CYCLONEDX) app -json -licenses -std -main tui/restripe-agent -output bin/restripe-agent.cdx.json .
	cd web && npm sbom --sbom-format cyclonedx --omit dev --package-lock-only >../bin/pages.cdx.json

# Known weaknesses of what is in the program, where the databases can be reached.
vulnerable:
	go run $(GOVULNCHECK) ./...
	cd web && npm audit --omit dev

clean:
	rm -rf bin
	go clean -testcache

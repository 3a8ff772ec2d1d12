# make run    a demonstration: needs only Go
# make test   everything that checks the project
# make help   the other targets

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

BINARY := bin/restripe
VERSION ?= $(shell git describe --always --dirty 2>/dev/null)
LDFLAGS := -X github.com/restripe/restripe/tui/cli.version=$(VERSION)

# What `make run` stores, what its nodes keep blocks in, and whether it stays up at the end (KEEP=1).
DIR ?= $(shell go env GOROOT)/src
STORE ?= file
KEEP ?=

# Linter: run through the module proxy at a pinned version, so that nothing needs to be installed.
GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# Packages with concurrency, tested a second time under the race detector.
RACE_PACKAGES := ./agent/catalog/... ./agent/gateway/... ./agent/launch/... ./agent/node/... ./agent/store/... ./agent/wire/...

# Time for each fuzz target.
FUZZ_TIME ?= 3s

.PHONY: help build run test vet format lint race unit fuzz e2e bench clean

help:
	@sed -n 's/^# make /make /p' Makefile
	@echo "make build|vet|format|lint|race|unit|fuzz|e2e|bench|clean"

build:
	@mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o $(BINARY) .

run: build
	@$(BINARY) demo --store $(STORE) $(if $(KEEP),--keep) "$(DIR)"

test:
	@e2e/run.sh

vet:
	go vet ./...

format:
	@unformatted=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not gofmt'd:"; echo "$$unformatted"; exit 1; fi

lint:
	go run $(GOLANGCI_LINT) run ./...

unit:
	@e2e/unit.sh

race:
	go test -race -short $(RACE_PACKAGES)

fuzz:
	@FUZZ_TIME=$(FUZZ_TIME) e2e/fuzz.sh

e2e:
	go test -count=1 -timeout 30m -v ./e2e/

bench:
	go test -run '^$$' -bench . -benchmem ./agent/...
	go run ./e2e/bench -write

clean:
	rm -rf bin
	go clean -testcache

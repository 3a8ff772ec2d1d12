package e2e

import (
	"strings"
	"testing"
)

// TestRulesFindBreaches feeds every rule a file that breaks it and one that does not.
func TestRulesFindBreaches(t *testing.T) {
	unfinished := "// TO" + "DO: later"
	cases := []struct {
		rule, path, text string
		breaches         int
	}{
		{"import directions", "agent/node/a.go", `package node; import "github.com/restripe/restripe/tui/cli"`, 1},
		{"import directions", "agent/node/a.go", `package node; import "github.com/restripe/restripe/agent/wire"`, 0},
		{"import directions", "operator/a.go", `package operator; import "github.com/restripe/restripe/web"`, 1},
		{"import directions", "operator/a.go", `package operator; import "github.com/restripe/restripe/policies"`, 1},
		{"import directions", "policies/a.go", `package policies; import "github.com/restripe/restripe/operator/controller"`, 1},
		{"import directions", "policies/a.go", `package policies; import "github.com/restripe/restripe/operator/api/v1alpha1"`, 0},
		{"imports of pure packages", "agent/stripe/a.go", `package stripe; import "golang.org/x/sync/errgroup"`, 1},
		{"imports of pure packages", "agent/stripe/a.go", `package stripe; import "time"`, 1},
		{"imports of pure packages", "agent/stripe/a_test.go", `package stripe; import "time"`, 0},
		{"imports of pure packages", "agent/block/a.go", `package block; import "github.com/fxamacker/cbor/v2"`, 0},
		{"imports of pure packages", "operator/price/a.go", `package price; import "github.com/restripe/restripe/agent/stripe"`, 0},
		{"imports of pure packages", "operator/price/a.go", `package price; import "github.com/restripe/restripe/agent/gateway/client"`, 1},
		{"imports of pure packages", "operator/reliability/a.go", `package reliability; import "time"`, 1},
		{"imports of processes", "agent/node/a.go", `package node; import "os/exec"`, 1},
		{"imports of processes", "agent/launch/a.go", `package launch; import "os/exec"`, 0},
		{"imports of stores", "agent/node/a.go", `package node; import "github.com/restripe/restripe/agent/store/file"`, 1},
		{"imports of stores", "agent/store/open/a.go", `package open; import "github.com/restripe/restripe/agent/store/file"`, 0},
		{"imports of stores", "agent/gateway/a.go", `package gateway; import "github.com/restripe/restripe/agent/catalog/sqlite"`, 1},
		{"imports of tests", "agent/node/a.go", `package node; import "testing"`, 1},
		{"imports of tests", "agent/store/storetest/a.go", `package storetest; import "testing"`, 0},
		{"banned calls", "agent/node/a.go", "package node\nfunc f() { time.Sleep(1) }", 1},
		{"banned calls", "agent/node/a.go", "package node\nimport \"log\"\nfunc f() { log.Printf(\"\") }", 1},
		{"banned calls", "agent/node/a.go", "package node\nfunc f() { panic(1) }", 1},
		{"banned calls", "agent/node/a.go", "package node\nfunc f() { panic(1) // invariant: never\n}", 0},
		{"banned calls", "agent/node/a.go", "package node\nfunc f() { panic(http.ErrAbortHandler) }", 0},
		{"banned calls", "agent/node/a.go", "package node\nfunc f() { os.Exit(1) }", 1},
		{"banned calls", "main.go", "package main\nfunc main() { os.Exit(1) }", 0},
		{"clocks", "agent/heat/a.go", "package heat\nfunc f() { time.Now() }", 1},
		{"clocks", "agent/heat/a.go", "package heat\nfunc f(now time.Time) { now.Sub(now) }", 0},
		{"clocks", "agent/node/a.go", "package node\nfunc f() { time.Now() }", 0},
		{"errors thrown away", "agent/node/a.go", "package node\nfunc f() {\n\t_ = g.Close()\n}", 1},
		{"errors thrown away", "agent/node/a.go", "package node\nfunc f() {\n\t_, err = g.Write(nil)\n}", 0},
		{"file size", "agent/node/a.go", "package node\n" + strings.Repeat("\n", longestFile), 1},
		{"unfinished business", "a.md", unfinished, 1},
		{"unfinished business", "a.md", "done", 0},
		{"names that say nothing", "agent/util/a.go", "package util", 1},
		{"names that say nothing", "agent/node/helpers.go", "package node", 1},
		{"names that say nothing", "agent/node/read.go", "package node", 0},
		{"packages of the system", "docs/a.sh", "apt-get update\napt-get install -y curl", 1},
		{"packages of the system", "docs/a.sh", "echo run: apt-get install curl", 0},
		{"packages of the system", "e2e/packages.sh", "apt-get install -y curl", 0},
		{"links", "docs/a.md", "[x](../README.md) [y](https://example.org) [z](#here)", 0},
		{"links", "docs/a.md", "[x](nowhere.md)", 1},
	}
	for _, c := range cases {
		s, err := newSource(c.path, c.text)
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		if breaches := rules[c.rule](&s); len(breaches) != c.breaches {
			t.Errorf("%s on %s %q: %d breaches %q, want %d", c.rule, c.path, c.text, len(breaches), breaches, c.breaches)
		}
	}
}

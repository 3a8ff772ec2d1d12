package main

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/restripe/restripe/agent/sim"
)

// canary is a mistake put into the program on purpose: if no seed fails with it, the simulation watches nothing.
type canary struct {
	name   string
	edits  []edit
	within uint64 // seeds of which one must fail
	by     string // part of what the check says that must find it; empty: any
}

const (
	commitFile   = "agent/catalog/commit.go"
	dataflowFile = "agent/node/dataflow.go"
	orphansFile  = "agent/gateway/sweep/orphans.go"
	ownerFile    = "agent/node/owner.go"
	deleteFile   = "agent/node/delete.go"
	agentsFile   = "agent/gateway/member/agents.go"
	contentsFile = "agent/node/incarnation.go"
	memberFile   = "agent/catalog/member.go"
	vouchFile    = "agent/gateway/repair/vouch.go"
)

var canaries = []canary{
	{
		name: "a commit does not compare the group with what was read",
		edits: []edit{
			{commitFile, "} else if !bytes.Equal(raw, was.raw) {", "} else if !bytes.Equal(raw, raw) {"},
			{commitFile, "t.checks = append(t.checks, Check{key, was.raw})", "t.checks = append(t.checks, Check{key, t.values[key]})"},
		},
		within: 600,
	},
	{
		name: "the sweeper reads the groups before it lists the store",
		edits: []edit{
			{orphansFile, "		var page wire.ListReply\n", `		early := map[block.Address]bool{}
		for view, err := range w.catalog.AllGroups(ctx, block.GroupID{}) {
			if err != nil {
				return err
			}
			for slot, items := range view.Slots {
				for _, item := range items {
					early[view.Address(slot, item)] = true
				}
			}
		}
		var page wire.ListReply
`},
			{orphansFile, "		if err := visit(page.Addresses", `		unnamed = nil
		for _, address := range page.Addresses {
			if !early[address] {
				unnamed = append(unnamed, address)
			}
		}
		if err := visit(page.Addresses`},
		},
		within: 200,
	},
	{
		name: "a commit does not compare incarnations",
		edits: []edit{
			{commitFile, "if now := t.values[incarnationKey(item.Node)]; now == nil || string(now) != string(item.Incarnation) {", "if false {"},
			{commitFile, "t.checks = append(t.checks, Check{incarnationKey(node), []byte(t.whole[node])})", "_ = node"},
		},
		within: 1000,
	},
	{
		name: "a commit does not consume its announcement",
		edits: []edit{
			{commitFile, "t.writes = append(t.writes, t.attempt.ledger.end(&t.intent, IntentCommitted)...)", ""},
		},
		within: 100,
	},
	{
		name: "a commit does not look whether its attempt was settled",
		edits: []edit{
			{commitFile, "t.checks = append(t.checks, Check{key, t.values[key]})\n\treturn err", "return err"},
		},
		within: 1000,
	},
	{
		name:   "an update does not raise the revision",
		edits:  []edit{{commitFile, "\tobject.Revision = t.attempt.stamp\n\tif change.Update.Modified", "\tif change.Update.Modified"}},
		within: 300,
	},
	{
		// Of those that come before a block is complete the fingerprints show that it is wrong; what comes after changes the
		// block while it is written.
		name: "a message between agents counts as often as it comes",
		edits: []edit{
			{dataflowFile, "for fresh < end && !came.have[fresh] {", "for fresh < end {"},
			{dataflowFile, "if r.delivered != nil && r.delivered[input] {", "if false {"},
		},
		within: 1000,
	},
	{
		name:   "an agent serves the store of another node",
		edits:  []edit{{ownerFile, "owner == i.id {\n\t\treturn err", "true {\n\t\treturn err"}},
		within: 300,
	},
	{
		name: "two nodes with one store sweep each other",
		edits: []edit{
			{ownerFile, "owner == i.id {\n\t\treturn err", "true {\n\t\treturn err"},
			{agentsFile, "if twin := a.twin(target, hello.Incarnation); twin != nil {", "if twin := target; false {"},
			{deleteFile, "return header.Node != b.id, nil", "return header.Node == \"\", nil"},
		},
		within: 300,
	},
	{
		name:   "nobody asks whether the server of a store was started again",
		edits:  []edit{{contentsFile, `found == "" || found.Run() != run || i.known`, `found == "" || i.known`}},
		within: 300,
		by:     "counts as whole",
	},
	{
		name: "contents that went back are registered again",
		edits: []edit{
			{contentsFile, `found.Run() != run || i.known.Outdates(found)`, `found.Run() != run`},
			{memberFile, "if was.Outdates(now) {", "if false {"},
		},
		within: 3000,
		by:     "counts as whole",
	},
	{
		name: "blocks of a store in doubt are vouched for unseen",
		edits: []edit{{
			vouchFile,
			"if receipt == nil || receipt.Checksum != item.Checksum || receipt.Fingerprint != item.Fingerprint {\n\t\t\treturn nil, false",
			"if receipt == nil {\n\t\t\treceipt = &block.Receipt{Incarnation: incarnations[item.Node]}",
		}},
		within: 300,
		by:     "counts as whole",
	},
}

// A simulation that cannot fail proves nothing: every canary must be found within its number of seeds.
func TestCanariesAreFound(t *testing.T) {
	for _, c := range canaries {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			root, err := filepath.Abs("../../..")
			if err != nil {
				t.Fatal(err)
			}
			replaced, err := apply(root, c.edits, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			m := made(t, replaced)
			ctx, enough := context.WithCancel(t.Context())
			defer enough()
			var counts atomic.Bool // the check that must find it did
			tried := m.try(ctx, options{size: sim.Short, from: 1, count: c.within, workers: runtime.GOMAXPROCS(0)}, watch{failed: func(f failure) {
				if found := fmt.Sprint(f); strings.Contains(found, c.by) {
					enough()
					counts.Store(true)
					t.Logf("found: %.300s", found)
				}
			}})
			if !counts.Load() {
				t.Errorf("not found by %d seeds", tried.seeds)
			}
		})
	}
}

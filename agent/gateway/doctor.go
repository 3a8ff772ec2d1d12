package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

// expiresSoon is how long before a certificate expires the doctor says so.
const expiresSoon = 14 * 24 * time.Hour

// clocksApart is how far apart the clocks of gateways may be before the doctor says so.
const clocksApart = time.Minute

// Doctor looks for what will hurt: stores that evict or are not durable, nodes that do not answer, classes that do not
// fit the nodes, groups that are not whole, records that contradict each other.
func (g *Gateway) Doctor(ctx context.Context) ([]api.Finding, error) {
	var findings []api.Finding
	note := func(severity, subject, cure, format string, args ...any) {
		findings = append(findings, api.Finding{Severity: severity, Subject: subject, Text: fmt.Sprintf(format, args...), Cure: cure})
	}
	g.agents.Probe(ctx)
	usable := 0
	for _, target := range g.agents.All() {
		name := "node " + string(target.Node.ID)
		reachable, problem, hello := target.State()
		switch {
		case target.Node.State == catalog.NodeDown:
			note("warning", name, "remove it, replace it, or declare it up", "it is declared down: its blocks are rebuilt elsewhere")
			continue
		case target.Node.Out != "" && !reachable:
			note("error", name, "bring it back, replace it, or declare it down and remove it", "it has not answered for long and was given up: its blocks are rebuilt elsewhere")
			continue
		}
		if !reachable {
			cure := "start its agent, or check the address and the network"
			switch {
			case errors.Is(problem, store.ErrDown):
				cure = "start its store, or check the address and the network"
			case problem != nil && !errors.Is(problem, wire.ErrUnreachable):
				cure = "see to what it says"
			}
			note("error", name, cure, "the agent at %s does not serve: %v", target.Node.Address, problem)
			continue
		}
		if target.Node.TakesBlocks() {
			usable++
		}
		for _, warning := range hello.Store.Warnings {
			note("warning", name, "", "%s: %s", hello.Store.Location, warning)
		}
		noteLeftovers(target.Leftovers(), string(target.Node.ID), note)
		if hello.Store.Discarded > 0 {
			note("ok", name, "", "%d pieces of values that were half made or half deleted were found in its store and deleted, "+
				"since the agent started", hello.Store.Discarded)
		}
		if hello.Store.CapacityBytes > 0 && hello.Store.UsedBytes > hello.Store.CapacityBytes*9/10 {
			note("warning", name, "add nodes or take cold classes to a wider scheme", "the store is %d %% full (%d of %d bytes)",
				hello.Store.UsedBytes*100/hello.Store.CapacityBytes, hello.Store.UsedBytes, hello.Store.CapacityBytes)
		}
	}
	for _, d := range g.agents.Disagreements() {
		note("warning", "node "+string(d.Node), "see to the network between it and the first",
			"gateways disagree about it: %s cannot reach it, %s can", strings.Join(d.Unheard, ", "), strings.Join(d.Heard, ", "))
	}
	for _, refusal := range g.Refusals() {
		switch name := "node " + string(refusal.Node); {
		case refusal.Refused:
			note("error", name, "start the gateway with the catalog that the nodes obey; see `restripe catalog lineage`", "%s", refusal)
		case refusal.Newcomer:
			note("ok", name, "", "%s", refusal)
		default:
			note("error", name, "stop the gateways of the copy, or give it a cluster of its own", "%s", refusal)
		}
	}
	for id, ahead := range g.agents.ClocksAhead() {
		if ahead.Abs() > clocksApart {
			note("warning", "gateway "+id, "set the clocks of the machines by NTP",
				"its clock and that of gateway %s are %s apart: slow writes of the one behind are given up by the other",
				g.options.ID, ahead.Abs().Round(time.Minute))
		}
	}
	if own := g.options.Certificates; own != nil && own.Err() != nil {
		note("error", "gateway "+g.options.ID, "see to the files; those that were read before hold until they expire",
			"its certificate was changed, and cannot be read: %v", own.Err())
	}
	if log := g.options.Audit; log != nil && log.Damage() != nil {
		note("error", "gateway "+g.options.ID, "keep the directory for whoever looks into it, move it away, and start the gateway anew",
			"nothing can be changed through it: %v", log.Damage())
	}
	for _, one := range g.expiries() {
		if left := time.Until(one.at); left < expiresSoon {
			level, text := one.text()
			note(level, one.subject, one.cure, "%s", text)
		}
	}
	noteReleases(g.options.Release, g.agents.NodeStatus(), note)
	for _, class := range g.Registry.All() {
		if need := class.Nodes(); need > usable {
			note("error", "class "+class.Name, "bring nodes back, add some, or use a narrower ladder", "its ladder %s needs %d nodes and %d take blocks; puts into it are refused", class.Ladder, need, usable)
		} else if need == usable {
			note("warning", "class "+class.Name, "add a node", "its ladder %s needs all %d nodes: while one is down puts are refused and its blocks cannot be rebuilt elsewhere", class.Ladder, need)
		}
		for _, scheme := range class.Ladder {
			if scheme.M == 0 {
				note("warning", "class "+class.Name, "take "+scheme.String()+" off the ladder unless the data is temporary", "%s keeps no redundancy: losing any node loses data", scheme)
			}
		}
	}
	heat := g.Heat()
	for _, class := range heat.Classes {
		for _, stray := range class.Elsewhere {
			note("warning", "class "+class.Class,
				fmt.Sprintf("bring them over: restripe transition start --into %s --class %s", class.Class, stray.Class),
				"%d objects (%d bytes) whose keys belong to it are of class %s, as counted at %s: an object keeps the class it was put into",
				stray.Objects, stray.Bytes, stray.Class, heat.ObjectsAt.Format(time.RFC3339))
		}
	}
	for _, warning := range g.options.CatalogWarnings {
		note("warning", "catalog", "", "%s", warning)
	}
	if scrub, err := g.Scrub(ctx); err != nil {
		note("error", "scrub", "see to the catalog", "how it stands cannot be told: %v", err)
	} else if scrub.Findings > scrub.Repaired {
		note("error", "scrub", "see `restripe scrub report -o wide`", "%d findings of cycle %d could not be repaired", scrub.Findings-scrub.Repaired, scrub.Cycle)
	}
	g.noteCompaction(ctx, note)
	if !g.catalog.IsUpgraded() && len(g.Behind()) == 0 {
		note("ok", "catalog", "run `restripe catalog upgrade`, after which the release before does not open it any more",
			"its records are those of the release before, and everybody at work with it knows those of this one, "+
				"with which small objects take fewer blocks")
	}
	if err := g.catalog.CheckAlarm(ctx); err != nil {
		note("error", "catalog",
			"if this catalog counts, run `restripe catalog claim`; if not, start the gateways with the one that does", "%v", err)
	}
	if below, err := g.catalog.Kept(ctx); err != nil {
		note("error", "catalog", "see to the catalog", "whether it was rebuilt or claimed and is not accepted yet cannot be told: %v", err)
	} else if below > 0 {
		note("warning", "catalog", "look at the objects, then run `restripe catalog accept`",
			"the catalog was rebuilt or claimed and is not accepted yet: nothing from before is deleted")
	}
	if err := g.catalog.Audit(ctx); err != nil {
		note("error", "catalog", "stop writing and report this with the catalog file", "the records contradict each other: %v", err)
	}
	status, err := g.Status(ctx)
	if err != nil {
		return nil, err
	}
	if status.NotWhole > 0 {
		note("warning", "groups", "run `restripe repair` once the nodes are back", "%d of %d groups miss a block; more nodes that can be lost without losing data: %d", status.NotWhole, status.Groups, status.CanLose)
	}
	if err := g.noteShares(ctx, note); err != nil {
		return nil, err
	}
	if len(findings) == 0 {
		note("ok", "cluster", "", "%d nodes answer, every class fits, every group is whole", usable)
	}
	return findings, nil
}

// noteCompaction says of which groups the dead space cannot be given back, and where much is dead while that is paused.
func (g *Gateway) noteCompaction(ctx context.Context, note func(severity, subject, cure, format string, args ...any)) {
	compaction, err := g.Compaction(ctx)
	if err != nil {
		note("error", "compaction", "see to the catalog", "how it stands cannot be told: %v", err)
		return
	}
	if compaction.Failed > 0 {
		note("warning", "compaction", "see to the nodes that do not answer, then run `restripe compact start`, which tries them again",
			"%d groups of small objects could not be compacted, of which one says: %s", compaction.Failed, compaction.Error)
	}
	if compaction.State != api.CompactionPaused {
		return
	}
	for i := range compaction.Classes {
		class := &compaction.Classes[i]
		if live := class.Bytes - class.Dead; class.IsBeyond(2) {
			note("warning", "class "+class.Name, "run `restripe compact resume`",
				"the compaction is paused, and at its last look (%s) %d bytes were dead beside %d bytes of small objects, "+
					"more than twice the %d %% that the class allows",
				compaction.Looked.UTC().Format(time.DateTime), class.Dead, live, class.DeadAtMostPercent)
		}
	}
}

// sharedSlots is how many slots there have to be for each node until it says something that one holds less than half of its share.
const sharedSlots = 16

// noteShares says which nodes hold far less than their shares, while nothing is done about it.
func (g *Gateway) noteShares(ctx context.Context, note func(severity, subject, cure, format string, args ...any)) error {
	list, err := g.Nodes(ctx)
	if err != nil {
		return err
	}
	balance, err := g.Balance(ctx)
	if err != nil {
		note("error", "balance", "see to the catalog", "how it stands cannot be told: %v", err)
		return nil
	}
	if balance.State == api.BalanceRunning {
		return nil
	}
	slots := int64(0)
	for i := range list.Nodes {
		slots += max(0, list.Nodes[i].Slots)
	}
	for i := range list.Nodes {
		n := &list.Nodes[i]
		if n.FairBytes <= 0 || 2*n.SlotBytes >= n.FairBytes || slots < sharedSlots*int64(len(list.Nodes)) {
			continue
		}
		cure := "run `restripe node balance --dry-run`, then `restripe node balance`"
		if balance.State == api.BalancePaused {
			cure = "the balance is paused: run `restripe node balance --resume`"
		}
		note("warning", "node "+string(n.ID), cure, "it holds %d %% of its share of what is stored (%d of %d bytes)",
			100*n.SlotBytes/n.FairBytes, n.SlotBytes, n.FairBytes)
	}
	return nil
}

// noteReleases says which nodes run other releases than this gateway.
func noteReleases(own string, nodes []api.NodeStatus, note func(severity, subject, cure, format string, args ...any)) {
	others := map[string][]string{}
	for i := range nodes {
		if is := nodes[i].Release; is != "" && is != own {
			others[is] = append(others[is], string(nodes[i].ID))
		}
	}
	for _, release := range slices.Sorted(maps.Keys(others)) {
		note("warning", "releases", "end the upgrade: releases that are one apart work together while it lasts (docs/compatibility.md)",
			"nodes %s run %s, this gateway %s", strings.Join(others[release], ", "), release, own)
	}
}

// noteLeftovers says what the last search of a node's store found that should not be there.
func noteLeftovers(found *api.Leftovers, id string, note func(severity, subject, cure, format string, args ...any)) {
	if found == nil {
		return
	}
	name, at := "node "+id, found.At.UTC().Format(time.DateTime)
	if found.Withheld {
		note("error", name, "see that the gateway has the right catalog; if the blocks may go, "+
			"run `restripe sweep --node "+id+" --beyond-brake`",
			"no record names %d of its %d blocks: they were too many to delete them by itself (%s)", found.Orphans, found.Blocks, at)
	}
	if found.Foreign > 0 {
		note("error", name, "give every node a store of its own",
			"%d blocks in its store say that they are another node's; they are left alone (%s)", found.Foreign, at)
	}
	if found.Copied > 0 {
		note("warning", name, "once nothing of the copy is wanted, claim and accept this catalog, and they are deleted",
			"%d of its blocks were written by gateways of a copy of the catalog; they are left alone (%s)", found.Copied, at)
	}
	if unknown := found.Quarantined - found.Copied; unknown > 0 {
		note("error", name, "see that the gateway has the right catalog; do not sweep",
			"%d of its blocks have stamps that this catalog never drew, so it may be an old copy; they are left alone (%s)",
			unknown, at)
	}
}

package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

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
		if hello.Store.CapacityBytes > 0 && hello.Store.UsedBytes > hello.Store.CapacityBytes*9/10 {
			note("warning", name, "add nodes or take cold classes to a wider scheme", "the store is %d %% full (%d of %d bytes)",
				hello.Store.UsedBytes*100/hello.Store.CapacityBytes, hello.Store.UsedBytes, hello.Store.CapacityBytes)
		}
	}
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
			note("warning", "class "+class.Class, "put them again, or declare class "+stray.Class+" as this one should be",
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
	if below, err := g.catalog.Rebuilt(ctx); err != nil {
		note("error", "catalog", "see to the catalog", "whether it was rebuilt and is not accepted yet cannot be told: %v", err)
	} else if below > 0 {
		note("warning", "catalog", "look at the objects, then run `restripe catalog accept`", "the catalog was rebuilt and is not accepted yet: blocks that nobody names are kept")
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
	if len(findings) == 0 {
		note("ok", "cluster", "", "%d nodes answer, every class fits, every group is whole", usable)
	}
	return findings, nil
}

package gateway

import (
	"context"
	"errors"
	"fmt"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

// Stat describes an object and the groups that hold it, block by block. Nodes are asked for the blocks' headers and
// lengths; damage inside a block is found by StatDeep.
func (g *Gateway) Stat(ctx context.Context, key string) (api.Stat, error) {
	return g.stat(ctx, key, false)
}

// StatDeep is Stat with every block read and checked whole at its node.
func (g *Gateway) StatDeep(ctx context.Context, key string) (api.Stat, error) {
	return g.stat(ctx, key, true)
}

func (g *Gateway) stat(ctx context.Context, key string, deep bool) (api.Stat, error) {
	if err := api.CheckKey(key); err != nil {
		return api.Stat{}, err
	}
	snapshot, err := g.catalog.Snapshot(ctx, key)
	if err != nil {
		return api.Stat{}, err
	}
	stat := api.Stat{Object: publicObject(&snapshot.Object), Groups: []api.GroupStat{}}
	for _, extent := range snapshot.Object.Extents {
		view := snapshot.View(extent.Group)
		code, err := g.codeOf(&view.Group)
		if err != nil {
			return api.Stat{}, err
		}
		states, err := g.slotStates(ctx, &view.Group, deep)
		if err != nil {
			return api.Stat{}, err
		}
		group := api.GroupStat{
			ID: view.ID, Epoch: view.Epoch, Scheme: view.Scheme, Ladder: view.Ladder, Mode: view.Mode, Rows: code.layout.Rows,
			Columns: view.Columns, CellBytes: view.CellBytes, Packed: view.Packed, Live: view.Live, Bytes: extent.Length,
		}
		for slot, items := range view.Slots {
			role := "data"
			if slot >= view.Columns {
				role = "parity"
			}
			group.Slots = append(group.Slots, api.SlotStat{Slot: slot, Role: role, Node: items[0].Node, Blocks: len(items), State: states[slot]})
		}
		stat.Groups = append(stat.Groups, group)
	}
	stat.Scheme = schemeOf(&snapshot.Object, snapshot.Groups)
	return stat, nil
}

// schemeOf is the scheme an object is under: that of its groups, or "mixed" in the middle of a transition.
func schemeOf(object *catalog.Object, groups map[block.GroupID]*catalog.Group) string {
	scheme := ""
	for _, extent := range object.Extents {
		group := groups[extent.Group]
		switch {
		case group == nil:
		case scheme == "":
			scheme = group.Scheme
		case scheme != group.Scheme:
			return "mixed"
		}
	}
	if scheme == "" {
		return object.Scheme
	}
	return scheme
}

// List returns one page of the objects whose key begins with prefix and comes after the given one.
func (g *Gateway) List(ctx context.Context, prefix, after string, limit int) (api.ObjectList, error) {
	objects, err := g.catalog.ListObjects(ctx, prefix, after, limit)
	if err != nil {
		return api.ObjectList{}, fmt.Errorf("listing objects: %w", err)
	}
	list := api.ObjectList{Objects: make([]api.Object, 0, len(objects))}
	groups := map[block.GroupID]*catalog.Group{}
	for i := range objects {
		for _, extent := range objects[i].Extents {
			if _, seen := groups[extent.Group]; !seen {
				groups[extent.Group] = nil
				if view, err := g.catalog.Group(ctx, extent.Group); err == nil {
					groups[extent.Group] = &view.Group
				}
			}
		}
		public := publicObject(&objects[i])
		public.Scheme = schemeOf(&objects[i], groups)
		list.Objects = append(list.Objects, public)
	}
	if len(objects) == limit {
		list.Next = api.EncodeKey(objects[len(objects)-1].Key)
	}
	return list, nil
}

// Doctor looks for what will hurt: stores that evict or are not durable, nodes that do not answer, classes that do not
// fit the nodes, groups that are not whole, records that contradict each other.
func (g *Gateway) Doctor(ctx context.Context) ([]api.Finding, error) {
	var findings []api.Finding
	note := func(severity, subject, cure, format string, args ...any) {
		findings = append(findings, api.Finding{Severity: severity, Subject: subject, Text: fmt.Sprintf(format, args...), Cure: cure})
	}
	g.agents.probe(ctx)
	usable := 0
	for _, target := range g.agents.all() {
		name := "node " + string(target.node.ID)
		reachable, problem, hello := target.state()
		switch {
		case target.node.State == catalog.NodeDown:
			note("warning", name, "remove it, replace it, or declare it up", "it is declared down: its blocks are rebuilt elsewhere")
			continue
		case target.node.Out != "" && !reachable:
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
			note("error", name, cure, "the agent at %s does not serve: %v", target.node.Address, problem)
			continue
		}
		if target.node.TakesBlocks() {
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
	for _, class := range g.classes.all() {
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

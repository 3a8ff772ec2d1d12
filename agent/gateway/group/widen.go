package group

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/wire"
)

// liesIn says in which columns of the groups that are kept those of one that is dissolved lie.
func liesIn(taken *catalog.GroupView, kept []*bound) []catalog.Column {
	lies := make([]catalog.Column, taken.Columns)
	for _, one := range kept {
		for _, c := range one.carried {
			if c.from.ID == taken.ID {
				lies[c.column] = catalog.Column{Group: one.Group.ID, Column: c.to}
			}
		}
	}
	return lies
}

// source is a column that is brought, and the node that has it.
type source struct {
	catalog.Column
	node block.NodeID
	from *catalog.Group
}

// bindWider binds the plans by which the groups that are kept get their columns.
func (r *reshaping) bindWider(ctx context.Context) (members []*bound, err error) {
	var left []source
	columns := 0
	for _, taken := range r.region.Taken {
		columns += taken.Columns
		if len(taken.Brought) > 0 {
			return nil, fmt.Errorf("%w: group %s has columns of others itself", ErrNoRegion, taken.ID)
		}
		for column, slot := range taken.Slots[:taken.Columns] {
			if len(slot) == 0 {
				continue
			}
			from, err := sourceOf(&taken.Group, column)
			if err != nil {
				return nil, err
			}
			left = append(left, from)
		}
	}
	keep := slices.Clone(r.region.Kept)
	if columns == 0 || columns%len(keep) != 0 {
		return nil, fmt.Errorf("%w: %d columns for %d groups", ErrNoRegion, columns, len(keep))
	}
	more := columns / len(keep)
	for len(keep) > 0 {
		share := min(more, (len(left)+len(keep)-1)/len(keep)) // of those that are not empty
		at, chosen := r.chooseNext(keep, left, share)
		one, err := r.bindWidening(ctx, keep[at], chosen, more)
		if err != nil {
			return nil, err
		}
		members, keep = append(members, one), slices.Delete(keep, at, at+1)
		left = slices.DeleteFunc(left, func(s source) bool { return slices.Contains(chosen, s) })
	}
	return members, nil
}

// bindWidening binds the plan that gives a group so many more columns, those that were chosen and empty ones.
func (r *reshaping) bindWidening(ctx context.Context, was *catalog.GroupView, chosen []source, more int) (*bound, error) {
	kept, to := &was.Group, r.Scheme
	if len(chosen) == 0 {
		return nil, fmt.Errorf("%w: there is so little in the columns that group %s would get none", ErrNoRegion, kept.ID)
	}
	code, err := r.CodeOf(kept)
	if err != nil {
		return nil, err
	}
	made := *kept
	if made.Home, err = widerHome(r.agents, kept, chosen, more, r.Ladder.MaxParity(), to); err != nil {
		return nil, err
	}
	room := len(made.Home) - kept.Columns - more
	ladder := slices.DeleteFunc(slices.Clone(r.Ladder), func(scheme stripe.Scheme) bool { return scheme.M > room })
	layout, err := code.Layout.Whole().WithColumns(kept.Columns+more, ladder, r.Mode, code.Scheme, to)
	if err != nil {
		return nil, fmt.Errorf("group %s: %w: %w", kept.ID, ErrNoRegion, err)
	}
	lay(&made, layout, to)
	made.Brought = slices.Clone(kept.Brought)
	made.Slots = slices.Insert(slices.Clone(kept.Slots), kept.Columns, make([]catalog.Slot, more)...)
	one, widening := &bound{was: was}, stripe.Widening{}
	outside := map[block.NodeID]stripe.Position{}
	for i := range more {
		if i >= len(chosen) { // an empty column
			made.Brought = append(made.Brought, catalog.Column{})
			continue
		}
		column, at := kept.Columns+i, stripe.Position(kept.Columns+i)
		if chosen[i].node != made.Home[column] {
			at = position(kept, made.Home[:kept.Columns+len(chosen)], chosen[i].node, layout, to, outside)
		}
		made.Brought = append(made.Brought, chosen[i].Column)
		one.carried = append(one.carried, carried{chosen[i].from, chosen[i].Column.Column, column})
		widening.Columns, widening.Sources = append(widening.Columns, column), append(widening.Sources, at)
	}
	var empty []int
	for column := range made.Columns {
		if column < kept.Columns && len(kept.Slots[column]) == 0 || column >= kept.Columns+len(chosen) {
			empty = append(empty, column)
		}
	}
	plan, err := stripe.NewWidenPlan(layout.Without(empty), to, widening)
	if err != nil {
		return nil, err
	}
	run, err := r.NewExecution(&made, plan)
	if err != nil {
		return nil, err
	}
	one.Execution = run
	run.shifted = more
	for id, at := range outside {
		run.Nodes[at] = id
	}
	for i, from := range chosen {
		if err := run.bring(from, widening.Sources[i], widening.Columns[i]); err != nil {
			return nil, err
		}
	}
	entries, err := r.widenedManifest(ctx, kept, chosen, code.Scheme.M)
	if err != nil {
		return nil, err
	}
	return one, one.carry(entries)
}

// lay has a group laid out by a layout, under a scheme.
func lay(group *catalog.Group, layout *stripe.Layout, scheme stripe.Scheme) {
	group.Ladder, group.Mode, group.LayoutVersion = layout.Ladder.String(), string(layout.Mode), layout.Version
	group.Columns, group.Scheme = layout.Columns, scheme.String()
}

// sourceOf returns a column of a group, which lies on one node.
func sourceOf(group *catalog.Group, column int) (source, error) {
	slot := group.Slots[column]
	if len(slot) == 0 || slices.ContainsFunc(slot, func(item catalog.Item) bool { return item.Node != slot[0].Node }) {
		return source{}, fmt.Errorf("%w: column %d of group %s is not on one node", ErrNoRegion, column, group.ID)
	}
	return source{catalog.Column{Group: group.ID, Column: column}, slot[0].Node, group}, nil
}

// carry has the blocks of a run carry a manifest of these entries, and none if there are none: slots are not those that its group has now.
func (r *Execution) carry(entries []block.ManifestEntry) error {
	encoded, err := block.EncodeManifest(entries)
	r.manifest = append([]byte{}, encoded...)
	return err
}

// bring has the cells of a column read at a position of the plan, as those of a slot.
func (r *Execution) bring(from source, at stripe.Position, slot int) error {
	if r.copies == nil {
		r.copies = map[int][]wire.Copy{}
	}
	for row := range r.after.Layout.Rows {
		item, found := from.from.Find(from.Column.Column, row)
		if !found {
			return fmt.Errorf("%w: column %d of group %s has no row %d", ErrNoRegion, from.Column.Column, from.Group, row)
		}
		r.copies[int(at)] = append(r.copies[int(at)], wire.Copy{
			Slot: slot, Unit: row, Length: r.Group.CellBytes, Address: from.from.Address(from.Column.Column, item), Source: row,
		})
	}
	return nil
}

// widerHome returns where the slots of a group belong that gets so many more columns, and has room for so many parities if there are nodes
// for them: what it is given stays on its node where that could take it as well as any, and an empty column needs a home all the same.
func widerHome(
	agents *member.Agents, kept *catalog.Group, chosen []source, more, parities int, to stripe.Scheme,
) ([]block.NodeID, error) {
	taken := nodesOf(kept)
	home := slices.Clone(kept.Home[:kept.Columns])
	for i := range more {
		if i < len(chosen) && takers(agents, taken)[chosen[i].node] {
			home, taken[chosen[i].node] = append(home, chosen[i].node), true
			continue
		}
		id, found := agents.Substitute(taken)
		if !found {
			return nil, api.Refuse(api.ErrTooFewNodes, "%s needs %d nodes for group %s, and there are %d; add nodes",
				to, to.K+to.M, kept.ID, len(taken))
		}
		home, taken[id] = append(home, id), true
	}
	return withHomes(agents, append(home, kept.Home[kept.Columns:]...), taken, kept.Columns+more+parities), nil
}

// FurtherHomes returns the homes of a group of so many slots: those that it has, and further ones as far as there are nodes for them.
func FurtherHomes(agents *member.Agents, of *catalog.Group, slots int) []block.NodeID {
	return withHomes(agents, slices.Clone(of.Home), nodesOf(of), slots)
}

// withHomes returns the homes of a group with further ones, of so many, as far as there are nodes that are not taken.
func withHomes(agents *member.Agents, home []block.NodeID, taken map[block.NodeID]bool, slots int) []block.NodeID {
	for len(home) < slots {
		id, found := agents.Substitute(taken)
		if !found {
			break
		}
		home, taken[id] = append(home, id), true
	}
	return home
}

// nodesOf are the nodes on which slots of a group lie or are to lie.
func nodesOf(group *catalog.Group) map[block.NodeID]bool {
	nodes := map[block.NodeID]bool{}
	for slot := range max(len(group.Slots), len(group.Home)) {
		id, _ := group.Place(slot)
		nodes[id] = true
	}
	return nodes
}

// takers are the nodes that can take one more slot of a group which lies on others: those in the failure domains that have least of it.
func takers(agents *member.Agents, taken map[block.NodeID]bool) map[block.NodeID]bool {
	free, used := agents.Candidates(taken)
	least := len(taken)
	for _, candidate := range free {
		least = min(least, used[member.Domain(candidate.Node)])
	}
	takers := map[block.NodeID]bool{}
	for _, candidate := range free {
		takers[candidate.Node.ID] = used[member.Domain(candidate.Node)] == least
	}
	return takers
}

// chooseNext returns which of the groups gets its columns next, and which: the group that has the fewest nodes from which these cost
// least, as others have more to choose from.
func (r *reshaping) chooseNext(keep []*catalog.GroupView, left []source, share int) (at int, chosen []source) {
	fewest := math.MaxInt
	for i, kept := range keep {
		if columns, ways := choose(r.agents, &kept.Group, left, share); ways < fewest {
			at, chosen, fewest = i, columns, ways
		}
	}
	return at, chosen
}

// choose takes columns for a group, such that the fewest blocks cross the network, and counts the nodes at which that is so: one gathers
// what the parities change by, so columns that are there cost least, where it has a parity of the group least of all, and a column that
// can stay on its node is not sent to another. Of ways that cost as much it takes the one by which the columns come from the fewest nodes.
func choose(agents *member.Agents, kept *catalog.Group, left []source, share int) (chosen []source, ways int) {
	stay, parity := takers(agents, nodesOf(kept)), map[block.NodeID]bool{}
	for _, items := range kept.Slots[kept.Columns:] {
		for _, item := range items {
			parity[item.Node] = true
		}
	}
	on := map[block.NodeID]int{}
	for _, s := range left {
		on[s.node]++
	}
	least, nodes := math.MaxInt, 0
	for _, gatherer := range slices.Sorted(maps.Keys(on)) {
		blocks, stays, columns := 0, map[block.NodeID]bool{}, slices.Clone(left)
		if parity[gatherer] {
			blocks--
		}
		price := func(s source) (blocks int) {
			if !stay[s.node] || stays[s.node] {
				blocks++ // to its new home
			}
			if s.node != gatherer {
				blocks++ // to the one that gathers
			}
			return blocks
		}
		others := func(node block.NodeID) int { // those first whose nodes have few for other groups
			if node == gatherer {
				return 0
			}
			return on[node]
		}
		from := map[block.NodeID]bool{}
		for i := range share {
			next := i
			for j := i + 1; j < len(columns); j++ {
				a, b := columns[j], columns[next]
				if cmp.Or(price(a)-price(b), others(a.node)-others(b.node), cmp.Compare(a.node, b.node)) < 0 {
					next = j
				}
			}
			columns[i], columns[next] = columns[next], columns[i]
			blocks += price(columns[i])
			stays[columns[i].node], from[columns[i].node] = true, true
		}
		switch {
		case blocks > least:
			continue
		case blocks < least:
			ways = 0
		}
		ways++
		if blocks < least || len(from) < nodes {
			least, nodes, chosen = blocks, len(from), columns[:share]
		}
	}
	return chosen, ways
}

// position is that of a node in the plan of a group, which has what is brought: of a new column whose home it is, of a parity row, or
// outside of the group.
func position(
	kept *catalog.Group, homes []block.NodeID, node block.NodeID, layout *stripe.Layout, scheme stripe.Scheme,
	outside map[block.NodeID]stripe.Position,
) stripe.Position {
	if column := slices.Index(homes[kept.Columns:], node); column >= 0 {
		return stripe.Position(kept.Columns + column)
	}
	for row, items := range kept.Slots[kept.Columns:] {
		if len(items) > 0 && items[0].Node == node {
			return stripe.Position(layout.Columns + row)
		}
	}
	at, known := outside[node]
	if !known {
		at = layout.Outside(scheme, len(outside))
		outside[node] = at
	}
	return at
}

// widenedManifest is what a group carries once columns were brought: what it did, and what the groups of those do.
func (r *reshaping) widenedManifest(ctx context.Context, kept *catalog.Group, chosen []source, rows int) ([]block.ManifestEntry, error) {
	everywhere := func(int) bool { return false }
	entries, err := r.carriedBy(ctx, kept, rows, everywhere)
	if err != nil {
		return nil, err
	}
	for i, from := range chosen {
		if slices.ContainsFunc(chosen[:i], func(before source) bool { return before.Group == from.Group }) {
			continue
		}
		others, err := r.carriedBy(ctx, from.from, rows, everywhere)
		if err != nil {
			return nil, err
		}
		for _, entry := range others {
			isHere := entry.Column == catalog.WholeGroup ||
				slices.ContainsFunc(chosen, func(s source) bool { return s.Column == catalog.Column{Group: from.Group, Column: entry.Column} })
			if isHere {
				entry.Origin, entry.Columns = from.Group, from.from.Columns
				entries = append(entries, entry)
			}
		}
	}
	return entries, nil
}

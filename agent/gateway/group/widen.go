package group

import (
	"context"
	"fmt"
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
	keep := r.region.Kept
	if columns == 0 || columns%len(keep) != 0 {
		return nil, fmt.Errorf("%w: %d columns for %d groups", ErrNoRegion, columns, len(keep))
	}
	more := columns / len(keep)
	for i, kept := range keep {
		share := min(more, (len(left)+len(keep)-i-1)/(len(keep)-i)) // of those that are not empty
		one, rest, err := r.bindWidening(ctx, kept, left, share, more)
		if err != nil {
			return nil, err
		}
		members, left = append(members, one), rest
	}
	return members, nil
}

// bindWidening binds the plan that gives a group so many more columns, of which some come from elsewhere and the others are empty, and
// returns the columns that are left.
func (r *reshaping) bindWidening(
	ctx context.Context, was *catalog.GroupView, left []source, share, more int,
) (*bound, []source, error) {
	kept, to := &was.Group, r.Scheme
	if share == 0 {
		return nil, nil, fmt.Errorf("%w: there is so little in the columns that group %s would get none", ErrNoRegion, kept.ID)
	}
	code, err := r.CodeOf(kept)
	if err != nil {
		return nil, nil, err
	}
	chosen, left := choose(r.agents, kept, left, share)
	made := *kept
	if made.Home, err = widerHome(r.agents, kept, chosen, more, r.Ladder.MaxParity(), to); err != nil {
		return nil, nil, err
	}
	room := len(made.Home) - kept.Columns - more
	ladder := slices.DeleteFunc(slices.Clone(r.Ladder), func(scheme stripe.Scheme) bool { return scheme.M > room })
	layout, err := code.Layout.Whole().WithColumns(kept.Columns+more, ladder, r.Mode, code.Scheme, to)
	if err != nil {
		return nil, nil, fmt.Errorf("group %s: %w: %w", kept.ID, ErrNoRegion, err)
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
			at = position(kept, chosen[i].node, layout, to, outside)
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
		return nil, nil, err
	}
	run, err := r.NewExecution(&made, plan)
	if err != nil {
		return nil, nil, err
	}
	one.Execution = run
	run.shifted = more
	for id, at := range outside {
		run.Nodes[at] = id
	}
	for i, from := range chosen {
		if err := run.bring(from, widening.Sources[i], widening.Columns[i]); err != nil {
			return nil, nil, err
		}
	}
	entries, err := r.widenedManifest(ctx, kept, chosen, code.Scheme.M)
	if err != nil {
		return nil, nil, err
	}
	return one, left, one.carry(entries)
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

// choose takes columns for a group: those first that can stay on their nodes, then those of nodes that have a parity of it.
func choose(agents *member.Agents, kept *catalog.Group, left []source, share int) (chosen, rest []source) {
	stay := takers(agents, nodesOf(kept))
	slotOn := map[block.NodeID]int{}
	for slot, items := range kept.Slots {
		for _, item := range items {
			slotOn[item.Node] = slot
		}
	}
	rank := func(s source) int {
		slot, has := slotOn[s.node]
		switch {
		case stay[s.node]:
			return 0
		case has && slot >= kept.Columns:
			return 1
		}
		return 2
	}
	order := slices.Clone(left)
	slices.SortStableFunc(order, func(a, b source) int { return rank(a) - rank(b) })
	return order[:share], order[share:]
}

// position is that of a node in the plan of a group, which has what is brought: of its parity row, or outside of the group.
func position(
	kept *catalog.Group, node block.NodeID, layout *stripe.Layout, scheme stripe.Scheme, outside map[block.NodeID]stripe.Position,
) stripe.Position {
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

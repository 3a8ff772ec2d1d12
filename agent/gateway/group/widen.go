package group

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/wire"
)

// Region is groups of one kind that become wider by the columns of others, which are dissolved: all columns of these, as many for each.
type Region struct {
	Kept, Taken []*catalog.GroupView
}

// ErrNoRegion says that groups cannot become wider together; use errors.Is.
var ErrNoRegion = errors.New("the groups are not a region")

// Widen takes the groups of a region that are kept to a wider scheme of as many parities, in one attempt and one commit, and returns what it
// cost. ladder and mode are those that they come under; admit is asked for each group that is kept. Whatever the error, nothing has
// changed; ErrNoRegion says that copies are the way.
func (g *Groups) Widen(
	ctx context.Context, region *Region, ladder stripe.Ladder, mode stripe.Mode, to stripe.Scheme, admit Admission,
) (*Cost, error) {
	runs, err := g.bindRegion(ctx, region, ladder, mode, to)
	if err != nil {
		return nil, err
	}
	for i, run := range runs {
		if admitted, err := admit(ctx, &region.Kept[i].Group, run); err != nil || !admitted {
			return &Cost{Skipped: true}, err
		}
	}
	var basis []catalog.Basis
	for _, view := range slices.Concat(region.Kept, region.Taken) {
		basis = append(basis, view)
	}
	attempt, err := g.catalog.Begin(ctx, catalog.KindWiden, g.Deadline(), func(block.Stamp) (sets []catalog.BlockSet) {
		for _, run := range runs {
			sets = append(sets, run.Blocks())
		}
		return sets
	}, basis...)
	if err != nil {
		return nil, fmt.Errorf("announcing the widening of group %s: %w", region.Kept[0].ID, err)
	}
	cost := &Cost{}
	change := catalog.Change{}
	for i, run := range runs {
		done, err := g.Execute(ctx, attempt, run)
		if err == nil {
			err = g.isCopied(ctx, run, region, done.Slots)
		}
		if err != nil {
			return nil, g.Abandon(ctx, attempt, err)
		}
		cost.Add(g.Account(run, done))
		made := run.Group
		change.Groups = append(change.Groups, catalog.GroupChange{
			Was: region.Kept[i], Slots: done.Slots, Scheme: made.Scheme, NewEpoch: true, Seal: true, Home: made.Home,
			Layout: &catalog.GroupLayout{Ladder: made.Ladder, Mode: made.Mode, Version: made.LayoutVersion},
			Width:  &catalog.GroupWidth{Columns: made.Columns, Brought: made.Brought},
		})
	}
	for _, taken := range region.Taken {
		change.Groups = append(change.Groups, catalog.GroupChange{Was: taken, Width: &catalog.GroupWidth{
			Columns: taken.Columns, Brought: taken.Brought, Lies: liesIn(taken, runs),
		}})
	}
	if err := g.Commit(ctx, attempt, change); err != nil {
		return nil, err
	}
	return cost, nil
}

// liesIn says in which columns of the groups that are kept those of one that is dissolved lie.
func liesIn(taken *catalog.GroupView, runs []*Execution) []catalog.Column {
	lies := make([]catalog.Column, taken.Columns)
	for _, run := range runs {
		for i, origin := range run.Group.Brought {
			if origin.Group == taken.ID {
				lies[origin.Column] = catalog.Column{Group: run.Group.ID, Column: run.Group.Span() + i}
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

// bindRegion binds the plans by which the groups that are kept get their columns.
func (g *Groups) bindRegion(
	ctx context.Context, region *Region, ladder stripe.Ladder, mode stripe.Mode, to stripe.Scheme,
) (runs []*Execution, err error) {
	var left []source
	columns := 0
	for _, taken := range region.Taken {
		columns += taken.Columns
		if len(taken.Brought) > 0 {
			return nil, fmt.Errorf("%w: group %s has columns of others itself", ErrNoRegion, taken.ID)
		}
		for column, slot := range taken.Slots[:taken.Columns] {
			if slices.ContainsFunc(slot, func(item catalog.Item) bool { return item.Node != slot[0].Node }) {
				return nil, fmt.Errorf("%w: column %d of group %s lies on several nodes", ErrNoRegion, column, taken.ID)
			}
			if len(slot) > 0 {
				left = append(left, source{catalog.Column{Group: taken.ID, Column: column}, slot[0].Node, &taken.Group})
			}
		}
	}
	if len(region.Kept) == 0 || columns == 0 || columns%len(region.Kept) != 0 {
		return nil, fmt.Errorf("%w: %d columns for %d groups", ErrNoRegion, columns, len(region.Kept))
	}
	more := columns / len(region.Kept)
	for i, kept := range region.Kept {
		share := min(more, (len(left)+len(region.Kept)-i-1)/(len(region.Kept)-i)) // of those that are not empty
		run, rest, err := g.bindWidening(ctx, &kept.Group, left, share, more, ladder, mode, to)
		if err != nil {
			return nil, err
		}
		runs, left = append(runs, run), rest
	}
	return runs, nil
}

// bindWidening binds the plan that gives a group so many more columns, of which some come from elsewhere and the others are empty, and
// returns the columns that are left.
func (g *Groups) bindWidening(
	ctx context.Context, kept *catalog.Group, left []source, share, more int, ladder stripe.Ladder, mode stripe.Mode, to stripe.Scheme,
) (*Execution, []source, error) {
	if share == 0 {
		return nil, nil, fmt.Errorf("%w: there is so little in the columns that group %s would get none", ErrNoRegion, kept.ID)
	}
	code, err := g.CodeOf(kept)
	if err != nil {
		return nil, nil, err
	}
	chosen, left := choose(g.agents, kept, left, share)
	made := *kept
	if made.Home, err = widerHome(g.agents, kept, chosen, more, ladder.MaxParity(), to); err != nil {
		return nil, nil, err
	}
	room := len(made.Home) - kept.Columns - more
	ladder = slices.DeleteFunc(slices.Clone(ladder), func(scheme stripe.Scheme) bool { return scheme.M > room })
	layout, err := code.Layout.Whole().Widened(kept.Columns+more, ladder, mode, code.Scheme, to)
	if err != nil {
		return nil, nil, fmt.Errorf("group %s: %w: %w", kept.ID, ErrNoRegion, err)
	}
	made.Ladder, made.Mode, made.LayoutVersion, made.Scheme = layout.Ladder.String(), string(layout.Mode), layout.Version, to.String()
	made.Columns, made.Brought = layout.Columns, slices.Clone(kept.Brought)
	made.Slots = slices.Insert(slices.Clone(kept.Slots), kept.Columns, make([]catalog.Slot, more)...)
	widening := stripe.Widening{}
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
	run, err := g.NewExecution(&made, plan)
	if err != nil {
		return nil, nil, err
	}
	run.shifted, run.copies = more, map[int][]wire.Copy{}
	for id, at := range outside {
		run.Nodes[at] = id
	}
	for i, from := range chosen {
		at := int(widening.Sources[i])
		for row := range layout.Rows {
			item, found := from.from.Find(from.Column.Column, row)
			if !found {
				return nil, nil, fmt.Errorf("%w: column %d of group %s has no row %d", ErrNoRegion, from.Column.Column, from.Group, row)
			}
			run.copies[at] = append(run.copies[at], wire.Copy{
				Slot: widening.Columns[i], Unit: row, Length: made.CellBytes, Address: from.from.Address(from.Column.Column, item), Source: row,
			})
		}
	}
	run.manifest, err = g.widenedManifest(ctx, kept, chosen, code.Scheme.M)
	return run, left, err
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
	home = append(home, kept.Home[kept.Columns:]...)
	for len(home) < kept.Columns+more+parities {
		id, found := agents.Substitute(taken)
		if !found {
			break
		}
		home, taken[id] = append(home, id), true
	}
	return home, nil
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
func (g *Groups) widenedManifest(ctx context.Context, kept *catalog.Group, chosen []source, rows int) ([]byte, error) {
	everywhere := func(int) bool { return false }
	entries, err := g.carriedBy(ctx, kept, rows, everywhere)
	if err != nil {
		return nil, err
	}
	for i, from := range chosen {
		if slices.ContainsFunc(chosen[:i], func(before source) bool { return before.Group == from.Group }) {
			continue
		}
		others, err := g.carriedBy(ctx, from.from, rows, everywhere)
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
	return block.EncodeManifest(entries)
}

// isCopied checks that the columns that were brought are unit by unit what they are where they come from.
func (g *Groups) isCopied(ctx context.Context, run *Execution, region *Region, slots []catalog.Slot) error {
	asked, was := map[block.NodeID][]block.Address{}, map[int]catalog.Slot{}
	add := func(group *catalog.Group, slot int, items catalog.Slot) {
		for _, item := range items {
			asked[item.Node] = append(asked[item.Node], group.Address(slot, item))
		}
	}
	from := map[int]*catalog.Group{}
	for i, origin := range run.Group.Brought {
		for _, taken := range region.Taken {
			if taken.ID == origin.Group {
				column := run.Group.Span() + i
				was[column], from[column] = taken.Slots[origin.Column], &taken.Group
				add(&taken.Group, origin.Column, was[column])
				add(run.Group, column, slots[column])
			}
		}
	}
	receipts, err := g.Inspect(ctx, asked, false)
	if err != nil {
		return err
	}
	for column, items := range was {
		origin := run.Group.Brought[column-run.Group.Span()].Column
		before, complete := printsOf(receipts, from[column], origin, items)
		after, isThere := printsOf(receipts, run.Group, column, slots[column])
		if !complete || !isThere {
			return fmt.Errorf("column %d of group %s: %w", origin, from[column].ID, ErrNotWhole)
		}
		if !slices.Equal(before, after) {
			g.Unproven.Add(1)
			return fmt.Errorf("column %d of group %s is not what was copied of it", origin, from[column].ID)
		}
	}
	return nil
}

// printsOf are the fingerprints of all units of a slot, by the receipts of its blocks.
func printsOf(
	receipts map[block.Address]*block.Receipt, group *catalog.Group, slot int, items catalog.Slot,
) (prints []block.Fingerprint, complete bool) {
	for _, item := range items {
		receipt := receipts[group.Address(slot, item)]
		if receipt == nil {
			return nil, false
		}
		from := item.First - receipt.FirstUnit
		if from < 0 || from+item.Units > len(receipt.Fingerprints) {
			return nil, false
		}
		prints = append(prints, receipt.Fingerprints[from:from+item.Units]...)
	}
	return prints, true
}

package group

import (
	"context"
	"fmt"
	"slices"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
)

// narrowing is a region whose wide groups give columns back.
type narrowing struct {
	*reshaping
	views     map[block.GroupID]*catalog.GroupView    // of those that are kept
	manifests map[block.GroupID][]block.ManifestEntry // what they carry
}

// bindNarrower binds the plans by which groups that were dissolved get their columns back, and those that these lie in lose them. What
// comes back is there as a whole before anything is taken from where it was.
func (r *reshaping) bindNarrower(ctx context.Context) (members []*bound, err error) {
	n := &narrowing{r, map[block.GroupID]*catalog.GroupView{}, map[block.GroupID][]block.ManifestEntry{}}
	for _, kept := range r.region.Kept {
		n.views[kept.ID] = kept
		if n.manifests[kept.ID], err = r.carriedBy(ctx, &kept.Group, len(kept.Slots)-kept.Columns, func(int) bool { return false }); err != nil {
			return nil, err
		}
	}
	for _, taken := range r.region.Taken {
		one, err := n.bindReturn(taken)
		if err != nil {
			return nil, err
		}
		members = append(members, one)
	}
	for _, kept := range r.region.Kept {
		one, err := n.bindLoss(kept)
		if err != nil {
			return nil, err
		}
		members = append(members, one)
	}
	return members, nil
}

// layoutOf is that of a group of a region once it is narrower, with room for so many parities.
func (n *narrowing) layoutOf(kept *Code, room int) (*stripe.Layout, error) {
	ladder := slices.DeleteFunc(slices.Clone(n.Ladder), func(scheme stripe.Scheme) bool { return scheme.M > room })
	layout, err := kept.Layout.Whole().WithColumns(n.Scheme.K, ladder, n.Mode, kept.Scheme, n.Scheme)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoRegion, err)
	}
	return layout, nil
}

// bindReturn binds the plan by which a group that was dissolved gets its columns back, and parities of its own.
func (n *narrowing) bindReturn(taken *catalog.GroupView) (*bound, error) {
	if taken.Columns != n.Scheme.K || !taken.IsDissolved() || len(taken.Brought) > 0 {
		return nil, fmt.Errorf("%w: group %s was not dissolved, or not of %d columns", ErrNoRegion, taken.ID, n.Scheme.K)
	}
	var sources []source
	var columns, empty []int
	for column, lies := range taken.Lies {
		if lies == (catalog.Column{}) {
			empty = append(empty, column)
			continue
		}
		in := n.views[lies.Group]
		if in == nil || lies.Column < n.Scheme.K {
			return nil, fmt.Errorf("%w: column %d of group %s lies elsewhere", ErrNoRegion, column, taken.ID)
		}
		from, err := sourceOf(&in.Group, lies.Column)
		if err != nil {
			return nil, err
		}
		sources, columns = append(sources, from), append(columns, column)
	}
	if len(columns) == 0 {
		return nil, fmt.Errorf("%w: nothing is in group %s", ErrNoRegion, taken.ID)
	}
	code, err := n.CodeOf(sources[0].from)
	if err != nil {
		return nil, err
	}
	made := taken.Group
	if made.Home, err = n.homeOf(taken, sources, columns); err != nil {
		return nil, err
	}
	layout, err := n.layoutOf(code, len(made.Home)-taken.Columns)
	if err != nil {
		return nil, err
	}
	lay(&made, layout, n.Scheme)
	made.Lies, made.Slots = nil, make([]catalog.Slot, layout.Columns+n.Scheme.M)
	one, widening := &bound{was: taken}, stripe.Widening{Columns: columns}
	homes := slices.Clone(made.Home[:taken.Columns])
	for _, column := range empty {
		homes[column] = ""
	}
	outside := map[block.NodeID]stripe.Position{}
	for i, from := range sources {
		at := stripe.Position(columns[i])
		if from.node != made.Home[columns[i]] {
			at = position(&catalog.Group{}, homes, from.node, layout, n.Scheme, outside)
		}
		widening.Sources = append(widening.Sources, at)
		one.carried = append(one.carried, carried{from.from, from.Column.Column, columns[i]})
	}
	plan, err := stripe.NewWidenPlan(layout.Without(empty), n.Scheme, widening)
	if err != nil {
		return nil, err
	}
	if one.Execution, err = n.NewExecution(&made, plan); err != nil {
		return nil, err
	}
	for id, at := range outside {
		one.Nodes[at] = id
	}
	for i, from := range sources {
		if err := one.bring(from, widening.Sources[i], columns[i]); err != nil {
			return nil, err
		}
	}
	return one, one.carry(n.entriesOf(taken.ID))
}

// homeOf returns where the slots of a group belong that comes back: a column stays on its node where that can take it as well as any.
func (n *narrowing) homeOf(taken *catalog.GroupView, sources []source, columns []int) ([]block.NodeID, error) {
	home, used := make([]block.NodeID, taken.Columns+max(n.Ladder.MaxParity(), n.Scheme.M)), map[block.NodeID]bool{}
	for i, from := range sources {
		if takers(n.agents, used)[from.node] {
			home[columns[i]], used[from.node] = from.node, true
		}
	}
	for slot := range home {
		if home[slot] != "" {
			continue
		}
		id, found := n.agents.Substitute(used)
		if !found && slot < taken.Columns+n.Scheme.M {
			return nil, api.Refuse(api.ErrTooFewNodes, "%s needs %d nodes for group %s, and there are %d; add nodes",
				n.Scheme, taken.Columns+n.Scheme.M, taken.ID, len(used))
		}
		if !found {
			return home[:slot], nil
		}
		home[slot], used[id] = id, true
	}
	return home, nil
}

// entriesOf is the manifest of a group that comes back, by what is said of it where it lies.
func (n *narrowing) entriesOf(taken block.GroupID) []block.ManifestEntry {
	var parts [][]block.ManifestEntry
	for _, kept := range n.region.Kept {
		var part []block.ManifestEntry
		for _, entry := range n.manifests[kept.ID] {
			if entry.Origin == taken {
				entry.Origin, entry.Columns = block.GroupID{}, 0
				part = append(part, entry)
			}
		}
		parts = append(parts, part)
	}
	return block.MergeManifests(parts...)
}

// bindLoss binds the plan by which a group loses its last columns, all of which were brought.
func (n *narrowing) bindLoss(kept *catalog.GroupView) (*bound, error) {
	code, err := n.CodeOf(&kept.Group)
	if err != nil {
		return nil, err
	}
	columns, less := n.Scheme.K, kept.Columns-n.Scheme.K
	if less < 1 || kept.Span() > columns {
		return nil, fmt.Errorf("%w: of the %d columns of group %s %d were brought", ErrNoRegion, kept.Columns, kept.ID, len(kept.Brought))
	}
	made := kept.Group
	made.Slots = slices.Concat(kept.Slots[:columns], kept.Slots[kept.Columns:])
	made.Home = slices.Concat(kept.Home[:columns], kept.Home[kept.Columns:])
	made.Home = FurtherHomes(n.agents, &made, columns+n.Ladder.MaxParity())
	layout, err := n.layoutOf(code, len(made.Home)-columns)
	if err != nil {
		return nil, err
	}
	lay(&made, layout, n.Scheme)
	made.Brought = slices.Clone(kept.Brought[:columns-kept.Span()])
	var lost, empty []int
	for column, items := range kept.Slots[:kept.Columns] {
		switch {
		case len(items) > 0 && column >= columns:
			lost = append(lost, column)
		case len(items) == 0 && column < columns:
			empty = append(empty, column)
		}
	}
	plan, err := stripe.NewNarrowPlan(code.Layout, layout.Without(empty), code.Scheme, n.Scheme, lost)
	if err != nil {
		return nil, err
	}
	one := &bound{was: kept}
	if one.Execution, err = n.NewExecution(&made, plan); err != nil {
		return nil, err
	}
	one.shifted = -less
	for i, column := range lost {
		from, err := sourceOf(&kept.Group, column)
		if err != nil {
			return nil, err
		}
		at := layout.Outside(n.Scheme, i)
		one.Nodes[at] = from.node
		if err := one.bring(from, at, column); err != nil {
			return nil, err
		}
	}
	left := kept.Brought[:columns-kept.Span()]
	entries := slices.DeleteFunc(slices.Clone(n.manifests[kept.ID]), func(entry block.ManifestEntry) bool {
		return entry.Origin != (block.GroupID{}) &&
			!slices.ContainsFunc(left, func(column catalog.Column) bool { return column.Group == entry.Origin })
	})
	return one, one.carry(entries)
}

package group

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/stripe"
)

// Region is groups that become wider or narrower together. Those that are kept become wider by all columns of those that are taken, as many
// for each, which are dissolved; or narrower by giving these back to those of them that are still there.
type Region struct {
	Kept, Taken []*catalog.GroupView
}

// Shape is what the groups of a region come to.
type Shape struct {
	Ladder stripe.Ladder // which has Scheme
	Mode   stripe.Mode
	Scheme stripe.Scheme // of as many parities as they have, with as many data columns as each will have
}

// ErrNoRegion says that groups cannot become wider or narrower together; use errors.Is.
var ErrNoRegion = errors.New("the groups are not a region")

// reshaping is a region on its way to a shape.
type reshaping struct {
	*Groups
	region *Region
	Shape
}

// bound is what becomes of a group of a region that gets blocks.
type bound struct {
	*Execution
	was     *catalog.GroupView
	carried []carried
	staged  *Result
}

// carried is a column that comes into a group.
type carried struct {
	from   *catalog.Group
	column int // of from
	to     int // of the group
}

// Reshape takes a region to a shape in one attempt and one commit, and returns what it cost; admit is asked for each group that gets
// blocks. Whatever the error, nothing has changed; ErrNoRegion says that copies are the way.
func (g *Groups) Reshape(ctx context.Context, region *Region, shape Shape, admit Admission) (*Cost, error) {
	r := &reshaping{g, region, shape}
	if len(region.Kept) == 0 {
		return nil, fmt.Errorf("%w: none is kept", ErrNoRegion)
	}
	kind, bind := catalog.KindWiden, r.bindWider
	if shape.Scheme.K < region.Kept[0].Columns {
		kind, bind = catalog.KindNarrow, r.bindNarrower
	}
	members, err := bind(ctx)
	if err != nil {
		return nil, err
	}
	for _, one := range members {
		if admitted, err := admit(ctx, &region.Kept[0].Group, one.Execution); err != nil || !admitted {
			return &Cost{Skipped: true}, err
		}
	}
	var basis []catalog.Basis
	for _, view := range slices.Concat(region.Kept, region.Taken) {
		basis = append(basis, view)
	}
	attempt, err := g.catalog.Begin(ctx, kind, g.Deadline(), func(block.Stamp) (sets []catalog.BlockSet) {
		for _, one := range members {
			sets = append(sets, one.Blocks())
		}
		return sets
	}, basis...)
	if err != nil {
		return nil, fmt.Errorf("announcing that group %s is to have %d columns: %w", region.Kept[0].ID, shape.Scheme.K, err)
	}
	first := 0 // so many are staged before the others: what comes back is there before anything is taken from where it was
	if kind == catalog.KindNarrow {
		first = len(region.Taken)
	}
	for _, wave := range [][]*bound{members[:first], members[first:]} {
		if err := r.stage(ctx, attempt, wave); err != nil {
			return nil, g.Abandon(ctx, attempt, err)
		}
	}
	cost, change := &Cost{}, catalog.Change{}
	for _, one := range members {
		done := one.staged
		cost.Add(g.Account(one.Execution, done))
		made := one.Group
		change.Groups = append(change.Groups, catalog.GroupChange{
			Was: one.was, Slots: done.Slots, Scheme: made.Scheme, NewEpoch: true, Seal: true, Home: made.Home,
			Layout: &catalog.GroupLayout{Ladder: made.Ladder, Mode: made.Mode, Version: made.LayoutVersion},
			Width:  &catalog.GroupWidth{Columns: made.Columns, Brought: made.Brought},
		})
	}
	if kind == catalog.KindWiden {
		for _, taken := range region.Taken {
			change.Groups = append(change.Groups, catalog.GroupChange{Was: taken, Width: &catalog.GroupWidth{
				Columns: taken.Columns, Brought: taken.Brought, Lies: liesIn(taken, members),
			}})
		}
	}
	if err := g.Commit(ctx, attempt, change); err != nil {
		return nil, err
	}
	return cost, nil
}

// stage executes the plans of groups all at once, as they get their columns from different nodes, and checks what came of them.
func (r *reshaping) stage(ctx context.Context, attempt *catalog.Attempt, members []*bound) error {
	workers, ctx := errgroup.WithContext(ctx)
	for _, one := range members {
		workers.Go(func() (err error) {
			if one.staged, err = r.Execute(ctx, attempt, one.Execution); err != nil {
				return err
			}
			return r.isCopied(ctx, one, one.staged.Slots)
		})
	}
	return workers.Wait()
}

// isCopied checks that the columns that came into a group are unit by unit what they are where they come from.
func (r *reshaping) isCopied(ctx context.Context, one *bound, slots []catalog.Slot) error {
	asked := map[block.NodeID][]block.Address{}
	add := func(group *catalog.Group, slot int, items catalog.Slot) {
		for _, item := range items {
			asked[item.Node] = append(asked[item.Node], group.Address(slot, item))
		}
	}
	for _, c := range one.carried {
		add(c.from, c.column, c.from.Slots[c.column])
		add(one.Group, c.to, slots[c.to])
	}
	receipts, err := r.Inspect(ctx, asked, false)
	if err != nil {
		return err
	}
	for _, c := range one.carried {
		before, complete := printsOf(receipts, c.from, c.column, c.from.Slots[c.column])
		after, isThere := printsOf(receipts, one.Group, c.to, slots[c.to])
		if !complete || !isThere {
			return fmt.Errorf("column %d of group %s: %w", c.column, c.from.ID, ErrNotWhole)
		}
		if !slices.Equal(before, after) {
			r.Unproven.Add(1)
			return fmt.Errorf("column %d of group %s is not what was copied of it", c.column, c.from.ID)
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

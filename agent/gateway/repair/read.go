package repair

import (
	"context"
	"errors"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/group"
)

// readBudgetPatience is how long the repair of a group of which the records show a loss waits for the limits of repair, where a
// read asks for it.
const readBudgetPatience = 100 * time.Millisecond

// ReadOutcome is how a repair that a read asked for went.
type ReadOutcome string

// How repairs that reads ask for go.
const (
	ReadRepaired ReadOutcome = "repaired" // the group is whole now
	ReadLimited  ReadOutcome = "limited"  // the limits of repair leave no room for it at once, or repair is paused
	ReadFailed   ReadOutcome = "failed"
)

// RebuildForRead repairs a group that a read cannot read from, before the reads that come next: at once where a block was lost by
// itself. Where the records show a loss a whole node or store was lost, and with it more than reads should rebuild: there the limits
// of repair hold. A pause holds always, as none of the readers has asked for it. Blocks are read whole with deep.
func (rs *Repairs) RebuildForRead(ctx context.Context, id block.GroupID, deep bool) ReadOutcome {
	paused, _, err := rs.Paused(ctx)
	if paused {
		return ReadLimited
	}
	var admit *Grant
	if err == nil {
		admit, err = rs.admitRead(ctx, id)
	}
	if err == nil {
		var done Outcome
		done, err = rs.RebuildRetrying(ctx, id, Rebuild{Deep: deep, Admit: admit})
		rs.supervisor.count(&done)
	}
	switch {
	case err == nil:
		return ReadRepaired
	case errors.Is(err, group.ErrHalted):
		return ReadLimited
	case ctx.Err() == nil:
		rs.log.Warn("a group could not be repaired for a read", "group", id, "cause", err)
	}
	return ReadFailed
}

// admitRead returns what the repair of a group waits for that a read asks for, nil for nothing.
func (rs *Repairs) admitRead(ctx context.Context, id block.GroupID) (*Grant, error) {
	view, err := rs.catalog.Group(ctx, id)
	if errors.Is(err, catalog.ErrNoGroup) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	incarnations, err := rs.catalog.Incarnations(ctx)
	if err != nil {
		return nil, err
	}
	if lost, _ := rs.recordedLoss(&view.Group, incarnations); len(lost) == 0 {
		return nil, nil
	}
	halt := make(chan struct{})
	time.AfterFunc(readBudgetPatience, func() { close(halt) })
	return rs.Grant(halt), nil
}

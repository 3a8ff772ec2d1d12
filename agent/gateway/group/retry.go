package group

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/wire"
)

// repairTries is how often work on a group starts over because other commits came first.
const repairTries = 20

// isRace reports whether what failed may go well at once: somebody else's commit came first, or a node was too busy.
func isRace(err error) bool {
	return errors.Is(err, api.ErrConflict) || errors.Is(err, catalog.ErrStale) || errors.Is(err, wire.ErrBusy)
}

// RetryRaces works on a group and starts over after a race or, with other nodes, where one is full: full are those that have
// not taken a block.
func RetryRaces(ctx context.Context, work func(full map[block.NodeID]bool) error) (err error) {
	full := map[block.NodeID]bool{}
	for try := range repairTries {
		err = work(maps.Clone(full))
		var other *NoRoomError
		if errors.As(err, &other) && !full[other.Node] {
			full[other.Node] = true
			continue
		}
		if !isRace(err) || Pause(ctx, try) != nil {
			break
		}
	}
	return err
}

// Pause waits a little longer at every try, so that writers that got into each other's way part.
func Pause(ctx context.Context, try int) error {
	timer := time.NewTimer(min(time.Duration(1<<min(try, 10))*time.Millisecond, time.Second))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

package gateway

import (
	"context"
	"errors"
	"maps"
	"sync"
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

// insist works on a group and starts over after a race or, with other nodes, where one is full: full are those that have
// not taken a block.
func insist(ctx context.Context, work func(full map[block.NodeID]bool) error) (err error) {
	full := map[block.NodeID]bool{}
	for try := range repairTries {
		err = work(maps.Clone(full))
		var other *noRoomError
		if errors.As(err, &other) && !full[other.node] {
			full[other.node] = true
			continue
		}
		if !isRace(err) || pause(ctx, try) != nil {
			break
		}
	}
	return err
}

// failures are the groups whose repair failed while the nodes were as they are now, by roster: there is little prospect of
// another try before that changes, and each is put off for twice as long.
type failures struct {
	mutex  sync.Mutex
	roster uint64
	groups map[block.GroupID]failure
}

type failure struct {
	delay time.Duration
	again time.Time
}

// note takes note of how the repair of a group went. After its first failure it may be tried again at once, after the second
// in a row when least is over, and so on.
func (f *failures) note(id block.GroupID, roster uint64, failed bool, least time.Duration, now time.Time) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.roster != roster || f.groups == nil {
		f.roster, f.groups = roster, map[block.GroupID]failure{}
	}
	was, before := f.groups[id]
	switch {
	case !failed:
		delete(f.groups, id)
	case !before:
		f.groups[id] = failure{again: now}
	default:
		delay := min(max(least, 2*was.delay), relocationEvery)
		f.groups[id] = failure{delay: delay, again: now.Add(delay)}
	}
}

// has reports whether the repair of a group has failed while the nodes were so.
func (f *failures) has(id block.GroupID, roster uint64) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	_, found := f.groups[id]
	return found && f.roster == roster
}

// due reports whether a group may be tried again now.
func (f *failures) due(id block.GroupID, roster uint64, now time.Time) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.roster != roster || !now.Before(f.groups[id].again)
}

package repair

import (
	"sync"
	"time"

	"github.com/restripe/restripe/agent/block"
)

// longestFailureDelay is how long a group is put off at most whose repair keeps failing.
const longestFailureDelay = 10 * time.Minute

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
		delay := min(max(least, 2*was.delay), longestFailureDelay)
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

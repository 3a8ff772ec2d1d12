package gateway

import (
	"maps"
	"sync"

	"github.com/restripe/restripe/agent/block"
)

// reported is the set of groups that wait for repair: those in which a block was found missing or wrong, and those whose
// repair failed. Each says whether its blocks have to be read whole.
type reported struct {
	wake chan<- struct{} // gets a token when a block was found missing

	mutex       sync.Mutex
	soon, later map[block.GroupID]bool
}

// add has a group repaired soon, its blocks read whole first.
func (r *reported) add(id block.GroupID) {
	r.mutex.Lock()
	if r.soon == nil {
		r.soon = map[block.GroupID]bool{}
	}
	r.soon[id] = true
	r.mutex.Unlock()
	knock(r.wake)
}

// keep has a group looked at again after a while.
func (r *reported) keep(id block.GroupID, deep bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.later == nil {
		r.later = map[block.GroupID]bool{}
	}
	r.later[id] = r.later[id] || deep
}

// take returns the groups to repair soon and, with all, the others, and forgets them.
func (r *reported) take(all bool) map[block.GroupID]bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	taken := map[block.GroupID]bool{}
	if all {
		maps.Copy(taken, r.later)
		r.later = nil
	}
	maps.Copy(taken, r.soon)
	r.soon = nil
	return taken
}

func (r *reported) count() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	count := len(r.soon)
	for id := range r.later {
		if _, both := r.soon[id]; !both {
			count++
		}
	}
	return count
}

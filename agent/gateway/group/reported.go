package group

import (
	"maps"
	"sync"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/job"
)

// Reported is the set of groups that wait for repair: those in which a block was found missing or wrong, and those whose
// repair failed. Each says whether its blocks have to be read whole.
type Reported struct {
	Wake job.Wake // gets a token when a block was found missing

	mutex       sync.Mutex
	soon, later map[block.GroupID]bool
}

// Add has a group repaired soon, its blocks read whole first.
func (r *Reported) Add(id block.GroupID) {
	r.mutex.Lock()
	if r.soon == nil {
		r.soon = map[block.GroupID]bool{}
	}
	r.soon[id] = true
	r.mutex.Unlock()
	r.Wake.Notify()
}

// Keep has a group looked at again after a while.
func (r *Reported) Keep(id block.GroupID, deep bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.later == nil {
		r.later = map[block.GroupID]bool{}
	}
	r.later[id] = r.later[id] || deep
}

// Take returns the groups to repair soon and, with all, the others, and forgets them.
func (r *Reported) Take(all bool) map[block.GroupID]bool {
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

// Has reports whether a group is reported.
func (r *Reported) Has(id block.GroupID) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	_, later := r.later[id]
	return later || r.soon[id]
}

// Count is how many groups are reported.
func (r *Reported) Count() int {
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

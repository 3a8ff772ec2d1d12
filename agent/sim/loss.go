package sim

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/restripe/restripe/agent/block"
)

// losses knows which nodes have lost blocks, so that no more are lost than the codes survive.
type losses struct {
	ledger  *ledger
	disks   disks
	losable int // nodes that may miss blocks at the same time

	mutex sync.Mutex
	lost  map[block.NodeID]*loss
}

// loss is a node that has lost blocks which are not all rebuilt yet.
type loss struct {
	attempts []string // that were active since: their groups may miss what was lost
	under    string   // the marker that the store has to lose for it, empty where it need not
}

// mayLose reports whether a node may lose blocks without more of a group's nodes missing some than its code survives.
func (l *losses) mayLose(id block.NodeID) bool {
	l.forget()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	others := 0
	for other := range l.lost {
		if other != id {
			others++
		}
	}
	return others < l.losable
}

// lose takes note of a node that loses blocks, and under which marker, empty where it shows by itself or by a look at them.
func (l *losses) lose(id block.NodeID, under string) {
	attempts := l.ledger.attempts()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if was := l.lost[id]; was != nil && under == "" {
		under = was.under
	}
	l.lost[id] = &loss{attempts: attempts, under: under}
}

func (l *losses) hasLost(id block.NodeID) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.lost[id] != nil
}

// forget strikes out nodes that have all their blocks again: every block that records name on them is sound, their agents
// have noticed that they went back, the catalog knows their present contents, and no attempt is left that began before the loss.
func (l *losses) forget() {
	l.mutex.Lock()
	lost := maps.Clone(l.lost)
	l.mutex.Unlock()
	if len(lost) == 0 {
		return
	}
	active := l.ledger.attempts()
	incarnations, err := l.ledger.records.Incarnations(context.Background())
	if err != nil {
		l.ledger.journal.violate(Setup, "reading incarnations: %v", err)
		return
	}
	for id, its := range lost {
		d := l.disks.of(id)
		present := d.marker(incarnationKey)
		registered := present != "" && present == string(incarnations[id])
		noticed := registered && present != its.under && block.Incarnation(present).Run() == d.runName()
		if !noticed || slices.ContainsFunc(its.attempts, func(key string) bool { return slices.Contains(active, key) }) {
			delete(lost, id)
		}
	}
	for _, view := range l.ledger.groups() {
		for slot, items := range view.Slots {
			for _, item := range items {
				if lost[item.Node] != nil && !l.disks.isStored(&view.Group, slot, item) {
					delete(lost, item.Node)
				}
			}
		}
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for id := range lost {
		delete(l.lost, id)
	}
}

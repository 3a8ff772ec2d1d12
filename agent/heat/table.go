package heat

import (
	"math/bits"

	"github.com/restripe/restripe/agent/block"
)

// entry is one tracked group. The salt of its stamp is left out: sequences are not drawn twice, and if a restored catalog
// did, the worst is a wrong temperature.
type entry struct {
	sequence uint64  // of the group's stamp; 0: the slot is free
	own      float64 // counted here, as of the landmark of the class
	others   float32 // counted by other gateways, as of the same landmark
	first    uint32  // Unix second of the first use that anybody counted
	index    uint32
	class    Class
	walk     uint16 // the walk that saw the group last
}

// entryBytes is the size of an entry.
const entryBytes = 32

// key names a group.
type key struct {
	sequence uint64
	index    uint32
}

func keyOf(group block.GroupID) key { return key{group.Stamp.Sequence, group.Index} }

func (e *entry) key() key { return key{e.sequence, e.index} }

// value is what is counted of a group by all gateways, as of the landmark of its class.
func (e *entry) value() float64 { return e.own + float64(e.others) }

// hash spreads keys over shards (its top bits) and slots (the others): the finaliser of SplitMix64.
func (k key) hash() uint64 {
	x := k.sequence + uint64(k.index)*0x9e3779b97f4a7c15
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// Hash is a number that stands for a group, whose bits are those of a good hash.
func Hash(group block.GroupID) uint64 { return keyOf(group).hash() }

// table is an open-addressed hash table with linear probing. It grows by halves and is at most four fifths full, which
// keeps it under 64 bytes per entry.
type table struct {
	slots []entry
	used  int
	moved uint64 // raised whenever entries may have changed their slots
}

const firstSlots = 10

// home is where a key belongs.
func (t *table) home(k key) int {
	high, _ := bits.Mul64(k.hash()<<shardBits, uint64(len(t.slots)))
	return int(high)
}

// find returns the number of the slot of a key, or of the free one it would take. The table is not empty.
func (t *table) find(k key) int {
	for i := t.home(k); ; {
		if e := &t.slots[i]; e.sequence == 0 || e.sequence == k.sequence && e.index == k.index {
			return i
		}
		if i++; i == len(t.slots) {
			i = 0
		}
	}
}

// get returns the entry of a key, nil if there is none.
func (t *table) get(k key) *entry {
	if t.used == 0 {
		return nil
	}
	if e := &t.slots[t.find(k)]; e.sequence != 0 {
		return e
	}
	return nil
}

// insert adds an entry whose key is not there.
func (t *table) insert(added entry) {
	if 5*(t.used+1) > 4*len(t.slots) {
		t.resize(max(firstSlots, len(t.slots)+len(t.slots)/2))
	}
	t.slots[t.find(added.key())] = added
	t.used++
}

func (t *table) resize(slots int) {
	old := t.slots
	t.slots = make([]entry, slots)
	t.moved++
	for i := range old {
		if old[i].sequence != 0 {
			t.slots[t.find(old[i].key())] = old[i]
		}
	}
}

// remove frees slot i and closes the gap behind it.
func (t *table) remove(i int) {
	n := len(t.slots)
	t.used--
	t.moved++
	for j := i; ; {
		t.slots[i] = entry{}
		for {
			if j++; j == n {
				j = 0
			}
			e := &t.slots[j]
			if e.sequence == 0 {
				return
			}
			// It may move to i unless its home lies cyclically in (i, j].
			if (j-t.home(e.key())+n)%n >= (j-i+n)%n {
				t.slots[i] = *e
				break
			}
		}
		i = j
	}
}

// removeIf removes the entries that doomed names, and returns how many. It visits every entry once.
func (t *table) removeIf(doomed func(*entry) bool) (removed int) {
	if t.used == 0 {
		return 0
	}
	start := 0
	for t.slots[start].sequence != 0 { // behind a gap, so that no entry moves past the end of the round
		start++
	}
	n := len(t.slots)
	for left := n; left > 0; {
		i := start
		for ; left > 0 && (t.slots[i].sequence == 0 || !doomed(&t.slots[i])); left-- {
			if i++; i == n {
				i = 0
			}
		}
		if start = i; left > 0 {
			t.remove(i) // and look at what came into the gap
			removed++
		}
	}
	if t.used == 0 {
		t.slots = nil
	} else if floor := t.used + t.used/2; floor < len(t.slots)/4 {
		t.resize(max(firstSlots, floor))
	}
	return removed
}

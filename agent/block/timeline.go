package block

import "slices"

// Counts are how many updates of the catalog by one start of a gateway took effect, by lane: a lane is used by one update at a
// time.
type Counts []int64

// Contains reports whether no lane of other is ahead of the same of c.
func (c Counts) Contains(other Counts) bool {
	for lane, count := range other {
		if count > 0 && (lane >= len(c) || c[lane] < count) {
			return false
		}
	}
	return true
}

// Max returns the greater count of each lane.
func (c Counts) Max(other Counts) Counts {
	most := make(Counts, max(len(c), len(other)))
	copy(most, c)
	for lane, count := range other {
		most[lane] = max(most[lane], count)
	}
	return most
}

// Timeline says how far a catalog has come, by the starts of gateways. A later state of a catalog contains each earlier one, and
// neither of two that are copies of one and went on contains the other.
type Timeline struct {
	Sessions map[string]Counts `cbor:"1,keyasint"`           // the last start of each gateway
	Ended    map[string]Counts `cbor:"2,keyasint,omitempty"` // those earlier ones that were asked for
	Disowned []string          `cbor:"3,keyasint,omitempty"` // starts that do not count, as of before a claim
}

// Counts returns those of a start, if t has it.
func (t *Timeline) Counts(start string) (counts Counts, has bool) {
	if counts, has = t.Sessions[start]; !has {
		counts, has = t.Ended[start]
	}
	return counts, has
}

// Contains reports whether t has all that an earlier reading had.
func (t *Timeline) Contains(earlier *Timeline) bool {
	for _, part := range []map[string]Counts{earlier.Sessions, earlier.Ended} {
		for start, counts := range part {
			now, has := t.Counts(start)
			if !slices.Contains(t.Disowned, start) && (!has || !now.Contains(counts)) {
				return false
			}
		}
	}
	return true
}

package heat

import (
	"math"
)

// Rates fall into classes of an octave cut in sixteen, from 2^-64 to 2^64 accesses a day.
const (
	octaveBits  = 4
	coldestBits = (1023 - 64) << octaveBits
	rateClasses = 128 << octaveBits
)

// rateClass orders rates: a rate that is a sixteenth larger or more has a larger class.
func rateClass(rate float64) int {
	bits := int(math.Float64bits(rate) >> (52 - octaveBits))
	return min(max(bits-coldestBits, 0), rateClasses-1)
}

// evict removes the count coldest entries, where rates within a sixteenth of each other count as equal. It counts rates
// in classes instead of sorting them, as it runs under the lock of the hot path.
func (s *shard) evict(count int) {
	for i := range s.classes {
		c := &s.classes[i]
		c.now = math.Exp2(c.landmark-s.clock*c.perSecond) * math.Ln2 * c.perSecond * day.Seconds()
	}
	rate := func(e *entry) int { return rateClass(e.value() * s.classes[e.class].now) }
	var having [rateClasses]int32
	for i := range s.table.slots {
		if e := &s.table.slots[i]; e.sequence != 0 {
			having[rate(e)]++
		}
	}
	border, below := 0, 0 // classes under border go whole, and of border what is left to go
	for ; border < rateClasses-1 && below+int(having[border]) <= count; border++ {
		below += int(having[border])
	}
	// Of border every so-manieth goes: holes in one place alone would leave long runs in the others.
	share, due := count-below, 0
	s.table.removeIf(func(e *entry) bool {
		switch class := rate(e); {
		case class < border:
			return true
		case class > border:
			return false
		}
		if due += share; due < int(having[border]) {
			return false
		}
		due -= int(having[border])
		return true
	})
	s.touched++
}

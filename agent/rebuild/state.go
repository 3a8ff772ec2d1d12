package rebuild

import (
	"fmt"
	"maps"
	"slices"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/parity"
)

// state is what a group is if certain attempts were committed and others were not. Commits to one group follow each
// other in the order of their stamps, since each is based on the one before; so later blocks lie over earlier ones.
type state struct {
	without map[block.Stamp]bool
	code    *parity.Equations
	units   [][]int // [slot][unit]: index into found of the block that has it; -1 where none has
	broken  int     // stripes of which more is missing or wrong than can be decoded, or than can be told
	slots   int     // slots with units that are missing or contradict the others: one node that is lost accounts for one
	bad     int     // such units
	unseen  int     // columns that an attempt that is left out put something into, of which no block is there either
	wrong   []parity.Place
	suspect map[block.Stamp]bool // attempts with units in the first stripe that contradicts itself
}

// newest is the index of the newest block that counts, -1 if there is none.
func (s *state) newest(found []Found) int {
	for i := len(found) - 1; i >= 0; i-- {
		if !s.without[found[i].Header.Stamp] {
			return i
		}
	}
	return -1
}

// state lays the blocks of all attempts but some over each other and judges the result by the parity equations.
func (a *assembly) state(without map[block.Stamp]bool) *state {
	s := &state{without: without, suspect: map[block.Stamp]bool{}}
	newest := s.newest(a.found)
	if newest < 0 {
		s.broken = 1
		return s
	}
	h := &a.found[newest].Header
	var err error
	if s.code, err = a.code(h, nil); err == nil {
		s.lay(a)
		empty := a.empty(s)
		for _, column := range empty {
			s.units[column] = nil
			s.unseen += a.unseen(without, column)
		}
		s.code, err = a.code(h, empty)
	}
	if err != nil {
		s.broken = 1 // invariant: check has asked for the same code
		return s
	}
	s.judge(a)
	return s
}

// lay finds the block that has each unit. Parity blocks count only where they are of the same stripes, and were not replaced by those of
// a scheme of other stripes that the group had since.
func (s *state) lay(a *assembly) {
	var since block.Stamp
	for i := range a.found { // oldest first
		if stamp := a.found[i].Header.Stamp; !s.without[stamp] && a.hasOtherStripes(s, i) {
			since = stamp
		}
	}
	s.units = make([][]int, s.code.Slots())
	for slot := range s.units {
		s.units[slot] = slices.Repeat([]int{-1}, s.code.Units(slot))
	}
	for i := range a.found {
		h := &a.found[i].Header
		isReplaced := !isData(h) && h.Stamp.Compare(since) < 0
		if s.without[h.Stamp] || h.Slot >= len(s.units) || isReplaced || a.hasOtherStripes(s, i) {
			continue
		}
		for unit := h.FirstUnit; unit < h.FirstUnit+h.Units; unit++ {
			s.units[h.Slot][unit] = i
		}
	}
}

// hasOtherStripes reports whether a block is of parities under a scheme of other stripes than a state, or of a column that a group of that
// state does not have.
func (a *assembly) hasOtherStripes(s *state, i int) bool {
	h := &a.found[i].Header
	if isData(h) {
		return h.Slot >= s.code.Columns()
	}
	code, err := a.code(h, nil) // which check has asked for
	return err != nil || h.Columns != s.code.Columns() || !code.SameStripes(s.code)
}

func (s *state) judge(a *assembly) {
	prints := s.code.Unknown()
	for slot, units := range s.units {
		for unit, i := range units {
			if i >= 0 {
				h := &a.found[i].Header
				prints[slot][unit] = parity.Unit{Known: true, Print: h.Fingerprints[unit-h.FirstUnit]}
			}
		}
	}
	slots := map[int]bool{}
	for _, judged := range s.code.Judge(prints) {
		s.bad += len(judged.Unknown) + len(judged.Wrong)
		for _, place := range append(slices.Clone(judged.Unknown), judged.Wrong...) {
			slots[place.Slot] = true
		}
		s.wrong = append(s.wrong, judged.Wrong...)
		if len(judged.Unknown) > s.code.Scheme().M || judged.Broken && len(judged.Wrong) == 0 {
			s.broken++
		}
		if !judged.Broken || len(s.suspect) > 0 {
			continue
		}
		for _, place := range s.code.Members(judged.Index) {
			if i := s.units[place.Slot][place.Unit]; i >= 0 {
				s.suspect[a.found[i].Header.Stamp] = true
			}
		}
	}
	s.slots = len(slots)
	for slot := range s.code.Columns() { // without parities no equation speaks of a cell
		if s.code.Scheme().M == 0 && slices.Contains(s.units[slot], -1) {
			s.broken++
		}
	}
}

// isBetter reports whether s is the likelier one: fewer stripes that cannot be decoded, or fewer nodes that must have lost
// something, or less that they must have lost. Of equals the newer is, which leaves out less. A column that was appended, and of which
// nothing is there, is missing with its attempt and without: else whoever lost its node would lose the append.
func (a *assembly) isBetter(s, other *state) bool {
	switch {
	case s.broken != other.broken:
		return s.broken < other.broken
	case s.slots+s.unseen != other.slots+other.unseen:
		return s.slots+s.unseen < other.slots+other.unseen
	case s.code == nil || other.code == nil || s.code.Scheme() != other.code.Scheme() || !s.code.SameStripes(other.code):
		return false // units of different stripes do not compare
	}
	return s.bad+a.shape.rows*s.unseen < other.bad+a.shape.rows*other.unseen
}

// Bounds on how many attempts are left out at a time to make a group more whole, and on how many ways are tried.
const (
	leaveOutDepth = 5
	leaveOutTries = 4000
)

// choose begins with all attempts and leaves out, as long as that makes the group more whole, the one whose absence does so
// most, or a few together where one alone does not help. An attempt that was not committed leaves what it would have
// replaced, so without it nothing is missing; one that was committed had it deleted. It returns nil where no choice can
// be decoded.
func (a *assembly) choose() *state {
	best := a.state(map[block.Stamp]bool{})
	for best.bad > 0 || best.broken > 0 {
		next := a.improve(best)
		if next == nil {
			break
		}
		best = next
	}
	if best.broken > 0 {
		return nil
	}
	return best
}

// improve returns the best state that leaves out a few attempts more, if it is better; nil otherwise. The first that is
// better need not be right: leaving out a commit may leave so little that nothing contradicts what does not belong.
func (a *assembly) improve(best *state) *state {
	level, tries := []*state{best}, 0
	tried := map[string]bool{}
	next := best
	for depth := 0; depth < leaveOutDepth && len(level) > 0; depth++ {
		var deeper []*state
		for _, from := range level {
			for _, stamp := range a.candidates(from) {
				without := maps.Clone(from.without)
				without[stamp] = true
				name := nameOf(without)
				if tried[name] || tries == leaveOutTries {
					continue
				}
				tried[name] = true
				tries++
				s := a.state(without)
				if a.isBetter(s, next) {
					next = s
				}
				deeper = append(deeper, s)
			}
		}
		if next.bad == 0 && next.broken == 0 {
			break
		}
		level = deeper
	}
	if next == best {
		return nil
	}
	return next
}

// nameOf makes a key of a set of attempts.
func nameOf(set map[block.Stamp]bool) string {
	stamps := slices.SortedFunc(maps.Keys(set), block.Stamp.Compare)
	return fmt.Sprint(stamps)
}

// candidates are the attempts that may be to blame for what is not right in a state, newest first. Under a scheme of
// other stripes the newest attempt may be, whatever it has, and so may be who wrote parities of other stripes before it; and whoever put
// something into a column that is not there, which leaves nothing to contradict it by.
func (a *assembly) candidates(s *state) []block.Stamp {
	claims := map[block.Stamp]bool{}
	for slot := range len(s.units) {
		if units := s.units[slot]; len(units) > 0 && units[0] < 0 {
			if first, found := a.claimant(slot, s.without); found {
				claims[first] = true
			}
		}
	}
	var stamps []block.Stamp
	newest := s.newest(a.found)
	for i := len(a.found) - 1; i >= 0; i-- {
		stamp := a.found[i].Header.Stamp
		if s.without[stamp] || slices.Contains(stamps, stamp) {
			continue
		}
		if s.suspect[stamp] || claims[stamp] || i == newest || s.code != nil && a.hasOtherStripes(s, i) {
			stamps = append(stamps, stamp)
		}
	}
	return stamps
}

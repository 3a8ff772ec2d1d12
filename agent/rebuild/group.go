package rebuild

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/parity"
	"github.com/restripe/restripe/agent/stripe"
)

// Found is a block as a store has it.
type Found struct {
	Header      block.Header // with its manifest
	Incarnation block.Incarnation
}

// Group is a group as its blocks tell it.
type Group struct {
	Record   catalog.Group
	Entries  []block.ManifestEntry    // of the objects in it, as its blocks name them
	Attempts []block.Stamp            // whose blocks it has, oldest first
	Spans    map[block.Stamp][]uint32 // of those that are updates of several groups
	Problems []Problem
	Complete bool // every byte of it can be read; otherwise Record is not filled in
	Bad      int  // slots with units that are missing or wrong
	Parities int  // how many such slots can be repaired
}

// Surroundings are what a group's blocks do not say.
type Surroundings struct {
	Members  []block.NodeID // that slots without blocks may be said to lie on, the likeliest first
	Printer  *kernel.Fingerprinter
	Excluded map[block.Stamp]bool // attempts that were not committed, by what other groups say
	Settled  int64                // Unix milliseconds: since when the group is said to be under its scheme
}

// lostIncarnation is that of blocks that are not there: no store has it, so they are repaired.
const lostIncarnation block.Incarnation = "rebuilt"

// assembly is a group being put together.
type assembly struct {
	id       block.GroupID
	around   *Surroundings
	shape    shape
	found    []Found  // oldest first
	filled   [][]bool // by index into found: the columns in which the manifest of the block has something; nil where it has none
	codes    map[coding]*parity.Equations
	problems []Problem
}

// coding is a scheme over the columns of a layout that are not empty.
type coding struct {
	ladder, mode string
	scheme       stripe.Scheme
	empty        string
}

// Assemble puts a group together from the blocks of it that were found, in any order. It is pure.
func Assemble(id block.GroupID, found []Found, around *Surroundings) Group {
	a := &assembly{id: id, around: around, codes: map[coding]*parity.Equations{}}
	if err := a.take(found); err != nil {
		a.note(ProblemIncomplete, "", "no group can be made of its %d blocks: %v", len(found), err)
		return Group{Problems: a.problems}
	}
	best := a.choose()
	if best == nil {
		a.note(ProblemIncomplete, "", "too few of its blocks are left: %s", a.census())
		return Group{Problems: a.problems}
	}
	return a.group(best)
}

func (a *assembly) note(kind string, node block.NodeID, format string, arguments ...any) {
	a.problems = append(a.problems, Problem{Kind: kind, Node: node, Group: &a.id, Text: fmt.Sprintf(format, arguments...)})
}

// take keeps the blocks that agree on what the group is.
func (a *assembly) take(found []Found) error {
	found = slices.Clone(found)
	slices.SortFunc(found, func(x, y Found) int {
		return cmp.Or(x.Header.Stamp.Compare(y.Header.Stamp), cmp.Compare(x.Header.Slot, y.Header.Slot), cmp.Compare(x.Header.Node, y.Header.Node))
	})
	votes := map[shape]int{}
	var unknown error
	for i := range found { // in order, so that equal votes always fall to the oldest
		is, err := shapeOf(&found[i].Header)
		if err != nil {
			unknown = err
			continue
		}
		votes[is]++
	}
	for i := range found {
		if is, err := shapeOf(&found[i].Header); err == nil && votes[is] > votes[a.shape] {
			a.shape = is
		}
	}
	if len(votes) == 0 {
		return unknown
	}
	for i := range found {
		h := &found[i].Header
		if a.around.Excluded[h.Stamp] {
			continue
		}
		if err := a.check(h); err != nil {
			a.note(ProblemUnreadable, h.Node, "block %s is left out: %v", h.Address(), err)
			continue
		}
		a.found = append(a.found, found[i])
	}
	if len(a.found) == 0 {
		return fmt.Errorf("none of them can be used")
	}
	a.dropCopies()
	for i := range a.found {
		entries, err := block.DecodeManifest(a.found[i].Header.Manifest)
		if err != nil || len(entries) == 0 { // what is wrong with it the entries of the chosen state say
			a.filled = append(a.filled, nil)
			continue
		}
		h := &a.found[i].Header
		filled := block.FilledColumns(entries, h.Columns-len(h.Brought), a.shape.cellBytes)
		for _, origin := range h.Brought {
			filled = append(filled, origin != block.Column{})
		}
		a.filled = append(a.filled, filled)
	}
	return nil
}

// empty are the columns that are empty in a state, and not lost. Manifests only grow, and those of parities and of the first column name
// all that was put into the group before them: a column in which they have nothing is zeros, whether it was stored or not. So one of
// which no block is found is taken for empty, and nothing else is: without a manifest all columns count as stored. What an append wrote of
// stripes that have nothing of its column, between those that have, is as it was before, and says nothing: it may be all that is left of
// one that was not committed.
func (a *assembly) empty(s *state) []int {
	filled, isNamed := make([]bool, s.code.Columns()), false
	for slot, units := range s.units {
		for unit, i := range units {
			if i < 0 {
				continue
			}
			isNamed = isNamed || a.filled[i] != nil
			if slot < len(filled) {
				filled[slot] = true
			}
			for column := range min(len(filled), len(a.filled[i])) {
				filled[column] = filled[column] || a.filled[i][column] && !a.isGap(s, i, unit, column)
			}
		}
	}
	var empty []int
	for column := range filled {
		if isNamed && !filled[column] {
			empty = append(empty, column)
		}
	}
	return empty
}

// isGap reports whether a unit of a parity block is of a stripe that has nothing of a column, and another one is of a stripe that has.
func (a *assembly) isGap(s *state, i, unit, column int) bool {
	h := &a.found[i].Header
	has := func(unit int) bool {
		return slices.ContainsFunc(s.code.Members(unit), func(place parity.Place) bool { return place.Slot == column })
	}
	if isData(h) || h.Stamp == a.id.Stamp || has(unit) {
		return false
	}
	for other := h.FirstUnit; other < h.FirstUnit+h.Units; other++ {
		if has(other) {
			return true
		}
	}
	return false
}

// unseen is 1 where attempts that are left out put something into a column of which no block was found, and may have been committed:
// each parity row has a block that names what is in the column, or none that was written before.
func (a *assembly) unseen(without map[block.Stamp]bool, column int) int {
	first, isNamed := a.claimant(column, nil)
	if !isNamed || !without[first] {
		return 0
	}
	names, older := map[int]bool{}, map[int]bool{}
	for i := range a.found {
		h := &a.found[i].Header
		switch {
		case isData(h) && h.Slot == column:
			return 0
		case isData(h):
		case a.names(i, column):
			names[h.Slot-h.Columns] = true
		case a.filled[i] != nil && !without[h.Stamp] && first.Compare(h.Stamp) < 0:
			return 0 // who came later knew nothing of it
		case h.Stamp.Compare(first) < 0:
			older[h.Slot-h.Columns] = true
		}
	}
	for row := range older {
		if !names[row] {
			return 0
		}
	}
	return 1
}

// names reports whether the manifest of a block has something in a column.
func (a *assembly) names(i, column int) bool { return column < len(a.filled[i]) && a.filled[i][column] }

// claimant is the first attempt whose blocks name something in a column, of those that are not left out.
func (a *assembly) claimant(column int, without map[block.Stamp]bool) (stamp block.Stamp, found bool) {
	for i := range a.found { // oldest first
		if !without[a.found[i].Header.Stamp] && a.names(i, column) {
			return a.found[i].Header.Stamp, true
		}
	}
	return block.Stamp{}, false
}

// dropCopies keeps one of several copies of a block: an attempt whose node did not answer wrote to another one, and the
// first may have it all the same. A node that has no other slot of the group goes before one that has.
func (a *assembly) dropCopies() {
	slots := map[block.NodeID]map[int]bool{}
	for i := range a.found {
		h := &a.found[i].Header
		if slots[h.Node] == nil {
			slots[h.Node] = map[int]bool{}
		}
		slots[h.Node][h.Slot] = true
	}
	var kept []Found
	for _, one := range a.found {
		last := len(kept) - 1
		if last < 0 || kept[last].Header.Stamp != one.Header.Stamp || kept[last].Header.Slot != one.Header.Slot {
			kept = append(kept, one)
		} else if len(slots[one.Header.Node]) < len(slots[kept[last].Header.Node]) {
			kept[last] = one
		}
	}
	a.found = kept
}

// shape is what all blocks of a group agree on: its class and its ladder may have changed, and it may have got further columns, but where
// its data is has not.
type shape struct{ version, rows, cellBytes int }

func shapeOf(h *block.Header) (shape, error) {
	layout, err := layoutOf(h)
	if err != nil {
		return shape{}, err
	}
	return shape{h.LayoutVersion, layout.Rows, h.UnitBytes}, nil
}

// isData reports whether a block is of a data column, of which a group may have got further ones since.
func isData(h *block.Header) bool { return h.Slot < h.Columns }

// layoutOf is the layout by which a block was written.
func layoutOf(h *block.Header) (*stripe.Layout, error) {
	return stripe.ParseLayout(h.LayoutVersion, h.Ladder, h.Mode, h.Columns)
}

// check says why a block cannot be of the group.
func (a *assembly) check(h *block.Header) error {
	is, err := shapeOf(h)
	if err != nil {
		return err
	}
	if is != a.shape {
		return fmt.Errorf("it says the group is %+v, most say %+v", is, a.shape)
	}
	code, err := a.code(h, nil)
	if err != nil {
		return err
	}
	if h.Slot >= code.Slots() || h.FirstUnit+h.Units > code.Units(h.Slot) {
		return fmt.Errorf("it has units %d+%d of slot %d, which %s does not have", h.FirstUnit, h.Units, h.Slot, h.Scheme)
	}
	return nil
}

// code returns the equations under the scheme a block was written for, where some columns are empty.
func (a *assembly) code(h *block.Header, empty []int) (*parity.Equations, error) {
	scheme, err := stripe.ParseScheme(h.Scheme)
	if err != nil {
		return nil, err
	}
	name := coding{h.Ladder, h.Mode, scheme, fmt.Sprint(empty)}
	if code := a.codes[name]; code != nil {
		return code, nil
	}
	layout, err := layoutOf(h)
	if err != nil {
		return nil, err
	}
	if !layout.Ladder.Contains(scheme) {
		return nil, fmt.Errorf("its scheme %s is not on the ladder %s", scheme, layout.Ladder)
	}
	code, err := parity.New(layout.Without(empty), scheme)
	if err != nil {
		return nil, err
	}
	a.codes[name] = code
	return code, nil
}

// census says in words what there is.
func (a *assembly) census() string {
	slots := map[int]bool{}
	attempts := map[block.Stamp]bool{}
	for i := range a.found {
		slots[a.found[i].Header.Slot], attempts[a.found[i].Header.Stamp] = true, true
	}
	return fmt.Sprintf("%d blocks of %d slots and %d attempts, of %d columns",
		len(a.found), len(slots), len(attempts), a.found[len(a.found)-1].Header.Columns)
}

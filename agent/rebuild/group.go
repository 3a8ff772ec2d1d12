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
	layout   *stripe.Layout
	found    []Found // oldest first
	codes    map[stripe.Scheme]*parity.Equations
	problems []Problem
}

// Assemble puts a group together from the blocks of it that were found, in any order. It is pure.
func Assemble(id block.GroupID, found []Found, around *Surroundings) Group {
	a := &assembly{id: id, around: around, codes: map[stripe.Scheme]*parity.Equations{}}
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
	for i := range found {
		votes[shapeOf(&found[i].Header)]++
	}
	var chosen shape
	for i := range found { // in order, so that equal votes always fall to the oldest
		if s := shapeOf(&found[i].Header); votes[s] > votes[chosen] {
			chosen = s
		}
	}
	var err error
	if a.layout, err = stripe.ParseLayout(chosen.version, chosen.ladder, chosen.mode, chosen.columns); err != nil {
		return err
	}
	for i := range found {
		h := &found[i].Header
		if a.around.Excluded[h.Stamp] {
			continue
		}
		if err := a.check(h, chosen); err != nil {
			a.note(ProblemUnreadable, h.Node, "block %s is left out: %v", h.Address(), err)
			continue
		}
		a.found = append(a.found, found[i])
	}
	if len(a.found) == 0 {
		return fmt.Errorf("none of them can be used")
	}
	a.dropCopies()
	a.leaveEmpty(chosen.cellBytes)
	return nil
}

// leaveEmpty tells columns that are empty from columns that were lost. Manifests only grow, and those of parities and of the first column
// name all that was ever put into the group: a column in which they have nothing is zeros, whether it was stored or not. So one of
// which no block is found is taken for empty, and nothing else is: without a manifest all columns count as stored.
func (a *assembly) leaveEmpty(cellBytes int) {
	var entries []block.ManifestEntry
	stored := map[int]bool{}
	for i := range a.found {
		h := &a.found[i].Header
		stored[h.Slot] = true
		if list, err := block.DecodeManifest(h.Manifest); err == nil { // else the entries of the chosen state say so
			entries = append(entries, list...)
		}
	}
	if len(entries) == 0 {
		return
	}
	var empty []int
	for column, filled := range block.FilledColumns(entries, a.layout.Columns, cellBytes) {
		if !filled && !stored[column] {
			empty = append(empty, column)
		}
	}
	a.layout, a.codes = a.layout.Without(empty), map[stripe.Scheme]*parity.Equations{}
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

// shape is what all blocks of a group agree on.
type shape struct {
	class, ladder, mode         string
	version, columns, cellBytes int
}

func shapeOf(h *block.Header) shape {
	return shape{h.Class, h.Ladder, h.Mode, h.LayoutVersion, h.Columns, h.UnitBytes}
}

// check says why a block cannot be of the group.
func (a *assembly) check(h *block.Header, chosen shape) error {
	if is := shapeOf(h); is != chosen {
		return fmt.Errorf("it says the group is %+v, most say %+v", is, chosen)
	}
	code, err := a.code(h)
	if err != nil {
		return err
	}
	if h.Slot >= code.Slots() || h.FirstUnit+h.Units > code.Units(h.Slot) {
		return fmt.Errorf("it has units %d+%d of slot %d, which %s does not have", h.FirstUnit, h.Units, h.Slot, h.Scheme)
	}
	return nil
}

// code returns the equations under the scheme a block was written for.
func (a *assembly) code(h *block.Header) (*parity.Equations, error) {
	scheme, err := stripe.ParseScheme(h.Scheme)
	if err != nil {
		return nil, err
	}
	if code := a.codes[scheme]; code != nil {
		return code, nil
	}
	if !a.layout.Ladder.Contains(scheme) {
		return nil, fmt.Errorf("its scheme %s is not on the ladder %s", scheme, a.layout.Ladder)
	}
	code, err := parity.New(a.layout, scheme)
	if err != nil {
		return nil, err
	}
	a.codes[scheme] = code
	return code, nil
}

// census says in words what there is.
func (a *assembly) census() string {
	slots := map[int]bool{}
	attempts := map[block.Stamp]bool{}
	for i := range a.found {
		slots[a.found[i].Header.Slot], attempts[a.found[i].Header.Stamp] = true, true
	}
	return fmt.Sprintf("%d blocks of %d slots and %d attempts, of %d columns", len(a.found), len(slots), len(attempts), a.layout.Columns)
}

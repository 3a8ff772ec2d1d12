package rebuild

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/parity"
	"github.com/restripe/restripe/agent/stripe"
)

// history is a group as it was written, attempt by attempt, with what is left of its blocks.
type history struct {
	moment
	t       *rapid.T
	source  *rand.Rand
	scheme  stripe.Scheme
	live    map[int][]block.Header // by slot: blocks that the record names, oldest first
	there   []block.Header         // blocks in the stores that it does not name
	next    uint64
	id      block.GroupID
	removed map[int]bool // slots on nodes that are gone
	sealed  bool         // an append failed: nobody appends any more
	packed  bool         // an object lies in each column, and not one over all of them
}

// moment is what is in the group.
type moment struct {
	layout *stripe.Layout
	cells  []block.Fingerprint
	filled []bool // columns into which something was put; the others are zeros
}

func newHistory(t *rapid.T, ladder string, removed int) *history {
	parsed, err := stripe.ParseLadder(ladder)
	if err != nil {
		t.Fatal(err)
	}
	layout, err := stripe.NewLayout(parsed, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	h := &history{
		moment: moment{layout: layout}, t: t, source: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2)), scheme: rapid.SampledFrom([]stripe.Scheme(parsed)).Draw(t, "scheme at first"),
		live: map[int][]block.Header{}, next: 5, removed: map[int]bool{},
	}
	for _, slot := range h.source.Perm(layout.Columns + parsed.MaxParity())[:removed] {
		h.removed[slot] = true
	}
	h.id = block.GroupID{Stamp: h.stamp()}
	h.fill()
	for cell := range layout.Cells() {
		h.cells = append(h.cells, block.Fingerprint{})
		if h.filled[cell%layout.Columns] {
			h.cells[cell] = h.chance()
		}
	}
	code := h.code(h.scheme)
	for slot := range code.Slots() {
		if h.layout.IsEmpty(slot) {
			continue
		}
		h.live[slot] = []block.Header{h.block(code, h.id.Stamp, slot, 0, code.Units(slot))}
	}
	return h
}

// fill draws into which columns something is put, the first at least, and which of the others are stored all the same, as the release
// before did.
func (h *history) fill() {
	h.filled = slices.Repeat([]bool{true}, h.layout.Columns)
	if rapid.Bool().Draw(h.t, "all columns are filled") {
		return
	}
	h.packed = true
	inFull := rapid.Bool().Draw(h.t, "zeros are stored")
	var empty []int
	for column := 1; column < h.layout.Columns; column++ {
		if h.filled[column] = h.source.IntN(2) == 0; !h.filled[column] && !inFull {
			empty = append(empty, column)
		}
	}
	h.layout = h.layout.Without(empty)
}

// entries are those of the manifest of a block: of an object in each column, or of one over all of them.
func (h *history) entries(stamp block.Stamp) (entries []block.ManifestEntry) {
	if !h.packed {
		size := 64 * int64(h.layout.Cells())
		return []block.ManifestEntry{{Key: []byte("k"), Revision: stamp, Size: size, Column: catalog.WholeGroup, Length: size}}
	}
	for column, filled := range h.filled {
		if filled {
			entries = append(entries, block.ManifestEntry{Key: []byte{byte(column)}, Revision: stamp, Size: 64, Column: column, Length: 64})
		}
	}
	return entries
}

func (h *history) stamp() block.Stamp {
	h.next += 1 + h.source.Uint64N(3)
	return block.Stamp{Sequence: h.next, Salt: h.source.Uint64()}
}

func (h *history) chance() (print block.Fingerprint) {
	for i := range print {
		print[i] = byte(h.source.Uint32())
	}
	return print
}

func (h *history) code(scheme stripe.Scheme) *parity.Equations {
	code, err := parity.New(h.layout, scheme)
	if err != nil {
		h.t.Fatal(err)
	}
	return code
}

// print is the fingerprint of a unit by the cells as they are.
func (h *history) print(code *parity.Equations, slot, unit int) block.Fingerprint {
	if slot < h.layout.Columns {
		return h.cells[unit*h.layout.Columns+slot]
	}
	var coefficients []byte
	var prints []block.Fingerprint
	for _, place := range code.Members(unit) {
		if place.Slot < h.layout.Columns {
			coefficients = append(coefficients, stripe.Coefficient(slot-h.layout.Columns, place.Slot))
			prints = append(prints, h.cells[place.Unit*h.layout.Columns+place.Slot])
		}
	}
	return kernel.Combine(coefficients, prints)
}

// block is what an attempt writes of units of a slot, by the cells as they are.
func (h *history) block(code *parity.Equations, stamp block.Stamp, slot, first, units int) block.Header {
	header := block.Header{
		Group: h.id, Slot: slot, Stamp: stamp, Node: block.NodeID(fmt.Sprintf("n%d", slot)), Class: "c", Ladder: h.layout.Ladder.String(), Mode: string(h.layout.Mode),
		LayoutVersion: h.layout.Version, Columns: h.layout.Columns, Scheme: code.Scheme().String(), FirstUnit: first, Units: units, UnitBytes: 64,
	}
	for unit := first; unit < first+units; unit++ {
		header.Fingerprints = append(header.Fingerprints, h.print(code, slot, unit))
		header.Checksums = append(header.Checksums, h.source.Uint32())
	}
	if slot >= h.layout.Columns || code.Scheme().M == 0 && slot == 0 {
		manifest, err := block.EncodeManifest(h.entries(stamp))
		if err != nil {
			h.t.Fatal(err)
		}
		header.Manifest = manifest
	}
	return header
}

// attempt makes the blocks of one attempt, and what commits it.
func (h *history) attempt(stage func() ([]block.Header, stripe.Scheme)) (staged []block.Header, commit func()) {
	was, sealed := h.moment, h.sealed
	h.moment = moment{was.layout, slices.Clone(was.cells), slices.Clone(was.filled)}
	staged, scheme := stage()
	becomes := h.moment
	h.moment = was
	return staged, func() {
		h.commit(staged, scheme, scheme.K == h.scheme.K && was.layout.SameStripes(becomes.layout, scheme.K))
		h.moment, h.sealed = becomes, sealed || becomes.layout.Whole() != was.layout.Whole() // by whoever changes its ladder
	}
}

// laterLadders are those that classes may get when there are groups already.
var laterLadders = []stripe.Ladder{
	{stripe.RS(2, 2), stripe.Replicas(3), stripe.RS(2, 3)}, {stripe.RS(4, 3), stripe.RS(3, 2)},
	{stripe.RS(5, 2), stripe.RS(6, 3), stripe.Replicas(4)},
}

// stage makes the blocks of an attempt of chance, and leaves what they are made of as it will be.
func (h *history) stage() (staged []block.Header, scheme stripe.Scheme) {
	kinds := []string{"update", "update", "append", "append", "transition", "ladder", "repair"}
	switch code := h.code(h.scheme); rapid.SampledFrom(kinds).Draw(h.t, "kind") {
	case "append":
		column := slices.IndexFunc(h.filled, func(filled bool) bool { return !filled })
		if column < 0 || !h.layout.IsEmpty(column) || h.scheme.M == 0 || h.sealed {
			return nil, h.scheme
		}
		stamp := h.stamp()
		h.sealed = true // unless it is committed
		var left []int
		for other := range h.layout.Columns {
			if other != column && h.layout.IsEmpty(other) {
				left = append(left, other)
			}
		}
		h.layout, h.filled[column] = h.layout.Whole().Without(left), true
		code = h.code(h.scheme)
		for row := range h.layout.Rows {
			h.cells[row*h.layout.Columns+column] = h.chance()
		}
		for p := range h.scheme.M { // first, so that one is missing where it is given up: nobody can tell then, if only the column is
			first, last := code.Stripes(), 0
			for s := range code.Stripes() {
				if slices.ContainsFunc(code.Members(s), func(place parity.Place) bool { return place.Slot == column }) {
					first, last = min(first, s), max(last, s)
				}
			}
			staged = append(staged, h.block(code, stamp, h.layout.Columns+p, first, last-first+1))
		}
		return append(staged, h.block(code, stamp, column, 0, h.layout.Rows)), h.scheme
	case "update":
		return h.update()
	case "ladder":
		ladder := rapid.SampledFrom(laterLadders).Draw(h.t, "another ladder")
		to := ladder[h.source.IntN(len(ladder))]
		layout, err := h.layout.WithLadder(ladder, "", to)
		// With fewer parities, one of which was left by an attempt that was given up, and another one lost, either state lacks one node.
		if err != nil || to.K == h.scheme.K && layout.SameStripes(h.layout, to.K) || to.M != h.scheme.M {
			return h.update()
		}
		h.layout = layout
		return h.transition(to)
	case "transition":
		to := h.layout.Ladder[h.source.IntN(len(h.layout.Ladder))]
		if to.K != h.scheme.K && to.M == h.scheme.M {
			return h.transition(to)
		}
		fallthrough
	default:
		slot := h.source.IntN(code.Slots())
		for h.layout.IsEmpty(slot) {
			slot = h.source.IntN(code.Slots())
		}
		return []block.Header{h.block(code, h.stamp(), slot, 0, code.Units(slot))}, h.scheme
	}
}

// update stages other bytes of a cell.
func (h *history) update() (staged []block.Header, scheme stripe.Scheme) {
	code, stamp := h.code(h.scheme), h.stamp()
	cell := h.source.IntN(len(h.cells))
	for !h.filled[cell%h.layout.Columns] {
		cell = h.source.IntN(len(h.cells))
	}
	h.cells[cell] = h.chance()
	slot, unit := cell%h.layout.Columns, cell/h.layout.Columns
	staged = append(staged, h.block(code, stamp, slot, unit, 1))
	for s := range code.Stripes() {
		if slices.Contains(code.Members(s), parity.Place{Slot: slot, Unit: unit}) {
			for p := range h.scheme.M {
				staged = append(staged, h.block(code, stamp, h.layout.Columns+p, s, 1))
			}
		}
	}
	return staged, h.scheme
}

// transition stages the parities of another scheme.
func (h *history) transition(to stripe.Scheme) (staged []block.Header, scheme stripe.Scheme) {
	code, stamp := h.code(to), h.stamp()
	for p := range to.M {
		staged = append(staged, h.block(code, stamp, h.layout.Columns+p, 0, code.Stripes()))
	}
	return staged, to
}

// commit makes an attempt's blocks live; those that they replace are deleted, or will be.
func (h *history) commit(staged []block.Header, scheme stripe.Scheme, keepsStripes bool) {
	if !keepsStripes {
		for slot := h.layout.Columns; slot < h.layout.Columns+stripe.MaxParity; slot++ {
			h.bury(h.live[slot])
			delete(h.live, slot)
		}
	}
	h.scheme = scheme
	for _, made := range staged {
		h.live[made.Slot] = append(h.live[made.Slot], made)
		covered := map[int]bool{}
		var named []block.Header
		for _, b := range slices.Backward(h.live[made.Slot]) {
			seen := false
			for unit := b.FirstUnit; unit < b.FirstUnit+b.Units; unit++ {
				seen = seen || !covered[unit]
				covered[unit] = true
			}
			if seen {
				named = append([]block.Header{b}, named...)
			} else {
				h.bury([]block.Header{b})
			}
		}
		h.live[made.Slot] = named
	}
}

func (h *history) bury(blocks []block.Header) {
	for _, b := range blocks {
		if h.source.IntN(2) == 0 {
			h.there = append(h.there, b)
		}
	}
}

// abort leaves some of an attempt's blocks, and not one that would be seen.
func (h *history) abort(staged []block.Header) {
	visible := slices.IndexFunc(staged, func(b block.Header) bool { return !h.removed[b.Slot] })
	for i, b := range staged {
		if visible >= 0 && i != visible && h.source.IntN(2) == 0 {
			h.there = append(h.there, b)
		}
	}
}

// found are all blocks in the stores, in an order of chance.
func (h *history) found() []Found {
	var found []Found
	all := slices.Clone(h.there)
	for slot := range h.layout.Columns + stripe.MaxParity {
		all = append(all, h.live[slot]...)
	}
	for _, b := range all {
		if !h.removed[b.Slot] {
			found = append(found, Found{Header: b, Incarnation: "i-" + block.Incarnation(b.Node)})
		}
	}
	h.source.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	return found
}

// TestTheCommittedStateIsChosen: whatever was committed, given up on the way, deleted and not yet deleted, and with a node
// gone, the group comes back as it was last committed.
func TestTheCommittedStateIsChosen(t *testing.T) {
	printer := kernel.NewFingerprinter(kernel.Key{1})
	rapid.Check(t, func(t *rapid.T) {
		ladder := rapid.SampledFrom([]string{"rep(3),rs(3,2),rs(6,2)", "rs(4,2),rs(5,2)", "rs(3,3),rs(6,3)"}).Draw(t, "ladder")
		h := newHistory(t, ladder, rapid.IntRange(0, 1).Draw(t, "nodes gone"))
		for range rapid.IntRange(0, 8).Draw(t, "attempts") {
			staged, commit := h.attempt(h.stage)
			if rapid.IntRange(0, 3).Draw(t, "outcome") > 0 {
				commit()
			} else {
				h.abort(staged)
			}
		}
		found := h.found()
		members := []block.NodeID{"spare"}
		for slot := range h.layout.Columns + h.layout.Ladder.MaxParity() {
			members = append(members, block.NodeID(fmt.Sprintf("n%d", slot)))
		}
		g := Assemble(h.id, found, &Surroundings{Members: members, Printer: printer})
		if !g.Complete {
			t.Fatalf("the group is not complete: %+v", g.Problems)
		}
		if err := g.Record.Check(); err != nil {
			t.Fatal(err)
		}
		h.compare(g, found)
	})
}

// What a transition replaced may lie there for a while, and so may what is left of one back that was given up. Both together are no state
// of the group, however well they fit.
func TestParitiesFromBeforeATransition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t, "rs(4,2),rs(5,2)", 0)
		from, to := h.layout.Ladder[0], h.layout.Ladder[1]
		if h.scheme == to {
			from, to = to, from
		}
		committed := func(stage func() ([]block.Header, stripe.Scheme)) {
			_, commit := h.attempt(stage)
			commit()
		}
		givenUp := func(stage func() ([]block.Header, stripe.Scheme)) {
			staged, _ := h.attempt(stage)
			h.there = append(h.there, staged[len(staged)-1])
		}
		committed(h.update)
		committed(func() ([]block.Header, stripe.Scheme) { return h.transition(to) })
		givenUp(h.update)
		givenUp(func() ([]block.Header, stripe.Scheme) { return h.transition(from) })
		committed(h.update)
		found := h.found()
		g := Assemble(h.id, found, &Surroundings{Printer: kernel.NewFingerprinter(kernel.Key{1})})
		if !g.Complete {
			t.Fatalf("the group is not complete: %+v", g.Problems)
		}
		h.compare(g, found)
	})
}

// empty are the columns of which nothing is stored.
func (h *history) empty() (columns []int) {
	for column := range h.layout.Columns {
		if h.layout.IsEmpty(column) {
			columns = append(columns, column)
		}
	}
	return columns
}

// compare sees that every unit comes from a block with the bytes as they were last committed.
func (h *history) compare(g Group, found []Found) {
	scheme, err := stripe.ParseScheme(g.Record.Scheme)
	if err != nil {
		h.t.Fatal(err)
	}
	// Another ladder or scheme only where all its parities happen to be there and right.
	layout, err := stripe.ParseLayout(g.Record.LayoutVersion, g.Record.Ladder, g.Record.Mode, g.Record.Columns)
	if err != nil {
		h.t.Fatal(err)
	}
	code, err := parity.New(layout.Without(h.empty()), scheme)
	if err != nil {
		h.t.Fatal(err)
	}
	blocks := map[block.Address]*block.Header{}
	for i := range found {
		blocks[found[i].Header.Address()] = &found[i].Header
	}
	for slot, items := range g.Record.Slots {
		if isFilled := slot >= h.layout.Columns || h.filled[slot]; isFilled && len(items) == 0 {
			h.t.Fatalf("slot %d is said to be empty; %+v", slot, g.Problems)
		} else if h.layout.IsEmpty(slot) && len(items) > 0 {
			h.t.Fatalf("column %d is empty, and is said to have %+v", slot, items)
		}
		for _, item := range items {
			if item.Incarnation == lostIncarnation {
				if !h.removed[slot] {
					h.t.Fatalf("slot %d is said to be missing; %+v", slot, g.Problems)
				}
				continue
			}
			b := blocks[g.Record.Address(slot, item)]
			for unit := item.First; unit < item.First+item.Units; unit++ {
				if b.Fingerprints[unit-b.FirstUnit] != h.print(code, slot, unit) {
					h.t.Fatalf("unit %d of slot %d is not as it was committed; %+v", unit, slot, g.Problems)
				}
			}
		}
	}
	if want := len(h.entries(h.id.Stamp)); h.scheme.M > 0 && len(g.Entries) != want {
		h.t.Fatalf("%d entries, want %d", len(g.Entries), want)
	}
}

// groupOf is a group with entries in its manifest.
func groupOf(put, index uint64, scheme string, entries ...block.ManifestEntry) Group {
	id := block.GroupID{Stamp: block.Stamp{Sequence: put}, Index: uint32(index)}
	return Group{Record: catalog.Group{ID: id, Class: "c", Scheme: scheme}, Entries: entries, Attempts: []block.Stamp{id.Stamp}, Complete: true}
}

func entry(key string, revision uint64, size, at, length int64) block.ManifestEntry {
	return block.ManifestEntry{Key: []byte(key), Revision: block.Stamp{Sequence: revision}, Size: size, At: at, Column: catalog.WholeGroup, Length: length}
}

// lacking is a group of two parities with so many slots that are not whole.
func lacking(slots int, g Group) Group {
	g.Bad, g.Parities = slots, 2
	return g
}

// packed is an entry in one column of a group that objects share.
func packed(entry block.ManifestEntry) block.ManifestEntry {
	entry.Column = 3
	return entry
}

func TestObjectsFromManifests(t *testing.T) {
	for name, test := range map[string]struct {
		groups   []Group
		revision uint64 // of k; 0: it does not come back
		size     int64
		problems []string
	}{
		"one group": {[]Group{groupOf(5, 0, "s", entry("k", 5, 10, 0, 10))}, 5, 10, nil},
		"several groups in any order": {[]Group{groupOf(5, 1, "s", entry("k", 9, 25, 10, 10)), groupOf(5, 2, "s", entry("k", 5, 25, 20, 5)), groupOf(5, 0, "s", entry("k", 5, 25, 0, 10))},
			9, 25, nil},
		"size known at the end":                {[]Group{groupOf(5, 0, "s", entry("k", 5, 0, 0, 10)), groupOf(5, 1, "s", entry("k", 5, 14, 10, 4))}, 5, 14, nil},
		"end missing":                          {[]Group{groupOf(5, 0, "s", entry("k", 5, 0, 0, 10))}, 0, 0, []string{ProblemLost}},
		"part missing":                         {[]Group{groupOf(5, 1, "s", entry("k", 5, 20, 10, 10))}, 0, 0, []string{ProblemLost}},
		"newest of two":                        {[]Group{groupOf(8, 0, "s", entry("k", 8, 3, 0, 3)), groupOf(5, 0, "s", entry("k", 5, 10, 0, 10))}, 8, 3, []string{ProblemVersions}},
		"older complete":                       {[]Group{groupOf(8, 0, "s", entry("k", 8, 30, 0, 3)), groupOf(5, 0, "s", entry("k", 5, 10, 0, 10))}, 5, 10, []string{ProblemPartial}},
		"rest of an older one":                 {[]Group{groupOf(8, 0, "s", entry("k", 8, 3, 0, 3)), groupOf(5, 1, "s", entry("k", 5, 20, 10, 10))}, 8, 3, nil},
		"moved":                                {[]Group{groupOf(5, 0, "s", entry("k", 5, 3, 0, 3)), groupOf(7, 0, "t", entry("k", 5, 3, 0, 3))}, 5, 3, nil},
		"newest with blocks missing":           {[]Group{lacking(1, groupOf(8, 0, "s", entry("k", 8, 3, 0, 3))), groupOf(5, 0, "s", entry("k", 5, 10, 0, 10))}, 5, 10, []string{ProblemPartial}},
		"both with blocks missing":             {[]Group{lacking(1, groupOf(8, 0, "s", entry("k", 8, 3, 0, 3))), lacking(1, groupOf(5, 0, "s", entry("k", 5, 10, 0, 10)))}, 8, 3, []string{ProblemVersions}},
		"missing, and the older one is packed": {[]Group{lacking(1, groupOf(8, 0, "s", entry("k", 8, 3, 0, 3))), groupOf(5, 0, "s", packed(entry("k", 5, 10, 0, 10)))}, 8, 3, []string{ProblemVersions}},
		"more missing than can be repaired":    {[]Group{lacking(3, groupOf(8, 0, "s", entry("k", 8, 3, 0, 3))), groupOf(5, 0, "s", packed(entry("k", 5, 10, 0, 10)))}, 5, 10, []string{ProblemPartial}},
		"missing, over a packed one, and a dead one": {[]Group{lacking(1, groupOf(8, 0, "s", entry("k", 8, 3, 0, 3))), groupOf(6, 0, "s", packed(entry("k", 6, 4, 0, 4))), groupOf(5, 0, "s", entry("k", 5, 10, 0, 10))},
			8, 3, []string{ProblemVersions, ProblemVersions}},
		"more missing, over a packed one, and a dead one": {[]Group{lacking(3, groupOf(8, 0, "s", entry("k", 8, 3, 0, 3))), groupOf(6, 0, "s", packed(entry("k", 6, 4, 0, 4))), groupOf(5, 0, "s", entry("k", 5, 10, 0, 10))},
			6, 4, []string{ProblemPartial, ProblemVersions}},
		"two that were not committed": {[]Group{lacking(1, groupOf(8, 0, "s", entry("k", 8, 3, 0, 3))), lacking(2, groupOf(7, 0, "s", entry("k", 7, 4, 0, 4))), groupOf(5, 0, "s", entry("k", 5, 10, 0, 10))},
			5, 10, []string{ProblemPartial, ProblemPartial}},
		"more missing, over one that lacks less, and a packed one": {[]Group{lacking(3, groupOf(8, 0, "s", entry("k", 8, 3, 0, 3))), lacking(1, groupOf(7, 0, "s", entry("k", 7, 4, 0, 4))), groupOf(6, 0, "s", packed(entry("k", 6, 5, 0, 5)))},
			7, 4, []string{ProblemPartial, ProblemVersions}},
		"more missing, over one that lacks less": {[]Group{lacking(3, groupOf(8, 0, "s", entry("k", 8, 3, 0, 3))), lacking(1, groupOf(7, 0, "s", entry("k", 7, 4, 0, 4)))},
			7, 4, []string{ProblemPartial}},
		"so much missing, and nothing else": {[]Group{lacking(3, groupOf(8, 0, "s", entry("k", 8, 3, 0, 3)))}, 8, 3, nil},
		"two objects in one":                {[]Group{groupOf(5, 0, "s", entry("j", 5, 3, 0, 3), entry("k", 5, 4, 0, 4))}, 5, 4, nil},
	} {
		objects, problems := Objects(test.groups, 77)
		var kinds []string
		for _, problem := range problems {
			kinds = append(kinds, problem.Kind)
		}
		i := slices.IndexFunc(objects, func(o catalog.Object) bool { return o.Key == "k" })
		if !slices.Equal(kinds, test.problems) || (i >= 0) != (test.revision > 0) {
			t.Errorf("%s: %+v, %+v", name, objects, problems)
			continue
		}
		if i >= 0 && (objects[i].Revision.Sequence != test.revision || objects[i].Size != test.size || objects[i].Modified != 77) {
			t.Errorf("%s: %+v", name, objects[i])
		}
	}
	objects, _ := Objects([]Group{groupOf(5, 0, "s", entry("k", 5, 3, 0, 3)), groupOf(7, 0, "t", entry("k", 5, 3, 0, 3))}, 0)
	if objects[0].Scheme != "t" || objects[0].Extents[0].Group.Stamp.Sequence != 7 {
		t.Errorf("a moved object comes from where it was: %+v", objects[0])
	}
}

// TestTornUpdates: an update of two groups counts only where both have it, or went on since.
func TestTornUpdates(t *testing.T) {
	stamp := func(sequence uint64) block.Stamp { return block.Stamp{Sequence: sequence} }
	changed := func(index uint64, spans bool, attempts ...uint64) Group {
		g := groupOf(5, index, "s")
		g.Spans = map[block.Stamp][]uint32{}
		for _, sequence := range attempts {
			g.Attempts = append(g.Attempts, stamp(sequence))
		}
		if spans {
			g.Spans[stamp(10)] = []uint32{0, 1}
		}
		return g
	}
	for name, test := range map[string]struct {
		groups []Group
		torn   bool
	}{
		"both have it":           {[]Group{changed(0, true, 10), changed(1, true, 10)}, false},
		"one does not":           {[]Group{changed(0, true, 10), changed(1, false, 7)}, true},
		"one went on":            {[]Group{changed(0, true, 10), changed(1, false, 12)}, false},
		"one is not there":       {[]Group{changed(0, true, 10)}, false},
		"both have it, one more": {[]Group{changed(0, true, 10, 11), changed(1, true, 10)}, false},
	} {
		if torn := Torn(test.groups); torn[stamp(10)] != test.torn || len(torn) > 1 {
			t.Errorf("%s: %v", name, torn)
		}
	}
}

package rebuild

import (
	"fmt"
	"slices"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
)

// group turns the chosen state into a record.
func (a *assembly) group(s *state) Group {
	newest := &a.found[s.newest(a.found)].Header // which has the class and the ladder that the group came under last
	g := Group{Spans: map[block.Stamp][]uint32{}, Complete: true, Bad: s.slots, Parities: s.code.Scheme().M}
	for i := range a.found {
		h := &a.found[i].Header
		if s.without[h.Stamp] || slices.Contains(g.Attempts, h.Stamp) {
			continue
		}
		g.Attempts = append(g.Attempts, h.Stamp)
		if len(h.Span) > 0 {
			g.Spans[h.Stamp] = h.Span
		}
	}
	last := g.Attempts[len(g.Attempts)-1]
	g.Record = catalog.Group{
		ID: a.id, Generation: last, Epoch: last, Class: newest.Class, Ladder: newest.Ladder, Mode: newest.Mode, LayoutVersion: newest.LayoutVersion,
		Columns: newest.Columns, Scheme: s.code.Scheme().String(), CellBytes: newest.UnitBytes, Settled: a.around.Settled,
		Brought: newest.Brought,
	}
	a.lay(&g.Record, s)
	a.noteAttempts(s)
	g.Entries = a.entries(s)
	g.Record.Packed = slices.ContainsFunc(g.Entries, func(entry block.ManifestEntry) bool { return entry.Column != catalog.WholeGroup })
	if len(g.Entries) == 0 {
		a.note(ProblemUnnamed, "", "its bytes are there, and no manifest names the objects they are of")
	}
	g.Problems = a.problems
	return g
}

// lay fills in the slots, with blocks that are not there where there are none, and the homes of all slots of the ladder.
func (a *assembly) lay(record *catalog.Group, s *state) {
	record.Slots = make([]catalog.Slot, len(s.units))
	record.Home = make([]block.NodeID, s.code.Columns()+s.code.MaxParity())
	taken := map[block.NodeID]bool{}
	for slot, units := range s.units {
		for _, i := range units {
			if i >= 0 {
				record.Home[slot] = a.found[i].Header.Node
				taken[record.Home[slot]] = true
			}
		}
	}
	for slot := range record.Home {
		if record.Home[slot] != "" {
			continue
		}
		for _, member := range a.around.Members {
			if !taken[member] {
				record.Home[slot], taken[member] = member, true
				break
			}
		}
	}
	for slot, units := range s.units {
		missing := 0
		for unit := 0; unit < len(units); {
			end := unit + 1
			for end < len(units) && units[end] == units[unit] {
				end++
			}
			record.Slots[slot] = append(record.Slots[slot], a.item(record, slot, units[unit], unit, end-unit))
			if units[unit] < 0 {
				missing += end - unit
			}
			unit = end
		}
		if missing > 0 {
			a.note(ProblemMissing, record.Home[slot], "%d of %d units of slot %d are not in any store; a repair rebuilds them", missing, len(units), slot)
		}
	}
	if s.slots > s.code.Scheme().M {
		a.note(ProblemMissing, "", "%d slots are not whole, more than can be repaired, though all bytes can be read: put its objects anew", s.slots)
	}
	for _, place := range s.wrong {
		h := &a.found[s.units[place.Slot][place.Unit]].Header
		a.note(ProblemWrong, h.Node, "unit %d of block %s contradicts the other blocks of its stripe; a scrub rebuilds it", place.Unit, h.Address())
	}
}

// item is the record of a run of units of the block with an index, or of a block that is not there.
func (a *assembly) item(record *catalog.Group, slot, index, first, units int) catalog.Item {
	if index < 0 {
		node := record.Home[slot]
		if node == "" {
			node = block.NodeID(fmt.Sprintf("none-%d", slot)) // no member is free: the record needs a name all the same
		}
		never := block.Stamp{Sequence: record.Generation.Sequence, Salt: ^record.Generation.Salt} // of no attempt
		return catalog.Item{First: first, Units: units, Base: first, Stamp: never, Node: node, Incarnation: lostIncarnation}
	}
	h := &a.found[index].Header
	return catalog.Item{
		First: first, Units: units, Base: h.FirstUnit, Stamp: h.Stamp, Node: h.Node, Incarnation: a.found[index].Incarnation,
		Checksum: h.ContentChecksum(), Fingerprint: a.around.Printer.JoinUnits(h.Fingerprints, h.UnitBytes),
	}
}

// noteAttempts reports the attempts that were left out, and the newest that changed bytes if it may not have been committed:
// what it replaced is still there.
func (a *assembly) noteAttempts(s *state) {
	var out []block.Stamp
	for stamp := range s.without {
		out = append(out, stamp)
	}
	slices.SortFunc(out, block.Stamp.Compare)
	for _, stamp := range out {
		a.note(ProblemAborted, "", "the blocks of attempt %s are left out: without them the group is more whole, so it was not committed", stamp)
	}
	newest := a.found[s.newest(a.found)].Header.Stamp
	if newest == a.id.Stamp {
		return
	}
	without := map[block.Stamp]bool{newest: true}
	for stamp := range s.without {
		without[stamp] = true
	}
	if before := a.state(without); before.broken == 0 && before.slots <= s.slots && before.code.SameStripes(s.code) && !a.sameData(before, s) {
		a.note(ProblemUndecided, "",
			"attempt %s may not have been committed: the blocks it replaces are still there; it is taken for committed", newest)
	}
}

// sameData reports whether two states have the same cells.
func (a *assembly) sameData(x, y *state) bool {
	if x.code.Columns() != y.code.Columns() {
		return false
	}
	for slot := range x.code.Columns() {
		if len(x.units[slot]) != len(y.units[slot]) { // it is empty in one of them
			return false
		}
		for unit := range x.units[slot] {
			i, j := x.units[slot][unit], y.units[slot][unit]
			if i < 0 || j < 0 {
				return false
			}
			one, other := &a.found[i].Header, &a.found[j].Header
			if one.Fingerprints[unit-one.FirstUnit] != other.Fingerprints[unit-other.FirstUnit] {
				return false
			}
		}
	}
	return true
}

// entries merges the manifests of the blocks the state has.
func (a *assembly) entries(s *state) []block.ManifestEntry {
	used := map[int]bool{}
	for _, units := range s.units {
		for _, i := range units {
			used[i] = true
		}
	}
	var manifests [][]block.ManifestEntry
	for i := range a.found {
		h := &a.found[i].Header
		if !used[i] || len(h.Manifest) == 0 {
			continue
		}
		entries, err := block.DecodeManifest(h.Manifest)
		if err != nil {
			a.note(ProblemUnreadable, h.Node, "the manifest of block %s: %v", h.Address(), err)
			continue
		}
		manifests = append(manifests, entries)
	}
	if len(manifests) == 0 {
		return nil
	}
	merged := block.MergeManifests(manifests...)
	return slices.DeleteFunc(slices.Clone(merged), func(entry block.ManifestEntry) bool {
		if entry.Origin != (block.GroupID{}) {
			return false
		}
		if entry.Column >= 0 && entry.Column < len(s.units) && s.units[entry.Column] == nil {
			return true // of an append that was not committed: what it left is as it was before
		}
		newest := &a.found[s.newest(a.found)].Header
		err := a.inside(&entry, newest.Columns-len(newest.Brought))
		if err != nil {
			a.note(ProblemUnreadable, "", "an entry of the manifest is left out: %v", err)
		}
		return err != nil
	})
}

// inside says why an entry cannot be of the group, over so many columns of its own.
func (a *assembly) inside(entry *block.ManifestEntry, columns int) error {
	limit := int64(a.shape.rows) * int64(a.found[0].Header.UnitBytes)
	if entry.Column == catalog.WholeGroup {
		limit *= int64(columns)
	} else if entry.Column >= columns {
		return fmt.Errorf("object %q lies in column %d of %d", entry.Key, entry.Column, columns)
	}
	if len(entry.Key) == 0 || entry.Length <= 0 || entry.Offset > limit-entry.Length {
		return fmt.Errorf("object %q has %d bytes at %d of %d", entry.Key, entry.Length, entry.Offset, limit)
	}
	return nil
}

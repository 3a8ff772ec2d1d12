package rebuild

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
)

// dissolved is a group whose columns lie in others, as these tell it.
type dissolved struct {
	record catalog.Group
	since  block.Stamp // of the oldest block that says so
	needed []bool      // columns that entries have something in
}

// resolve decides of each group that columns of others are said to be of whether it lies there, or is what its own blocks say: those, where
// they are all there and something was changed in them since, or where a column is in none of the others. It returns the records of those
// that lie in others, and takes what is not so out of the entries of groups.
func resolve(groups []Group) (records []catalog.Group, problems []Problem) {
	byID := map[block.GroupID]*Group{}
	for i := range groups {
		byID[groups[i].Record.ID] = &groups[i]
	}
	found := map[block.GroupID]*dissolved{}
	for i := range groups {
		tell(&groups[i], found)
	}
	ids := slices.SortedFunc(maps.Keys(found), func(a, b block.GroupID) int { return cmp.Compare(a.String(), b.String()) })
	for _, id := range ids {
		d, own := found[id], byID[id]
		missing := d.missing()
		isOwn := own != nil && (len(missing) > 0 || own.Attempts[len(own.Attempts)-1].Compare(d.since) > 0)
		if isOwn || len(missing) > 0 {
			for i := range groups {
				groups[i].Entries = slices.DeleteFunc(groups[i].Entries, func(entry block.ManifestEntry) bool { return entry.Origin == id })
			}
		} else {
			records = append(records, d.record)
			if own != nil {
				own.Entries = nil
			}
		}
		if !isOwn && len(missing) > 0 {
			problems = append(problems, Problem{Kind: ProblemIncomplete, Group: &id,
				Text: fmt.Sprintf("its columns lie in other groups, of which those with its columns %v are not there", missing)})
		}
	}
	return records, problems
}

// tell adds what a group tells of those that its columns are of.
func tell(group *Group, found map[block.GroupID]*dissolved) {
	record := &group.Record
	for i := range group.Entries {
		entry := &group.Entries[i]
		if entry.Origin == (block.GroupID{}) {
			continue
		}
		d := found[entry.Origin]
		if d == nil {
			d = &dissolved{since: group.Since, needed: make([]bool, entry.Columns), record: catalog.Group{
				ID: entry.Origin, Generation: record.Generation, Epoch: record.Epoch, Class: record.Class, Ladder: record.Ladder, Mode: record.Mode,
				LayoutVersion: record.LayoutVersion, Columns: entry.Columns, Scheme: record.Scheme, CellBytes: record.CellBytes,
				Settled: record.Settled, Lies: make([]catalog.Column, entry.Columns),
			}}
			found[entry.Origin] = d
		}
		if d.record.Generation.Compare(record.Generation) < 0 {
			d.record.Generation, d.record.Epoch = record.Generation, record.Epoch
		}
		if group.Since.Compare(d.since) < 0 {
			d.since = group.Since
		}
		d.record.Packed = d.record.Packed || entry.Column != catalog.WholeGroup
		own := *entry
		own.Origin = block.GroupID{}
		for column, filled := range block.FilledColumns([]block.ManifestEntry{own}, len(d.needed), record.CellBytes) {
			d.needed[column] = d.needed[column] || filled
		}
	}
	for column, origin := range record.Brought {
		if d := found[origin.Group]; d != nil {
			d.lie(origin, catalog.Column{Group: record.ID, Column: record.Span() + column})
		}
	}
}

// lie takes note of where a column lies, if it is one of the group.
func (d *dissolved) lie(origin, at catalog.Column) {
	if origin.Group == d.record.ID && origin.Column >= 0 && origin.Column < len(d.record.Lies) {
		d.record.Lies[origin.Column] = at
	}
}

// missing are the columns that entries have something in, and that are said to lie nowhere.
func (d *dissolved) missing() (columns []int) {
	for column, needed := range d.needed {
		if needed && d.record.Lies[column] == (catalog.Column{}) {
			columns = append(columns, column)
		}
	}
	return columns
}

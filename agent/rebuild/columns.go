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
	last   block.Stamp // of the newest attempt of those groups
	needed []bool      // columns that entries have something in
}

// newest is the newest of the attempts whose blocks a group has.
func (g *Group) newest() block.Stamp { return g.Attempts[len(g.Attempts)-1] }

// dissolvedInto returns the groups that columns of others are said to be of.
func dissolvedInto(groups []Group) map[block.GroupID]*dissolved {
	found := map[block.GroupID]*dissolved{}
	for i := range groups {
		if groups[i].Complete {
			tell(&groups[i], found)
		}
	}
	return found
}

// resolve decides of each group that columns of others are said to be of whether it lies there, or is what its own blocks say: those, where
// they are all there and newer than what the others have, or where a column is in none of the others. It returns the records of those that
// lie in others, and takes what is not so out of the entries of groups.
func resolve(groups []Group) (records []catalog.Group, problems []Problem) {
	byID := map[block.GroupID]*Group{}
	for i := range groups {
		byID[groups[i].Record.ID] = &groups[i]
	}
	found := dissolvedInto(groups)
	ids := slices.SortedFunc(maps.Keys(found), func(a, b block.GroupID) int { return cmp.Compare(a.String(), b.String()) })
	for _, id := range ids {
		d, own := found[id], byID[id]
		missing := d.missing()
		isOwn := own != nil && (len(missing) > 0 || own.newest().Compare(d.last) > 0)
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
			d = &dissolved{needed: make([]bool, entry.Columns), record: catalog.Group{
				ID: entry.Origin, Generation: record.Generation, Epoch: record.Epoch, Class: record.Class, Ladder: record.Ladder, Mode: record.Mode,
				LayoutVersion: record.LayoutVersion, Columns: entry.Columns, Scheme: record.Scheme, CellBytes: record.CellBytes,
				Settled: record.Settled, Lies: make([]catalog.Column, entry.Columns),
			}}
			found[entry.Origin] = d
		}
		if d.record.Generation.Compare(record.Generation) < 0 {
			d.record.Generation, d.record.Epoch = record.Generation, record.Epoch
		}
		if d.last.Compare(group.newest()) < 0 {
			d.last = group.newest()
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

// withdrawn returns the groups without attempts that gave columns back and were not committed: a group has its columns by one, and another
// has gone on since as the one that they lie in. again puts a group together without some attempts. Where anything would be lost by it the
// attempt stays.
func withdrawn(
	groups []Group, excluded map[block.Stamp]bool, again func(i int, excluded map[block.Stamp]bool) (Group, error),
) ([]Group, error) {
	for asked := map[block.Stamp]bool{}; ; {
		stamp, found := doubtful(groups, asked)
		if !found {
			return groups, nil
		}
		asked[stamp] = true
		without := maps.Clone(excluded)
		without[stamp] = true
		next := slices.Clone(groups)
		for i := range groups {
			if !slices.Contains(groups[i].Attempts, stamp) {
				continue
			}
			var err error
			if next[i], err = again(i, without); err != nil {
				return nil, err
			}
			if !next[i].Complete { // it lies in others, or nothing comes of this
				next[i].Problems = nil
			}
			next[i].Problems = append(next[i].Problems, Problem{Kind: ProblemAborted, Group: &groups[i].Record.ID,
				Text: "the blocks of an attempt that gave columns back are left out: a group that they lie in went on, so it was not committed"})
		}
		if losesNothing(groups, next) {
			groups, excluded = next, without
		}
	}
}

// doubtful finds an attempt that may have given columns back without being committed.
func doubtful(groups []Group, asked map[block.Stamp]bool) (block.Stamp, bool) {
	told := dissolvedInto(groups)
	for i := range groups {
		own := &groups[i]
		if !own.Complete || asked[own.newest()] || own.newest() == own.Record.ID.Stamp {
			continue
		}
		if d := told[own.Record.ID]; d != nil && len(d.missing()) > 0 && own.newest().Compare(d.last) < 0 {
			return own.newest(), true
		}
	}
	return block.Stamp{}, false
}

// losesNothing reports whether all groups that are complete in one state are so in another, no less whole, or lie in others there.
func losesNothing(before, after []Group) bool {
	told := dissolvedInto(after)
	for i := range before {
		switch d := told[before[i].Record.ID]; {
		case !before[i].Complete || after[i].Complete && after[i].Bad <= before[i].Bad:
		case after[i].Complete || d == nil || len(d.missing()) > 0:
			return false
		}
	}
	return true
}

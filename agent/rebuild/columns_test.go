package rebuild

import (
	"slices"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
)

// wideGroup is a group of one column and one that was brought, by an attempt, with entries of the group that it was of.
func wideGroup(put uint64, attempt uint64, origin block.GroupID, column int, entries ...block.ManifestEntry) Group {
	g := groupOf(put, 0, "s")
	g.Attempts = append(g.Attempts, block.Stamp{Sequence: attempt})
	g.Record.Columns, g.Record.CellBytes, g.Record.Brought = 2, 10, []catalog.Column{{Group: origin, Column: column}}
	for _, entry := range entries {
		entry.Origin, entry.Columns = origin, 2
		g.Entries = append(g.Entries, entry)
	}
	return g
}

// What is said to have been brought lies there, unless all of it is elsewhere too and was changed there since.
func TestWhereColumnsLie(t *testing.T) {
	g := block.GroupID{Stamp: block.Stamp{Sequence: 3}}
	both, left := entry("k", 3, 20, 0, 20), entry("k", 3, 10, 0, 10)
	own := func(last uint64, entries ...block.ManifestEntry) Group {
		o := groupOf(3, 0, "s", entries...)
		if last > 3 {
			o.Attempts = append(o.Attempts, block.Stamp{Sequence: last})
		}
		return o
	}
	wide := func() []Group { return []Group{wideGroup(1, 7, g, 0, both), wideGroup(2, 7, g, 1, both)} }
	there := []catalog.Column{{Group: groupOf(1, 0, "s").Record.ID, Column: 1}, {Group: groupOf(2, 0, "s").Record.ID, Column: 1}}
	for name, is := range map[string]struct {
		groups  []Group
		lies    []catalog.Column // nil: it lies nowhere else
		objects int
		problem bool
	}{
		"in two groups":                           {wide(), there, 1, false},
		"before it was deleted":                   {slices.Concat([]Group{own(5, both)}, wide()), there, 1, false},
		"changed before the commit":               {slices.Concat([]Group{own(8, both)}, wide()), nil, 1, false},
		"changed where it lies, later":            {[]Group{own(8, both), wide()[0], wideGroup(2, 9, g, 1, both)}, there, 1, false},
		"one group lacks, and it is there itself": {[]Group{own(5, both), wideGroup(1, 7, g, 0, both)}, nil, 1, false},
		"one group lacks":                         {[]Group{wideGroup(2, 7, g, 1, both)}, nil, 0, true},
		"nothing is in the column that lacks":     {[]Group{wideGroup(1, 7, g, 0, left)}, []catalog.Column{there[0], {}}, 1, false},
	} {
		records, problems := resolve(is.groups)
		var lies []catalog.Column
		if len(records) == 1 && records[0].ID == g && records[0].Columns == 2 && records[0].CellBytes == 10 {
			lies = records[0].Lies
		}
		objects, doubts := Objects(is.groups, 0)
		isNamed := len(objects) == 0 || len(objects[0].Extents) == 1 && objects[0].Extents[0].Group == g
		if !slices.Equal(lies, is.lies) || len(objects) != is.objects || !isNamed || len(problems) > 0 != is.problem || len(doubts) > 0 {
			t.Errorf("%s: lies in %v, %d objects, %v, %v", name, records, len(objects), problems, doubts)
		}
	}
}

// Of a group that gets its columns back only its new blocks are there, and those groups that they lay in are narrower. If one of them was
// changed as it was before, later, the attempt was not committed, unless something would be lost by leaving it out.
func TestColumnsThatDidNotComeBack(t *testing.T) {
	g := block.GroupID{Stamp: block.Stamp{Sequence: 3}}
	both := entry("k", 3, 20, 0, 20)
	back := block.Stamp{Sequence: 9}
	own := groupOf(3, 0, "s", both)
	own.Attempts = []block.Stamp{back}
	narrow := groupOf(2, 0, "s")
	narrow.Attempts = append(narrow.Attempts, back)
	for name, is := range map[string]struct {
		groups  []Group // g itself, then the two that its columns lay in
		without Group   // the last of them without the attempt
		lies    bool
	}{
		"committed":               {[]Group{own, wideGroup(1, 7, g, 0, both), narrow}, wideGroup(2, 7, g, 1, both), false},
		"one went on":             {[]Group{own, wideGroup(1, 11, g, 0, both), narrow}, wideGroup(2, 7, g, 1, both), true},
		"the other is not whole":  {[]Group{own, wideGroup(1, 11, g, 0, both), narrow}, Group{}, false},
		"it is less whole":        {[]Group{own, wideGroup(1, 11, g, 0, both), narrow}, lacking(1, wideGroup(2, 7, g, 1, both)), false},
		"its columns are nowhere": {[]Group{own, wideGroup(1, 11, g, 0, both), narrow}, groupOf(2, 0, "s"), false},
	} {
		groups, err := withdrawn(is.groups, map[block.Stamp]bool{}, func(i int, excluded map[block.Stamp]bool) (Group, error) {
			if len(excluded) != 1 || !excluded[back] {
				t.Fatalf("%s: it is put together without %v", name, excluded)
			}
			return map[int]Group{0: {Record: catalog.Group{ID: g}}, 2: is.without}[i], nil
		})
		if err != nil {
			t.Fatal(err)
		}
		whole := slices.DeleteFunc(groups, func(group Group) bool { return !group.Complete })
		records, problems := resolve(whole)
		if len(records) == 1 != is.lies || len(problems) > 0 {
			t.Errorf("%s: lies in %v, %v", name, records, problems)
		}
	}
}

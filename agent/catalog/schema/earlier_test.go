package schema

import (
	"slices"
	"testing"

	"github.com/restripe/restripe/agent/block"
)

func TestWhichVersionsAreKept(t *testing.T) {
	at := func(numbers ...uint64) (revisions []block.Stamp) {
		for _, number := range numbers {
			revisions = append(revisions, block.Stamp{Sequence: number})
		}
		return revisions
	}
	for _, c := range []struct {
		what      string
		keep      int
		isDurable bool // what is put over, at revision 9
		before    []block.Stamp
		keeps     bool
		kept      []block.Stamp
		dropped   []block.Stamp
	}{
		{"none", 0, true, nil, false, nil, nil},
		{"none any more", 0, true, at(8, 7), false, nil, at(8, 7)},
		{"two", 2, false, at(8), true, at(9, 8), nil},
		{"two of more", 2, false, at(8, 7), true, at(9, 8), at(7)},
		{"the durable one", block.KeepDurable, true, at(4), true, at(9), at(4)},
		{"the durable one before", block.KeepDurable, false, at(4), false, at(4), nil},
		{"no durable one", block.KeepDurable, false, nil, false, nil, nil},
		{"whichever of those before is the durable one", block.KeepDurable, false, at(8, 7, 4), false, at(8, 7, 4), nil},
	} {
		object := Object{Keep: c.keep}
		was := Object{Revision: block.Stamp{Sequence: 9}, Earlier: slices.Clone(c.before)}
		keeps, dropped := Keep(&object, &was, c.isDurable)
		if keeps != c.keeps || !slices.Equal(object.Earlier, c.kept) || !slices.Equal(dropped, c.dropped) {
			t.Errorf("%s: %t, kept %v, dropped %v", c.what, keeps, object.Earlier, dropped)
		}
		if !slices.Equal(was.Earlier, c.before) {
			t.Errorf("%s: the record before is changed to %v", c.what, was.Earlier)
		}
	}
}

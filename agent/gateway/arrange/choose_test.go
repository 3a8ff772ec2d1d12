package arrange

import (
	"slices"
	"testing"

	"github.com/restripe/restripe/agent/block"
)

// of makes groups by how much they take and how much lives in each, one object of 10 bytes after the other, in three columns.
func of(sizes ...[2]int64) []Candidate {
	groups := make([]Candidate, len(sizes))
	for i, size := range sizes {
		groups[i] = Candidate{
			ID: block.GroupID{Index: uint32(i)}, Capacity: size[0], Live: size[1], Extents: max(1, size[1]/10), Columns: 3,
		}
	}
	return groups
}

func TestTheEmptiestAreChosen(t *testing.T) {
	for _, c := range []struct {
		name       string
		groups     []Candidate
		percent    int
		everything bool
		want       []uint32
	}{
		{"nothing", nil, 15, false, nil},
		{"as much is dead as may be", of([2]int64{115, 100}, [2]int64{115, 100}), 15, false, nil},
		{
			"the emptiest first, and no more than needed",
			of([2]int64{100, 60}, [2]int64{100, 10}, [2]int64{100, 90}, [2]int64{100, 40}), 45, false, []uint32{1, 3},
		},
		{"full ones stay", of([2]int64{100, 91}, [2]int64{100, 95}, [2]int64{100, 50}), 5, false, []uint32{2}},
		{"more may be dead", of([2]int64{100, 50}, [2]int64{100, 50}), 100, false, nil},
		{"everything", of([2]int64{100, 89}, [2]int64{100, 50}, [2]int64{100, 99}), 1000, true, []uint32{1, 0}},
		{"of equal ones the oldest", of([2]int64{100, 50}, [2]int64{100, 50}, [2]int64{100, 100}), 30, false, []uint32{0}},
	} {
		var got []uint32
		for _, chosen := range Choose(c.groups, c.percent, c.everything) {
			got = append(got, chosen.ID.Index)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v are chosen, want %v", c.name, got, c.want)
		}
	}
}

func TestGroupsWorthEmptying(t *testing.T) {
	for _, c := range []struct {
		name   string
		groups []Candidate
		want   bool
	}{
		{"none", nil, false},
		{"half empty", of([2]int64{100, 50}, [2]int64{100, 50}), true},
		{"nearly full", of([2]int64{100, 92}, [2]int64{100, 92}), false},
		{"one object, which needs its columns anyway", of([2]int64{30, 10}), false},
		{"three objects that can share columns", of([2]int64{30, 10}, [2]int64{30, 10}, [2]int64{30, 10}), true},
		{"nobody counted what lives in it", of([2]int64{100, 0}), true},
	} {
		if got := IsWorth(c.groups); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

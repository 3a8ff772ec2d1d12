package arrange

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/heat/sketch"
)

func TestOrder(t *testing.T) {
	counts := map[string]sketch.Counts{
		"often": {Writes: 40}, "as often, and read": {Writes: 33, Reads: 5}, "now and then": {Writes: 3, Reads: 1},
		"read": {Writes: 1, Reads: 900}, "read less": {Writes: 1.5, Reads: 30}, "once": {Writes: 1}, "faded": {Writes: 0.2},
	}
	objects := []string{"new", "faded", "read less", "once", "read", "now and then", "often", "as often, and read"}
	Order(objects, func(key string) sketch.Counts { return counts[key] })
	want := []string{"as often, and read", "often", "now and then", "read", "read less", "new", "faded", "once"}
	if !slices.Equal(objects, want) {
		t.Errorf("%q, want %q", objects, want)
	}
}

// Whatever is put, both halves are large enough to be groups, of about as many bytes, nothing is lost, and no other is written more
// than a popular one by more than the factor that is told apart.
func TestHalves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(0, 700).Draw(t, "objects")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		skewed := rapid.Bool().Draw(t, "skewed")
		sizes, counts, objects := make([]int, count), make([]sketch.Counts, count), make([]int, count)
		for i := range objects {
			objects[i], sizes[i], counts[i].Writes = i, 1+random.IntN(1000), float64(1+random.IntN(3)) // which is chance
			if skewed {
				counts[i].Writes = math.Exp2(12 * random.Float64())
			}
		}
		n := Halves(objects, func(i int) int { return sizes[i] }, func(i int) sketch.Counts { return counts[i] })
		if !skewed || count < 2*leastHalf {
			if n != 0 {
				t.Fatalf("%d objects, skewed %t, were split", count, skewed)
			}
			return
		}
		if n < leastHalf || count-n < leastHalf {
			t.Fatalf("%d of %d are popular", n, count)
		}
		if sorted := slices.Sorted(slices.Values(objects)); sorted[0] != 0 || sorted[count-1] != count-1 || len(slices.Compact(sorted)) != count {
			t.Fatal("objects are lost")
		}
		least, most := 1e9, 0.0
		for _, i := range objects[:n] {
			least = min(least, counts[i].Writes)
		}
		for _, i := range objects[n:] {
			most = max(most, counts[i].Writes)
		}
		if most >= 2*max(least, 1) {
			t.Fatalf("a popular one is written %v times, another %v times", least, most)
		}
	})
}

// Of groups as empty as each other the older goes first, as less of it dies by itself; a full one never.
func TestGroupsThatDieWait(t *testing.T) {
	groups := []Candidate{
		{ID: block.GroupID{Index: 0}, Capacity: 100, Live: 50, Age: time.Minute},
		{ID: block.GroupID{Index: 1}, Capacity: 100, Live: 50, Age: time.Hour},
		{ID: block.GroupID{Index: 2}, Capacity: 100, Live: 95, Age: 1000 * time.Hour},
		{ID: block.GroupID{Index: 3}, Capacity: 100, Live: 0, Age: 0},
	}
	got := ""
	for _, one := range Choose(groups, 5, false) {
		got += fmt.Sprint(one.ID.Index)
	}
	if got != "310" {
		t.Errorf("they are emptied in the order %s", got)
	}
}

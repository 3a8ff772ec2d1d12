package stripe

import (
	"sync"
	"testing"
)

// Layouts and plans are shared; proving a shared plan again changes nothing.
func TestSharedValuesServeManyCallers(t *testing.T) {
	ladder := Ladder{Replicas(2), RS(5, 2), RS(7, 1), RS(7, 3)}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			layout, err := NewLayout(ladder, 9, ModeFree)
			if err != nil {
				t.Error(err)
				return
			}
			for _, from := range ladder {
				for _, to := range ladder {
					plan, err := NewPlan(layout, from, to, "", "")
					if err != nil {
						t.Error(err)
						continue
					}
					if err := plan.Prove(); err != nil || !plan.Proved {
						t.Error(err)
					}
				}
			}
		})
	}
	group.Wait()
}

// A full cache forgets the oldest and keeps within its limit; what is too heavy is not kept at all.
func TestBoundedCache(t *testing.T) {
	c := newBoundedCache[string, int](10)
	c.add("a", 1, 4)
	c.add("b", 2, 4)
	if got := c.add("b", 3, 4); got != 2 {
		t.Errorf("a second value replaced the first: %d", got)
	}
	c.add("c", 3, 4)
	if _, found := c.get("a"); found || c.weight != 8 {
		t.Errorf("weight %d", c.weight)
	}
	if got := c.add("d", 4, 11); got != 4 || len(c.values) != 2 {
		t.Errorf("%d, %d values", got, len(c.values))
	}
}

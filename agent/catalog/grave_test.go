package catalog_test

import (
	"testing"
	"time"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/mem"
)

// Blocks of small objects are left alone for a few seconds, others for the whole grace, and none for longer than that.
func TestGraceOfSmallObjects(t *testing.T) {
	for _, c := range []struct {
		grace, small time.Duration
	}{{time.Minute, 5 * time.Second}, {time.Second, time.Second}, {0, 0}} {
		w := newWorld(t, mem.New())
		kept, err := catalog.Open(w.ctx, w.engine, catalog.Owner("graces", "1"), catalog.WithClock(func() time.Time { return w.now }),
			catalog.WithGrace(c.grace))
		must(t, err)
		for key, isPacked := range map[string]bool{"small": true, "large": false} {
			put := w.put(t, kept, key)
			put.change.NewGroups[0].Packed = isPacked
			must(t, put.commit(w))
			_, err := kept.Delete(w.ctx, key, nil)
			must(t, err)
			_, err = kept.Free(w.ctx, put.change.NewGroups[0].ID)
			must(t, err)
			want := c.grace
			if isPacked {
				want = c.small
			}
			graves := 0
			for page, err := range kept.AllGraves(w.ctx, catalog.Forever, "") {
				must(t, err)
				for _, grave := range page {
					if grave.Address.Stamp != put.Stamp() {
						continue
					}
					graves++
					if got := grave.NotBefore.Sub(w.now.Truncate(time.Millisecond)); got != want {
						t.Errorf("%s under %s: %s left alone for %s, want %s", key, c.grace, grave.Address, got, want)
					}
				}
			}
			if graves != len(home) {
				t.Errorf("%s under %s: %d graves, want %d", key, c.grace, graves, len(home))
			}
		}
		must(t, kept.Close())
	}
}

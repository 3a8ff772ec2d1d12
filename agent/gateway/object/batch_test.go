package object

import (
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
)

// A batch that waits goes on once it has all that were under way at once, unless it is to wait always.
func TestABatchThatHasAll(t *testing.T) {
	entries := map[string]entry{"a": {}, "b": {}, "c": {}}
	for _, c := range []struct {
		mode   api.PackMode
		wait   time.Duration
		atOnce int
		want   bool
	}{
		{"", time.Second, 3, true}, {api.PackAuto, time.Second, 2, true}, {"", time.Second, 4, false},
		{"", 0, 3, false}, {api.PackBatch, time.Second, 3, false},
	} {
		b := batch{key: batchKey{class: &api.Class{PackMode: c.mode}}, wait: c.wait, entries: entries}
		if got := b.hasAll(c.atOnce); got != c.want {
			t.Errorf("%q with %d at once, waiting %s: %t", c.mode, c.atOnce, c.wait, got)
		}
	}
}

package operator_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// writes are the calls of the operator to the API server that change something.
func (w *world) writes() (n int64, what string) {
	var list []string
	w.byCall.Range(func(call, count any) bool {
		if !strings.HasPrefix(call.(string), "GET") {
			n += count.(*atomic.Int64).Load()
			list = append(list, fmt.Sprintf("%s %d", call, count.(*atomic.Int64).Load()))
		}
		return true
	})
	slices.Sort(list)
	return n, strings.Join(list, ", ")
}

// rest waits until so much time has passed on the operator's clock.
func (w *world) rest(d time.Duration) {
	<-w.clock.After(d)
}

func TestCallsPerChange(t *testing.T) {
	w := newWorld(t)
	g := w.media("")
	w.eventually("all has moved", func() bool { return g.Groups("media")["rs(12,2)"] == mediaGroups })
	w.converged("media")
	w.rest(time.Minute)
	first, what := w.writes()
	t.Logf("a backend, a policy and a transition of %d groups: %s", mediaGroups, what)
	if first > 40 {
		t.Errorf("%d writes for one backend, one policy and one transition", first)
	}

	looks := g.Calls()["Heat"]
	w.rest(10 * time.Minute)
	idle, what := w.writes()
	if looks = g.Calls()["Heat"] - looks; looks < 20 {
		t.Fatalf("%d looks in ten minutes", looks)
	}
	// The status of the backend says once a minute that it was seen.
	if idle-first > 12 {
		t.Errorf("%d writes in ten minutes in which nothing changed: %s", idle-first, what)
	}

	g.SetNode(1, "down")
	w.eventually("the backend says so", func() bool {
		return strings.Contains(w.picture(), "15 of 16 nodes up") || strings.Contains(w.picture(), "n2 down")
	})
	w.rest(20 * time.Second)
	node, _ := w.writes()
	if node-idle > 4 {
		t.Errorf("%d writes for a node that went down", node-idle)
	}

	w.patch(w.policy("media"), `{"spec":{"budget":{"bytesPerSecond":"100Mi"}}}`)
	w.converged("media")
	w.rest(20 * time.Second)
	edit, what := w.writes()
	if edit-node > 3 {
		t.Errorf("%d writes for an edit that moves nothing: %s", edit-node, what)
	}
}

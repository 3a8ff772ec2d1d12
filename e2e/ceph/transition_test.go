//go:build ceph

package ceph_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/restripe/restripe/agent/gateway/api"
)

// TestObjectsOnCeph has one cluster go through everything: starting 14 OSDs takes longer than the cases.
func TestObjectsOnCeph(t *testing.T) {
	w := newWorld(t)
	w.await("all nodes are up", w.allUp)
	for _, c := range []struct {
		name string
		run  func(w *world)
	}{
		{"wider, narrower and to copies, in place", (*world).stepThroughLadder},
		{"an OSD killed during puts loses nothing that was acknowledged", (*world).killDuringPuts},
		{"an OSD killed during a transition loses nothing", (*world).killDuringTransition},
	} {
		t.Run(c.name, func(t *testing.T) {
			within := *w
			within.t = t
			c.run(&within)
		})
	}
}

func (w *world) stepThroughLadder() {
	objects := map[string][]byte{}
	for i := range 12 {
		objects[fmt.Sprintf("wide/large/%d", i)] = w.content(50_000 + w.random.IntN(300_000))
		objects[fmt.Sprintf("wide/small/%d", i)] = w.content(1 + w.random.IntN(4000))
	}
	for key, value := range objects {
		if err := w.put(w.t.Context(), key, value); err != nil {
			w.t.Fatalf("putting %s: %v", key, err)
		}
	}
	w.readBack(objects)
	for _, step := range []struct {
		to    string
		sends bool // bytes over the network
	}{{"rs(12,2)", false}, {"rs(4,2)", true}, {"rep(3)", true}, {"rs(4,2)", false}, {"rs(12,2)", false}} {
		moved := w.finish(w.start("wide", step.to, 0))
		if moved.State != api.TransitionDone {
			w.t.Fatalf("to %s: %s: %s", step.to, moved.State, moved.Error)
		}
		if sent := moved.Measured.BytesSent; step.sends != (sent > 0) {
			w.t.Errorf("to %s: %d bytes were sent between nodes", step.to, sent)
		}
		w.t.Logf("to %s: %d groups, %+v", step.to, moved.GroupsDone, moved.Measured)
		w.readBack(objects)
		w.healthy()
	}
}

// start starts the transition of a class; rate 0 is unlimited.
func (w *world) start(class, to string, rate int64) api.Transition {
	w.t.Helper()
	moving, err := w.client.StartTransition(w.t.Context(), api.TransitionRequest{Selector: api.Selector{Class: class}, To: to, BytesPerSecond: rate})
	if err != nil {
		w.t.Fatalf("starting the transition to %s: %v", to, err)
	}
	return moving
}

// finish waits until a transition has ended.
func (w *world) finish(moving api.Transition) api.Transition {
	w.t.Helper()
	w.await("the end of the transition to "+moving.To, func() bool {
		now, err := w.client.Transition(w.t.Context(), moving.ID)
		if err == nil {
			moving = now
		}
		return err == nil && now.State.Final()
	})
	return moving
}

// writers put objects until they are told to stop, and remember those that were acknowledged.
type writers struct {
	mutex        sync.Mutex
	acknowledged map[string][]byte
	refused      int
}

func (w *world) write(ctx context.Context, prefix string) (*writers, *sync.WaitGroup) {
	all, group := &writers{acknowledged: map[string][]byte{}}, &sync.WaitGroup{}
	for writer := range 4 {
		value := w.content(30_000)
		group.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				key := fmt.Sprintf("%s/%d/%d", prefix, writer, i)
				value := append([]byte(key), value...)
				err := w.put(ctx, key, value)
				all.mutex.Lock()
				if err == nil {
					all.acknowledged[key] = value
				} else {
					all.refused++
				}
				all.mutex.Unlock()
			}
		})
	}
	return all, group
}

func (a *writers) count() int {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return len(a.acknowledged)
}

// killOSD kills an OSD, has something happen, and starts it again.
func (w *world) killOSD(id int, meanwhile func()) {
	w.t.Helper()
	if err := w.ceph.KillOSD(id); err != nil {
		w.t.Fatal(err)
	}
	meanwhile()
	for _, step := range []func() error{func() error { return w.ceph.StartOSD(id) }, w.ceph.AwaitServing} {
		if err := step(); err != nil {
			w.t.Fatal(err)
		}
	}
	w.await("all nodes are up", w.allUp)
}

func (w *world) killDuringPuts() {
	ctx, stop := context.WithCancel(w.t.Context())
	defer stop()
	written, group := w.write(ctx, "narrow/puts")
	w.await("objects are put", func() bool { return written.count() >= 20 })
	w.killOSD(3, func() {
		before := written.count()
		w.await("objects are put without the OSD", func() bool { return written.count() >= before+20 })
	})
	stop()
	group.Wait()
	w.t.Logf("%d puts were acknowledged, %d were not", written.count(), written.refused)
	w.readBack(written.acknowledged)
	w.await("every group is whole", w.whole)
	w.readBack(written.acknowledged)
	w.healthy()
}

func (w *world) killDuringTransition() {
	ctx, stop := context.WithCancel(w.t.Context())
	defer stop()
	written, group := w.write(ctx, "narrow/moving")
	w.await("objects are put", func() bool { return written.count() >= 60 })
	stop()
	group.Wait()
	moving := w.start("narrow", "rs(6,2)", 4<<20)
	w.await("groups are moved", func() bool {
		now, err := w.client.Transition(w.t.Context(), moving.ID)
		return err == nil && now.GroupsDone > 0
	})
	w.killOSD(5, func() {
		if err := w.ceph.AwaitDown(5); err != nil {
			w.t.Fatal(err)
		}
		w.readBack(written.acknowledged)
	})
	moved := w.finish(moving)
	w.t.Logf("the transition is %s, %d of %d groups: %s", moved.State, moved.GroupsDone, moved.GroupsTotal, moved.Error)
	w.await("every group is whole", w.whole)
	if moved.State != api.TransitionDone {
		moved = w.finish(w.start("narrow", "rs(6,2)", 0))
	}
	if moved.State != api.TransitionDone {
		w.t.Errorf("with all OSDs up the transition is %s: %s", moved.State, moved.Error)
	}
	w.readBack(written.acknowledged)
	w.healthy()
}

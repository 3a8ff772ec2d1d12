package gateways_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/gateways"
	"github.com/restripe/restripe/operator/gateways/gatewaysfake"
)

// hands is a clock that goes on when it is told to.
type hands struct {
	mutex sync.Mutex
	time  time.Time
}

func (h *hands) Now() time.Time {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.time
}

func (h *hands) Add(d time.Duration) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.time = h.time.Add(d)
}

// slow is gateways whose walks end when they are let go.
type slow struct {
	*gatewaysfake.Cluster
	begun  chan struct{} // told of each walk that begins
	finish chan struct{} // closed: walks end
	closed atomic.Bool
}

func (s *slow) Status(ctx context.Context) (api.Status, error) {
	s.begun <- struct{}{}
	select {
	case <-s.finish:
		return s.Cluster.Status(ctx)
	case <-ctx.Done():
		return api.Status{}, ctx.Err()
	}
}

func (s *slow) Close() { s.closed.Store(true) }

// observed returns an observer of gateways in memory, and what is needed to play with it.
func observed(t *testing.T) (*gateways.Observer, *gateways.Observers, *slow, *hands) {
	t.Helper()
	passing := &hands{time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	g := &slow{Cluster: gatewaysfake.New(clock.RealClock{}, 3, 1), begun: make(chan struct{}, 100), finish: make(chan struct{})}
	observers := gateways.NewObservers(func([]string) (gateways.Gateway, error) { return g, nil }, passing.Now)
	t.Cleanup(observers.Close)
	observer, err := observers.Of(backend("disks", "1", "http://a:1"))
	if err != nil {
		t.Fatal(err)
	}
	return observer, observers, g, passing
}

func backend(name, uid, address string) *v1alpha1.StorageBackend {
	b := &v1alpha1.StorageBackend{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}
	b.Spec.Gateways = []v1alpha1.GatewayAddress{v1alpha1.GatewayAddress(address)}
	return b
}

func TestManyLooksAreOneQuestion(t *testing.T) {
	observer, _, g, passing := observed(t)
	var asking sync.WaitGroup
	for range 50 {
		asking.Go(func() {
			if _, err := observer.Observe(t.Context(), time.Second); err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	if calls := g.Calls(); calls["StatusBrief"] != 1 || calls["Heat"] != 1 || calls["Classes"] != 1 {
		t.Errorf("fifty looks asked %v", calls)
	}
	passing.Add(time.Second)
	if _, err := observer.Observe(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	if calls := g.Calls(); calls["StatusBrief"] != 2 {
		t.Errorf("a second later it asked %v", calls)
	}
}

func TestAFailureHoldsUpOneLookAndIsForgotten(t *testing.T) {
	observer, _, g, passing := observed(t)
	if _, err := observer.Observe(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	g.Break(gatewaysfake.Unreachable)
	passing.Add(time.Minute)
	before := g.Calls()["StatusBrief"]
	for range 10 {
		if _, err := observer.Observe(t.Context(), time.Second); !errors.Is(err, gatewaysfake.Unreachable) {
			t.Errorf("the error is %v", err)
		}
	}
	if asked := g.Calls()["StatusBrief"] - before; asked != 1 {
		t.Errorf("gateways that do not answer were asked %d times", asked)
	}
	if _, known, fresh := observer.Status.Get(); !known || fresh.Err == nil || !fresh.Since.Equal(passing.Now()) {
		t.Errorf("the reading is known: %v, %+v", known, fresh)
	}
	g.Break(nil)
	passing.Add(time.Second)
	if seen, err := observer.Observe(t.Context(), time.Second); err != nil || len(seen.Status.Nodes) != 3 {
		t.Errorf("they answer again: %+v, %v", seen, err)
	}
}

// An end of the context says nothing about the gateways: the next caller asks.
func TestACallerWhoLeavesIsNoFailure(t *testing.T) {
	observer, _, _, _ := observed(t)
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := observer.Observe(gone, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if _, err := observer.Observe(t.Context(), time.Hour); err != nil {
		t.Error(err)
	}
}

func TestWhatWasLearnedIsSeenAtOnce(t *testing.T) {
	observer, _, _, _ := observed(t)
	before, err := observer.Observe(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	observer.Learn("media", &api.ClassInfo{Name: "media", Ladder: "rep(3)"})
	with, err := observer.Observe(t.Context(), time.Hour)
	if err != nil || with.Classes["media"].Ladder != "rep(3)" || len(before.Classes) != 0 {
		t.Errorf("learned: %+v, before: %+v, %v", with.Classes, before.Classes, err)
	}
	if list, _, _ := observer.Classes.Get(); len(list) != 1 {
		t.Errorf("the list is %+v", list)
	}
	observer.Learn("media", nil)
	if without, err := observer.Observe(t.Context(), time.Hour); err != nil || len(without.Classes) != 0 {
		t.Errorf("forgotten: %+v, %v", without.Classes, err)
	}
}

// walk begins a walk and returns where its error will be.
func walk(ctx context.Context, observer *gateways.Observer, age time.Duration) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- observer.Walk(ctx, age) }()
	return ended
}

func TestAWalkServesEverybody(t *testing.T) {
	observer, _, g, passing := observed(t)
	first := walk(t.Context(), observer, time.Second)
	<-g.begun
	impatient, leave := context.WithCancel(t.Context())
	second := walk(impatient, observer, time.Second)
	leave()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("who left while it went on was told %v", err)
	}
	third := walk(t.Context(), observer, time.Second)
	passing.Add(10 * time.Second) // that is how long it takes
	close(g.finish)
	for _, ended := range []<-chan error{first, third} {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	found, known, _ := observer.Walked.Get()
	if !known || len(found.Status.Nodes) != 3 || found.Ended.Sub(found.Began) != 10*time.Second {
		t.Errorf("it found %+v", found)
	}
	rest := observer.Rest(time.Second)
	if rest != 200*time.Second {
		t.Errorf("a walk of ten seconds rests for %v", rest)
	}
	passing.Add(rest - 2*time.Second)
	if err := observer.Walk(t.Context(), time.Second); err != nil || g.Calls()["Status"] != 1 {
		t.Errorf("%d walks while the first one rests, %v", g.Calls()["Status"], err)
	}
	g.SetNode(1, "down")
	passing.Add(time.Second) // after which the states are asked for again
	if err := observer.Walk(t.Context(), time.Second); err != nil || g.Calls()["Status"] != 2 {
		t.Errorf("%d walks after a node went down, %v", g.Calls()["Status"], err)
	}
	passing.Add(observer.Rest(time.Second))
	if err := observer.Walk(t.Context(), time.Second); err != nil || g.Calls()["Status"] != 3 {
		t.Errorf("%d walks after the rest, %v", g.Calls()["Status"], err)
	}
}

// A backend that is declared anew, or has other gateways, has another observer; the walk of the old one ends.
func TestABackendThatChanges(t *testing.T) {
	observer, observers, g, _ := observed(t)
	same, err := observers.Of(backend("disks", "1", "http://a:1"))
	if err != nil || same != observer {
		t.Fatalf("the same backend has another observer, %v", err)
	}
	going := walk(t.Context(), observer, time.Second)
	<-g.begun
	other, err := observers.Of(backend("disks", "1", "http://b:1"))
	if err != nil || other == observer {
		t.Fatalf("with another gateway it has the same observer, %v", err)
	}
	if err := <-going; !errors.Is(err, context.Canceled) {
		t.Errorf("the walk of the old one ended with %v", err)
	}
	if !g.closed.Load() {
		t.Error("the old gateway was not closed")
	}
	anew, err := observers.Of(backend("disks", "2", "http://b:1"))
	if err != nil || anew == other {
		t.Errorf("declared anew it has the same observer, %v", err)
	}
	observers.Forget("disks")
	if again, err := observers.Of(backend("disks", "2", "http://b:1")); err != nil || again == anew {
		t.Errorf("forgotten it has the same observer, %v", err)
	}
	observers.Close()
	if err := anew.Walk(t.Context(), time.Second); !errors.Is(err, context.Canceled) {
		t.Errorf("a walk after the end: %v", err)
	}
}

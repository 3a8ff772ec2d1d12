package node_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/mem"
	"github.com/restripe/restripe/agent/wire"
)

// volatile is a store over a server that may come back from a restart with fewer values.
type volatile struct {
	*mem.Store
	run atomic.Pointer[string]
}

func (v *volatile) Run(context.Context) (string, error) { return *v.run.Load(), nil }

func (v *volatile) restart(run string) { v.run.Store(&run) }

// A server that was started again has whatever it had when it last wrote it down, the marker too: nothing is believed of
// it, whether or not the agent was there.
func TestAServerStartedAgainIsInDoubt(t *testing.T) {
	for _, crash := range []bool{false, true} {
		s := &volatile{Store: mem.New(0)}
		s.restart("first")
		a := start(t, "n1", s, node.Options{})
		was := a.attach()
		h := header("n1", 0, stamp(2), 0, 1, 1000)
		if _, err := a.write(h, random(1, 1000)); err != nil {
			t.Fatal(err)
		}
		s.restart("second")
		if crash {
			a.restart()
		}
		inspect := wire.InspectRequest{}
		if err := a.call(wire.OpInspect, inspect, nil, nil); !errors.Is(err, wire.ErrUnregistered) {
			t.Errorf("agent crashed %v: vouching for blocks after the server was started again: %v, want ErrUnregistered", crash, err)
		}
		now := a.attach()
		if now == was || now.Number() != was.Number()+1 || now.Run() != "second" {
			t.Errorf("agent crashed %v: contents %q are %q after the server was started again", crash, was, now)
		}
		if again := a.hello().Incarnation; again != now {
			t.Errorf("contents %q are %q, and nothing happened", now, again)
		}
	}
}

// A marker that went back is known by its number, by whoever heard what the catalog knows of the cluster whose store it is.
func TestAMarkerThatWentBackIsReplaced(t *testing.T) {
	s := mem.New(0)
	a := start(t, "n1", s, node.Options{})
	first := a.attach()
	if err := s.Delete(t.Context(), "restripe/incarnation"); err != nil {
		t.Fatal(err)
	}
	second := a.attach()
	if second.Number() != first.Number()+1 {
		t.Fatalf("contents %q were lost, and are %q now", first, second)
	}
	if err := s.Delete(t.Context(), "restripe/incarnation"); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), "restripe/incarnation", []byte(first)); err != nil {
		t.Fatal(err)
	}
	a.restart()
	hello := func(cluster string) (reply wire.HelloReply) {
		if err := a.call(wire.OpHello, wire.HelloRequest{Cluster: cluster, Known: second}, nil, &reply); err != nil {
			t.Fatal(err)
		}
		return reply
	}
	if reply := hello("another"); reply.Incarnation != first {
		t.Errorf("contents %q are %q, because another cluster knows %q", first, reply.Incarnation, second)
	}
	third := hello(cluster).Incarnation
	if third.Number() != second.Number()+1 {
		t.Errorf("the catalog knows %q, the store went back to %q and is %q now", second, first, third)
	}
	if reply := hello(cluster); reply.Incarnation != third {
		t.Errorf("a late greeting made %q of %q", reply.Incarnation, third)
	}
	// While the catalog was an earlier state of itself, other contents got the number that these have.
	for _, known := range []block.Incarnation{third, block.NewIncarnation(third.Number(), "ANOTHER", "")} {
		var reply wire.HelloReply
		if err := a.call(wire.OpHello, wire.HelloRequest{Cluster: cluster, Known: known}, nil, &reply); err != nil {
			t.Fatal(err)
		}
		if want := third.Number(); known == third && reply.Incarnation != third || known != third && reply.Incarnation.Number() != want+1 {
			t.Errorf("the catalog knows %q, the store is %q and answers as %q", known, third, reply.Incarnation)
		}
	}
}

// copyOf returns what a store holds.
func copyOf(t *testing.T, s *mem.Store) map[string][]byte {
	t.Helper()
	values := map[string][]byte{}
	if err := s.List(t.Context(), "", func(key string, size int64) error {
		values[key] = make([]byte, size)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for key, value := range values {
		if _, err := s.ReadAt(t.Context(), key, value, 0); err != nil {
			t.Fatal(err)
		}
	}
	return values
}

// setBack makes a store hold what it held.
func setBack(t *testing.T, s *mem.Store, values map[string][]byte) {
	t.Helper()
	s.Erase()
	for key, value := range values {
		if err := s.Create(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
}

// The files of a disk are put back as they were a while ago, the marker of the contents with them, which is still the known one.
// An agent that starts on them is told by the next greeting; one that goes on sees it when it writes its mark again.
func TestAStoreThatIsSetBackUnderItsMarkerIsInDoubt(t *testing.T) {
	for _, crash := range []bool{false, true} {
		s := mem.New(0)
		a := start(t, "n1", s, node.Options{KeepEvery: time.Nanosecond})
		first := a.attach()
		count := uint64(0)
		greet := func(cluster string, water int64) (reply wire.HelloReply, err error) {
			count++
			timeline := &wire.Timeline{Start: "p/1", Read: block.Timeline{Sessions: map[string]block.Counts{"p/1": {int64(count)}}}}
			mark := block.Watermark{Contents: first, Mark: water}
			err = a.call(wire.OpHello, wire.HelloRequest{Cluster: cluster, Known: first, Water: mark, Timeline: timeline}, nil, &reply)
			return reply, err
		}
		early, err := greet(cluster, 0)
		if err != nil || early.Water == 0 || early.Incarnation != first {
			t.Fatalf("%+v, %v", early, err)
		}
		saved := copyOf(t, s)
		late, err := greet(cluster, early.Water)
		if err != nil || late.Water <= early.Water {
			t.Fatalf("the mark went from %d to %d, %v", early.Water, late.Water, err)
		}
		setBack(t, s, saved)
		if crash {
			a.restart()
			if reply, err := greet("another", late.Water); err != nil || reply.Incarnation != first {
				t.Errorf("contents %q are %q, %v, because another cluster knows a higher mark", first, reply.Incarnation, err)
			}
			// Starts of gateways that are new to it are kept before it is told: the mark does not grow by that.
			for i := range int64(5) {
				sessions := map[string]block.Counts{"p/1": {int64(count)}}
				for j := range i + 1 {
					sessions[fmt.Sprint("q/", j)] = block.Counts{}
				}
				timeline := &wire.Timeline{Start: fmt.Sprint("q/", i), Read: block.Timeline{Sessions: sessions}}
				if err := a.call(wire.OpHello, wire.HelloRequest{Cluster: cluster, Known: first, Timeline: timeline}, nil, nil); err != nil {
					t.Fatal(err)
				}
			}
		} else if reply, err := greet(cluster, late.Water); !errors.Is(err, store.ErrDown) {
			t.Errorf("a mark is written over an earlier one: %+v, %v", reply, err)
		}
		now, err := greet(cluster, late.Water)
		if err != nil || now.Incarnation.Number() != first.Number()+1 || now.Registered {
			t.Errorf("agent crashed %v: contents %q under mark %d are %+v after they were set back to mark %d, %v",
				crash, first, late.Water, now, early.Water, err)
		}
		a.restart()
		if again, err := greet(cluster, late.Water); err != nil || again.Incarnation != now.Incarnation {
			t.Errorf("agent crashed %v: contents %q are %q, %v, and nothing happened", crash, now.Incarnation, again.Incarnation, err)
		}
	}
}

// A store loses everything while its agent runs. The new contents have a mark of their own: the one before would be more than
// is in the store, which looked as if they had gone back as well.
func TestAMarkIsNotOfTheContentsBefore(t *testing.T) {
	s := mem.New(0)
	a := start(t, "n1", s, node.Options{KeepEvery: time.Nanosecond})
	known := block.Watermark{Contents: a.attach()}
	count := int64(0)
	greet := func() (reply wire.HelloReply) {
		t.Helper()
		count++
		timeline := &wire.Timeline{Start: "p/1", Read: block.Timeline{Sessions: map[string]block.Counts{"p/1": {count}}}}
		request := wire.HelloRequest{Cluster: cluster, Known: known.Contents, Water: known, Timeline: timeline}
		if err := a.call(wire.OpHello, request, nil, &reply); err != nil {
			t.Fatal(err)
		}
		known = block.Watermark{Contents: reply.Incarnation, Mark: reply.Water}
		return reply
	}
	for range 3 {
		greet()
	}
	before := known
	s.Erase()
	now := greet()
	if now.Incarnation.Number() != before.Contents.Number()+1 || now.Water >= before.Mark {
		t.Fatalf("contents %+v were lost, and are %q under mark %d now", before, now.Incarnation, now.Water)
	}
	request := wire.AttachRequest{Cluster: cluster, Incarnation: now.Incarnation, Water: known}
	if err := a.call(wire.OpAttach, request, nil, nil); err != nil {
		t.Error(err)
	}
	if again := greet(); again.Incarnation != now.Incarnation || !again.Registered || again.Water <= now.Water {
		t.Errorf("contents %q under mark %d are %+v after nothing but an attach", now.Incarnation, now.Water, again)
	}
	// What was accepted is in the new contents too: it outlasts the agent.
	a.restart()
	var reply wire.HelloReply
	err := a.call(wire.OpHello, wire.HelloRequest{Cluster: cluster}, nil, &reply)
	if err != nil || !slices.Equal(reply.Starts, []string{"p/1"}) {
		t.Errorf("an agent that is started again knows %v, %v", reply.Starts, err)
	}
}

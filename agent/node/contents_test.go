package node_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/restripe/restripe/agent/node"
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
}

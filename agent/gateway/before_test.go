package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/wire"
)

// before makes agents answer as those of the release before: they say that they understand the first version of the protocol, refuse
// operations and skip fields of the next.
type before struct {
	refused atomic.Int64 // operations they do not know
}

func (b *before) listenAndServe(ctx context.Context, address string, n *node.Node, _ bool) (net.Addr, <-chan error, error) {
	listener, err := wire.Listen(ctx, address, false)
	if err != nil {
		return nil, nil, err
	}
	ended := make(chan error, 1)
	go func() {
		ended <- wire.NewServer(wire.ServerOptions{}).Serve(ctx, listener,
			func(ctx context.Context, op wire.Op, header []byte, payload *wire.Payload) (any, []byte, func(), error) {
				var err error
				switch op {
				case wire.OpDeliverLast:
					b.refused.Add(1)
					return nil, nil, nil, fmt.Errorf("%w: operation %d", wire.ErrUnsupported, op)
				case wire.OpRun:
					header, err = skip(header, func(r *wire.RunRequest) { r.Speaks = nil })
				case wire.OpRead:
					header, err = skip(header, func(r *wire.ReadRequest) { r.Short = false })
				}
				if err != nil {
					return nil, nil, nil, err
				}
				reply, bytes, release, err := n.Handle(ctx, op, header, payload)
				if hello, greeted := reply.(wire.HelloReply); greeted {
					hello.Versions = wire.Versions{Least: 1, Most: 1}
					reply = hello
				}
				return reply, bytes, release, err
			})
	}()
	return listener.Addr(), ended, nil
}

// skip returns a request without what its reader does not know.
func skip[Request any](header []byte, drop func(*Request)) ([]byte, error) {
	var request Request
	if err := wire.Decode(header, &request); err != nil {
		return nil, err
	}
	drop(&request)
	return cbor.Marshal(request)
}

// Agents of the release before work beside those of this one: transitions and repairs end in the right bytes, and nobody is sent
// what it does not know. Where all are of the release before, whole cells are sent, where none are, less.
func TestAgentsOfTheReleaseBeforeAreSentWholeCells(t *testing.T) {
	t.Parallel()
	everybody := []block.NodeID{"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9"}
	for name, old := range map[string][]block.NodeID{"none": nil, "some": {"n2", "n4", "n5", "n9"}, "all": everybody} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			release := &before{}
			c := newCluster(t, 9, func(agent *testAgent) {
				if slices.Contains(old, agent.id) {
					agent.before = release
				}
			})
			want := map[string][]byte{}
			for i, size := range []int{1 << 10, 9_000, 100_000} { // the first lies in a group of its own, the last ends within a cell
				key := fmt.Sprint("firm/", size)
				want[key] = noise(size, uint64(i))
				c.put(key, want[key], api.PutOptions{})
			}
			for _, to := range []string{"rs(3,3)", "rs(6,3)", "rs(3,2)"} {
				done := c.transition(api.TransitionRequest{Selector: api.Selector{Class: "firm"}, To: to})
				if done.State != api.TransitionDone {
					t.Fatalf("to %s: %+v", to, done)
				}
				expectAsPlanned(t, "to "+to, done.Measured, done.Predicted)
				switch saved := done.Predicted.BytesSent - done.Measured.BytesSent; {
				case name == "all" && saved != 0:
					t.Errorf("to %s: %d bytes fewer were sent than whole cells have", to, saved)
				case name == "none" && saved == 0 && done.Measured.BlocksSent > 0:
					t.Errorf("to %s: whole cells were sent: %+v", to, done.Measured)
				}
			}
			for key, data := range want {
				c.lose(key, 0)
				if got := c.get(key); !bytes.Equal(got, data) { // decoded, and rebuilt
					t.Errorf("%s differs", key)
				}
				c.check(key, data)
			}
			if refused := release.refused.Load(); refused > 0 {
				t.Errorf("%d messages were refused", refused)
			}
			c.audit()
		})
	}
}

package node_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/mem"
	"github.com/restripe/restripe/agent/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const cluster = "test-cluster"

var fingerprintKey = [16]byte{9, 8, 7, 6, 5, 4, 3, 2, 1}

// agent is one node with its store, served over loopback TCP, and a client for it.
type agent struct {
	t       testing.TB
	id      block.NodeID
	store   store.Store
	options node.Options
	address string
	client  *wire.Client
	stop    func()
}

func start(t testing.TB, id block.NodeID, s store.Store, options node.Options) *agent {
	t.Helper()
	options.ID, options.Store, options.Logger = id, s, slog.New(slog.DiscardHandler)
	a := &agent{t: t, id: id, store: s, options: options, address: "127.0.0.1:0"}
	a.serve()
	a.client = wire.NewClient(a.address)
	t.Cleanup(func() {
		a.stop()
		if err := a.client.Close(); err != nil {
			t.Errorf("closing the client of %s: %v", id, err)
		}
	})
	return a
}

func (a *agent) serve() {
	a.t.Helper()
	n, err := node.New(a.options)
	if err != nil {
		a.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var address net.Addr
	var ended <-chan error
	address, ended, err = node.ListenAndServe(ctx, a.address, n, false)
	if err != nil {
		cancel()
		a.t.Fatal(err)
	}
	a.address = address.String()
	a.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			a.t.Errorf("serving %s: %v", a.id, err)
		}
		if err := n.Close(); err != nil {
			a.t.Errorf("closing %s: %v", a.id, err)
		}
	})
}

// restart stops the process, as it were, and starts it over the same store at the same address.
func (a *agent) restart() {
	a.t.Helper()
	a.stop()
	a.serve()
	// The first call may still meet the end of the old connection.
	for err := a.call(wire.OpHello, wire.HelloRequest{}, nil, nil); err != nil; err = a.call(wire.OpHello, wire.HelloRequest{}, nil, nil) {
		if !errors.Is(err, wire.ErrUnreachable) {
			a.t.Fatal(err)
		}
	}
}

func (a *agent) hello() wire.HelloReply {
	a.t.Helper()
	var hello wire.HelloReply
	if err := a.call(wire.OpHello, wire.HelloRequest{}, nil, &hello); err != nil {
		a.t.Fatalf("greeting %s: %v", a.id, err)
	}
	return hello
}

func (a *agent) attach() block.Incarnation {
	a.t.Helper()
	incarnation := a.hello().Incarnation
	if err := a.call(wire.OpAttach, wire.AttachRequest{Cluster: cluster, Incarnation: incarnation, FingerprintKey: fingerprintKey}, nil, nil); err != nil {
		a.t.Fatalf("attaching %s: %v", a.id, err)
	}
	return incarnation
}

func (a *agent) call(op wire.Op, request any, payload []byte, reply any) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err := a.client.Call(ctx, op, request, payload, reply)
	return err
}

func (a *agent) read(address block.Address, ranges ...wire.Range) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return a.client.Call(ctx, wire.OpRead, wire.ReadRequest{Address: address, Ranges: ranges}, nil, nil)
}

func (a *agent) write(header block.Header, payload []byte) (block.Receipt, error) {
	var receipt block.Receipt
	err := a.call(wire.OpWrite, wire.WriteRequest{Header: header}, payload, &receipt)
	return receipt, err
}

func stamp(sequence uint64) block.Stamp { return block.Stamp{Sequence: sequence, Salt: 77} }

var group = block.GroupID{Stamp: stamp(1)}

func header(id block.NodeID, slot int, s block.Stamp, first, units, unitBytes int) block.Header {
	return block.Header{
		Group: group, Slot: slot, Stamp: s, Node: id, Class: "test", Ladder: "rep(3),rs(3,2)", Mode: "free",
		LayoutVersion: 1, Columns: 3, Scheme: "rep(3)", FirstUnit: first, Units: units, UnitBytes: unitBytes,
	}
}

// attached starts one attached node over a memory store.
func attached(t *testing.T, options node.Options) (*agent, *mem.Store) {
	t.Helper()
	s := mem.New(0)
	a := start(t, "n1", s, options)
	a.attach()
	return a, s
}

// five starts the nodes of a 3+2 group: positions 0 to 2 are columns, 3 and 4 parity rows.
func five(t *testing.T, options node.Options) []*agent {
	t.Helper()
	return several(t, 5, options)
}

func several(t testing.TB, count int, options node.Options) []*agent {
	t.Helper()
	agents := make([]*agent, count)
	for i := range agents {
		agents[i] = start(t, nodeName(i), mem.New(0), options)
		agents[i].attach()
	}
	return agents
}

var printer = kernel.NewFingerprinter(kernel.Key(fingerprintKey))

func nodeName(i int) block.NodeID { return block.NodeID(fmt.Sprintf("n%d", i)) }

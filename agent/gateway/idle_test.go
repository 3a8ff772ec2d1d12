package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
	catalogmem "github.com/restripe/restripe/agent/catalog/mem"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/job"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/heat"
	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/store/mem"
	"github.com/restripe/restripe/agent/wire"
)

// What gateways ask of a catalog while nobody asks anything of them. The clock is the test's, and connections are pipes, so that
// minutes are over at once and counts are exact.

// asked is an engine that counts what one gateway asks of it.
type asked struct {
	kv.Engine
	delay time.Duration // of a scan
	mutex sync.Mutex
	calls map[string]int // by operation and prefix
	bytes int            // of values that were read
}

func (c *asked) note(operation string, keys []string, values ...[]byte) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	var prefixes []string
	for _, key := range keys {
		kind, _, _ := strings.Cut(key, "/")
		if kind == "meta" {
			kind = key
		}
		prefixes = append(prefixes, kind)
	}
	slices.Sort(prefixes)
	c.calls[operation+" "+strings.Join(slices.Compact(prefixes), " ")]++
	for _, value := range values {
		c.bytes += len(value)
	}
}

// Read implements kv.Engine.
func (c *asked) Read(ctx context.Context, keys ...string) ([][]byte, error) {
	values, err := c.Engine.Read(ctx, keys...)
	c.note("read", keys, values...)
	return values, err
}

// Scan implements kv.Engine.
func (c *asked) Scan(ctx context.Context, prefix, after string, limit int) ([]kv.Record, error) {
	if c.delay > 0 {
		over := make(chan struct{})
		time.AfterFunc(c.delay, func() { close(over) })
		<-over
	}
	records, err := c.Engine.Scan(ctx, prefix, after, limit)
	var values [][]byte
	for _, record := range records {
		values = append(values, record.Value)
	}
	c.note("scan", []string{prefix}, values...)
	return records, err
}

// Update implements kv.Engine.
func (c *asked) Update(ctx context.Context, checks []kv.Check, writes []kv.Write) ([]int, error) {
	var keys []string
	for _, write := range writes {
		keys = append(keys, write.Key)
	}
	c.note("update", keys)
	return c.Engine.Update(ctx, checks, writes)
}

// take returns what was asked since it was last called.
func (c *asked) take() (calls map[string]int, bytes int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	calls, bytes = c.calls, c.bytes
	c.calls, c.bytes = map[string]int{}, 0
	return calls, bytes
}

// pipes is a network whose listeners are found by name.
type pipes struct {
	mutex     sync.Mutex
	listeners map[string]*pipeListener
}

type pipeListener struct {
	name   string
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) listen(name string) net.Listener {
	l := &pipeListener{name: name, conns: make(chan net.Conn), closed: make(chan struct{})}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.listeners[name] = l
	return l
}

func (p *pipes) dial(ctx context.Context, name string) (net.Conn, error) {
	p.mutex.Lock()
	l := p.listeners[name]
	p.mutex.Unlock()
	if l == nil {
		return nil, fmt.Errorf("nobody listens at %q", name)
	}
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: l.name, Net: "pipe"} }

// idlers are gateways over one catalog and nodes, all in one bubble of time.
type idlers struct {
	t       *testing.T
	engine  *catalogmem.Engine
	network *pipes
	nodes   []catalog.Node
}

func newIdlers(t *testing.T, nodes int) *idlers {
	t.Helper()
	i := &idlers{t: t, engine: catalogmem.New(), network: &pipes{listeners: map[string]*pipeListener{}}}
	for n := range nodes {
		i.addNode(fmt.Sprintf("n%d", n+1))
	}
	return i
}

func (i *idlers) addNode(name string) {
	i.t.Helper()
	n, err := node.New(node.Options{ID: block.NodeID(name), Store: mem.New(0), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		i.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	listener := i.network.listen(name)
	go func() { ended <- wire.NewServer(wire.ServerOptions{AllowRemote: true}).Serve(ctx, listener, n.Handle) }()
	i.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			i.t.Error(err)
		}
		if err := n.Close(); err != nil {
			i.t.Error(err)
		}
	})
	i.nodes = append(i.nodes, catalog.Node{ID: block.NodeID(name), Address: name})
}

func (i *idlers) gateway(id string) (*gateway.Gateway, *asked) {
	i.t.Helper()
	return i.slowGateway(id, 0)
}

// slowGateway is a gateway to which a scan of the catalog takes a while.
func (i *idlers) slowGateway(id string, delay time.Duration) (*gateway.Gateway, *asked) {
	i.t.Helper()
	classes, err := api.ParseClasses([]byte(testClasses))
	if err != nil {
		i.t.Fatal(err)
	}
	engine := &asked{Engine: i.engine, delay: delay, calls: map[string]int{}}
	records, err := catalog.Open(i.t.Context(), engine, catalog.Owner(id, "start"))
	if err != nil {
		i.t.Fatal(err)
	}
	g, err := gateway.New(context.Background(), gateway.Options{
		Catalog: records, ID: id, Start: "start", Classes: classes, Nodes: i.nodes, Dial: i.network.dial, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		i.t.Fatal(err)
	}
	i.t.Cleanup(func() {
		if err := g.Close(); err != nil {
			i.t.Error(err)
		}
	})
	return g, engine
}

// idleMinutes is how long gateways are watched while nobody asks anything of them.
const idleMinutes = 10

// idleCalls are the most calls of a kind that one idle gateway makes in idleMinutes, with the defaults of all periods: what it asks
// every second is how far the catalog has come, which agents are shown, and nothing else.
var idleCalls = map[string]int{
	"read meta/disowned w": 1000, "scan w": 1000, // how far the catalog has come, every second, and where another gateway showed more
	"read meta/alarm": 130, "read meta/rebuilt": 130, // a sweep, every five seconds
	"scan d": 130, "scan e": 130, "scan f": 130, "scan i": 130, "scan r": 130, "scan p": 130, "scan t": 130,
	"scan view": 130, "update v view": 150, "read view": 20, // signs of life, every five seconds, and marks when they have changed
	"scan n": 25, "scan x": 25, "read meta/members": 25, // what is told of, every half minute for safety
	"scan j": 25, "read meta/classes": 25, "read meta/repair": 25, "read meta/scrub": 30,
	"scan h": 2 * heat.Parts, "scan g": 30, "scan o": 15, // heat, and compaction as below
	"read meta/balance": 25,
	"read meta/compact": 40, "update meta/compact v": 25, // its looks, one in ten minutes
	"update meta/scrub told v": 4, // a scrub of nothing begins and ends
	"update meta/scrub v":      4, // its progress, where that is saved before it has ended
}

// Whoever changes something tells the other gateways, which read it without the clock moving on; and nothing is read of which nobody
// told.
func TestChangesAreToldOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := newIdlers(t, 9)
		one, itself := i.gateway("one")
		other, engine := i.gateway("other")
		if _, err := one.Put(t.Context(), "k", bytes.NewReader(make([]byte, 100_000)), api.PutOptions{Size: 100_000}); err != nil {
			t.Fatal(err)
		}
		slow := api.TransitionRequest{ID: "slow", Selector: api.Selector{Class: "default"}, To: "rs(3,2)", BytesPerSecond: 1}
		if _, err := one.StartTransition(t.Context(), slow); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute + 300*time.Millisecond) // past the ticks of every second
		later := func() {                                // than what was told of a moment ago, after which is a pause
			<-time.After(2 * time.Second)
			synctest.Wait()
			itself.take()
			engine.take()
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		told := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			calls, _ := engine.take()
			if got := slices.Sorted(maps.Keys(calls)); !slices.Equal(got, want) {
				t.Errorf("told of %s, the other gateway did %v, want %v", what, got, want)
			}
		}
		members := []string{"read meta/members", "scan n", "scan x"}
		later()
		told("nothing")
		_, err := one.DrainNode(t.Context(), "n5", api.DrainRequest{})
		must(err)
		told("a node", members...)
		if !slices.ContainsFunc(other.Known(), func(m member.Member) bool { return m.Node.State == catalog.NodeDraining }) {
			t.Error("the other gateway does not know what it was told")
		}
		later()
		_, err = one.SetPatience(t.Context(), api.Patience{DownAfterSeconds: 40, OutAfterSeconds: 900})
		must(err)
		told("patience", members...)
		later()
		_, err = one.PauseRepair(t.Context())
		must(err)
		told("repair", "read meta/repair")
		later()
		_, err = one.PauseScrub(t.Context())
		must(err)
		told("the scrub", "read meta/scrub")
		later()
		_, err = one.PutClass(t.Context(), api.ClassSpec{Name: "new", Ladder: "rep(3)", Prefixes: []string{"new/"}})
		must(err)
		told("a class", "read meta/classes", "scan c")
		later()
		_, err = other.PauseTransition(t.Context(), slow.ID)
		must(err)
		synctest.Wait()
		if calls, _ := itself.take(); calls["scan j"] != 1 || calls["read j"] == 0 {
			t.Errorf("told of a transition that it carries out, a gateway did %v", calls)
		}
		<-time.After(1100 * time.Millisecond)
		if calls, _ := itself.take(); calls["update j v"] != 0 {
			t.Errorf("a gateway goes on with a transition that was paused elsewhere: %v", calls)
		}
	})
}

// Agents that are attached at the same time share the reads of what all gateways heard of their stores.
func TestAgentsThatAreAttachedTogetherShareReadsOfViews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const nodes = 40
		_, engine := newIdlers(t, nodes).slowGateway("gw", 10*time.Millisecond)
		calls, _ := engine.take()
		if calls["scan view"] > 5 || calls["scan x"] < nodes {
			t.Errorf("attaching %d agents: %v", nodes, calls)
		}
	})
}

// untelling is an engine over which a release writes that tells of nothing.
type untelling struct{ kv.Engine }

// Update implements kv.Engine.
func (u untelling) Update(ctx context.Context, checks []kv.Check, writes []kv.Write) ([]int, error) {
	writes = slices.Clone(writes)
	for i := range writes {
		writes[i].Notify = false
	}
	return u.Engine.Update(ctx, checks, writes)
}

// What nobody told of, as whoever made it is of an earlier release, is known within job.SafetyPeriod.
func TestChangesThatNobodyToldOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := newIdlers(t, 9)
		g, _ := i.gateway("gw")
		earlier, err := catalog.Open(t.Context(), untelling{i.engine}, catalog.Owner("earlier", "start"))
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute + 300*time.Millisecond)
		nodes, err := earlier.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		draining := nodes[4]
		draining.State = catalog.NodeDraining
		if _, err := earlier.ChangeNode(t.Context(), nodes[4], draining); err != nil {
			t.Fatal(err)
		}
		isKnown := func() bool {
			return slices.ContainsFunc(g.Known(), func(m member.Member) bool { return m.Node.State == catalog.NodeDraining })
		}
		synctest.Wait()
		if isKnown() {
			t.Error("somebody told of it")
		}
		<-time.After(job.SafetyPeriod)
		if !isKnown() {
			t.Errorf("it is not known after %v", job.SafetyPeriod)
		}
	})
}

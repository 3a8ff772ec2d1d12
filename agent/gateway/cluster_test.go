package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	catalogmem "github.com/restripe/restripe/agent/catalog/mem"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/pki"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/mem"
)

// cluster is a gateway and agents in this process, talking over loopback, with stores and catalog in memory.
type cluster struct {
	t       *testing.T
	engine  *catalogmem.Engine
	catalog *catalog.Catalog
	gateway *gateway.Gateway
	classes []api.Class
	agents  []*testAgent
	starts  int
	reads   api.RepairOnRead // what reads do about lost blocks; empty: what their class says
}

type testAgent struct {
	id      block.NodeID
	store   *mem.Store
	wrap    func(store.Store) store.Store // what lies between the agent and its store; nil: nothing
	address string
	silence time.Duration // 0: the default
	keep    time.Duration // how often its mark is written; 0: the default
	stop    func()
	own     *pki.Source // its certificate; nil: none
	release string
	direct  string  // where gateways may read its store
	before  *before // it is of the release before; nil: of this one
}

const testClasses = `classes:
- {name: default, ladder: 'rep(3),rs(3,2),rs(6,2)', prefixes: [''], packBelow: 4KiB, groupBytes: 64KiB}
- {name: odd, ladder: 'rs(4,2),rs(5,2)', prefixes: ['odd/'], packBelow: 1KiB, groupBytes: 96KiB}
- {name: temporary, ladder: 'rep(1)', prefixes: ['tmp/'], packBelow: 0, groupBytes: 64KiB}
- {name: firm, ladder: 'rs(3,2),rs(3,3),rs(6,3)', prefixes: ['firm/'], packBelow: 1KiB, groupBytes: 64KiB}
`

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newCluster starts agents, each with a store of its own that options may change, and a gateway.
func newCluster(t *testing.T, agents int, options ...func(*testAgent)) *cluster {
	t.Helper()
	classes, err := api.ParseClasses([]byte(testClasses))
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, engine: catalogmem.New(), classes: classes}
	t.Cleanup(func() {
		c.stopGateway()
		for _, agent := range c.agents {
			agent.stop()
		}
	})
	for range agents {
		c.addAgent(options...)
	}
	c.startGateway()
	c.answering()
	return c
}

// newCertifiedCluster is newCluster where every part has a certificate of the authority.
func newCertifiedCluster(t *testing.T, agents int, authority *pki.Authority, directory string) *cluster {
	t.Helper()
	own := func(role pki.Role, name string) *pki.Source {
		t.Helper()
		return issued(t, authority, role, name, filepath.Join(directory, name))
	}
	c := newCluster(t, 0)
	c.stopGateway()
	for range agents {
		c.addAgent(func(a *testAgent) { a.own = own(pki.RoleAgent, string(a.id)) })
	}
	gateway := own(pki.RoleGateway, "gw")
	c.catalog, c.gateway = c.makeGateway("gw", certified(gateway))
	c.answering()
	return c
}

// answering waits until the gateway knows that every node answers: on a busy machine one may miss the first greeting.
func (c *cluster) answering() {
	c.t.Helper()
	for _, agent := range c.agents {
		c.noticed(agent.id, "up")
	}
}

// addAgent starts one more agent. No gateway that runs already knows of it.
func (c *cluster) addAgent(options ...func(*testAgent)) *testAgent {
	c.t.Helper()
	agent := &testAgent{id: block.NodeID(fmt.Sprintf("n%d", len(c.agents)+1)), store: mem.New(0), address: "127.0.0.1:0"}
	for _, option := range options {
		option(agent)
	}
	c.startAgent(agent)
	c.agents = append(c.agents, agent)
	return agent
}

// agent returns the agent of a node.
func (c *cluster) agent(id block.NodeID) *testAgent {
	c.t.Helper()
	for _, agent := range c.agents {
		if agent.id == id {
			return agent
		}
	}
	c.t.Fatalf("there is no agent %s", id)
	return nil
}

func (c *cluster) startAgent(agent *testAgent) {
	c.t.Helper()
	var behind store.Store = agent.store
	if agent.wrap != nil {
		behind = agent.wrap(behind)
	}
	n, err := node.New(node.Options{
		ID: agent.id, Store: behind, Logger: slog.New(slog.DiscardHandler), Silence: agent.silence, KeepEvery: agent.keep,
		Certificates: agent.own, Release: agent.release, Direct: agent.direct,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	serve := node.ListenAndServe
	if agent.before != nil {
		serve = agent.before.listenAndServe
	}
	address, ended, err := serve(ctx, agent.address, n, false)
	if err != nil {
		c.t.Fatal(err)
	}
	agent.address = address.String()
	stopped := false
	agent.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			c.t.Errorf("agent %s: %v", agent.id, err)
		}
		if err := n.Close(); err != nil {
			c.t.Errorf("agent %s: %v", agent.id, err)
		}
	}
}

func (c *cluster) startGateway() {
	c.t.Helper()
	c.catalog, c.gateway = c.makeGateway("gw")
}

// newGateway makes one more gateway of that name, with options changed, and closes it when the test ends.
func (c *cluster) newGateway(id string, changes ...func(*gateway.Options)) *gateway.Gateway {
	c.t.Helper()
	_, made := c.makeGateway(id, changes...)
	c.t.Cleanup(func() {
		if err := made.Close(); err != nil {
			c.t.Errorf("closing gateway %s: %v", id, err)
		}
	})
	return made
}

// makeGateway makes a gateway of that name over the cluster's records and agents. The caller closes it.
func (c *cluster) makeGateway(id string, changes ...func(*gateway.Options)) (*catalog.Catalog, *gateway.Gateway) {
	c.t.Helper()
	c.starts++
	start := fmt.Sprintf("start%d", c.starts)
	records, err := catalog.Open(c.t.Context(), c.engine, catalog.Owner(id, start), catalog.WithGrace(0))
	if err != nil {
		c.t.Fatal(err)
	}
	var nodes []catalog.Node
	for _, agent := range c.agents {
		nodes = append(nodes, catalog.Node{ID: agent.id, Address: agent.address})
	}
	options := gateway.Options{
		Catalog: records, ID: id, Start: start, Classes: c.classes, Nodes: nodes, SweepEvery: -1,
		CallTimeout: 10 * time.Second, Logger: slog.New(slog.DiscardHandler),
	}
	for _, change := range changes {
		change(&options)
	}
	made, err := gateway.New(c.t.Context(), options)
	if err != nil {
		c.t.Fatal(err)
	}
	return records, made
}

func (c *cluster) stopGateway() {
	if c.gateway != nil {
		if err := c.gateway.Close(); err != nil {
			c.t.Errorf("closing the gateway: %v", err)
		}
		c.gateway = nil
	}
}

func (c *cluster) put(key string, data []byte, options api.PutOptions) api.Object {
	c.t.Helper()
	if options.Size == 0 {
		options.Size = int64(len(data))
	}
	object, err := c.gateway.Put(c.t.Context(), key, bytes.NewReader(data), options)
	if err != nil {
		c.t.Fatalf("putting %q: %v", key, err)
	}
	return object
}

func (c *cluster) get(key string) []byte {
	c.t.Helper()
	data, err := c.read(key)
	if err != nil {
		c.t.Fatalf("getting %q: %v", key, err)
	}
	return data
}

func (c *cluster) read(key string) ([]byte, error) { return c.readFrom(c.gateway, key) }

func (c *cluster) readFrom(g *gateway.Gateway, key string) ([]byte, error) {
	reader, err := g.Open(c.t.Context(), key)
	if err != nil {
		return nil, err
	}
	if c.reads != "" {
		reader.RepairOnRead(c.reads)
	}
	var data bytes.Buffer
	err = reader.WriteTo(c.t.Context(), &data, 0, reader.Size())
	return data.Bytes(), err
}

func (c *cluster) check(key string, want []byte) {
	c.t.Helper()
	if got := c.get(key); !bytes.Equal(got, want) {
		c.t.Fatalf("%q reads back %d bytes that differ from the %d written", key, len(got), len(want))
	}
}

// transition runs one to its end.
func (c *cluster) transition(request api.TransitionRequest) api.Transition {
	c.t.Helper()
	t, err := c.gateway.StartTransition(c.t.Context(), request)
	if err != nil {
		c.t.Fatalf("starting a transition: %v", err)
	}
	return c.ended(t.ID)
}

func (c *cluster) ended(id string) api.Transition {
	c.t.Helper()
	var t api.Transition
	c.await("the transition ends", func() bool {
		var err error
		t, err = c.gateway.Transition(c.t.Context(), id)
		return err == nil && t.State.Final()
	})
	return t
}

func (c *cluster) await(what string, holds func() bool) {
	c.t.Helper()
	deadline := time.After(time.Minute)
	for !holds() {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			c.t.Fatalf("after a minute it does not hold that %s", what)
		}
	}
}

// during does work again and again for a while.
func (c *cluster) during(while time.Duration, work func()) {
	c.t.Helper()
	began := time.Now()
	c.await("the while is over", func() bool {
		work()
		return time.Since(began) > while
	})
}

// stat describes an object by the gateway of the cluster.
func (c *cluster) stat(key string) api.Stat {
	c.t.Helper()
	stat, err := c.gateway.Stat(c.t.Context(), key)
	if err != nil {
		c.t.Fatalf("describing %q: %v", key, err)
	}
	return stat
}

// damage flips a bit in the payload of every block of one slot of the object's first group.
func (c *cluster) damage(key string, slot int) {
	c.t.Helper()
	for _, address := range c.blocks(key, slot) {
		if !c.agent(address.Node).store.Damage(address.Key(), func(value []byte) []byte {
			value[len(value)-100] ^= 4
			return value
		}) {
			c.t.Fatalf("%s is not stored on %s", address.Key(), address.Node)
		}
	}
}

// lose deletes every block of one slot of the object's first group.
func (c *cluster) lose(key string, slot int) {
	c.t.Helper()
	for _, address := range c.blocks(key, slot) {
		if err := c.agent(address.Node).store.Delete(c.t.Context(), address.Key()); err != nil {
			c.t.Fatal(err)
		}
	}
}

// blocks returns where the blocks of one slot of the object's first group are.
func (c *cluster) blocks(key string, slot int) (addresses []block.Address) {
	c.t.Helper()
	view, err := c.catalog.Group(c.t.Context(), c.stat(key).Groups[0].ID)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, item := range view.Slots[slot] {
		addresses = append(addresses, view.Address(slot, item))
	}
	return addresses
}

// isLate reports whether the gateway takes a node that is there for one that is not: on a busy machine it may be late with an answer.
func (c *cluster) isLate() bool {
	c.t.Helper()
	status, err := c.gateway.Status(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return slices.ContainsFunc(status.Nodes, func(node api.NodeStatus) bool {
		if node.State == "up" {
			return false
		}
		connection, err := net.Dial("tcp", c.agent(node.ID).address)
		if err == nil {
			_ = connection.Close()
		}
		return err == nil
	})
}

// audit checks the records, and that the stores hold exactly the blocks that the records name.
func (c *cluster) audit() {
	c.t.Helper()
	if err := c.catalog.Audit(c.t.Context()); err != nil {
		c.t.Fatalf("the records contradict each other: %v", err)
	}
	for began := time.Now(); ; {
		isLate := c.isLate() // before: it may answer as soon as it was left out
		result, err := c.gateway.Sweep(c.t.Context(), api.SweepRequest{})
		if err != nil {
			c.t.Fatal(err)
		}
		if result.NodesUnsearched+result.GravesLeft == 0 || !isLate || time.Since(began) > 5*time.Second {
			break
		}
	}
	named := map[string]bool{}
	views, err := c.catalog.ListGroups(c.t.Context(), block.GroupID{}, 100000)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := range views {
		for slot, items := range views[i].Slots {
			for _, item := range items {
				address := views[i].Address(slot, item)
				named[string(address.Node)+" "+address.Key()] = true
			}
		}
	}
	for _, agent := range c.agents {
		err := agent.store.List(c.t.Context(), block.KeyPrefix, func(key string, _ int64) error {
			if name := string(agent.id) + " " + key; !named[name] {
				c.t.Errorf("%s is stored and nobody names it", name)
			} else {
				delete(named, name)
			}
			return nil
		})
		if err != nil {
			c.t.Fatal(err)
		}
	}
	for name := range named {
		c.t.Errorf("%s is named and not stored", name)
	}
}

// noise returns n bytes that depend on the seed.
func noise(n int, seed uint64) []byte {
	source := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	data := make([]byte, n)
	if _, err := io.ReadFull(source, data); err != nil {
		panic(err) // ChaCha8 never fails
	}
	return data
}

package rebuild_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/mem"
	"github.com/restripe/restripe/agent/catalog/redis"
	"github.com/restripe/restripe/agent/catalog/sqlite"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/rebuild"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/open"
	"github.com/restripe/restripe/agent/store/storetest/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const classes = `classes:
- {name: default, ladder: 'rep(3),rs(3,2),rs(6,2)', prefixes: [''], packBelow: 4KiB, groupBytes: 64KiB}
- {name: firm, ladder: 'rs(3,2),rs(3,3)', prefixes: ['firm/'], packBelow: 1KiB, groupBytes: 64KiB}
- {name: kept, ladder: 'rep(3),rs(3,2)', prefixes: ['kept/'], packBelow: 4KiB, groupBytes: 64KiB, keepVersions: 2}
- {name: firmest, ladder: 'rep(1),rs(3,2)', prefixes: ['firmest/'], packBelow: 4KiB, groupBytes: 64KiB, keepVersions: durable}
`

// cluster is agents over stores that outlive them, and a gateway over a catalog that does not.
type cluster struct {
	t       *testing.T
	stores  []store.Store
	nodes   []catalog.Node
	stops   []func()
	engine  kv.Engine
	catalog *catalog.Catalog
	gateway *gateway.Gateway
	starts  int
}

func newCluster(t *testing.T, stores []store.Store) *cluster {
	t.Helper()
	c := &cluster{t: t, stores: stores, engine: mem.New()}
	c.startAgents()
	c.startGateway()
	t.Cleanup(func() {
		c.stopGateway()
		c.stopAgents()
	})
	return c
}

// startAgents starts an agent for each store, which serves nothing until it is attached.
func (c *cluster) startAgents() {
	c.t.Helper()
	c.nodes = nil
	for i, s := range c.stores {
		id := block.NodeID(fmt.Sprintf("n%d", i+1))
		n, err := node.New(node.Options{ID: id, Store: s, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			c.t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		address, ended, err := node.ListenAndServe(ctx, "127.0.0.1:0", n, false)
		if err != nil {
			c.t.Fatal(err)
		}
		c.nodes = append(c.nodes, catalog.Node{ID: id, Address: address.String()})
		c.stops = append(c.stops, func() {
			cancel()
			if err := errors.Join(<-ended, n.Close()); err != nil {
				c.t.Errorf("agent %s: %v", id, err)
			}
		})
	}
}

func (c *cluster) stopAgents() {
	for _, stop := range c.stops {
		stop()
	}
	c.stops = nil
}

func (c *cluster) startGateway() {
	c.t.Helper()
	c.starts++
	start := fmt.Sprintf("start%d", c.starts)
	var err error
	if c.catalog, err = catalog.Open(c.t.Context(), c.engine, catalog.Owner("gw", start), catalog.WithGrace(0)); err != nil {
		c.t.Fatal(err)
	}
	declared, err := api.ParseClasses([]byte(classes))
	if err != nil {
		c.t.Fatal(err)
	}
	c.gateway, err = gateway.New(c.t.Context(), gateway.Options{
		Catalog: c.catalog, ID: "gw", Start: start, Classes: declared, Nodes: c.nodes, SweepEvery: -1, ScrubEvery: -1, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) stopGateway() {
	if c.gateway != nil {
		if err := c.gateway.Close(); err != nil {
			c.t.Errorf("closing the gateway: %v", err)
		}
		c.gateway = nil
	}
}

// lose stops everything, throws the catalog away, starts the agents anew and makes a catalog from what they have.
func (c *cluster) lose(change func(*rebuild.Options)) *rebuild.Report {
	c.t.Helper()
	c.stopGateway()
	c.stopAgents()
	c.startAgents()
	options := rebuild.Options{Nodes: c.nodes, Modified: time.Now()}
	if change != nil {
		change(&options)
	}
	contents, report, err := rebuild.Run(c.t.Context(), options)
	if err != nil {
		c.t.Fatalf("rebuilding: %v", err)
	}
	c.engine = mem.New()
	if err := catalog.Restore(c.t.Context(), c.engine, contents, nil); err != nil {
		c.t.Fatalf("writing the catalog: %v", err)
	}
	if err := catalog.Restore(c.t.Context(), c.engine, contents, nil); !errors.Is(err, kv.ErrInUse) {
		c.t.Fatalf("a catalog that exists is written over: %v", err)
	}
	c.startGateway()
	return report
}

func (c *cluster) put(key string, data []byte, scheme string) {
	c.t.Helper()
	if _, err := c.gateway.Put(c.t.Context(), key, bytes.NewReader(data), api.PutOptions{Size: int64(len(data)), Scheme: scheme}); err != nil {
		c.t.Fatalf("putting %q: %v", key, err)
	}
}

func (c *cluster) update(key string, data []byte, offset int, change []byte) {
	c.t.Helper()
	if _, err := c.gateway.Update(c.t.Context(), key, int64(offset), change, nil); err != nil {
		c.t.Fatalf("updating %q: %v", key, err)
	}
	copy(data[offset:], change)
}

func (c *cluster) transition(prefix, to string) {
	c.t.Helper()
	encoded := api.EncodeKey(prefix)
	t, err := c.gateway.StartTransition(c.t.Context(), api.TransitionRequest{Selector: api.Selector{Prefix64: &encoded}, To: to})
	if err != nil {
		c.t.Fatal(err)
	}
	c.ended(t)
}

// ended waits until a transition has ended.
func (c *cluster) ended(t api.Transition) {
	c.t.Helper()
	var err error
	for !t.State.Final() {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-c.t.Context().Done():
			c.t.Fatal("the transition does not end")
		}
		if t, err = c.gateway.Transition(c.t.Context(), t.ID); err != nil {
			c.t.Fatal(err)
		}
	}
	if t.State != api.TransitionDone {
		c.t.Fatalf("the transition: %+v", t)
	}
}

func (c *cluster) sweep() api.SweepResult {
	c.t.Helper()
	result, err := c.gateway.Sweep(c.t.Context(), api.SweepRequest{})
	if err != nil {
		c.t.Fatal(err)
	}
	return result
}

// check reads every object back and sees that there is no other.
func (c *cluster) check(want map[string][]byte) {
	c.t.Helper()
	list, err := c.gateway.List(c.t.Context(), "", "", 100000)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := range list.Objects {
		key, err := api.DecodeKey(list.Objects[i].Key64)
		if err != nil {
			c.t.Fatal(err)
		}
		if _, wanted := want[key]; !wanted {
			c.t.Errorf("there is an object %q", key)
		}
	}
	for key, data := range want {
		reader, err := c.gateway.Open(c.t.Context(), key)
		if err != nil {
			c.t.Errorf("opening %q: %v", key, err)
			continue
		}
		var got bytes.Buffer
		if err := reader.WriteTo(c.t.Context(), &got, 0, reader.Size()); err != nil || !bytes.Equal(got.Bytes(), data) {
			c.t.Errorf("%q reads back %d bytes that are not the %d written, %v", key, got.Len(), len(data), err)
		}
	}
	if err := c.catalog.Audit(c.t.Context()); err != nil {
		c.t.Errorf("the records contradict each other: %v", err)
	}
}

func noise(n int, seed uint64) []byte {
	data := make([]byte, n)
	source := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	if _, err := io.ReadFull(source, data); err != nil {
		panic(err) // invariant: ChaCha8 never fails
	}
	return data
}

// fill writes objects of every kind and returns what they hold.
func (c *cluster) fill() map[string][]byte {
	c.t.Helper()
	want := map[string][]byte{}
	put := func(key string, data []byte, scheme string) {
		c.put(key, data, scheme)
		want[key] = data
	}
	for i := range 12 {
		put(fmt.Sprintf("small/%d", i), noise(100+200*i, uint64(i)), "")
	}
	put("large", noise(300_000, 50), "") // five groups
	put("wide", noise(100_000, 51), "rs(6,2)")
	put("firm/one", noise(90_000, 52), "")
	put("cold/one", noise(150_000, 53), "")
	put("cold/small", noise(900, 54), "")
	put("over", noise(70_000, 55), "")
	put("over", noise(80_000, 56), "rs(3,2)")
	put("key with \x00 any bytes \xff", noise(5_000, 57), "")
	stream := noise(2*64<<10, 58) // of unknown size, and the end is that of a group
	if _, err := c.gateway.Put(c.t.Context(), "stream", io.MultiReader(bytes.NewReader(stream)), api.PutOptions{Size: -1}); err != nil {
		c.t.Fatal(err)
	}
	want["stream"] = stream
	c.transition("cold/", "rs(6,2)")
	c.transition("firm/", "rs(3,3)")
	c.update("large", want["large"], 60_000, noise(20_000, 60)) // over a border of groups
	c.update("large", want["large"], 100, noise(50, 61))
	c.update("cold/one", want["cold/one"], 500, noise(2_000, 62))
	c.update("wide", want["wide"], 99_000, noise(1_000, 63))
	put("gone", noise(60_000, 64), "")
	if err := c.gateway.Delete(c.t.Context(), "gone", nil); err != nil {
		c.t.Fatal(err)
	}
	delete(want, "gone")
	c.sweep()
	c.sweep() // groups freed by the first are buried, their blocks deleted by the second
	return want
}

// stores opens a store for each node, of one kind.
func stores(t *testing.T, kind string, count int) []store.Store {
	t.Helper()
	var redis string
	if kind == "redis" {
		redis = server.Redis(t).Addr
	}
	var list []store.Store
	for i := range count {
		address := map[string]func() string{
			"mem": func() string { return "mem:" }, "file": func() string { return "file:" + t.TempDir() },
			"redis":     func() string { return fmt.Sprintf("redis://%s/%d", redis, i) },
			"memcached": func() string { return "memcached://" + server.Memcached(t, "-m", "16").Addr },
		}[kind]()
		s, err := open.Open(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Errorf("closing the store: %v", err)
			}
		})
		list = append(list, s)
	}
	return list
}

// TestEveryObjectComesBack loses the catalog of a cluster that is stopped, for each kind of store.
func TestEveryObjectComesBack(t *testing.T) {
	for _, kind := range []string{"mem", "file", "redis", "memcached"} {
		t.Run(kind, func(t *testing.T) {
			c := newCluster(t, stores(t, kind, 9))
			want := c.fill()
			report := c.lose(nil)
			if report.Objects != len(want) || report.Unnamed != 0 || len(report.Problems) > 0 || !slices.Equal(report.Classes, []string{"default", "firm"}) {
				t.Errorf("%+v", report)
			}
			c.check(want)
			// It goes on as before: what is written, updated and moved fits what was there.
			want["new"] = noise(70_000, 80)
			c.put("new", want["new"], "")
			c.update("large", want["large"], 200_000, noise(500, 81))
			c.transition("over", "rs(6,2)")
			if err := c.catalog.Accept(t.Context()); err != nil { // until then what was replaced is kept, too
				t.Fatal(err)
			}
			c.sweep()
			c.check(want)
			c.scrubClean()
			report = c.lose(nil)
			if report.Objects != len(want) || len(report.Problems) > 0 {
				t.Errorf("the second time: %+v", report)
			}
			c.check(want)
		})
	}
}

// scrubClean audits every group.
func (c *cluster) scrubClean() {
	c.t.Helper()
	scrub, err := c.gateway.StartScrub(c.t.Context(), api.ScrubRequest{})
	for err == nil && scrub.State != api.ScrubDone {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-c.t.Context().Done():
			c.t.Fatal("the scrub does not end")
		}
		scrub, err = c.gateway.Scrub(c.t.Context())
	}
	if err != nil || scrub.Findings > 0 || scrub.GroupsDone == 0 || scrub.GroupsIncomplete > 0 {
		c.t.Fatalf("scrubbing: %+v, %v", scrub, err)
	}
}

// TestEnginesOfCatalogs: what was rebuilt goes into a file as it does into a server.
func TestEnginesOfCatalogs(t *testing.T) {
	c := newCluster(t, stores(t, "mem", 9))
	want := c.fill()
	c.lose(nil)
	c.stopGateway()
	contents, _, err := rebuild.Run(t.Context(), rebuild.Options{Nodes: c.nodes, Modified: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func() (kv.Engine, error){
		"sqlite": func() (kv.Engine, error) {
			return sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "catalog.db"))
		},
		"redis": func() (kv.Engine, error) { return redis.Open(t.Context(), "redis://"+server.Redis(t).Addr) },
	} {
		t.Run(name, func(t *testing.T) {
			engine, err := open()
			if err != nil {
				t.Fatal(err)
			}
			if err := catalog.Restore(t.Context(), engine, contents, nil); err != nil {
				t.Fatal(err)
			}
			if err := catalog.CheckEmpty(t.Context(), engine); !errors.Is(err, kv.ErrInUse) {
				t.Errorf("what was filled is said to be empty: %v", err)
			}
			c.engine = engine
			c.startGateway()
			c.check(want)
			c.stopGateway()
			if err := c.catalog.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestBlocksThatNobodyNamesAreKept: what a rebuild could not place stays until the catalog is accepted.
func TestBlocksThatNobodyNamesAreKept(t *testing.T) {
	c := newCluster(t, stores(t, "mem", 9))
	want := map[string][]byte{"a": noise(60_000, 1), "b": noise(60_000, 2)}
	for key, data := range want {
		c.put(key, data, "rs(6,2)")
	}
	stat, err := c.gateway.Stat(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	for _, slot := range stat.Groups[0].Slots[:3] { // one more than rs(6,2) survives
		c.drop(slot.Node, stat.Groups[0].ID)
	}
	report := c.lose(nil)
	delete(want, "b")
	if report.Objects != 1 || report.Unnamed != 5 || countKind(report, rebuild.ProblemIncomplete) != 1 {
		t.Fatalf("%+v", report)
	}
	c.check(want)
	if swept := c.sweep(); swept.OrphansDeleted != 0 || swept.Quarantined != 0 {
		t.Fatalf("before the catalog is accepted: %+v", swept)
	}
	if below, err := c.catalog.Kept(t.Context()); err != nil || below == 0 {
		t.Fatalf("rebuilt below %d, %v", below, err)
	}
	if err := c.catalog.Accept(t.Context()); err != nil {
		t.Fatal(err)
	}
	if swept := c.sweep(); swept.OrphansDeleted != 5 {
		t.Fatalf("after the catalog is accepted: %+v", swept)
	}
	c.check(want)
}

func countKind(report *rebuild.Report, kind string) (count int) {
	for _, problem := range report.Problems {
		if problem.Kind == kind {
			count++
		}
	}
	return count
}

// drop deletes the blocks of a group from the store of a node.
func (c *cluster) drop(id block.NodeID, group block.GroupID) {
	c.t.Helper()
	for i, n := range c.nodes {
		if n.ID != id {
			continue
		}
		var keys []string
		if err := c.stores[i].(store.Lister).List(c.t.Context(), block.KeyPrefix, func(key string, _ int64) error {
			if address, err := block.ParseKey(id, key); err == nil && address.Group == group {
				keys = append(keys, key)
			}
			return nil
		}); err != nil {
			c.t.Fatal(err)
		}
		for _, key := range keys {
			if err := c.stores[i].Delete(c.t.Context(), key); err != nil {
				c.t.Fatal(err)
			}
		}
	}
}

// TestNodesThatAreMissing: with up to m nodes of a group gone every object comes back, and is repaired.
func TestNodesThatAreMissing(t *testing.T) {
	c := newCluster(t, stores(t, "mem", 9))
	want := c.fill()
	absent := []catalog.Node{{ID: "n3", Address: "127.0.0.1:1"}, {ID: "n7", Address: "127.0.0.1:1"}}
	c.stopGateway()
	if _, _, err := rebuild.Run(t.Context(), rebuild.Options{Nodes: absent}); err == nil || !strings.Contains(err.Error(), "--missing") {
		t.Fatalf("without leave to go on: %v", err)
	}
	report := c.lose(func(options *rebuild.Options) {
		options.Missing = true
		options.Nodes = slices.Clone(options.Nodes)
		for _, node := range absent {
			i := slices.IndexFunc(options.Nodes, func(n catalog.Node) bool { return n.ID == node.ID })
			options.Nodes[i] = node
		}
	})
	if report.Objects != len(want) || countKind(report, rebuild.ProblemNode) != 2 || countKind(report, rebuild.ProblemMissing) == 0 || countKind(report, rebuild.ProblemLost) > 0 {
		t.Fatalf("%+v", report)
	}
	c.check(want)
	result, err := c.gateway.Repair(t.Context(), true, false)
	if err != nil || len(result.Failed) > 0 || result.SlotsRebuilt == 0 {
		t.Fatalf("repairing: %+v, %v", result, err)
	}
	c.check(want)
	c.scrubClean()
	report = c.lose(nil) // the nodes are back, with blocks that were rebuilt elsewhere since
	if report.Objects != len(want) || len(report.Problems) > 0 || report.Unnamed == 0 {
		t.Errorf("with all nodes: %+v", report)
	}
	c.check(want)
	c.scrubClean()
}

// TestPutsThatWereNotCommitted: groups of a put whose body broke off lie in the stores still; of a key that had a value that
// one comes back, and a key that had none does not.
func TestPutsThatWereNotCommitted(t *testing.T) {
	c := newCluster(t, stores(t, "mem", 9))
	want := map[string][]byte{"old": noise(150_000, 1)}
	c.put("old", want["old"], "rs(3,2)")
	broken := errors.New("the client is gone")
	for _, size := range []int64{400_000, -1} {
		for _, key := range []string{"old", "new"} {
			body := io.MultiReader(bytes.NewReader(noise(300_000, 2)), iotest.ErrReader(broken))
			if _, err := c.gateway.Put(t.Context(), key, body, api.PutOptions{Size: size}); !errors.Is(err, broken) {
				t.Fatalf("a put whose body breaks off: %v", err)
			}
		}
	}
	report := c.lose(nil)
	if report.Objects != 1 || report.Unnamed == 0 || countKind(report, rebuild.ProblemPartial) != 2 || countKind(report, rebuild.ProblemLost) != 2 {
		t.Errorf("%+v", report)
	}
	c.check(want)
}

// TestWhatBlocksCannotTell: deletes newer than a manifest, and what was not stored as blocks.
func TestWhatBlocksCannotTell(t *testing.T) {
	c := newCluster(t, stores(t, "mem", 9))
	done := make(chan struct{})
	for _, key := range []string{"one", "two"} { // together, so that they share a group
		go func() {
			c.put(key, []byte("of "+key), "")
			done <- struct{}{}
		}()
	}
	<-done
	<-done
	c.put("empty", nil, "")
	if err := c.gateway.Delete(t.Context(), "one", nil); err != nil {
		t.Fatal(err)
	}
	report := c.lose(nil)
	list, err := c.gateway.List(t.Context(), "", "", 10)
	if err != nil || len(list.Objects) == 0 || len(list.Objects) != report.Objects {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, object := range list.Objects {
		if object.Key == "empty" {
			t.Error("an empty object came back, of which no block tells")
		}
	}
	c.check(map[string][]byte{"one": []byte("of one"), "two": []byte("of two")})
	for _, word := range []string{"Deletes", "Empty objects", "Classes"} {
		if !slices.ContainsFunc(report.Unknowable, func(text string) bool { return strings.HasPrefix(text, word) }) {
			t.Errorf("the report does not speak of %s", word)
		}
	}
}

// A column of which no block is found was lost if something was put into it, and is empty otherwise: objects that are alone in their
// groups come back whole, also without any two of their three blocks.
func TestEmptyColumnsAreNotLostOnes(t *testing.T) {
	c := newCluster(t, stores(t, "mem", 9))
	want := map[string][]byte{}
	for i, scheme := range []string{"rep(3)", "rs(3,2)", "rs(6,2)"} {
		key := fmt.Sprint("alone", i)
		want[key] = noise(1000+i, uint64(i))
		c.put(key, want[key], scheme)
	}
	c.check(want)
	report := c.lose(nil)
	if report.Objects != len(want) || report.Blocks != 3*len(want) || len(report.Problems) > 0 {
		t.Fatalf("nothing is lost, and the report says %+v", report)
	}
	c.check(want)
	for key, data := range want {
		c.update(key, data, 10, noise(50, 7))
	}
	c.check(want)

	stat, err := c.gateway.Stat(t.Context(), "alone1")
	if err != nil {
		t.Fatal(err)
	}
	gone := map[block.NodeID]bool{stat.Groups[0].Slots[0].Node: true, stat.Groups[0].Slots[6].Node: true}
	report = c.lose(func(options *rebuild.Options) {
		options.Missing = true
		options.Nodes = slices.Clone(options.Nodes)
		for i := range options.Nodes {
			if gone[options.Nodes[i].ID] {
				options.Nodes[i].Address = "127.0.0.1:1"
			}
		}
	})
	if report.Objects != len(want) || countKind(report, rebuild.ProblemMissing) < 2 || countKind(report, rebuild.ProblemLost) > 0 {
		t.Fatalf("two blocks are lost, and the report says %+v", report)
	}
	c.check(want)
}

// Objects that went one by one into the columns of one group come back, also without any two of its blocks, of which those of the first
// column and of the first parities know nothing of later ones.
func TestAppendedColumns(t *testing.T) {
	for _, slots := range [][]int{nil, {6, 7}, {0, 6}, {2, 3}, {1, 7}, {0, 3}} {
		c := newCluster(t, stores(t, "mem", 9))
		want := map[string][]byte{}
		var group api.GroupStat
		for i := range 4 {
			key := fmt.Sprint("appended", i)
			want[key] = noise(1000-i, uint64(i))
			c.put(key, want[key], "rs(3,2)")
			stat, err := c.gateway.Stat(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 && stat.Groups[0].ID != group.ID {
				t.Fatalf("%s is not in the group of the first", key)
			}
			group = stat.Groups[0]
		}
		c.check(want)
		gone := map[block.NodeID]bool{}
		for _, slot := range slots {
			gone[group.Slots[slot].Node] = true
		}
		report := c.lose(func(options *rebuild.Options) {
			options.Missing = true
			options.Nodes = slices.Clone(options.Nodes)
			for i := range options.Nodes {
				if gone[options.Nodes[i].ID] {
					options.Nodes[i].Address = "127.0.0.1:1"
				}
			}
		})
		// The parities that the last one replaced are still there.
		if report.Objects != len(want) || len(slots) == 0 && len(report.Problems) != countKind(report, rebuild.ProblemUndecided) {
			t.Fatalf("slots %v are lost, and the report says %+v", slots, report)
		}
		c.check(want)
	}
}

package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/mem"
)

// contents are the records of one group with two objects.
func contents() *catalog.Contents {
	stamp := block.Stamp{Sequence: 7, Salt: 8}
	id := block.GroupID{Stamp: stamp}
	group := catalog.Group{ID: id, Generation: stamp, Epoch: stamp, Class: "c", Ladder: "rep(2)", Columns: 1, Scheme: "rep(2)", CellBytes: 64, Home: []block.NodeID{"n1", "n2"}}
	for _, node := range group.Home {
		group.Slots = append(group.Slots, catalog.Slot{{Units: 1, Stamp: stamp, Node: node, Incarnation: "i"}})
	}
	object := func(key string, offset int64) catalog.Object {
		return catalog.Object{Key: key, Revision: stamp, Class: "c", Size: 10, Extents: []catalog.Extent{{Group: id, Offset: offset, Length: 10}}}
	}
	return &catalog.Contents{
		Cluster: catalog.Cluster{ID: "cluster", FingerprintKey: [16]byte{1}}, Next: 100,
		Nodes:        []catalog.Node{{ID: "n1", Address: "a:1", State: catalog.NodeUp}, {ID: "n2", Address: "a:2", State: catalog.NodeUp}},
		Incarnations: map[block.NodeID]block.Incarnation{"n1": "i", "n2": "i"},
		Groups:       []catalog.Group{group}, Objects: []catalog.Object{object("a", 0), object("b", 20)},
	}
}

// stopping is an engine that fails after so many updates.
type stopping struct {
	kv.Engine
	left int
}

var errStopped = errors.New("the machine has stopped")

func (s *stopping) Update(ctx context.Context, checks []kv.Check, writes []kv.Write) ([]int, error) {
	if s.left--; s.left < 0 {
		return nil, errStopped
	}
	return s.Engine.Update(ctx, checks, writes)
}

func TestRestore(t *testing.T) {
	engine := mem.New()
	if err := catalog.Restore(t.Context(), engine, contents(), nil); err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Open(t.Context(), engine, "g/1")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Audit(t.Context()); err != nil {
		t.Error(err)
	}
	if c.Cluster().ID != "cluster" || c.Cluster().FingerprintKey != [16]byte{1} {
		t.Errorf("cluster %+v", c.Cluster())
	}
	if snapshot, err := c.Snapshot(t.Context(), "b"); err != nil || snapshot.Object.Size != 10 {
		t.Errorf("%+v, %v", snapshot, err)
	}
	attempt, err := c.Begin(t.Context(), catalog.KindPut, time.Now().Add(time.Hour), func(block.Stamp) []catalog.BlockSet { return nil })
	if err != nil || attempt.Stamp().Sequence < 100 {
		t.Errorf("drew %v, %v", attempt, err)
	}
	old := block.Address{Node: "n1", Group: block.GroupID{Stamp: block.Stamp{Sequence: 50}}, Stamp: block.Stamp{Sequence: 50}}
	if orphans, quarantined, err := c.Orphans(t.Context(), []block.Address{old}); err != nil || len(orphans)+len(quarantined) > 0 {
		t.Errorf("before Accept a block from before is %v, %v, %v", orphans, quarantined, err)
	}
	for range 2 { // again is as good
		if err := c.Accept(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if orphans, _, err := c.Orphans(t.Context(), []block.Address{old}); err != nil || !slices.Equal(orphans, []block.Address{old}) {
		t.Errorf("after Accept: %v, %v", orphans, err)
	}
}

// TestRestoreIsWholeOrNotAtAll: a catalog that was filled in part is opened by nobody, and one that exists not written to.
func TestRestoreIsWholeOrNotAtAll(t *testing.T) {
	for stopAfter := range 3 {
		engine := mem.New()
		if err := catalog.Restore(t.Context(), &stopping{engine, stopAfter}, contents(), nil); !errors.Is(err, errStopped) {
			t.Fatalf("stopped after %d updates: %v", stopAfter, err)
		}
		if stopAfter == 0 {
			continue // nothing was written
		}
		if _, err := catalog.Open(t.Context(), engine, "g/1"); !errors.Is(err, catalog.ErrAside) {
			t.Errorf("opening what was stopped after %d updates: %v, want ErrAside", stopAfter, err)
		}
		if err := catalog.Restore(t.Context(), engine, contents(), nil); !errors.Is(err, kv.ErrInUse) {
			t.Errorf("restoring over what was stopped after %d updates: %v, want kv.ErrInUse", stopAfter, err)
		}
	}
	for name, change := range map[string]func(*catalog.Contents){
		"object in no group":   func(c *catalog.Contents) { c.Groups = nil },
		"stamp never drawn":    func(c *catalog.Contents) { c.Next = 7 },
		"objects that overlap": func(c *catalog.Contents) { c.Objects[1].Extents[0].Offset = 5 },
		"slots on one node":    func(c *catalog.Contents) { c.Groups[0].Slots[1][0].Node = "n1" },
	} {
		wrong := contents()
		change(wrong)
		engine := mem.New()
		if err := catalog.Restore(t.Context(), engine, wrong, nil); !errors.Is(err, catalog.ErrBadChange) {
			t.Errorf("%s: %v, want ErrBadChange", name, err)
		}
		if err := catalog.CheckEmpty(t.Context(), engine); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFindings(t *testing.T) {
	at := time.Unix(1000, 0)
	c, err := catalog.Open(t.Context(), mem.New(), "g/1", catalog.WithClock(func() time.Time { return at }))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		at = at.Add(time.Second)
		if err := c.AddFinding(t.Context(), fmt.Append(nil, i), 5); err != nil {
			t.Fatal(err)
		}
	}
	findings, err := c.Findings(t.Context())
	var got []string
	for _, finding := range findings {
		got = append(got, string(finding))
	}
	if err != nil || !slices.Equal(got, []string{"7", "6", "5", "4", "3"}) {
		t.Errorf("%v, %v; want the newest five, newest first", got, err)
	}
	if _, err := c.Scrub(t.Context()); !errors.Is(err, catalog.ErrNoJob) {
		t.Errorf("a scrub that never was: %v", err)
	}
	job := catalog.Job{Body: []byte("x"), Owner: "g"}
	if err := c.SaveScrub(t.Context(), &job); err != nil {
		t.Fatal(err)
	}
	stale := catalog.Job{Body: []byte("y")}
	if err := c.SaveScrub(t.Context(), &stale); !errors.Is(err, catalog.ErrStale) {
		t.Errorf("saving over another's: %v, want ErrStale", err)
	}
	if jobs, err := c.Jobs(t.Context()); err != nil || len(jobs) > 0 {
		t.Errorf("the scrub is among the transitions: %v, %v", jobs, err)
	}
}

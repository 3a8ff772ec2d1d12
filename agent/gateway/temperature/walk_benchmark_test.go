package temperature

import (
	"fmt"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	catalogmem "github.com/restripe/restripe/agent/catalog/mem"
	"github.com/restripe/restripe/agent/heat"
)

// BenchmarkWalk is what the heat report costs for each group, and the count of objects for each object, in memory.
func BenchmarkWalk(b *testing.B) {
	const count = 10_000
	engine := catalogmem.New()
	records, err := catalog.Open(b.Context(), engine, catalog.Owner("gw", "start"))
	if err != nil {
		b.Fatal(err)
	}
	fillCatalog(b, records, count)
	tracker := heat.New(heat.Options{})
	for b.Loop() {
		began := time.Now()
		walked := newTally(began)
		for groups, err := range records.GroupSummaries(b.Context(), block.GroupID{}) {
			if err != nil {
				b.Fatal(err)
			}
			for i := range groups {
				walked.add(&groups[i], tracker.Rate(groups[i].ID, began), false)
			}
		}
		if walked.groups != count {
			b.Fatalf("%d groups", walked.groups)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/count, "ns/group")
}

// fillCatalog makes groups of one object each, without any blocks behind them.
func fillCatalog(b *testing.B, records *catalog.Catalog, count int) {
	b.Helper()
	var nodes []block.NodeID
	for i := range 6 {
		id := block.NodeID(fmt.Sprintf("n%d", i))
		nodes = append(nodes, id)
		if err := records.RegisterIncarnation(b.Context(), id, "", "contents"); err != nil {
			b.Fatal(err)
		}
	}
	const batch = 500
	for at := 0; at < count; at += batch {
		attempt, err := records.Begin(b.Context(), catalog.KindPut, time.Now().Add(time.Hour), func(stamp block.Stamp) (sets []catalog.BlockSet) {
			for i := range batch {
				set := catalog.BlockSet{Group: block.GroupID{Stamp: stamp, Index: uint32(i)}, Nodes: nodes}
				for slot := range nodes {
					set.Slots = append(set.Slots, slot)
				}
				sets = append(sets, set)
			}
			return sets
		})
		if err != nil {
			b.Fatal(err)
		}
		var change catalog.Change
		for i := range batch {
			group := catalog.Group{
				ID: block.GroupID{Stamp: attempt.Stamp(), Index: uint32(i)}, Class: "default", Ladder: "rep(3),rs(4,2)", Mode: "free", LayoutVersion: 1,
				Columns: 4, Scheme: "rs(4,2)", CellBytes: 1 << 20, Home: nodes,
			}
			for _, id := range nodes {
				group.Slots = append(group.Slots, catalog.Slot{{Units: 1, Stamp: attempt.Stamp(), Node: id, Incarnation: "contents"}})
			}
			change.NewGroups = append(change.NewGroups, group)
			change.Put = append(change.Put, catalog.Object{
				Key: fmt.Sprintf("k%d", at+i), Class: "default", Scheme: "rs(4,2)", Size: 4 << 20,
				Extents: []catalog.Extent{{Group: group.ID, Column: catalog.WholeGroup, Length: 4 << 20}},
			})
		}
		if err := attempt.Commit(b.Context(), change); err != nil {
			b.Fatal(err)
		}
	}
}

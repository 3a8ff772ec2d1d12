package gateway_test

import (
	"flag"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/sqlite"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
)

var (
	statusGroups  = flag.Int("status.groups", 10_000, "groups of BenchmarkStatus")
	statusObjects = flag.Int("status.objects", 100_000, "objects of BenchmarkStatus")
)

// BenchmarkStatus asks for a status of a catalog with many records, after the first count of them, and says how long that took and
// which of the answers took longest.
func BenchmarkStatus(b *testing.B) {
	engine, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "catalog.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer engine.Close() //nolint:errcheck // nothing was written after it was made
	if err := catalog.Restore(b.Context(), engine, statusContents(), nil); err != nil {
		b.Fatal(err)
	}
	records, err := catalog.Open(b.Context(), engine, catalog.Owner("gw", "start"))
	if err != nil {
		b.Fatal(err)
	}
	classes, err := api.ParseClasses([]byte(testClasses))
	if err != nil {
		b.Fatal(err)
	}
	g, err := gateway.New(b.Context(), gateway.Options{
		Catalog: records, ID: "gw", Start: "start", Classes: classes, SweepEvery: -1, CallTimeout: time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close() //nolint:errcheck // nothing was written
	began := time.Now()
	if _, err := g.Status(b.Context()); err != nil {
		b.Fatal(err)
	}
	first := time.Since(began)
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		status, err := g.Status(b.Context())
		if err != nil || status.Groups != int64(*statusGroups) || status.Objects != int64(*statusObjects) {
			b.Fatal(status.Groups, status.Objects, err)
		}
		took = append(took, time.Since(began))
	}
	b.ReportMetric(first.Seconds(), "s-first")
	b.ReportMetric(slices.Max(took).Seconds(), "s-slowest")
}

// statusContents are groups under rs(3,2) over 14 nodes, and objects in them.
func statusContents() *catalog.Contents {
	contents := &catalog.Contents{
		Cluster: catalog.Cluster{ID: "cluster", FingerprintKey: [16]byte{1}}, Next: uint64(*statusGroups) + 100,
		Incarnations: map[block.NodeID]block.Incarnation{},
	}
	for i := range 14 {
		id := block.NodeID(fmt.Sprint("n", i))
		contents.Nodes = append(contents.Nodes, catalog.Node{ID: id, Address: "127.0.0.1:1", State: catalog.NodeUp})
		contents.Incarnations[id] = "1.contents."
	}
	for i := range *statusGroups {
		stamp := block.Stamp{Sequence: uint64(i + 1), Salt: 1}
		g := catalog.Group{
			ID: block.GroupID{Stamp: stamp}, Generation: stamp, Epoch: stamp, Class: "default", Ladder: "rep(3),rs(3,2),rs(6,2)", Mode: "free",
			LayoutVersion: 1, Columns: 6, Scheme: "rs(3,2)", CellBytes: 128,
		}
		for slot := range 8 {
			node := contents.Nodes[(i+slot)%14].ID
			units := 1
			if slot >= 6 {
				units = 2
			}
			g.Home = append(g.Home, node)
			g.Slots = append(g.Slots, catalog.Slot{{Units: units, Stamp: stamp, Node: node, Incarnation: "1.contents."}})
		}
		contents.Groups = append(contents.Groups, g)
	}
	each := (*statusObjects + *statusGroups - 1) / *statusGroups
	for i := range *statusObjects {
		id := contents.Groups[i/each].ID
		contents.Objects = append(contents.Objects, catalog.Object{
			Key: fmt.Sprintf("object/%08d", i), Revision: id.Stamp, Class: "default", Scheme: "rs(3,2)", Size: 10,
			Extents: []catalog.Extent{{Group: id, Offset: int64(i % each * 10), Length: 10}},
		})
	}
	return contents
}

package gateway

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	catalogmem "github.com/restripe/restripe/agent/catalog/mem"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/store/mem"
)

// BenchmarkGet is a read of a small object through the whole gateway, of nodes in this process: the least that a request
// costs. Beside it stands what counting the access and noting the latency cost of that.
func BenchmarkGet(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	engine := catalogmem.New()
	records, err := catalog.Open(ctx, engine, catalog.Owner("gw", "start"))
	if err != nil {
		b.Fatal(err)
	}
	var nodes []catalog.Node
	for i := range 14 {
		id := block.NodeID(fmt.Sprintf("n%d", i))
		n, err := node.New(node.Options{ID: id, Store: mem.New(0), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		address, ended, err := node.ListenAndServe(ctx, "127.0.0.1:0", n, false)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			cancel()
			<-ended
			n.Close()
		})
		nodes = append(nodes, catalog.Node{ID: id, Address: address.String()})
	}
	g, err := New(ctx, Options{Catalog: records, ID: "gw", Start: "start", Nodes: nodes, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	data := bytes.Repeat([]byte("x"), 4096)
	if _, err := g.Put(ctx, "k", bytes.NewReader(data), api.PutOptions{Size: int64(len(data))}); err != nil {
		b.Fatal(err)
	}
	handler := g.Handler()
	request := httptest.NewRequest(http.MethodGet, "/v1/objects/k", nil)
	b.Run("request", func(b *testing.B) {
		for b.Loop() {
			answer := &deadlineRecorder{httptest.NewRecorder()}
			handler.ServeHTTP(answer, request)
			if answer.Body.Len() != len(data) {
				b.Fatalf("status %d, %s", answer.Code, answer.Body)
			}
		}
	})
	snapshot, err := records.Snapshot(ctx, "k")
	if err != nil {
		b.Fatal(err)
	}
	group := snapshot.Groups[snapshot.Object.Extents[0].Group]
	b.Run("counting alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			g.heat.used(group)
			g.load.request(time.Now(), time.Millisecond)
		}
	})
}

// deadlineRecorder is a recorder that takes deadlines, as connections do.
type deadlineRecorder struct{ *httptest.ResponseRecorder }

func (deadlineRecorder) SetWriteDeadline(time.Time) error { return nil }

// BenchmarkWalk is what the heat report costs for each group, and the count of objects for each object, in memory.
func BenchmarkWalk(b *testing.B) {
	const count = 10_000
	engine := catalogmem.New()
	records, err := catalog.Open(b.Context(), engine, catalog.Owner("gw", "start"))
	if err != nil {
		b.Fatal(err)
	}
	fillCatalog(b, records, count)
	g, err := New(b.Context(), Options{Catalog: records, ID: "gw", Start: "start", SweepEvery: -1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	for b.Loop() {
		began := time.Now()
		walked := newTally(began)
		for groups, err := range records.GroupSummaries(b.Context(), block.GroupID{}) {
			if err != nil {
				b.Fatal(err)
			}
			for i := range groups {
				walked.add(&groups[i], g.heat.tracker.Rate(groups[i].ID, began), false)
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

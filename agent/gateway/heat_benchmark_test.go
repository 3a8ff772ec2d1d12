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
			g.Used(group)
			g.load.Request(time.Now(), time.Millisecond)
		}
	})
}

// deadlineRecorder is a recorder that takes deadlines, as connections do.
type deadlineRecorder struct{ *httptest.ResponseRecorder }

func (deadlineRecorder) SetWriteDeadline(time.Time) error { return nil }

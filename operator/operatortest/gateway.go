// Package operatortest starts what tests of the operator, the console and the terminal work on: a gateway and agents over stores
// in memory, behind real sockets, and an API server.
package operatortest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	catalogmem "github.com/restripe/restripe/agent/catalog/mem"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/store/mem"
	"github.com/restripe/restripe/operator/apiserver"
)

var quiet = slog.New(slog.DiscardHandler)

// Gateway starts a gateway and agents, n1 and so on, over stores in memory, which talk over loopback. All end with the test.
func Gateway(t testing.TB, agents int) (*gateway.Gateway, *httptest.Server) {
	t.Helper()
	var nodes []catalog.Node
	for i := range agents {
		id := block.NodeID(fmt.Sprintf("n%d", i+1))
		n, err := node.New(node.Options{ID: id, Store: mem.New(0), Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		address, ended, err := node.ListenAndServe(ctx, "127.0.0.1:0", n, false)
		if err != nil {
			stop()
			t.Fatal(err)
		}
		t.Cleanup(func() {
			stop()
			if err := errors.Join(<-ended, n.Close()); err != nil {
				t.Errorf("agent %s: %v", id, err)
			}
		})
		nodes = append(nodes, catalog.Node{ID: id, Address: address.String()})
	}
	records, err := catalog.Open(t.Context(), catalogmem.New(), catalog.Owner("gw", "start"), catalog.WithGrace(0))
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(t.Context(), gateway.Options{Catalog: records, ID: "gw", Start: "start", Nodes: nodes, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(g.Handler())
	t.Cleanup(func() {
		front.Close()
		if err := g.Close(); err != nil {
			t.Errorf("closing the gateway: %v", err)
		}
	})
	return g, front
}

// Put stores count objects of random bytes, the same at every call, under the prefix followed by their number.
func Put(t testing.TB, g *gateway.Gateway, prefix string, count, size int) {
	t.Helper()
	random := rand.NewChaCha8([32]byte{1})
	for i := range count {
		data := make([]byte, size)
		if _, err := random.Read(data); err != nil {
			t.Fatal(err)
		}
		if _, err := g.Put(t.Context(), fmt.Sprintf("%s%d", prefix, i), bytes.NewReader(data), api.PutOptions{Size: int64(size)}); err != nil {
			t.Fatal(err)
		}
	}
}

// APIServer starts an API server with a directory of its own. It ends with the test.
func APIServer(t testing.TB) *apiserver.Server {
	t.Helper()
	server, err := apiserver.Start(t.Context(), apiserver.Options{Directory: t.TempDir(), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	return server
}

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
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	catalogmem "github.com/restripe/restripe/agent/catalog/mem"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/store/mem"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/apiserver"
)

var quiet = slog.New(slog.DiscardHandler)

// Cluster is a gateway and agents over stores in memory, which talk over loopback.
type Cluster struct {
	Gateway *gateway.Gateway
	Front   *httptest.Server // of the gateway
	t       testing.TB
	stops   []func()
}

// StopAgent stops an agent, of 0 and so on, as if its machine was switched off.
func (c *Cluster) StopAgent(at int) { c.stops[at]() }

// StartAgent starts an agent more, of a node that is no member, and returns its address. It ends with the test.
func (c *Cluster) StartAgent(id string) string {
	c.t.Helper()
	n, err := node.New(node.Options{ID: block.NodeID(id), Store: mem.New(0), Logger: quiet})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	address, ended, err := node.ListenAndServe(ctx, "127.0.0.1:0", n, false)
	if err != nil {
		cancel()
		c.t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-ended, n.Close()); err != nil {
			c.t.Errorf("agent %s: %v", id, err)
		}
	})
	c.stops = append(c.stops, stop)
	c.t.Cleanup(stop)
	return address.String()
}

// Start starts a gateway and agents, n1 and so on. All end with the test.
func Start(t testing.TB, agents int) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	var nodes []catalog.Node
	for i := range agents {
		id := fmt.Sprintf("n%d", i+1)
		nodes = append(nodes, catalog.Node{ID: block.NodeID(id), Address: c.StartAgent(id)})
	}
	records, err := catalog.Open(t.Context(), catalogmem.New(), catalog.Owner("gw", "start"), catalog.WithGrace(0))
	if err != nil {
		t.Fatal(err)
	}
	c.Gateway, err = gateway.New(t.Context(), gateway.Options{Catalog: records, ID: "gw", Start: "start", Nodes: nodes, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	c.Front = httptest.NewServer(c.Gateway.Handler())
	t.Cleanup(func() {
		c.Front.Close()
		if err := c.Gateway.Close(); err != nil {
			t.Errorf("closing the gateway: %v", err)
		}
	})
	return c
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

// Client returns a client of an API server for the declared kinds, which writes as the owner.
func Client(t testing.TB, config *rest.Config, owner string) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	unlimited := rest.CopyConfig(config)
	unlimited.QPS = -1
	c, err := client.New(unlimited, client.Options{Scheme: scheme, FieldOwner: owner})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

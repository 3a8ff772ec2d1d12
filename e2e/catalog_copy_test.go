package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/catalog/open"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/store/storetest/server"
)

// traffic puts objects through a gateway until it does not answer any more or the test stops it, and knows what was acknowledged.
type traffic struct {
	putters sync.WaitGroup
	stopped chan struct{}

	mutex        sync.Mutex
	acknowledged map[string]int // by key: the seed of the content
	uncertain    map[string][]int
}

const trafficBytes = 3000

func newTraffic(c *client.Client, t *testing.T) *traffic {
	w := &traffic{stopped: make(chan struct{}), acknowledged: map[string]int{}, uncertain: map[string][]int{}}
	for putter := range 4 {
		w.putters.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-w.stopped:
					return
				default:
				}
				key, seed := fmt.Sprintf("traffic/%d/%d", putter, i%40), 1000*putter+i
				_, err := c.Put(t.Context(), key, bytes.NewReader(noise(uint64(seed), trafficBytes)), client.PutOptions{})
				w.mutex.Lock()
				if err != nil {
					w.uncertain[key] = append(w.uncertain[key], seed)
				} else {
					w.acknowledged[key], w.uncertain[key] = seed, nil
				}
				w.mutex.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	return w
}

// puts returns how many keys were put.
func (w *traffic) puts() int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return len(w.acknowledged)
}

// stop waits until nothing is put any more.
func (w *traffic) stop() {
	close(w.stopped)
	w.putters.Wait()
}

// holds checks that every object has the content that was acknowledged last, or one that was put after it.
func (w *traffic) holds(t *testing.T, c *client.Client) {
	t.Helper()
	for key, seed := range w.acknowledged {
		content, err := fetch(t.Context(), c, key)
		isPut := func(seed int) bool { return bytes.Equal(content, noise(uint64(seed), trafficBytes)) }
		if err != nil || !slices.ContainsFunc(append(w.uncertain[key], seed), isPut) {
			t.Errorf("%s has not what was put last: %v", key, err)
		}
	}
}

// engines are addresses of empty catalogs, by the name of the engine.
func engines(t *testing.T) map[string]string {
	return map[string]string{
		"sqlite":   "sqlite:" + filepath.Join(t.TempDir(), "catalog.db"),
		"redis":    "redis://" + server.Redis(t, "--appendonly", "yes", "--appendfsync", "always").Addr,
		"etcd":     etcdServer(t),
		"postgres": postgresServer(t),
	}
}

// gatewayWith returns what runs a gateway over the nodes of a file with a catalog.
func gatewayWith(t *testing.T, nodes string) func(catalog string) []string {
	classes := write(t, "classes.yaml", smallClasses)
	return func(catalog string) []string {
		return []string{"gateway", "--catalog", catalog, "--nodes", nodes, "--classes", classes, "--listen", "127.0.0.1:0", "--grace", "0s"}
	}
}

// TestCatalogMovesUnderLoad moves a catalog in a file, while clients put, to each other engine, and goes on with it there.
func TestCatalogMovesUnderLoad(t *testing.T) {
	t.Parallel()
	for name, address := range engines(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agents := agentsOver(t, directories(t, 4)...)
			file := filepath.Join(t.TempDir(), "laptop.db")
			arguments := gatewayWith(t, nodeFile(t, agents...))
			g := serve(t, arguments("sqlite:"+file)...)
			w := newTraffic(clientOf(t, g.address), t)
			until(t, "objects are put", func() bool { return w.puts() > 50 })
			copyOf := []string{"catalog", "copy", "--catalog", "sqlite:" + file, "--to", address}
			out := must(t, g.address, copyOf...)
			if !strings.Contains(out, "is in service") {
				t.Errorf("the copy says:\n%s", out)
			}
			w.stop()
			select {
			case <-g.exited:
			case <-time.After(patience):
				t.Fatal("the gateway of the catalog that was moved does not end")
			}
			refused(t, restripe(t, "", arguments("sqlite:"+file)...), "catalog is not in service", "moved to "+open.WithoutSecrets(address))
			if out := must(t, g.address, copyOf...); !strings.Contains(out, "before") {
				t.Errorf("the copy that was made before says:\n%s", out)
			}
			refused(t, restripe(t, g.address, append(copyOf, "--abort")...), "in service")
			again := serve(t, arguments(address)...)
			c := clientOf(t, again.address)
			w.holds(t, c)
			put(t, c, "after", noise(3, 5000), client.PutOptions{})
			holds(t, c, "after", noise(3, 5000))
			until(t, "all agents obey the catalog that was moved", func() bool {
				lineage, err := c.Lineage(t.Context())
				if err != nil || lineage.Behind != nil {
					t.Fatalf("agents take the catalog that was moved for another: %+v, %v", lineage, err)
				}
				return len(lineage.Refusals) == 0
			})
			atRest(t, c)
		})
	}
}

// TestCatalogBackup takes a backup under load, loses the catalog after more was put, and has everything again: what the backup has,
// and what the stores have since.
func TestCatalogBackup(t *testing.T) {
	t.Parallel()
	agents := agentsOver(t, directories(t, 4)...)
	nodes := nodeFile(t, agents...)
	file, backup := filepath.Join(t.TempDir(), "catalog.db"), filepath.Join(t.TempDir(), "backup.db")
	arguments := gatewayWith(t, nodes)
	g := serve(t, arguments("sqlite:"+file)...)
	w := newTraffic(clientOf(t, g.address), t)
	until(t, "objects are put", func() bool { return w.puts() > 50 })
	for range 2 { // the second in place of the first
		var made struct{ Records, Written int64 }
		if err := json.Unmarshal([]byte(must(t, g.address, "catalog", "backup", backup, "-o", "json")), &made); err != nil {
			t.Fatal(err)
		}
		if made.Records < 200 || made.Written < made.Records {
			t.Errorf("backed up are %+v", made)
		}
	}
	before := w.puts()
	until(t, "more is put than was backed up", func() bool { return w.puts() > before+20 || w.puts() == 160 })
	w.stop()
	if err := g.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-g.exited
	refused(t, restripe(t, "", arguments("sqlite:"+backup)...), "catalog is not in service", "it is a backup")
	restored := "sqlite:" + filepath.Join(t.TempDir(), "restored.db")
	if _, err := os.Stat(backup + ".partial"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("beside the backup is a part of one: %v", err)
	}
	refused(t, restripe(t, "", "catalog", "restore", filepath.Join(t.TempDir(), "none.db"), "--to", restored), "opening the backup")
	must(t, "", "catalog", "restore", backup, "--to", restored)
	refused(t, restripe(t, "", "catalog", "restore", backup, "--to", restored), "holds records")
	must(t, "", "catalog", "rebuild", "--into", "--catalog", restored, "--nodes", nodes)
	again := serve(t, arguments(restored)...)
	c := clientOf(t, again.address)
	w.holds(t, c)
	must(t, again.address, "catalog", "accept")
	w.holds(t, c)
}

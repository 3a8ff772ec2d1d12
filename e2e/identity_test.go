package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/store/storetest/server"
)

// TestAgentsWithOneServer gives three of six agents the same Redis, as a configuration that was copied does. One of them may
// have it; of the others every face says what to do, and nothing is swept.
func TestAgentsWithOneServer(t *testing.T) {
	t.Parallel()
	shared := "redis://" + server.Redis(t).Addr
	stores := append(directories(t, 6), shared, shared, shared)
	g := gatewayOver(t, faultClasses, agentsOver(t, stores...)...)
	c := clientOf(t, g.address)
	for i := range 10 {
		put(t, c, fmt.Sprintf("o%d", i), noise(uint64(i), 50_000), client.PutOptions{})
	}
	said := restripe(t, g.address, "doctor").out
	if count := strings.Count(said, "a store of its own"); count != 2 {
		t.Errorf("the doctor tells %d nodes to get a store of their own, want 2:\n%s", count, said)
	}
	if status := must(t, g.address, "status", "-o", "wide"); !strings.Contains(status, "a store of its own") {
		t.Errorf("status does not say it:\n%s", status)
	}
	swept(t, g, 0)
	for i := range 10 {
		holds(t, c, fmt.Sprintf("o%d", i), noise(uint64(i), 50_000))
	}
	atRest(t, c)
}

// swept sweeps, and wants so many orphans to be deleted.
func swept(t *testing.T, g *daemon, orphans int) {
	t.Helper()
	var result api.SweepResult
	if err := json.Unmarshal([]byte(must(t, g.address, "sweep", "-o", "json")), &result); err != nil {
		t.Fatal(err)
	}
	if result.OrphansDeleted != orphans {
		t.Errorf("a sweep: %+v, want %d orphans deleted", result, orphans)
	}
}

// TestADiskUnderAnotherName stops the agent of a node, starts one of another name on its disk, and replaces the node by it. That
// is refused with the cure, and nothing on the disk is swept; under its own name it serves at once.
func TestADiskUnderAnotherName(t *testing.T) {
	t.Parallel()
	stores := directories(t, 7)
	agents := agentsOver(t, stores...)
	g := gatewayOver(t, faultClasses, agents...)
	c := clientOf(t, g.address)
	for i := range 10 {
		put(t, c, fmt.Sprintf("o%d", i), noise(uint64(i), 50_000), client.PutOptions{})
	}
	agents[2].stop(t)
	moved := serve(t, "agent", "--id", "n9", "--store", stores[2])
	before := len(blocksIn(t, strings.TrimPrefix(stores[2], "file:")))
	refused(t, restripe(t, g.address, "node", "replace", "n3", "--with", "n9", "--address", moved.address),
		"this store is node n3's", "start the agent with --id n3")
	restripe(t, g.address, "sweep")
	if after := len(blocksIn(t, strings.TrimPrefix(stores[2], "file:"))); after != before {
		t.Errorf("the disk had %d blocks and has %d", before, after)
	}
	moved.stop(t)

	back := serve(t, "agent", "--id", "n3", "--store", stores[2])
	must(t, g.address, "node", "replace", "n3", "--address", back.address)
	until(t, "n3 serves from its new place", func() bool {
		return !strings.Contains(restripe(t, g.address, "doctor").out, "node n3")
	})
	for i := range 10 {
		holds(t, c, fmt.Sprintf("o%d", i), noise(uint64(i), 50_000))
	}
	atRest(t, c)
}

// TestAnOldCatalogPutBack puts a copy of the catalog in its place that lacks the newest objects. Nothing is deleted before a
// person has decided, and with the catalog itself back, all is there.
func TestAnOldCatalogPutBack(t *testing.T) {
	t.Parallel()
	agents := agentsOver(t, directories(t, 6)...)
	directory := t.TempDir()
	gateway := func(catalog string) *daemon {
		return serve(t, "gateway", "--catalog", "sqlite:"+catalog, "--nodes", nodeFile(t, agents...), "--listen", "127.0.0.1:0",
			"--grace", "0s", "--classes", write(t, "classes.yaml", faultClasses))
	}
	lived, old := filepath.Join(directory, "catalog.db"), filepath.Join(directory, "old.db")
	g := gateway(lived)
	put(t, clientOf(t, g.address), "early", noise(1, 50_000), client.PutOptions{})
	g.stop(t)
	data, err := os.ReadFile(lived)
	if err == nil {
		err = os.WriteFile(old, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	g = gateway(lived)
	for i := range 5 {
		put(t, clientOf(t, g.address), fmt.Sprintf("late%d", i), noise(uint64(10+i), 50_000), client.PutOptions{})
	}
	g.stop(t)

	g = gateway(old)
	refusesPuts(t, g, "which this catalog does not know")
	for range 2 {
		refused(t, restripe(t, g.address, "sweep"), "the catalog is behind what its nodes hold", "restripe catalog lineage")
	}
	refused(t, restripe(t, g.address, "catalog", "accept"), "the catalog is behind")
	if said := restripe(t, g.address, "doctor").out; !strings.Contains(said, "restripe catalog claim") {
		t.Errorf("the doctor says:\n%s", said)
	}
	if said := must(t, g.address, "catalog", "lineage"); !strings.Contains(said, "Nothing is deleted.") {
		t.Errorf("the lineage is said to be:\n%s", said)
	}
	g.stop(t)

	g = gateway(lived)
	c := clientOf(t, g.address)
	for i := range 5 {
		holds(t, c, fmt.Sprintf("late%d", i), noise(uint64(10+i), 50_000))
	}
	atRest(t, c)
	g.stop(t)

	g = gateway(old)
	must(t, g.address, "catalog", "claim")
	swept(t, g, 0)
	g.stop(t)
	rebuild := func(arguments ...string) string {
		return must(t, "", append([]string{
			"catalog", "rebuild", "--into", "--catalog", "sqlite:" + old, "--nodes", nodeFile(t, agents...),
		}, arguments...)...)
	}
	if said := rebuild("--dry-run"); !strings.Contains(said, "5 objects") || !strings.Contains(said, "Nothing was written.") {
		t.Errorf("what would be brought back is said to be:\n%s", said)
	}
	rebuild()
	if said := rebuild(); !strings.Contains(said, "0 objects") {
		t.Errorf("what would be brought back again is said to be:\n%s", said)
	}
	g = gateway(old)
	must(t, g.address, "catalog", "accept")
	swept(t, g, 0)
	c = clientOf(t, g.address)
	holds(t, c, "early", noise(1, 50_000))
	for i := range 5 {
		holds(t, c, fmt.Sprintf("late%d", i), noise(uint64(10+i), 50_000))
	}
	atRest(t, c)
	for line := range strings.Lines(restripe(t, g.address, "doctor").out) {
		if strings.HasPrefix(line, "error") && !strings.Contains(line, "class wide") || strings.Contains(line, "catalog") { // wide is wider than the nodes
			t.Errorf("the doctor says: %s", line)
		}
	}
	if said := must(t, g.address, "status"); strings.Contains(said, "BEHIND") {
		t.Errorf("the status is:\n%s", said)
	}
	if said := must(t, g.address, "catalog", "lineage"); strings.Contains(said, "Nothing is deleted.") || strings.Contains(said, "accept") {
		t.Errorf("the lineage is said to be:\n%s", said)
	}
}

// refusesPuts waits until the nodes obey a gateway no more, if they did for a moment, and its status says why.
func refusesPuts(t *testing.T, g *daemon, why string) {
	t.Helper()
	body := write(t, "body", string(noise(99, 50_000)))
	until(t, "the nodes refuse the gateway", func() bool {
		result := restripe(t, g.address, "put", body, "stray")
		return result.code != 0 && strings.Contains(result.messages, "obeys another catalog")
	})
	until(t, "the gateway says why", func() bool {
		return strings.Contains(restripe(t, g.address, "status").out, why)
	})
}

// A gateway is started on a copy of the catalog while the original is at work, on one made before its present start and on one
// that is equal in every bit: the nodes obey the original alone.
func TestAGatewayOnACopy(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ running bool }{"an old copy": {}, "a copy of this moment": {running: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agents := agentsWith(t, "10m", directories(t, 6)...) // however slow the machine is, production is not forgotten
			lived, copied := filepath.Join(t.TempDir(), "catalog.db"), filepath.Join(t.TempDir(), "catalog.db")
			gateway := func(catalog string) *daemon {
				return serve(t, "gateway", "--catalog", "sqlite:"+catalog, "--nodes", nodeFile(t, agents...), "--listen", "127.0.0.1:0",
					"--grace", "0s", "--classes", write(t, "classes.yaml", faultClasses))
			}
			original := gateway(lived)
			put(t, clientOf(t, original.address), "early", noise(1, 50_000), client.PutOptions{})
			if !test.running {
				original.stop(t)
			}
			for _, part := range []string{"", "-wal"} {
				data, err := os.ReadFile(lived + part)
				if errors.Is(err, fs.ErrNotExist) {
					continue
				}
				if err == nil {
					err = os.WriteFile(copied+part, data, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if !test.running {
				original = gateway(lived)
			}
			g := gateway(copied)
			refusesPuts(t, g, "the catalog is behind")
			refused(t, restripe(t, g.address, "sweep"), "the catalog is behind what its nodes hold", "restripe catalog lineage")
			if said := must(t, g.address, "catalog", "lineage"); !strings.Contains(said, "it obeys another catalog") {
				t.Errorf("the lineage of the copy is said to be:\n%s", said)
			}
			holds(t, clientOf(t, g.address), "early", noise(1, 50_000)) // it may be read

			c := clientOf(t, original.address)
			put(t, c, "early", noise(2, 50_000), client.PutOptions{})
			until(t, "the blocks of what was replaced are deleted", func() bool {
				status, err := c.Status(t.Context())
				return err == nil && status.Graves == 0
			})
			holds(t, c, "early", noise(2, 50_000))
			if said := restripe(t, original.address, "doctor").out; test.running && !strings.Contains(said, "worked on a copy of the catalog") {
				t.Errorf("the doctor of the original says:\n%s", said)
			}
			must(t, original.address, "sweep") // what the copy wrote in its first moment alarms nobody
			holds(t, c, "early", noise(2, 50_000))
		})
	}
}

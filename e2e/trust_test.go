package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/rebuild"
	"github.com/restripe/restripe/agent/store/storetest/server"
)

const trustClasses = `classes:
- {name: default, ladder: 'rep(3),rs(3,2),rs(6,2)', prefixes: [''], packBelow: 4KiB, groupBytes: 256KiB}
`

// kill ends a daemon with SIGKILL.
func (d *daemon) kill(t *testing.T) {
	t.Helper()
	if err := d.command.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-d.exited
}

// TestScrubSurvivesTheGateway: a scrub goes on where it was after SIGKILL, finds damage on the disk and repairs it.
func TestScrubSurvivesTheGateway(t *testing.T) {
	stores := directories(t, 9)
	agents := agentsOver(t, stores...)
	classes, nodes, catalog := write(t, "classes.yaml", trustClasses), nodeFile(t, agents...), filepath.Join(t.TempDir(), "catalog.db")
	start := func() (*daemon, *client.Client) {
		d := serve(t, "gateway", "--catalog", "sqlite:"+catalog, "--nodes", nodes, "--classes", classes, "--listen", "127.0.0.1:0", "--grace", "0s")
		return d, clientOf(t, d.address)
	}
	d, c := start()
	want := map[string][]byte{}
	for i := range 20 {
		key := fmt.Sprintf("o/%02d", i)
		want[key] = noise(uint64(i), 200_000)
		put(t, c, key, want[key], client.PutOptions{Scheme: "rs(3,2)"})
	}
	damaged := 0
	for i, path := range blocksIn(t, strings.TrimPrefix(stores[0], "file:")) {
		if i%5 != 0 {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)/2] ^= 8
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		damaged++
	}
	must(t, d.address, "scrub", "start", "--rate", "2MiB/s")
	var scrub api.Scrub
	look := func() api.Scrub {
		if err := json.Unmarshal([]byte(must(t, d.address, "scrub", "status", "-o", "json")), &scrub); err != nil {
			t.Fatal(err)
		}
		return scrub
	}
	until(t, "some groups are scrubbed", func() bool { return look().GroupsDone >= 4 })
	if out := must(t, d.address, "scrub", "pause"); !strings.Contains(out, "paused") {
		t.Errorf("pausing: %s", out)
	}
	at := look().GroupsDone
	must(t, d.address, "scrub", "resume")
	d.kill(t)
	d, c = start()
	until(t, "the scrub ends", func() bool { return look().State == api.ScrubDone })
	if scrub.Cycle != 1 || scrub.GroupsDone < 20 || at < 4 || scrub.Findings != int64(damaged) || scrub.Repaired != scrub.Findings || damaged == 0 {
		t.Errorf("%d blocks were damaged; %+v", damaged, scrub)
	}
	if report := must(t, d.address, "scrub", "report", "-o", "wide"); strings.Count(report, "damaged") < damaged || !strings.Contains(report, "verified again") || !strings.Contains(report, "o/") {
		t.Errorf("the report:\n%s", report)
	}
	if out := must(t, d.address, "scrub", "start", "--wait"); !strings.Contains(out, "0, 0 repaired") {
		t.Errorf("after the repair:\n%s", out)
	}
	for key, data := range want {
		holds(t, c, key, data)
	}
}

// TestCatalogRebuild deletes the catalog of a cluster that was killed, for each kind of store, and makes a new one.
func TestCatalogRebuild(t *testing.T) {
	for name, stores := range map[string]func() []string{
		"file": func() []string { return directories(t, 9) },
		"redis": func() (list []string) {
			addr := server.Redis(t).Addr
			for i := range 9 {
				list = append(list, fmt.Sprintf("redis://%s/%d", addr, i))
			}
			return list
		},
		"memcached": func() (list []string) {
			for range 9 {
				list = append(list, "memcached://"+server.Memcached(t, "-m", "32").Addr)
			}
			return list
		},
	} {
		t.Run(name, func(t *testing.T) {
			addresses := stores()
			agents := agentsOver(t, addresses...)
			classes, nodes, directory := write(t, "classes.yaml", trustClasses), nodeFile(t, agents...), t.TempDir()
			d := serve(t, "gateway", "--catalog", "sqlite:"+filepath.Join(directory, "old.db"), "--nodes", nodes, "--classes", classes, "--listen", "127.0.0.1:0", "--grace", "0s")
			c := clientOf(t, d.address)
			want := map[string][]byte{}
			for i := range 30 {
				key := fmt.Sprintf("small/%02d", i)
				want[key] = noise(uint64(i), 50+100*i)
				put(t, c, key, want[key], client.PutOptions{})
			}
			for i := range 6 {
				key := fmt.Sprintf("large/%d", i)
				want[key] = noise(uint64(100+i), 400_000+i)
				put(t, c, key, want[key], client.PutOptions{})
			}
			want["large/0"] = noise(200, 300_000)
			put(t, c, "large/0", want["large/0"], client.PutOptions{Scheme: "rs(3,2)"})
			must(t, d.address, "transition", "start", "--to", "rs(6,2)", "--prefix", "large/", "--wait")
			part := noise(201, 30_000)
			if _, err := c.Update(t.Context(), "large/1", 250_000, bytes.NewReader(part), int64(len(part))); err != nil {
				t.Fatal(err)
			}
			copy(want["large/1"][250_000:], part)
			atRest(t, c)
			d.kill(t)
			for _, agent := range agents {
				agent.kill(t)
			}
			if err := os.RemoveAll(filepath.Join(directory, "old.db")); err != nil {
				t.Fatal(err)
			}

			nodes = nodeFile(t, agentsOver(t, addresses...)...)
			made := "sqlite:" + filepath.Join(directory, "new.db")
			if out := must(t, "", "catalog", "rebuild", "--nodes", nodes, "--dry-run"); !strings.Contains(out, "Nothing was written") {
				t.Errorf("a dry run:\n%s", out)
			}
			file := filepath.Join(directory, "report.json")
			out := must(t, "", "catalog", "rebuild", "--nodes", nodes, "--catalog", made, "--report", file)
			var report rebuild.Report
			text, err := os.ReadFile(file)
			if err == nil {
				err = json.Unmarshal(text, &report)
			}
			if err != nil || report.Objects != len(want) || len(report.Problems) > 0 || report.Unnamed > 0 {
				t.Errorf("%v, %+v\n%s", err, report, out)
			}
			refused(t, restripe(t, "", "catalog", "rebuild", "--nodes", nodes, "--catalog", made), "holds records")
			d = serve(t, "gateway", "--catalog", made, "--nodes", nodes, "--classes", classes, "--listen", "127.0.0.1:0", "--grace", "0s")
			c = clientOf(t, d.address)
			for key, data := range want {
				holds(t, c, key, data)
			}
			if out := must(t, d.address, "doctor"); !strings.Contains(out, "restripe catalog accept") {
				t.Errorf("the doctor does not say that the catalog was rebuilt:\n%s", out)
			}
			must(t, d.address, "catalog", "accept")
			if out := must(t, d.address, "scrub", "start", "--wait"); !strings.Contains(out, "0, 0 repaired") {
				t.Errorf("scrubbing what was rebuilt:\n%s", out)
			}
			atRest(t, c)
			for key, data := range want {
				holds(t, c, key, data)
			}
		})
	}
}

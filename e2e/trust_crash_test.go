package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/rebuild"
)

// keeper writes the keys of its own, one operation after the other, and knows what each may hold: what was acknowledged
// last, or what was under way when the answer did not come.
type keeper struct {
	client *client.Client
	random *rand.Rand
	keys   []string
	holds  map[string][]byte
	doubt  map[string][]byte
	acked  int
}

// work writes until an operation fails.
func (k *keeper) work(ctx context.Context) {
	for number := uint64(1); ; number++ {
		key := k.keys[k.random.IntN(len(k.keys))]
		data := bytes.Clone(k.holds[key])
		var err error
		if len(data) > 0 && k.random.IntN(2) == 0 {
			offset := k.random.IntN(len(data))
			part := noise(number, min(len(data)-offset, 1+k.random.IntN(100_000)))
			copy(data[offset:], part)
			k.doubt[key] = data
			_, err = k.client.Update(ctx, key, int64(offset), bytes.NewReader(part), int64(len(part)))
		} else {
			data = noise(number, []int{500, 3_000, 90_000, 700_000}[k.random.IntN(4)])
			k.doubt[key] = data
			_, err = k.client.Put(ctx, key, bytes.NewReader(data), client.PutOptions{Size: int64(len(data)), SizeKnown: true})
		}
		if err != nil {
			return
		}
		k.holds[key], k.acked = data, k.acked+1
		delete(k.doubt, key)
	}
}

// TestCatalogRebuildAfterACrash kills everything in the middle of writes and transitions, deletes the catalog, and makes a
// new one: what was acknowledged is there, and the groups are right or are repaired.
func TestCatalogRebuildAfterACrash(t *testing.T) {
	stores := directories(t, 9)
	agents := agentsOver(t, stores...)
	classes, nodes, directory := write(t, "classes.yaml", trustClasses), nodeFile(t, agents...), t.TempDir()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	d := serve(t, "gateway", "--catalog", "sqlite:"+filepath.Join(directory, "old.db"), "--nodes", nodes, "--classes", classes, "--listen", "127.0.0.1:0", "--grace", "1s")
	var keepers []*keeper
	var writers sync.WaitGroup
	for i := range 4 {
		k := &keeper{client: clientOf(t, d.address), random: rand.New(rand.NewPCG(seed, uint64(i))), holds: map[string][]byte{}, doubt: map[string][]byte{}}
		for j := range 6 {
			k.keys = append(k.keys, fmt.Sprintf("k%d/%d", i, j))
		}
		keepers = append(keepers, k)
		writers.Go(func() { k.work(t.Context()) })
	}
	c := clientOf(t, d.address)
	writers.Go(func() {
		for i := 0; ; i++ {
			to := []string{"rs(3,2)", "rs(6,2)", "rep(3)"}[i%3]
			begun, err := c.StartTransition(t.Context(), api.TransitionRequest{Selector: api.Selector{Class: "default"}, To: to})
			if err != nil {
				return
			}
			if _, err := c.Watch(t.Context(), begun.ID, func(api.Transition) error { return nil }); err != nil {
				return
			}
		}
	})
	select {
	case <-time.After(3*time.Second + time.Duration(seed%1000)*time.Millisecond):
	case <-t.Context().Done():
	}
	d.kill(t)
	for _, agent := range agents {
		agent.kill(t)
	}
	writers.Wait()
	if err := os.Remove(filepath.Join(directory, "old.db")); err != nil {
		t.Fatal(err)
	}

	nodes = nodeFile(t, agentsOver(t, stores...)...)
	var report rebuild.Report
	made := "sqlite:" + filepath.Join(directory, "new.db")
	if err := json.Unmarshal([]byte(must(t, "", "catalog", "rebuild", "--nodes", nodes, "--catalog", made, "-o", "json")), &report); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, problem := range report.Problems {
		kinds[problem.Kind]++
		if problem.Kind == rebuild.ProblemLost || problem.Kind == rebuild.ProblemIncomplete {
			t.Logf("%+v", problem)
		}
	}
	d = serve(t, "gateway", "--catalog", made, "--nodes", nodes, "--classes", classes, "--listen", "127.0.0.1:0", "--grace", "0s")
	c = clientOf(t, d.address)
	acked, doubtful := 0, 0
	check := func() {
		acked, doubtful = 0, 0
		for _, k := range keepers {
			acked, doubtful = acked+k.acked, doubtful+len(k.doubt)
			for key, want := range k.holds {
				got, err := fetch(t.Context(), c, key)
				if err != nil || !bytes.Equal(got, want) && (k.doubt[key] == nil || !bytes.Equal(got, k.doubt[key])) {
					t.Errorf("%s: %d bytes that are neither the %d acknowledged nor those under way, %v", key, len(got), len(want), err)
				}
			}
		}
	}
	check()
	t.Logf("%d writes were acknowledged, %d under way; %d objects in %d groups of %d blocks, %d of them named by no record; problems %v", acked, doubtful, report.Objects, report.Groups, report.Blocks, report.Unnamed, kinds)
	must(t, d.address, "scrub", "start", "--wait")
	must(t, d.address, "catalog", "accept")
	for i := range stores { // no record names most of what they hold, which is more than a sweep deletes by itself
		must(t, d.address, "sweep", "--node", fmt.Sprintf("n%d", i+1), "--beyond-brake")
	}
	atRest(t, c)
	check()
}

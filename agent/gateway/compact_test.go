package gateway_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
)

// compacting has a gateway compact by itself, and at once.
func compacting(o *gateway.Options) {
	o.SweepEvery, o.CompactEvery, o.CompactSettled = 20*time.Millisecond, 50*time.Millisecond, -1
}

// takes is what a class takes by its status: all bytes of its groups, and those of its objects.
func (c *cluster) takes(class string) (stored, live int64) {
	c.t.Helper()
	status, err := c.gateway.Status(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	for _, of := range status.Classes {
		if of.Name == class {
			return of.Stored, of.Bytes + of.Kept
		}
	}
	c.t.Fatalf("there is no class %q", class)
	return 0, 0
}

// putMany puts objects of up to 1 KiB side by side and returns their contents. Larger ones would not fill columns of some 10 KiB well.
func (c *cluster) putMany(prefix string, count int, seed uint64) map[string][]byte {
	c.t.Helper()
	if testing.Short() {
		count /= 4 // with the race detector
	}
	draw := rand.New(rand.NewPCG(seed, 7))
	want := map[string][]byte{}
	var workers sync.WaitGroup
	tokens := make(chan struct{}, 64)
	for i := range count {
		key, data := fmt.Sprintf("%s%04d", prefix, i), noise(1+draw.IntN(1000), seed+uint64(i))
		want[key] = data
		tokens <- struct{}{}
		workers.Go(func() { c.put(key, data, api.PutOptions{Scheme: "rs(3,2)"}); <-tokens })
	}
	workers.Wait()
	return want
}

// littleDead is what so many bytes of objects may take under rs(3,2) at rest: a class allows 15 percent to be dead, and groups of these
// tests, which are as small as there are, cannot be filled to the last tenth.
func littleDead(live int64) float64 { return float64(live) * 5 / 3 * 1.25 }

// until waits until something holds.
func (c *cluster) until(what string, holds func() bool) {
	c.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !holds() {
		if time.Now().After(deadline) {
			compaction, err := c.gateway.Compaction(c.t.Context())
			c.t.Fatalf("it is not so after two minutes: %s; %+v, %v", what, compaction, err)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// What is written over, and deleted, gives its room back although other objects live in its groups.
func TestDeadSpaceIsGivenBack(t *testing.T) {
	c := newCluster(t, 9)
	want := c.putMany("k/", 2000, 1)
	for key, data := range c.putMany("k/", 1400, 1<<20) {
		want[key] = data
	}
	for _, key := range slices.Sorted(maps.Keys(want))[len(want)*6/10 : len(want)*8/10] {
		if err := c.gateway.Delete(t.Context(), key, nil); err != nil {
			t.Fatal(err)
		}
		delete(want, key)
	}
	before, live := c.takes("default")
	c.with(compacting)
	most := littleDead(live)
	c.until("little is dead", func() bool {
		stored, _ := c.takes("default")
		return float64(stored) <= most
	})
	after, _ := c.takes("default")
	ratio := func(stored int64) float64 { return float64(stored) / float64(live) }
	t.Logf("%d bytes of objects took %d bytes, %.2f to one, and take %d, %.2f", live, before, ratio(before), after, ratio(after))
	c.until("the compaction rests", func() bool {
		compaction, err := c.gateway.Compaction(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return compaction.State == api.CompactionIdle
	})
	c.with(func(*gateway.Options) {}) // nothing moves while all is compared
	for key, data := range want {
		c.check(key, data)
	}
	c.audit()
}

// Objects that came one by one, each in a group of its own, are brought together.
func TestLoneObjectsAreBroughtTogether(t *testing.T) {
	c := newCluster(t, 9)
	want := map[string][]byte{}
	for i := range 30 {
		key := fmt.Sprintf("lone/%02d", i)
		want[key] = noise(700+i, uint64(i))
		c.put(key, want[key], api.PutOptions{})
	}
	groups := func() int64 {
		status, err := c.gateway.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return status.Groups
	}
	before := groups()
	c.with(compacting)
	c.until("there are few groups", func() bool { return groups() <= 3 })
	t.Logf("%d objects lay in %d groups, and lie in %d", len(want), before, groups())
	for key, data := range want {
		c.check(key, data)
	}
	c.audit()
}

// What clients write, write over, delete and move to other schemes while their groups are emptied is as they left it.
func TestCompactionUnderClients(t *testing.T) {
	c := newCluster(t, 9)
	c.with(compacting)
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	var workers sync.WaitGroup
	for client := range 4 {
		workers.Go(func() {
			draw := rand.New(rand.NewPCG(uint64(client), 3))
			want := map[string][]byte{}
			for i := 0; ctx.Err() == nil; i++ {
				key := fmt.Sprintf("c%d/%02d", client, draw.IntN(40))
				switch draw.IntN(6) {
				case 0:
					if want[key] != nil {
						if err := c.gateway.Delete(t.Context(), key, nil); err != nil {
							t.Errorf("deleting %s: %v", key, err)
						}
						delete(want, key)
					}
				case 1:
					if data := want[key]; len(data) > 20 {
						fresh := append([]byte(nil), data...)
						copy(fresh[10:], "changed in place")
						change := []byte("changed in place")[:min(16, len(data)-10)]
						if _, err := c.gateway.Update(t.Context(), key, 10, change, nil); err != nil {
							t.Errorf("updating %s: %v", key, err)
						}
						want[key] = fresh
					}
				default:
					want[key] = noise(1+draw.IntN(3000), uint64(client)<<32+uint64(i))
					c.put(key, want[key], api.PutOptions{Scheme: []string{"rep(3)", "rs(3,2)"}[draw.IntN(2)]})
				}
				if got, err := c.read(key); want[key] != nil && (err != nil || string(got) != string(want[key])) {
					t.Errorf("%s reads back %d bytes, %v; %d were written", key, len(got), err, len(want[key]))
				}
			}
			for key, data := range want {
				c.check(key, data)
			}
		})
	}
	workers.Wait()
	moved, err := c.gateway.Compaction(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("pass %d", moved.Pass)
	c.with(func(*gateway.Options) {})
	c.audit()
}

// A compaction that is paused moves nothing until it is resumed, also by a gateway that starts meanwhile.
func TestCompactionIsPaused(t *testing.T) {
	c := newCluster(t, 9)
	c.putMany("k/", 1000, 1)
	c.putMany("k/", 800, 1<<20)
	if _, err := c.gateway.PauseCompaction(t.Context()); err != nil {
		t.Fatal(err)
	}
	sweep := func() {
		if _, err := c.gateway.Sweep(t.Context(), api.SweepRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	sweep() // what is dead as a whole goes by itself
	before, live := c.takes("default")
	c.with(compacting)
	passes := func() int64 {
		compaction, err := c.gateway.Compaction(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return compaction.Pass
	}
	sweep()
	if stored, _ := c.takes("default"); passes() != 0 || stored != before {
		t.Errorf("pass %d while it is paused: %d bytes became %d", passes(), before, stored)
	}
	if _, err := c.gateway.ResumeCompaction(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.until("little is dead", func() bool {
		stored, _ := c.takes("default")
		return float64(stored) <= littleDead(live)
	})
	_, err := c.gateway.StartCompaction(t.Context(), api.CompactionRequest{BytesPerSecond: -1})
	if err == nil || !strings.Contains(err.Error(), "positive") {
		t.Errorf("a negative rate: %v", err)
	}
}

// What dies in groups that have not settled is given back once they have, though nothing else dies after that.
func TestDeadSpaceOfYoungGroups(t *testing.T) {
	c := newCluster(t, 9)
	c.with(func(o *gateway.Options) {
		o.SweepEvery, o.CompactEvery, o.CompactSettled = 20*time.Millisecond, time.Hour, time.Second
	})
	c.until("an empty cluster was looked at", func() bool {
		compaction, err := c.gateway.Compaction(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return compaction.Looked != nil
	})
	c.putMany("k/", 1000, 1)
	c.putMany("k/", 800, 1<<20)
	_, live := c.takes("default")
	c.until("little is dead", func() bool {
		stored, _ := c.takes("default")
		return float64(stored) <= littleDead(live)
	})
	c.with(func(*gateway.Options) {})
	c.audit()
}

// Lone objects are brought together soon, not by the next look of many minutes.
func TestLoneObjectsAreToldOf(t *testing.T) {
	c := newCluster(t, 9)
	c.with(func(o *gateway.Options) {
		o.SweepEvery, o.CompactEvery, o.CompactSettled = 20*time.Millisecond, time.Hour, time.Second
	})
	c.until("an empty cluster was looked at", func() bool {
		compaction, err := c.gateway.Compaction(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return compaction.Looked != nil
	})
	for i := range 20 {
		c.put(fmt.Sprintf("lone/%02d", i), noise(700+i, uint64(i)), api.PutOptions{})
	}
	c.until("there are few groups", func() bool {
		status, err := c.gateway.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return status.Groups <= 3
	})
}

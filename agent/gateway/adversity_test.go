package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/mem"
)

// Clients that are slow, keys and ranges at their limits, stores without room: each costs its own request at most.

// putWithin puts through a gateway and gives up after a minute. It may be called from any goroutine.
func putWithin(t *testing.T, g *gateway.Gateway, key string, body io.Reader, size int64) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := g.Put(ctx, key, body, api.PutOptions{Size: size})
	return err
}

// roomForOneGroup leaves memory for one group of class default being written at a time.
func roomForOneGroup(o *gateway.Options) { o.MemoryBytes = 600 << 10 }

// Puts that do not say how long they are share a memory of one group and all end.
func TestUploadsOfUnknownLengthDoNotLockTheMemory(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	g := c.newGateway("small", roomForOneGroup)
	want := map[string][]byte{}
	for i, size := range []int{5000, 64 << 10, 64<<10 + 1, 200_000, 5000, 130_000, 64<<10 - 1, 4096} {
		want[fmt.Sprint("k", i)] = noise(size, uint64(i))
	}
	var puts sync.WaitGroup
	for key, data := range want {
		puts.Go(func() {
			if err := putWithin(t, g, key, bytes.NewReader(data), -1); err != nil {
				t.Errorf("%s: %v", key, err)
			}
		})
	}
	puts.Wait()
	for key, data := range want {
		c.check(key, data)
	}
	c.audit()
}

// Large objects hold all the memory that there is for them, and small ones are stored beside them.
func TestLargeObjectsDoNotStopSmallOnes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	g := c.newGateway("small", roomForOneGroup)
	release, held := g.HoldGroups()
	if !held {
		t.Fatal("something holds memory of large objects")
	}
	data := noise(64<<10, 1)
	large := make(chan error, 1)
	go func() { large <- putWithin(t, g, "large", bytes.NewReader(data), int64(len(data))) }()
	if err := putWithin(t, g, "k", strings.NewReader("x"), 1); err != nil {
		t.Errorf("a put of one byte beside large ones: %v", err)
	}
	select {
	case err := <-large:
		t.Errorf("a large put has ended without memory for a group: %v", err)
	default:
	}
	release()
	if err := <-large; err != nil {
		t.Error(err)
	}
	c.check("k", []byte("x"))
	c.check("large", data)
}

// A put whose bytes take longer than the announced time of an attempt is not given up by sweeps while they come in.
func TestSlowPutOutlivesItsDeadline(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	g := c.newGateway("hasty", func(o *gateway.Options) { o.AttemptTime = 500 * time.Millisecond })
	data := noise(64<<10*3, 1)
	body, feed := io.Pipe()
	stored := make(chan error, 1)
	go func() {
		stored <- errors.Join(putWithin(t, g, "k", body, int64(len(data))), body.Close())
	}()
	if _, err := feed.Write(data[:64<<10+1]); err != nil { // one group, and the next one is begun
		t.Fatal(err)
	}
	c.during(1200*time.Millisecond, func() {
		if _, err := g.SweepRecords(t.Context()); err != nil {
			t.Errorf("sweep: %v", err)
		}
	})
	if _, err := feed.Write(data[64<<10+1:]); err != nil {
		t.Errorf("the put does not read on: %v", err)
	}
	if err := errors.Join(feed.Close(), <-stored); err != nil {
		t.Fatal(err)
	}
	c.check("k", data)
	c.audit()
}

// Updates that write their objects anew at the same time, within the memory of one group, all get on.
func TestRewritesDoNotWaitInACircle(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	want := map[string][]byte{}
	for i := range 6 {
		key := fmt.Sprint("k", i)
		want[key] = noise(64<<10*10, uint64(i))
		c.put(key, want[key], api.PutOptions{})
	}
	c.agents[0].stop()
	g := c.newGateway("small", roomForOneGroup)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	patch := noise(64<<10*2, 100)
	var updates sync.WaitGroup
	for key := range maps.Clone(want) {
		updates.Go(func() {
			if _, err := g.Update(ctx, key, 64<<10*7, patch, nil); err != nil {
				t.Errorf("%s: %.300v", key, err)
			}
		})
	}
	updates.Wait()
	for key, data := range want {
		copy(data[64<<10*7:], patch)
		c.check(key, data)
	}
}

// Stores without room refuse a put in words, in bounded time; what was stored before stays, and nothing is left behind.
func TestFullStoresRefusePuts(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 10, func(agent *testAgent) { agent.store = mem.New(256 << 10) })
	want := map[string][]byte{}
	var refusal error
	for i, refused := 0, 0; refused < 5 && i < 100; i++ { // one may be refused that is to go to other stores than the next
		key := fmt.Sprint("k", len(want))
		data := noise(64<<10, uint64(i))
		if err := putWithin(t, c.gateway, key, bytes.NewReader(data), int64(len(data))); err == nil {
			want[key] = data
		} else {
			refusal, refused = err, refused+1
		}
	}
	if !errors.Is(refusal, store.ErrFull) || !strings.Contains(refusal.Error(), "make room") {
		t.Errorf("after %d objects: %v", len(want), refusal)
	}
	if len(want) == 0 {
		t.Error("nothing at all was stored")
	}
	data := noise(64<<10, 200)
	if err := putWithin(t, c.gateway, "k0", bytes.NewReader(data), 64<<10); err == nil {
		want["k0"] = data
	} else if !errors.Is(err, store.ErrFull) {
		t.Errorf("an overwrite in full stores: %v", err)
	}
	for key, data := range want {
		c.check(key, data)
	}
	c.audit()
	for i := range len(want) { // two of three: then every store has room, wherever their blocks were
		if key := fmt.Sprint("k", i); i%3 > 0 {
			if err := c.gateway.Delete(t.Context(), key, nil); err != nil {
				t.Fatal(err)
			}
			delete(want, key)
		}
	}
	c.audit() // deletes their blocks
	want["again"] = noise(32<<10, 3)
	c.put("again", want["again"], api.PutOptions{})
	survives(t, c, want)
}

// A full store among others costs a substitute and no refusal.
func TestBlocksOfAFullStoreGoElsewhere(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 10, func(agent *testAgent) {
		if agent.id == "n1" || agent.id == "n2" {
			agent.store = mem.New(4 << 10)
		}
	})
	want := map[string][]byte{}
	for i := range 10 {
		key := fmt.Sprint("k", i)
		want[key] = noise(64<<10, uint64(i))
		c.put(key, want[key], api.PutOptions{})
		for _, slot := range c.stat(key).Groups[0].Slots {
			if slot.Node == "n1" || slot.Node == "n2" {
				t.Errorf("%s: slot %d is on the full store of %s", key, slot.Slot, slot.Node)
			}
		}
	}
	c.audit()
	survives(t, c, want)
}

// Ranges that begin or end behind the object, also where their sum overflows, are refused and change nothing.
func TestRangesBehindTheEndAreRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	for _, size := range []int64{100, 70_000} {
		key := fmt.Sprint("k", size)
		data := noise(int(size), uint64(size))
		object := c.put(key, data, api.PutOptions{})
		reader, err := c.gateway.Open(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		for _, outside := range []struct{ offset, length int64 }{
			{size, 1}, {size - 1, 2}, {size + 1, 0}, {0, size + 1}, {size + 4096, 10}, {-1, 1}, {-10, 20},
			{math.MaxInt64, 1}, {math.MaxInt64 - 1, 10}, {math.MaxInt64, 0}, {math.MinInt64, 1},
		} {
			if _, err := c.gateway.Update(t.Context(), key, outside.offset, make([]byte, outside.length), nil); !errors.Is(err, api.ErrBadRequest) {
				t.Errorf("updating %d+%d of %d bytes: %v", outside.offset, outside.length, size, err)
			}
			if err := reader.WriteTo(t.Context(), io.Discard, outside.offset, outside.length); !errors.Is(err, api.ErrBadRequest) {
				t.Errorf("reading %d+%d of %d bytes: %v", outside.offset, outside.length, size, err)
			}
		}
		c.check(key, data)
		if stat := c.stat(key); stat.Revision != object.Revision {
			t.Errorf("%s is at revision %s, was %s", key, stat.Revision, object.Revision)
		}
	}
	c.audit()
}

// Small objects whose keys are as long as keys may be are stored together, though one group cannot list all their names.
func TestLongKeysInOneBatchAreAllStored(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	g := c.newGateway("waiting", func(o *gateway.Options) {
		o.Classes = slices.Clone(o.Classes)
		o.Classes[0].PackMode, o.Classes[0].PackDelay = api.PackBatch, time.Second // for all to arrive in the time of one batch
	})
	const count = 1200 // as many names as are over what the header of one block takes
	key := func(i int) string { return fmt.Sprintf("%0*d", 4096, i) }
	var puts sync.WaitGroup
	for i := range count {
		puts.Go(func() {
			data := noise(10, uint64(i))
			if err := putWithin(t, g, key(i), bytes.NewReader(data), int64(len(data))); err != nil {
				t.Errorf("key %d: %.200v", i, err)
			}
		})
	}
	puts.Wait()
	if t.Failed() {
		return
	}
	const sampled = 40
	groups := map[block.GroupID]bool{}
	for i := 0; i < count; i += count / sampled {
		c.check(key(i), noise(10, uint64(i)))
		groups[c.stat(key(i)).Groups[0].ID] = true
	}
	if len(groups) > sampled/2 {
		t.Errorf("a sample of %d objects put at once lies in %d groups", sampled, len(groups))
	}
	c.audit()
}

// One small object alone under rep(3) takes little more than three times its bytes, however wide its class's groups are.
func TestOneSmallObjectTakesTheRoomOfItsScheme(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 14)
	c.stopGateway() // the class of the same name has another ladder here
	g := c.newGateway("defaults", func(o *gateway.Options) { o.Classes = api.DefaultClasses() })
	for _, size := range []int64{20_000, 60_000} {
		before := c.stored()
		if err := putWithin(t, g, fmt.Sprint("k", size), bytes.NewReader(noise(int(size), 1)), size); err != nil {
			t.Fatal(err)
		}
		if took := c.stored() - before; took >= 4*size {
			t.Errorf("%d bytes take %d in the stores, %.1f times as much", size, took, float64(took)/float64(size))
		} else if took < 3*size {
			t.Errorf("%d bytes take %d in the stores: not three copies", size, took)
		}
	}
}

// stored is the number of bytes in all stores.
func (c *cluster) stored() (bytes int64) {
	c.t.Helper()
	for _, agent := range c.agents {
		if err := agent.store.List(c.t.Context(), block.KeyPrefix, func(_ string, size int64) error {
			bytes += size
			return nil
		}); err != nil {
			c.t.Fatal(err)
		}
	}
	return bytes
}

// A stream of an object that is moved into another group, its old group freed and deleted, goes on: the bytes are the same.
func TestReaderOfAMovedObjectReadsOn(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	want := map[string][]byte{"a": noise(3000, 1), "b": noise(3000, 2)}
	c.await("both share a group", func() bool {
		var puts sync.WaitGroup
		for key, data := range want {
			puts.Go(func() {
				if err := putWithin(t, c.gateway, key, bytes.NewReader(data), int64(len(data))); err != nil {
					t.Errorf("%s: %v", key, err)
				}
			})
		}
		puts.Wait()
		return c.stat("a").Groups[0].ID == c.stat("b").Groups[0].ID
	})
	was := c.stat("a")
	reader, err := c.gateway.Open(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	done := c.transition(api.TransitionRequest{Selector: api.Selector{Key64: api.EncodeKey("a")}, To: "rs(6,2)"})
	if done.State != api.TransitionDone || done.ObjectsRewritten != 1 {
		t.Fatalf("%+v", done)
	}
	if err := c.gateway.Delete(t.Context(), "b", nil); err != nil {
		t.Fatal(err)
	}
	c.audit() // deletes the blocks of the group they shared
	if _, err := c.catalog.Group(t.Context(), was.Groups[0].ID); !errors.Is(err, catalog.ErrNoGroup) {
		t.Fatalf("the old group is still there: %v", err)
	}
	if now := c.stat("a"); now.Revision != was.Revision {
		t.Errorf("the move changed the revision from %s to %s", was.Revision, now.Revision)
	}
	var got bytes.Buffer
	if err := reader.WriteTo(t.Context(), &got, 500, 2000); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want["a"][500:2500]) {
		t.Error("the bytes differ")
	}
}

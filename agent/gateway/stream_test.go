package gateway_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
)

// interrupted is a reader's client that has something happen after the first bytes arrived.
type interrupted struct {
	bytes.Buffer
	after func()
}

func (w *interrupted) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if after := w.after; after != nil {
		w.after = nil
		after()
	}
	return n, err
}

// Mistake 17 of the protocol: a long stream whose object is overwritten and whose old blocks are deleted ends in an
// error, with a prefix of the old version and nothing of the new one.
func TestMistake17StreamIsNeverSpliced(t *testing.T) {
	c := newCluster(t, 9)
	old, fresh := noise(64<<10*30, 1), noise(64<<10*30, 2)
	c.put("k", old, api.PutOptions{})
	reader, err := c.gateway.Open(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	client := &interrupted{after: func() {
		c.put("k", fresh, api.PutOptions{})
		c.audit() // deletes the old blocks
	}}
	err = reader.WriteTo(t.Context(), client, 0, reader.Size())
	if !errors.Is(err, api.ErrConflict) {
		t.Errorf("the stream ended with %v, want a conflict", err)
	}
	if got := client.Bytes(); len(got) == len(old) || !bytes.HasPrefix(old, got) {
		t.Errorf("%d bytes were sent that are no proper prefix of the old version", len(got))
	}
	c.check("k", fresh)
}

// A stream goes on through transitions and repairs of its groups: the bytes are the same.
func TestStreamGoesOnThroughTransitionAndRepair(t *testing.T) {
	c := newCluster(t, 9)
	data := noise(64<<10*30, 1)
	c.put("k", data, api.PutOptions{Scheme: "rs(3,2)"})
	reader, err := c.gateway.Open(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	client := &interrupted{after: func() {
		c.agents[3].store.Erase()
		if result, err := c.gateway.Repair(t.Context(), true, false); err != nil || result.SlotsRebuilt == 0 {
			t.Errorf("repair: %+v, %v", result, err)
		}
		if done := c.transition(api.TransitionRequest{Selector: api.Selector{Class: "default"}, To: "rs(6,2)"}); done.State != api.TransitionDone {
			t.Errorf("transition: %+v", done)
		}
		c.audit()
	}}
	if err := reader.WriteTo(t.Context(), client, 0, reader.Size()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(client.Bytes(), data) {
		t.Error("the stream differs")
	}
}

// Mistakes 14 to 16 of the protocol: readers beside writers, transitions, lost blocks and rebuilds never see a value that
// nobody wrote, nor one older than what they saw before. Each version fills the whole object with its number.
func TestReadersSeeWholeVersionsInOrder(t *testing.T) {
	c := newCluster(t, 9)
	const versions = 40
	for _, size := range []int{96 << 10, 2000} {
		version := func(number uint64) []byte {
			return bytes.Repeat(binary.LittleEndian.AppendUint64(nil, number), size/8)
		}
		c.put("k", version(0), api.PutOptions{Scheme: "rs(6,2)"})
		var workers sync.WaitGroup
		done := make(chan struct{})
		workers.Go(func() {
			defer close(done)
			random := rand.New(rand.NewPCG(5, uint64(size)))
			for number := uint64(1); number <= versions; number++ {
				scheme, update := []string{"rep(3)", "rs(3,2)", "rs(6,2)"}[random.IntN(3)], random.IntN(2) == 0
				for {
					var err error
					if update {
						_, err = c.gateway.Update(t.Context(), "k", 0, version(number), nil)
					} else {
						_, err = c.gateway.Put(t.Context(), "k", bytes.NewReader(version(number)), api.PutOptions{Scheme: scheme, Size: int64(size)})
					}
					if errors.Is(err, api.ErrUnavailable) || errors.Is(err, api.ErrTooFewNodes) {
						continue // a store was emptied in between: nothing was changed
					}
					if err != nil {
						t.Errorf("version %d (update: %v): %v", number, update, err)
					}
					break
				}
			}
		})
		workers.Go(func() { // disturbs
			random := rand.New(rand.NewPCG(6, uint64(size)))
			for {
				select {
				case <-done:
					return
				default:
				}
				c.agents[random.IntN(len(c.agents))].store.Erase()
				if _, err := c.gateway.Repair(t.Context(), true, false); err != nil {
					t.Errorf("repair: %v", err)
				}
				begun, err := c.gateway.StartTransition(t.Context(), api.TransitionRequest{
					Selector: api.Selector{Class: "default"}, To: []string{"rs(3,2)", "rs(6,2)", "rep(3)"}[random.IntN(3)],
				})
				if err != nil {
					t.Errorf("transition: %v", err)
					return
				}
				c.ended(begun.ID)
				if _, err := c.gateway.Sweep(t.Context(), api.SweepRequest{}); err != nil {
					t.Errorf("sweep: %v", err)
				}
			}
		})
		for range 3 {
			workers.Go(func() {
				last := uint64(0)
				for {
					select {
					case <-done:
						return
					default:
					}
					data, err := c.read("k")
					if errors.Is(err, api.ErrConflict) {
						continue
					}
					if err != nil {
						t.Errorf("read: %v", err)
						return
					}
					number := binary.LittleEndian.Uint64(data)
					if !bytes.Equal(data, version(number)) {
						t.Error("a read mixed versions")
						return
					}
					if number < last {
						t.Errorf("a read of version %d after one of %d", number, last)
						return
					}
					last = number
				}
			})
		}
		workers.Wait()
		c.check("k", version(versions))
	}
}

// Two gateways over one catalog: every acknowledged update is there in the end, whichever gateway took it, though both
// also run transitions over the same groups.
func TestTwoGatewaysLoseNoUpdate(t *testing.T) {
	c := newCluster(t, 9)
	other := c.newGateway("gw-b")
	const counters, rounds = 16, 12
	data := make([]byte, 100_000)
	c.put("k", data, api.PutOptions{})
	var workers sync.WaitGroup
	for which, g := range []*gateway.Gateway{c.gateway, other} {
		for worker := range 2 {
			workers.Go(func() { // each worker owns counters and raises them by updates
				for round := 1; round <= rounds; round++ {
					slot := which*2 + worker + 4*(round%(counters/4))
					offset := int64(slot * (len(data) / counters))
					value := binary.LittleEndian.AppendUint64(nil, uint64(round))
					if _, err := g.Update(t.Context(), "k", offset, value, nil); err != nil {
						t.Errorf("gateway %d, update of counter %d: %v", which, slot, err)
					}
				}
			})
		}
		workers.Go(func() {
			for _, to := range []string{"rs(3,2)", "rs(6,2)", "rep(3)"} {
				begun, err := g.StartTransition(t.Context(), api.TransitionRequest{Selector: api.Selector{Class: "default"}, To: to})
				if err != nil {
					t.Errorf("gateway %d: %v", which, err)
					return
				}
				c.await("the transition ends", func() bool {
					now, err := g.Transition(t.Context(), begun.ID)
					return err == nil && now.State.Final()
				})
			}
		})
	}
	workers.Wait()
	got := c.get("k")
	for slot := range counters {
		want := uint64(0)
		for round := 1; round <= rounds; round++ {
			if round%(counters/4) == slot/4 {
				want = uint64(round)
			}
		}
		if value := binary.LittleEndian.Uint64(got[slot*(len(data)/counters):]); value != want {
			t.Errorf("counter %d is %d, want %d: an acknowledged update is lost", slot, value, want)
		}
	}
	c.audit()
	survives(t, c, map[string][]byte{"k": got})
}

// A job may be steered through any gateway.
func TestTransitionIsPausedThroughAnotherGateway(t *testing.T) {
	c := newCluster(t, 9)
	other := c.newGateway("gw-b")
	c.put("k", noise(64<<10*40, 1), api.PutOptions{})
	begun, err := c.gateway.StartTransition(t.Context(), api.TransitionRequest{
		Selector: api.Selector{Class: "default"}, To: "rs(3,2)", BytesPerSecond: 1 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	if paused, err := other.PauseTransition(t.Context(), begun.ID); err != nil || paused.State != api.TransitionPaused {
		t.Fatalf("%+v, %v", paused, err)
	}
	c.await("its runner obeys", func() bool {
		now, err := c.gateway.Transition(t.Context(), begun.ID)
		return err == nil && now.State == api.TransitionPaused
	})
}

// Crash between announcement and commit: what an earlier start of a gateway left is settled when it starts again, and
// swept.
func TestLeftoversOfACrashAreSettledAndSwept(t *testing.T) {
	c := newCluster(t, 9)
	c.put("k", noise(100_000, 1), api.PutOptions{})
	attempt, err := c.catalog.Begin(t.Context(), catalog.KindPut, time.Now().Add(time.Hour), func(stamp block.Stamp) []catalog.BlockSet {
		return []catalog.BlockSet{{Group: block.GroupID{Stamp: stamp}, Slots: []int{0, 1}, Nodes: []block.NodeID{"n1", "n2"}}}
	})
	if err != nil {
		t.Fatal(err)
	}
	group := block.GroupID{Stamp: attempt.Stamp()}
	for slot, agent := range c.agents[:2] {
		address := block.Address{Node: agent.id, Group: group, Slot: slot, Stamp: attempt.Stamp()}
		if err := agent.store.Create(t.Context(), address.Key(), []byte("staged by a gateway that died")); err != nil {
			t.Fatal(err)
		}
	}
	c.stopGateway()
	c.startGateway()
	status, err := c.gateway.Status(t.Context())
	if err != nil || status.Active != 0 {
		t.Errorf("%d attempts are active after the restart, %v", status.Active, err)
	}
	c.audit()
	c.check("k", noise(100_000, 1))
	stray := block.Address{Node: "n1", Group: group, Slot: 0, Stamp: block.Stamp{Sequence: 1 << 40, Salt: 1}}
	if err := c.agents[0].store.Create(t.Context(), stray.Key(), []byte("of another catalog")); err != nil {
		t.Fatal(err)
	}
	result, err := c.gateway.Sweep(t.Context(), api.SweepRequest{})
	if !errors.Is(err, catalog.ErrAlarm) || result.Quarantined != 1 || result.OrphansDeleted != 0 {
		t.Errorf("a stamp that was never drawn: %s, %v", fmt.Sprintf("%+v", result), err)
	}
}

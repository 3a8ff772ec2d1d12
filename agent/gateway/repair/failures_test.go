package repair

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/group"
)

// What fails again and again is tried ever more rarely while the nodes stay as they are, and at once when they do not.
func TestFailuresArePutOff(t *testing.T) {
	t.Parallel()
	const least = 20 * time.Second
	var f failures
	id, other := block.GroupID{Index: 1}, block.GroupID{Index: 2}
	now := time.Unix(1000, 0)
	if f.has(id, 7) || !f.due(id, 7, now) {
		t.Error("a group nobody has tried has failed")
	}
	for _, want := range []time.Duration{0, least, 2 * least, 4 * least, 8 * least, 16 * least, longestFailureDelay, longestFailureDelay} {
		f.note(id, 7, true, least, now)
		if !f.has(id, 7) || f.has(id, 8) || f.has(other, 7) {
			t.Fatal("what has failed is not known, or of other nodes or groups")
		}
		if want > 0 && f.due(id, 7, now.Add(want-1)) || !f.due(id, 7, now.Add(want)) || !f.due(other, 7, now) {
			t.Fatalf("it is not due after %s", want)
		}
		now = now.Add(want)
	}
	if !f.due(id, 8, now.Add(-time.Second)) {
		t.Error("it is not due with other nodes")
	}
	f.note(other, 8, true, least, now)
	if f.has(id, 7) || !f.has(other, 8) {
		t.Error("failures of before the nodes changed are kept")
	}
	f.note(other, 8, false, least, now)
	if f.has(other, 8) {
		t.Error("what went well has failed")
	}
}

// A repair that waits for its budget is overtaken by one that somebody waits for, and is paid for once.
func TestRepairsOfOneGroup(t *testing.T) {
	t.Parallel()
	r := &supervisor{flights: map[block.GroupID]*flight{}, pacer: group.NewPacer(group.Rates{Total: 1}, func(block.NodeID) string { return "" })}
	id := block.GroupID{Index: 1}
	paying, leave, err := r.enter(t.Context(), id, r.pay(nil))
	if err != nil {
		t.Fatal(err)
	}
	halt := make(chan struct{})
	close(halt)
	if _, _, err := r.enter(t.Context(), id, r.pay(halt)); !errors.Is(err, group.ErrHalted) {
		t.Errorf("one that is to end waits for the other: %v", err)
	}
	if paying.Err() != nil {
		t.Error("one that pays has overtaken another")
	}
	entered := make(chan error)
	go func() {
		_, leave, err := r.enter(t.Context(), id, nil)
		if err == nil {
			leave()
		}
		entered <- err
	}()
	if err := r.pay(nil).wait(paying, group.Load{Total: 1 << 40}); !errors.Is(err, context.Canceled) {
		t.Errorf("it paid: %v", err)
	}
	leave()
	if err := <-entered; err != nil || len(r.flights) != 0 {
		t.Errorf("%v, %d flights are left", err, len(r.flights))
	}
	once := r.pay(halt)
	if err := once.wait(t.Context(), group.Load{Total: 1 << 40}); !errors.Is(err, group.ErrHalted) || once.paid {
		t.Errorf("halted: %v, paid %t", err, once.paid)
	}
	once = &Grant{pacer: group.NewPacer(group.Rates{}, func(block.NodeID) string { return "" })}
	if err := once.wait(t.Context(), group.Load{Total: 1}); err != nil || !once.paid {
		t.Fatalf("without limits: %v, paid %t", err, once.paid)
	}
	once.pacer, once.halt = r.pacer, halt
	if err := once.wait(t.Context(), group.Load{Total: 1 << 40}); err != nil {
		t.Errorf("the second payment for the same: %v", err)
	}
}

package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/wire"
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
	for _, want := range []time.Duration{0, least, 2 * least, 4 * least, 8 * least, 16 * least, relocationEvery, relocationEvery} {
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

func TestInsist(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		errs  []error // of each try; the last of all others
		tries int
		full  string
	}{
		"it goes well":             {[]error{nil}, 1, "map[]"},
		"races":                    {[]error{api.ErrConflict, catalog.ErrStale, wire.ErrBusy, errRepaired, nil}, 5, "map[]"},
		"what no second try cures": {[]error{api.ErrConflict, api.ErrDataLoss}, 2, "map[]"},
		"a node is full, and another": {
			[]error{&noRoomError{node: "n1", cause: api.ErrUnavailable}, &noRoomError{node: "n2", cause: api.ErrUnavailable}, nil}, 3, "map[n1:true n2:true]",
		},
		"a node that is known to be full is full": {
			[]error{&noRoomError{node: "n1", cause: api.ErrUnavailable}}, 2, "map[n1:true]",
		},
	} {
		tries, seen := 0, ""
		err := insist(t.Context(), func(full map[block.NodeID]bool) error {
			seen = fmt.Sprint(full)
			tries++
			return c.errs[min(tries, len(c.errs))-1]
		})
		if want := c.errs[len(c.errs)-1]; !errors.Is(err, want) || tries != c.tries || seen != c.full {
			t.Errorf("%s: %v after %d tries, full at last %s", name, err, tries, seen)
		}
	}
}

// Groups on nodes that are leaving and cannot be moved are looked at ever more rarely, until something moves or changes.
func TestRelocationIsPutOff(t *testing.T) {
	t.Parallel()
	var m membership
	now := time.Unix(1000, 0)
	versions := map[block.NodeID]uint64{"n1": 1}
	look := func(after time.Duration, roster uint64) bool {
		now = now.Add(after)
		return m.due(maps.Clone(versions), roster, true, now)
	}
	if !look(0, 1) {
		t.Fatal("the first look is not due")
	}
	for _, delay := range []time.Duration{2 * relocationRetry, 4 * relocationRetry, 8 * relocationRetry} {
		m.note(false, false)
		if look(delay-1, 1) || !look(1, 1) {
			t.Fatalf("with nothing moved, the next look is not after %s", delay)
		}
	}
	m.note(false, true)
	if look(relocationRetry-1, 1) || !look(1, 1) {
		t.Error("something was moved, and the next look is not soon")
	}
	m.note(false, false)
	if look(relocationRetry-1, 2) || !look(1, 2) {
		t.Error("a node came back, and the next look is not soon")
	}
	m.note(true, false)
	if look(relocationEvery-1, 2) || !look(1, 2) {
		t.Error("nothing is leaving, and the next look is not at its time")
	}
	versions["n2"] = 1
	if !look(0, 2) {
		t.Error("a node came, and nobody looks")
	}
}

// A repair that waits for its budget is overtaken by one that somebody waits for, and is paid for once.
func TestRepairsOfOneGroup(t *testing.T) {
	t.Parallel()
	r := &repairs{flights: map[block.GroupID]*flight{}, pacer: newPacer(rates{total: 1}, func(block.NodeID) string { return "" })}
	id := block.GroupID{Index: 1}
	paying, leave, err := r.enter(t.Context(), id, r.pay(nil))
	if err != nil {
		t.Fatal(err)
	}
	halt := make(chan struct{})
	close(halt)
	if _, _, err := r.enter(t.Context(), id, r.pay(halt)); !errors.Is(err, errHalted) {
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
	if err := r.pay(nil).wait(paying, load{total: 1 << 40}); !errors.Is(err, context.Canceled) {
		t.Errorf("it paid: %v", err)
	}
	leave()
	if err := <-entered; err != nil || len(r.flights) != 0 {
		t.Errorf("%v, %d flights are left", err, len(r.flights))
	}
	once := r.pay(halt)
	if err := once.wait(t.Context(), load{total: 1 << 40}); !errors.Is(err, errHalted) || once.paid {
		t.Errorf("halted: %v, paid %t", err, once.paid)
	}
	once = &payment{pacer: newPacer(rates{}, r.pacer.domainOf)}
	if err := once.wait(t.Context(), load{total: 1}); err != nil || !once.paid {
		t.Fatalf("without limits: %v, paid %t", err, once.paid)
	}
	once.pacer, once.halt = r.pacer, halt
	if err := once.wait(t.Context(), load{total: 1 << 40}); err != nil {
		t.Errorf("the second payment for the same: %v", err)
	}
}

// Spares and stores that are almost full take nothing for the sake of failure domains alone.
func TestSpreadSparesSpares(t *testing.T) {
	t.Parallel()
	nodes := &agents{nodes: map[block.NodeID]*agent{}}
	enter := func(id block.NodeID, domain string, change func(*agent)) {
		made := &agent{node: catalog.Node{ID: id, State: catalog.NodeUp, Domain: domain}, reachable: true, health: health{state: healthUp}}
		if change != nil {
			change(made)
		}
		nodes.nodes[id] = made
	}
	enter("n1", "a", nil)
	enter("n2", "a", nil)
	enter("n3", "c", func(a *agent) { a.node.Spare = true })
	enter("n4", "d", func(a *agent) { a.hello.Store.CapacityBytes, a.hello.Store.UsedBytes = 100, 95 })
	g := &Gateway{agents: nodes}
	group := &catalog.Group{Home: []block.NodeID{"n1", "n2"}}
	if list := misplacements(group, g.memberMap()); len(list) != 0 {
		t.Errorf("with nothing but a spare and a full node free: %+v", list)
	}
	enter("n5", "e", func(a *agent) { a.hello.Store.CapacityBytes, a.hello.Store.UsedBytes = 100, 50 })
	list := misplacements(group, g.memberMap())
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	if home, err := g.newHomes(group, list, g.memberMap(), nil); err != nil || !slices.Contains(home, "n5") {
		t.Errorf("it goes to %v, %v", home, err)
	}
	list[0].leaving = true
	if home, err := g.newHomes(group, list, g.memberMap(), nil); err != nil || !slices.Contains(home, "n3") {
		t.Errorf("what is leaving goes to %v, not to the spare, %v", home, err)
	}
}

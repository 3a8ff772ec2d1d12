package balance

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/member"
)

// world is nodes in failure domains and the groups that lie on them.
type world struct {
	members []member.Member
	groups  []catalog.Group
}

func (w *world) node(domain string) block.NodeID {
	id := block.NodeID(fmt.Sprintf("n%02d", len(w.members)+1))
	w.members = append(w.members, member.Member{
		Node: catalog.Node{ID: id, State: catalog.NodeUp, Domain: domain}, Trusted: true,
	})
	return id
}

// group lies with so many units in each slot on the nodes of home.
func (w *world) group(home []block.NodeID, units int) {
	of := catalog.Group{ID: block.GroupID{Index: uint32(len(w.groups))}, Home: slices.Clone(home), CellBytes: 1000}
	for _, id := range home {
		of.Slots = append(of.Slots, catalog.Slot{{Node: id, Units: units}})
	}
	w.groups = append(w.groups, of)
}

// census counts what lies where.
func (w *world) census() *census {
	c := &census{nodes: map[block.NodeID]int64{}}
	for i := range w.groups {
		c.add(&w.groups[i], 0)
	}
	return c
}

// planned plans a balance and carries it out.
func (w *world) planned() (*plan, []*member.Stake) {
	c := w.census()
	p := newPlan(w.members, member.Stakes(w.members, c.nodes), 1<<20)
	for i := range w.groups {
		p.add(&w.groups[i], 0)
	}
	for _, s := range p.steps {
		at := slices.IndexFunc(w.groups, func(g catalog.Group) bool { return g.ID == s.id })
		for _, move := range s.moves {
			w.groups[at].Slots[move.Slot][0].Node, w.groups[at].Home[move.Slot] = move.To, move.To
		}
	}
	return p, member.Stakes(w.members, w.census().nodes)
}

// spread is how unevenly a group lies in its failure domains: the squares of how many slots each has.
func (w *world) spread(of *catalog.Group) (sum int) {
	used := map[string]int{}
	for slot := range of.Home {
		id, _ := of.Place(slot)
		at := slices.IndexFunc(w.members, func(m member.Member) bool { return m.Node.ID == id })
		used[member.Domain(w.members[at].Node)]++
	}
	for _, n := range used {
		sum += n * n
	}
	return sum
}

// However nodes and groups lie, a plan moves no more than nodes lack but for half a slot of each, never two slots of a group onto one
// node, never a group less evenly, brings every node nearer to its share or leaves it, and is what its steps come to.
func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{}
		domains := rapid.SampledFrom([]string{"", "ab", "abc"}).Draw(t, "domains")
		domain := func() string {
			if domains == "" {
				return ""
			}
			return string(domains[rapid.IntRange(0, len(domains)-1).Draw(t, "domain")])
		}
		var ids []block.NodeID
		for range rapid.IntRange(4, 8).Draw(t, "old nodes") {
			ids = append(ids, w.node(domain()))
		}
		width := rapid.IntRange(2, 4).Draw(t, "width")
		for range rapid.IntRange(0, 60).Draw(t, "groups") {
			home := rapid.Permutation(ids).Draw(t, "home")[:width]
			w.group(home, rapid.IntRange(1, 3).Draw(t, "units"))
		}
		for range rapid.IntRange(0, 3).Draw(t, "new nodes") {
			w.node(domain())
		}
		before := member.Stakes(w.members, w.census().nodes)
		lacks, slot := lacking(before), w.census().slot
		spreads := make([]int, len(w.groups))
		for i := range w.groups {
			spreads[i] = w.spread(&w.groups[i])
		}
		p, after := w.planned()
		if most := lacks + int64(len(before))*slot/2; p.bytes > most {
			t.Errorf("%d bytes are moved, nodes lack %d", p.bytes, lacks)
		}
		for i := range w.groups {
			of := &w.groups[i]
			if now := w.spread(of); now > spreads[i] {
				t.Errorf("group %d lay as %d and lies as %d", i, spreads[i], now)
			}
			if home := slices.Clone(of.Home); len(slices.Compact(slices.Sorted(slices.Values(home)))) != len(home) {
				t.Errorf("group %d lies twice on a node: %v", i, of.Home)
			}
		}
		moved := int64(0)
		for i, s := range after {
			if s.Bytes != p.stakes[s.Node.ID].Bytes {
				t.Errorf("node %s has %d bytes, the plan says %d", s.Node.ID, s.Bytes, p.stakes[s.Node.ID].Bytes)
			}
			off := func(s *member.Stake) int64 { return max(s.Bytes-s.Fair, s.Fair-s.Bytes) }
			if now := off(s); now > max(off(before[i]), slot/2+1) {
				t.Errorf("node %s was %d bytes off its share and is %d", s.Node.ID, off(before[i]), now)
			}
			moved += max(0, s.Bytes-before[i].Bytes)
		}
		if p.bytes < moved {
			t.Errorf("%d bytes were planned, and nodes have gained %d", p.bytes, moved)
		}
		if again, _ := w.planned(); domains == "" && again.bytes > p.bytes {
			t.Errorf("planned again it moves %d bytes, after %d", again.bytes, p.bytes)
		}
	})
}

// New nodes in a rack of their own are filled up to where groups would lie less evenly.
func TestPlanKeepsFailureDomains(t *testing.T) {
	t.Parallel()
	w := &world{}
	a1, a2, b1, b2 := w.node("a"), w.node("a"), w.node("b"), w.node("b")
	for range 40 {
		w.group([]block.NodeID{a1, a2, b1, b2}, 1)
	}
	a3 := w.node("a")
	p, after := w.planned()
	for _, s := range p.steps {
		for _, move := range s.moves {
			if move.To != a3 || move.From != a1 && move.From != a2 {
				t.Errorf("%+v makes a group lie less evenly", move)
			}
		}
	}
	if text := uneven(after, 1000); p.bytes == 0 || text == "" {
		t.Errorf("%d bytes are moved, and it is said: %q", p.bytes, text)
	}
}

// The colder half of all bytes is known, and whether that is all.
func TestColdest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		heats []float64
		last  int
		all   bool
	}{
		"nothing is used": {heats: []float64{0, 0, 0}, last: 0, all: true},
		"half is used":    {heats: []float64{0, 0, 5, 9}, last: 0},
		"all is used":     {heats: []float64{1, 1.5, 100, 4}, last: heatBucket(1)},
		"alike":           {heats: []float64{3, 3}, last: heatBucket(3), all: true},
		"none":            {all: true},
	} {
		counted := &census{nodes: map[block.NodeID]int64{}}
		w := &world{}
		w.group([]block.NodeID{"n1"}, 1)
		for _, heat := range c.heats {
			counted.add(&w.groups[0], heat)
		}
		if last, all := counted.coldest(); last != c.last || all != c.all {
			t.Errorf("%s: %d %t, want %d %t", name, last, all, c.last, c.all)
		}
	}
	if heatBucket(1e-300) != 1 && heatBucket(1e-300) != 0 || heatBucket(1e300) != heatBuckets-1 || heatBucket(2) <= heatBucket(1) {
		t.Error("heat is in the wrong bucket")
	}
}

// A gateway goes on with what is its own, or nobody's, or of one that has been silent for long.
func TestWhoseTheBalanceIs(t *testing.T) {
	t.Parallel()
	b := New(Parts{ID: "gw", Start: "now", Logger: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()})
	at := time.Unix(1000, 0)
	running := func(owner string) *api.Balance { return &api.Balance{State: api.BalanceRunning, Owner: owner} }
	record := &catalog.Job{Version: 7}
	for owner, ours := range map[string]bool{
		"": true, catalog.Owner("gw", "now"): true, catalog.Owner("gw", "before"): true, catalog.Owner("other", "now"): false,
		catalog.Owner("gw2", "now"): false,
	} {
		if b.isOurs(record, running(owner), at) != ours {
			t.Errorf("of %q: not %t", owner, ours)
		}
	}
	other := running(catalog.Owner("other", "now"))
	if b.isOurs(record, other, at.Add(lease)) || !b.isOurs(record, other, at.Add(lease+1)) {
		t.Error("a record that does not change is taken over too soon, or never")
	}
	record.Version++
	if b.isOurs(record, other, at.Add(2*lease)) {
		t.Error("a record that has changed is taken over")
	}
	for _, state := range []api.BalanceState{api.BalanceNone, api.BalancePaused, api.BalanceCancelled, api.BalanceDone} {
		if b.isOurs(record, &api.Balance{State: state}, at.Add(9*lease)) {
			t.Errorf("one that is %s is gone on with", state)
		}
	}
}

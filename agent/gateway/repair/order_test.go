package repair

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/group"
)

// What survives the fewest further losses comes first, and what is not known to have lost anything last; two gateways
// begin at different groups.
func TestGroupsNearestToLossComeFirst(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var list []damage
	for i := range 200 {
		list = append(list, damage{id: block.GroupID{Stamp: block.Stamp{Sequence: uint64(i + 1)}}, known: i%3 > 0, spare: random.IntN(4)})
	}
	order := func(gateway string) []damage {
		sorted := slices.Clone(list)
		for i := range sorted {
			sorted[i].place = placeOf(sorted[i].id, gateway)
		}
		random.Shuffle(len(sorted), func(i, j int) { sorted[i], sorted[j] = sorted[j], sorted[i] })
		slices.SortFunc(sorted, func(a, b damage) int { return a.before(&b) })
		return sorted
	}
	first := order("gw1")
	for i := 1; i < len(first); i++ {
		before, after := first[i-1], first[i]
		if after.known && (!before.known || before.spare > after.spare) {
			t.Fatalf("%+v comes before %+v", before, after)
		}
	}
	if !slices.Equal(first, order("gw1")) {
		t.Error("the order depends on that of the list")
	}
	if slices.EqualFunc(first, order("gw2"), func(a, b damage) bool { return a.id == b.id }) {
		t.Error("two gateways have the same order")
	}
}

// The estimate of what is left follows the bytes, or the groups where no bytes are known to be lost.
func TestProgressOfAPass(t *testing.T) {
	began := time.Unix(1000, 0)
	known := []damage{{known: true, bytes: 100, spare: 1}, {known: true, bytes: 300, spare: 0}, {}}
	p := newPassing(known, began)
	if at := p.at(began.Add(time.Second)); at.ETASeconds != -1 || at.BytesTotal != 400 || at.BySpare[0] != 1 || at.BySpare[1] != 1 || p.known != 2 {
		t.Errorf("at the start: %+v", at)
	}
	p.note(&known[0], &Outcome{slots: 1, bytes: 100}, nil)
	if at := p.at(began.Add(2 * time.Second)); at.ETASeconds != 6 || at.GroupsRepaired != 1 {
		t.Errorf("after a quarter: %+v", at)
	}
	p.note(&known[1], &Outcome{}, errors.New("it does not work"))
	p.note(&known[2], &Outcome{slots: 1, bytes: 50}, nil)
	if at := p.at(began.Add(4 * time.Second)); at.BytesTotal != 450 || at.BytesDone != 150 || at.GroupsFailed != 1 || at.ETASeconds != 8 || at.Problem == "" {
		t.Errorf("with a failure: %+v", at)
	}
	p.end(began.Add(5 * time.Second))
	if at := p.at(began.Add(time.Hour)); at.ElapsedSeconds != 5 || at.Finished == nil || at.ETASeconds != 0 {
		t.Errorf("at the end: %+v", at)
	}
	p = newPassing(make([]damage, 10), began)
	p.note(&damage{}, &Outcome{}, nil)
	p.note(&damage{}, &Outcome{}, nil)
	if at := p.at(began.Add(time.Second)); at.ETASeconds != 4 {
		t.Errorf("where nothing is known to be lost: %+v", at)
	}
}

// What a read met is taken at once; what failed waits until all are wanted, and is read whole only if a read met it.
func TestFailedRepairsWaitTheirTurn(t *testing.T) {
	wake := make(chan struct{}, 1)
	r := group.Reported{Wake: wake}
	met, failed := block.GroupID{Index: 1}, block.GroupID{Index: 2}
	r.Keep(failed, false)
	if len(wake) != 0 || len(r.Take(false)) != 0 {
		t.Error("a failure is tried again at once")
	}
	r.Add(met)
	r.Add(failed)
	if len(wake) != 1 || r.Count() != 2 {
		t.Errorf("%d groups wait", r.Count())
	}
	if taken := r.Take(false); len(taken) != 2 || !taken[met] || !taken[failed] {
		t.Errorf("taken at once: %v", taken)
	}
	r.Keep(met, true)
	if taken := r.Take(true); len(taken) != 2 || !taken[met] || taken[failed] {
		t.Errorf("taken with all: %v", taken)
	}
	if r.Count() != 0 {
		t.Error("what was taken is still there")
	}
}

package node

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/mem"
	"github.com/restripe/restripe/agent/wire"
)

type counts = map[string]block.Counts

func newAllegiance(store store.Store) *allegiance {
	return &allegiance{id: "n1", store: store, log: slog.New(slog.DiscardHandler), silence: time.Hour, keepEvery: time.Minute}
}

// shown has a gateway show its timeline and returns what it may do: everything, write, or nothing.
func shown(t *testing.T, a *allegiance, timeline *wire.Timeline) *wire.Allegiance {
	t.Helper()
	answer, err := a.show(t.Context(), timeline, true)
	if err != nil {
		t.Fatal(err)
	}
	may := standing("nothing")
	switch {
	case answer.Obeyed:
		may = obeyed
	case answer.Newcomer:
		may = newcomer
	}
	stamp := block.Stamp{Sequence: 7, Salt: uint64(block.Mark(timeline.Start))<<32 | 5}
	if err := a.checkWrite(t.Context(), stamp); may != "nothing" && err != nil || may == "nothing" && !errors.Is(err, wire.ErrNotObeyed) {
		t.Errorf("%s may do %s, and its write was answered with %v", timeline.Start, may, err)
	}
	done, err := a.beginDelete(t.Context(), timeline)
	if err == nil {
		done()
	}
	if may == obeyed && err != nil || may != obeyed && !errors.Is(err, wire.ErrNotObeyed) {
		t.Errorf("%s may do %s, and its delete was answered with %v", timeline.Start, may, err)
	}
	return answer
}

func wants(t *testing.T, answer *wire.Allegiance, want standing) {
	t.Helper()
	if answer.Obeyed != (want == obeyed) || answer.Newcomer != (want == newcomer) {
		t.Errorf("%+v, want %q", answer, want)
	}
}

const refused standing = "refused"

func TestLaterStatesAreObeyedEarlierOnesNot(t *testing.T) {
	a := newAllegiance(mem.New(0))
	wants(t, shown(t, a, &wire.Timeline{Start: "p/1", Read: block.Timeline{Sessions: counts{"p/1": {4, 2}}}}), obeyed)
	wants(t, shown(t, a, &wire.Timeline{Start: "p/1", Read: block.Timeline{Sessions: counts{"p/1": {4, 3, 1}}}}), obeyed)
	// A sum that is greater does not make up for a lane that is behind.
	behind := shown(t, a, &wire.Timeline{Start: "p/2", Read: block.Timeline{Sessions: counts{"p/2": {1}}, Ended: counts{"p/1": {9, 2, 1}}}})
	wants(t, behind, refused)
	if !slices.Equal(behind.Lacks["p/1"], block.Counts{4, 3, 1}) {
		t.Errorf("%+v does not tell what is lacking", behind)
	}
	wants(t, shown(t, a, &wire.Timeline{Start: "p/2", Read: block.Timeline{Sessions: counts{"p/2": {1}}}}), refused)
	// It is not behind, and nobody that is obeyed has named it.
	later := &wire.Timeline{Start: "p/2", Read: block.Timeline{Sessions: counts{"p/2": {1}}, Ended: counts{"p/1": {4, 3, 1}}}}
	wants(t, shown(t, a, later), newcomer)
	a.silence = 0
	wants(t, shown(t, a, later), obeyed)
	starts, _, err := a.list(t.Context(), "")
	if err != nil || !slices.Equal(starts, []string{"p/2"}) {
		t.Errorf("starts %v, %v: what ended is in every later state of p/2, and need not be remembered", starts, err)
	}
}

func TestAStartThatStopsCleanlyNeedNotBeWaitedFor(t *testing.T) {
	a := newAllegiance(mem.New(0))
	wants(t, shown(t, a, &wire.Timeline{Start: "p/1", Read: block.Timeline{Sessions: counts{"p/1": {4}}}}), obeyed)
	closing := &wire.Timeline{Start: "p/1", Read: block.Timeline{Sessions: counts{"p/1": {5}}}, Closing: true}
	answer, err := a.show(t.Context(), closing, true)
	if err != nil || answer.Obeyed {
		t.Errorf("closing: %+v, %v", answer, err)
	}
	wants(t, shown(t, a, &wire.Timeline{Start: "p/2", Read: block.Timeline{Sessions: counts{"p/2": nil}, Ended: counts{"p/1": {4}}}}), refused)
	wants(t, shown(t, a, &wire.Timeline{Start: "p/2", Read: block.Timeline{Sessions: counts{"p/2": nil}, Ended: counts{"p/1": {5}}}}), obeyed)
}

func TestAStartThatAnObeyedOneNamesIsObeyed(t *testing.T) {
	a := newAllegiance(mem.New(0))
	wants(t, shown(t, a, &wire.Timeline{Start: "p/1", Read: block.Timeline{Sessions: counts{"p/1": {1}}}}), obeyed)
	both := counts{"p/1": {1}, "q/1": {1}}
	wants(t, shown(t, a, &wire.Timeline{Start: "q/1", Read: block.Timeline{Sessions: both}}), newcomer)
	wants(t, shown(t, a, &wire.Timeline{Start: "q/1", Read: block.Timeline{Sessions: both}}), newcomer)
	wants(t, shown(t, a, &wire.Timeline{Start: "p/1", Read: block.Timeline{Sessions: both}}), obeyed)
	wants(t, shown(t, a, &wire.Timeline{Start: "q/1", Read: block.Timeline{Sessions: both}}), obeyed)
	wants(t, shown(t, a, &wire.Timeline{Start: "r/1", Read: block.Timeline{Sessions: counts{"p/1": {1}, "q/1": {1}, "r/1": nil}}}), newcomer)
}

// A copy of the catalog has all that the agent obeyed. So its gateway writes, as a new one of the original would, until the
// original shows that it does not know it.
func TestACopyIsExpelled(t *testing.T) {
	store := mem.New(0)
	a := newAllegiance(store)
	wants(t, shown(t, a, &wire.Timeline{Start: "p/1", Read: block.Timeline{Sessions: counts{"p/1": {1}}}}), obeyed)
	copied := &wire.Timeline{Start: "p/2", Read: block.Timeline{Sessions: counts{"p/2": {1}}, Ended: counts{"p/1": {1}}}}
	wants(t, shown(t, a, copied), newcomer)
	// What was read before it was told says nothing: the start may have come since.
	original := &wire.Timeline{Start: "p/1", Read: block.Timeline{Sessions: counts{"p/1": {2}}}}
	answer, err := a.show(t.Context(), original, true)
	if err != nil || !answer.Refused() || answer.Lacks["p/2"] == nil {
		t.Fatalf("%+v, %v, want to be told of p/2", answer, err)
	}
	original.Told = answer.Lacks
	if wants(t, shown(t, a, original), obeyed); !slices.Equal(expelledOf(a.starts), []string{"p/2"}) {
		t.Errorf("expelled are %v", expelledOf(a.starts))
	}
	a = newAllegiance(store) // the agent is started again
	if answer := shown(t, a, copied); !answer.Refused() || !slices.Equal(answer.Expelled, []string{"p/2"}) {
		t.Errorf("%+v, want to be told that it is expelled", answer)
	}
	another := &wire.Timeline{Start: "p/3", Read: block.Timeline{Sessions: counts{"p/3": {1}}, Ended: counts{"p/2": {5}, "p/1": {2}}}}
	wants(t, shown(t, a, another), refused)
	wants(t, shown(t, a, original), obeyed)
	// A person claims the copy.
	another.Read.Disowned = []string{"p/1", "p/2"}
	wants(t, shown(t, a, another), obeyed)
	wants(t, shown(t, a, original), refused)
}

// A row with less than was witnessed is a loss, and no copy: nobody is expelled for it.
func TestALossIsNoCopy(t *testing.T) {
	a := newAllegiance(mem.New(0))
	wants(t, shown(t, a, &wire.Timeline{Start: "p/1", Read: block.Timeline{Sessions: counts{"p/1": {1}}}}), obeyed)
	wants(t, shown(t, a, &wire.Timeline{Start: "q/1", Read: block.Timeline{Sessions: counts{"p/1": {1}, "q/1": {3}}}}), newcomer)
	less := &wire.Timeline{Start: "p/1", Read: block.Timeline{Sessions: counts{"p/1": {2}, "q/1": {2}}}, Told: counts{"q/1": {3}}}
	if answer, err := a.show(t.Context(), less, true); err != nil || !answer.Refused() || len(answer.Expelled) > 0 {
		t.Errorf("%+v, %v", answer, err)
	}
}

// A delete of a gateway that is obeyed comes late, when the agent knows that the catalog has gone on, or back.
func TestALateDeleteIsRefused(t *testing.T) {
	a := newAllegiance(mem.New(0))
	wants(t, shown(t, a, &wire.Timeline{Start: "p/1", Read: block.Timeline{Sessions: counts{"p/1": {4}}}}), obeyed)
	late := &wire.Timeline{Start: "p/1", Read: block.Timeline{Sessions: counts{"p/1": {5}}}}
	wants(t, shown(t, a, &wire.Timeline{Start: "p/1", Read: block.Timeline{Sessions: counts{"p/1": {4}, "q/1": {1}}}}), obeyed)
	for _, timeline := range []*wire.Timeline{late, nil} {
		if _, err := a.beginDelete(t.Context(), timeline); !errors.Is(err, wire.ErrNotObeyed) {
			t.Errorf("a delete with %+v: %v, want ErrNotObeyed", timeline, err)
		}
	}
}

// Whom the agent obeys is in its store, whichever of the two places was written last.
func TestAllegianceIsKept(t *testing.T) {
	store := mem.New(0)
	for i := range int64(5) {
		a := newAllegiance(store)
		a.silence = 0
		start := string(rune('a'+i)) + "/1"
		sessions := counts{}
		for j := range i + 1 {
			sessions[string(rune('a'+j))+"/1"] = block.Counts{j}
		}
		wants(t, shown(t, a, &wire.Timeline{Start: start, Read: block.Timeline{Sessions: sessions}}), obeyed)
		delete(sessions, start)
		again := newAllegiance(store)
		wants(t, shown(t, again, &wire.Timeline{Start: "z/1", Read: block.Timeline{Sessions: sessions}}), refused)
	}
}

// full is a store that takes nothing while it has a cause.
type full struct {
	store.Store
	cause error
}

func (f *full) Create(ctx context.Context, key string, value []byte) error {
	if f.cause != nil {
		return f.cause
	}
	return f.Store.Create(ctx, key, value)
}

// A store that is full, or cannot be written, does not keep its agent from obeying a new start: blocks have to be deleted, and
// read. What was accepted meanwhile is kept as soon as there is room.
func TestAFullStoreObeys(t *testing.T) {
	for _, cause := range []error{store.ErrFull, store.ErrReadOnly} {
		s := &full{Store: mem.New(0)}
		a := newAllegiance(s)
		wants(t, shown(t, a, &wire.Timeline{Start: "p/1", Read: block.Timeline{Sessions: counts{"p/1": {1}}}}), obeyed)
		s.cause = cause
		a.silence = 0
		later := &wire.Timeline{Start: "p/2", Read: block.Timeline{Sessions: counts{"p/2": {1}}, Ended: counts{"p/1": {1}}}}
		wants(t, shown(t, a, later), obeyed)
		s.cause, a.keptAt = nil, time.Now().Add(-a.keepEvery)
		wants(t, shown(t, a, later), obeyed)
		again := newAllegiance(s)
		if starts, _, err := again.list(t.Context(), ""); err != nil || !slices.Equal(starts, []string{"p/2"}) {
			t.Errorf("kept are %v, %v, after there was room again", starts, err)
		}
	}
}

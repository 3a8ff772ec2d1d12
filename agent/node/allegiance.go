package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

// allegianceKeys are where a store keeps which catalog its agent obeys. They are written in turn, as values are only created
// and deleted: the one with the greater number is the newer.
var allegianceKeys = [2]string{"restripe/obeys/0", "restripe/obeys/1"}

const maxAllegianceBytes = 256 << 10

// standing is what a start of a gateway may have the node do.
type standing string

const (
	named    standing = ""         // an obeyed timeline has it: nothing before it shows its own
	obeyed   standing = "obeyed"   // everything
	newcomer standing = "newcomer" // write
	expelled standing = "expelled" // nothing, nor any timeline that has it
)

// known is what the node has accepted of one start of a gateway.
type known struct {
	Lanes    block.Counts `json:"lanes,omitempty"`
	Standing standing     `json:"standing,omitempty"`

	heard time.Time // when it showed its timeline last, or when this agent began to listen
}

// allegiance is which catalog the node obeys: what it has accepted of its timeline, so that neither a copy of it nor what it
// was before it lost something is obeyed as well (rules 24 to 26 of the protocol). With nothing accepted yet it obeys anybody.
//
// That a start is there, and its standing, is in the store before anybody is answered, unless the store is full or cannot be
// written; its counts follow every keepEvery. So that is written wherever blocks are, and the high-water mark of the store
// grows with it: one that is less than was seen under the same contents shows that the store went back in time (rule 29). It grows
// only while the node serves, which is after a gateway has told how far the store had come.
type allegiance struct {
	id      block.NodeID
	store   store.Store
	log     *slog.Logger
	silence time.Duration // an obeyed start that was not heard for so long counts as ended

	keepEvery time.Duration // counts that have changed

	behind atomic.Pointer[block.Incarnation] // of which contents the store holds an earlier state than was seen; nil: none

	deciding sync.RWMutex // held by deletes while they are carried out, and, to write, by what changes a standing
	mutex    sync.Mutex
	loaded   bool
	starts   map[string]known
	under    block.Incarnation // the contents that the rest is of; empty: none yet
	number   int64             // of what is in the store
	water    int64             // the high-water mark in it
	keptAt   time.Time         // when it was written; zero: not by this agent under these contents
	ahead    bool              // starts has more than the store
}

// kept is what the store has of it.
type kept struct {
	Number int64            `json:"number"`
	Water  int64            `json:"water"`
	Starts map[string]known `json:"starts"`
}

// read reads what the store has; nothing is number 0.
func (a *allegiance) read(ctx context.Context) (kept, error) {
	found := kept{Starts: map[string]known{}}
	for _, key := range allegianceKeys {
		value := make([]byte, maxAllegianceBytes)
		length, err := a.store.ReadAt(ctx, key, value, 0)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return found, down(fmt.Errorf("node %s: reading which catalog it obeys: %w", a.id, err))
		}
		var one kept
		if err := json.Unmarshal(value[:length], &one); err != nil {
			return found, fmt.Errorf("node %s: %w: the key %s, which says which catalog it obeys: %w: "+
				"delete it if only the right catalog is at work", a.id, store.ErrCorrupt, key, err)
		}
		if one.Number > found.Number {
			found = one
		}
	}
	return found, nil
}

// load takes over what the store has, once. The caller holds the mutex.
func (a *allegiance) load(ctx context.Context) error {
	if a.loaded {
		return nil
	}
	found, err := a.read(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	for start, one := range found.Starts {
		one.heard = now
		found.Starts[start] = one
	}
	a.loaded, a.starts = true, found.Starts
	return nil
}

// keep writes next to the store, with a higher mark if the node serves, and takes it over. The caller holds the mutex.
func (a *allegiance) keep(ctx context.Context, next map[string]known, serves bool) error {
	found, err := a.read(ctx)
	if err != nil {
		return err
	}
	if found.Number < a.number {
		a.wentBack(a.under, &found)
		return fmt.Errorf("node %s: %w: it is an earlier state of itself; its contents get a new name", a.id, store.ErrDown)
	}
	water := found.Water
	if serves {
		water++
	}
	return a.write(ctx, kept{Number: found.Number + 1, Water: water, Starts: next})
}

// write writes next to the store, in the place of what is older than the newest there, which has the number before.
func (a *allegiance) write(ctx context.Context, next kept) error {
	value, err := json.Marshal(next)
	if err != nil {
		panic(err) // invariant: maps of numbers and words can be encoded
	}
	key := allegianceKeys[next.Number%2]
	if err = a.store.Delete(ctx, key); err == nil {
		err = a.store.Create(ctx, key, value)
	}
	if errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrReadOnly) {
		// Blocks must be deleted on a full store, and read on one that cannot be written. It is tried again.
		a.log.Warn("which catalog this node obeys is kept in memory alone, as its store takes nothing", "cause", err)
		a.number, a.keptAt, a.ahead, a.starts = next.Number-1, time.Now(), true, next.Starts
		return nil
	}
	if err != nil {
		return down(fmt.Errorf("node %s: keeping which catalog it obeys: %w", a.id, err))
	}
	a.number, a.water, a.keptAt, a.ahead, a.starts = next.Number, next.Water, time.Now(), false, next.Starts
	return nil
}

func (a *allegiance) wentBack(contents block.Incarnation, found *kept) {
	a.behind.Store(&contents)
	a.log.Error("the store is as it was a while ago, under the marker it has now",
		"contents", contents, "number", found.Number, "water", found.Water)
}

// isBehind reports whether the store was found to hold an earlier state of these contents.
func (a *allegiance) isBehind(contents block.Incarnation) bool {
	behind := a.behind.Load()
	return behind != nil && *behind == contents
}

// compare reports whether the store went back: whether it has less than it had under the same contents, as a gateway says or,
// unless the node serves, as this agent has seen. Of other contents than before it takes over how far they have come, and what
// the node has accepted is written to them next.
func (a *allegiance) compare(ctx context.Context, contents block.Incarnation, told block.Watermark, serves bool) (back bool, err error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if err := a.load(ctx); err != nil {
		return false, err
	}
	if told.Contents != contents {
		told.Mark = 0
	}
	isSame := a.under == contents
	if isSame && serves && told.Mark <= a.water {
		return false, nil
	}
	found, err := a.read(ctx)
	if err != nil {
		return false, err
	}
	if back = found.Water < told.Mark || isSame && found.Number < a.number; back {
		a.wentBack(contents, &found)
	}
	if !isSame {
		a.under, a.number, a.water, a.keptAt, a.ahead = contents, found.Number, found.Water, time.Time{}, true
	}
	return back, nil
}

// show has the node obey the gateway that shows a timeline of its catalog, if it contains all that was accepted before.
func (a *allegiance) show(ctx context.Context, shown *wire.Timeline, serves bool) (*wire.Allegiance, error) {
	a.mutex.Lock()
	if err := a.load(ctx); err != nil {
		a.mutex.Unlock()
		return nil, err
	}
	next, answer := judge(a.starts, shown, time.Now(), a.silence)
	if haveSameStandings(a.starts, next) {
		defer a.mutex.Unlock()
		a.ahead = a.ahead || !haveSameCounts(a.starts, next)
		if a.ahead && time.Since(a.keptAt) >= a.keepEvery {
			return answer, a.keep(ctx, next, serves)
		}
		a.starts = next
		return answer, nil
	}
	a.mutex.Unlock()
	a.deciding.Lock()
	defer a.deciding.Unlock()
	a.mutex.Lock()
	defer a.mutex.Unlock()
	next, answer = judge(a.starts, shown, time.Now(), a.silence)
	for start, one := range next {
		if was := a.starts[start]; one.Standing == expelled && was.Standing != expelled {
			a.log.Error("the catalog that this node obeys does not know this start of a gateway: it works on a copy and is refused",
				"start", start, "says", shown.Start)
		}
	}
	return answer, a.keep(ctx, next, serves)
}

func haveSameStandings(one, other map[string]known) bool {
	return maps.EqualFunc(one, other, func(a, b known) bool { return a.Standing == b.Standing })
}

func haveSameCounts(one, other map[string]known) bool {
	return maps.EqualFunc(one, other, func(a, b known) bool { return slices.Equal(a.Lanes, b.Lanes) })
}

// judge returns what the node knows once a timeline was shown to it, and what is answered. What starts has is not changed.
func judge(starts map[string]known, shown *wire.Timeline, now time.Time, silence time.Duration) (map[string]known, *wire.Allegiance) {
	next, obeys := make(map[string]known, len(starts)), false
	for start, one := range starts {
		if one.Standing == obeyed && now.Sub(one.heard) > silence {
			one.Standing = named
		}
		next[start] = one
	}
	lacks, foreign := lacking(next, shown)
	copied := len(foreign) == 0 && next[shown.Start].Standing == obeyed // those that are lacking are of a copy
	for start := range lacks {
		_, has := shown.Read.Counts(start)
		copied = copied && !has && next[start].Standing == newcomer && shown.Told[start] != nil
	}
	if len(foreign) > 0 || len(lacks) > 0 && !copied || slices.Contains(shown.Read.Disowned, shown.Start) {
		return next, &wire.Allegiance{Lacks: lacks, Expelled: expelledOf(next)}
	}
	for start := range lacks {
		next[start] = known{Standing: expelled}
	}
	for _, start := range shown.Read.Disowned {
		delete(next, start)
	}
	for _, one := range next {
		obeys = obeys || one.Standing == obeyed
	}
	was, isKnown := next[shown.Start]
	firmly := isKnown && was.Standing != newcomer || !obeys
	for start, counts := range shown.Read.Sessions {
		if slices.Contains(shown.Read.Disowned, start) {
			continue
		}
		one, isKnown := next[start]
		switch {
		case firmly && one.Standing == newcomer:
			one.Standing = named
		case !firmly && !isKnown:
			one.Standing = newcomer
		}
		one.Lanes = one.Lanes.Max(counts)
		next[start] = one
	}
	if own := next[shown.Start]; firmly {
		own.Standing, own.heard = obeyed, now
		if shown.Closing {
			own.Standing = named
		}
		next[shown.Start] = own
	}
	for start := range shown.Read.Ended { // what it did is in every catalog that has the start after it
		if firmly && next[start].Standing == named {
			delete(next, start)
		}
	}
	own := next[shown.Start].Standing
	return next, &wire.Allegiance{Obeyed: own == obeyed, Newcomer: own == newcomer, Expelled: expelledOf(next)}
}

// lacking returns what was accepted and a timeline has not, or has less of, and which expelled starts it has.
func lacking(starts map[string]known, shown *wire.Timeline) (lacks map[string]block.Counts, foreign []string) {
	for start, one := range starts {
		if slices.Contains(shown.Read.Disowned, start) {
			continue
		}
		counts, has := shown.Read.Counts(start)
		switch {
		case one.Standing == expelled && has:
			foreign = append(foreign, start)
		case one.Standing != expelled && (!has || !counts.Contains(one.Lanes)):
			if lacks == nil {
				lacks = map[string]block.Counts{}
			}
			lacks[start] = one.Lanes.Max(nil)
		}
	}
	return lacks, foreign
}

func expelledOf(starts map[string]known) (list []string) {
	for start, one := range starts {
		if one.Standing == expelled {
			list = append(list, start)
		}
	}
	slices.Sort(list)
	return list
}

// list returns the starts that the node knows, and the high-water mark of contents, 0 if it is not known.
func (a *allegiance) list(ctx context.Context, contents block.Incarnation) (starts []string, water int64, err error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if err := a.load(ctx); err != nil {
		return nil, 0, err
	}
	if a.under == contents {
		water = a.water
	}
	return slices.Sorted(maps.Keys(a.starts)), water, nil
}

// checkWrite refuses what a start of a gateway announced that is not obeyed.
func (a *allegiance) checkWrite(ctx context.Context, stamp block.Stamp) error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if err := a.load(ctx); err != nil || len(a.starts) == 0 {
		return err
	}
	for start, one := range a.starts {
		if (one.Standing == obeyed || one.Standing == newcomer) && block.Mark(start) == stamp.Mark() {
			return nil
		}
	}
	return fmt.Errorf("node %s: %w than the one in which attempt %s was announced; see `restripe catalog lineage`",
		a.id, wire.ErrNotObeyed, stamp)
}

// witness takes note of how far a start of a gateway has come that may write.
func (a *allegiance) witness(ctx context.Context, request wire.WitnessRequest) error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if err := a.load(ctx); err != nil {
		return err
	}
	one := a.starts[request.Start]
	if one.Standing != obeyed && one.Standing != newcomer {
		return fmt.Errorf("node %s: %w than that of %s", a.id, wire.ErrNotObeyed, request.Start)
	}
	if !one.Lanes.Contains(request.Counts) {
		one.Lanes = one.Lanes.Max(request.Counts)
		a.starts[request.Start], a.ahead = one, true
	}
	return nil
}

// beginDelete refuses deletes of a gateway that is not obeyed, or whose catalog the node knows to have gone on. Otherwise no
// standing changes before done is called.
func (a *allegiance) beginDelete(ctx context.Context, shown *wire.Timeline) (done func(), err error) {
	a.deciding.RLock()
	if err := a.checkDelete(ctx, shown); err != nil {
		a.deciding.RUnlock()
		return nil, err
	}
	return a.deciding.RUnlock, nil
}

func (a *allegiance) checkDelete(ctx context.Context, shown *wire.Timeline) error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if err := a.load(ctx); err != nil || len(a.starts) == 0 {
		return err
	}
	if shown == nil {
		return fmt.Errorf("node %s: %w: a delete has to show its own", a.id, wire.ErrNotObeyed)
	}
	switch own := a.starts[shown.Start]; own.Standing {
	case obeyed:
	case newcomer:
		return fmt.Errorf("node %s: %w: nothing is deleted for %s before a gateway that it obeys names it, or none was heard for %s",
			a.id, wire.ErrNotObeyed, shown.Start, a.silence)
	default:
		return fmt.Errorf("node %s: %w than that of %s", a.id, wire.ErrNotObeyed, shown.Start)
	}
	lacks, foreign := lacking(a.starts, shown)
	if len(lacks) > 0 || len(foreign) > 0 {
		return fmt.Errorf("node %s: %w, or a later state of it than %s has read: it knows more of %s",
			a.id, wire.ErrNotObeyed, shown.Start, strings.Join(slices.Sorted(maps.Keys(lacks)), ", "))
	}
	return nil
}

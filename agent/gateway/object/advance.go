package object

import (
	"context"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/arrival"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/gateway/member"
)

// While small objects come fast, attempts for their groups are announced ahead, many in one transaction (rule 22): such a put takes
// one transaction of the catalog, its commit. With that of a group come those of the appends to it. A commit is refused where somebody
// else wrote over the object, or deleted one, with a greater stamp meanwhile; then the gateway announces anew, and for a while nothing
// ahead.

// advance is an attempt that was announced ahead. Whoever claims it uses it or gives it up.
type advance struct {
	*catalog.Attempt
	claimed atomic.Bool
}

func (a *advance) claim() bool { return !a.claimed.Swap(true) }

// advanceGroup is the attempts for a new group and for appends to it, in the order of their stamps, and the nodes that it may write.
type advanceGroup struct {
	*advance
	home    []block.NodeID
	appends []*advance
}

// advances are those that a gateway has.
type advances struct {
	objects *Objects
	used    arrival.Rates
	recents recents
	mutex   sync.Mutex
	stocks  map[batchKey]*stock
}

// stock are those for one kind of group.
type stock struct {
	left    []*advanceGroup // the oldest, which has the least stamp, first
	drawing int             // draws under way, or whose attempts are not all used or given up
	busy    bool            // one is being announced
	paused  time.Time
}

const (
	mostAdvances = 16          // of one kind, about
	advanceLife  = time.Second // after which one is given up
)

// take returns one for a batch, and has others announced, if such batches are written so fast that they will be used. nil: none.
func (a *advances) take(open *batch, perSecond float64) *advanceGroup {
	now, key := time.Now(), open.key
	life := min(advanceLife, a.objects.groups.AttemptTime()/8)
	want := min(mostAdvances, int((perSecond-1/arrival.Lately.Seconds())*life.Seconds())) // what a lone one counts is no rate
	appends := 0
	if key.scheme.K > 1 && key.scheme.M > 0 { // or its groups become no windows
		appends = min(open.leavesEmpty(), max(0, want-1))
	}
	groups := (want + appends) / (1 + appends)
	a.mutex.Lock()
	defer a.mutex.Unlock()
	s := a.stocks[key]
	if s == nil && want > 0 {
		s = &stock{}
		a.stocks[key] = s
	}
	if s == nil || now.Before(s.paused) {
		return nil
	}
	var taken *advanceGroup
	if len(s.left) > 0 && a.recents.areBelow(s.left[0].advance, open.entries) && s.left[0].claim() {
		taken, s.left = s.left[0], s.left[1:]
	}
	if missing := groups - len(s.left); missing > groups/2 && !s.busy {
		s.busy, s.drawing = true, s.drawing+1
		a.objects.background.Go(func(ctx context.Context) { a.draw(ctx, key, s, missing, appends, life) })
	}
	return taken
}

// draw announces some, and gives those up that are not used for so long.
func (a *advances) draw(ctx context.Context, key batchKey, s *stock, groups, appends int, life time.Duration) {
	drawn, err := a.objects.announceAhead(ctx, key, groups, appends)
	a.mutex.Lock()
	s.left = append(s.left, drawn...)
	s.busy = false
	if err != nil { // the puts say so themselves
		s.paused = time.Now().Add(life)
	}
	a.mutex.Unlock()
	timer := time.NewTimer(life)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	var left []*catalog.Attempt
	a.mutex.Lock()
	for _, one := range drawn {
		for _, each := range append(one.appends, one.advance) {
			if each.claim() {
				left = append(left, each.Attempt)
			}
		}
	}
	s.left = slices.DeleteFunc(s.left, func(one *advanceGroup) bool { return one.claimed.Load() })
	if s.drawing--; s.drawing == 0 {
		delete(a.stocks, key)
	}
	a.mutex.Unlock()
	a.objects.discard(ctx, left)
}

// refused has none used for a while, after the commit of one was refused.
func (a *advances) refused(key batchKey) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if s := a.stocks[key]; s != nil {
		s.paused = time.Now().Add(advanceLife)
	}
}

// recents are the numbers of the last puts of keys, by a hash of the key: an attempt with a lesser one is not for them.
type recents struct {
	mutex   sync.Mutex
	numbers [1 << 14]uint64
}

func (r *recents) of(key string) *uint64 {
	return &r.numbers[crc32.ChecksumIEEE([]byte(key))%uint32(len(r.numbers))]
}

// note tells of objects that were put under a revision.
func (r *recents) note(revision block.Stamp, entries map[string]entry) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for key := range entries {
		number := r.of(key)
		*number = max(*number, revision.Sequence)
	}
}

// areBelow reports whether the last puts of all these keys are below an attempt, so far as is known.
func (r *recents) areBelow(a *advance, entries map[string]entry) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for key := range entries {
		if *r.of(key) >= a.Stamp().Sequence {
			return false
		}
	}
	return true
}

// announceAhead announces attempts for groups of small objects that are not known yet, and for so many appends to each.
func (o *Objects) announceAhead(ctx context.Context, key batchKey, groups, appends int) ([]*advanceGroup, error) {
	code, err := o.groups.CodeFor(key.class, key.scheme)
	if err != nil {
		return nil, err
	}
	p := o.placing(key.class, code)
	var blocks []func(block.Stamp) []catalog.BlockSet
	for range groups {
		blocks = append(blocks, p.blocks)
		blocks = append(blocks, slices.Repeat([]func(block.Stamp) []catalog.BlockSet{p.again}, appends)...)
	}
	attempts, err := o.catalog.BeginAhead(ctx, o.groups.Deadline(), blocks...)
	if err == nil { // else somebody may be choosing nodes yet
		err = p.nowhere
	}
	if err != nil {
		o.discard(ctx, attempts)
		return nil, err
	}
	var drawn []*advanceGroup
	for of := range slices.Chunk(attempts, 1+appends) {
		one := &advanceGroup{advance: &advance{Attempt: of[0]}, home: p.homes[of[0].Stamp()]}
		for _, attempt := range of[1:] {
			one.appends = append(one.appends, &advance{Attempt: attempt})
		}
		drawn = append(drawn, one)
	}
	return drawn, nil
}

// announcePacked announces an attempt to write one group of small objects, and chooses its nodes.
func (o *Objects) announcePacked(
	ctx context.Context, kind catalog.Kind, class *api.Class, code *group.Code, basis ...catalog.Basis,
) (*catalog.Attempt, []block.NodeID, error) {
	p := o.placing(class, code)
	attempt, err := o.catalog.Begin(ctx, kind, o.groups.Deadline(), p.blocks, basis...)
	if err != nil {
		return nil, nil, fmt.Errorf("announcing a group of small objects: %w", err)
	}
	if p.nowhere != nil {
		return nil, nil, o.groups.Abandon(ctx, attempt, p.nowhere)
	}
	return attempt, p.homes[attempt.Stamp()], nil
}

// placing chooses the nodes of new groups while their attempts are announced.
type placing struct {
	agents  *member.Agents
	class   *api.Class
	code    *group.Code
	homes   map[block.Stamp][]block.NodeID
	last    []catalog.BlockSet // of the last group
	nowhere error              // why there are no nodes for one
}

func (o *Objects) placing(class *api.Class, code *group.Code) *placing {
	return &placing{agents: o.agents, class: class, code: code, homes: map[block.Stamp][]block.NodeID{}}
}

// blocks are those of the group of one attempt.
func (p *placing) blocks(stamp block.Stamp) []catalog.BlockSet {
	home, err := p.agents.Place(p.class, p.agents.Turns.Add(1), 0)
	if err != nil {
		p.last, p.nowhere = nil, err
		return nil
	}
	p.homes[stamp] = home
	p.last = []catalog.BlockSet{group.Announce(block.GroupID{Stamp: stamp}, p.code, home)}
	return p.last
}

// again are those of the last group anew: of one attempt to append to it.
func (p *placing) again(block.Stamp) []catalog.BlockSet { return p.last }

// unsent are the blocks that were announced ahead by an attempt, one for each slot of a group, and not written.
func unsent(id block.GroupID, home []block.NodeID, slots []catalog.Slot, stamp block.Stamp) []block.Address {
	var never []block.Address
	for slot, node := range home {
		isOf := func(item catalog.Item) bool { return item.Stamp == stamp }
		if slot >= len(slots) || !slices.ContainsFunc(slots[slot], isOf) {
			never = append(never, block.Address{Node: node, Group: id, Slot: slot, Stamp: stamp})
		}
	}
	return never
}

// discard gives up attempts that were not used, also when ctx has ended.
func (o *Objects) discard(ctx context.Context, left []*catalog.Attempt) {
	if len(left) == 0 {
		return
	}
	if err := o.catalog.Discard(context.WithoutCancel(ctx), left...); err != nil {
		o.log.Warn("giving up attempts that were announced ahead; they expire", "cause", err)
	}
}

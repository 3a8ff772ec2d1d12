package object

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/gateway/member"
)

// While small objects come fast, attempts for their groups are announced ahead, many in one transaction (rule 22): such a put takes
// one transaction of the catalog, its commit. Its commit is refused where somebody else wrote over the object, or deleted one, with
// a greater stamp meanwhile; then the gateway announces anew, and for a while nothing ahead.

// advance is an attempt that was announced ahead, and the nodes of the group that it may write.
type advance struct {
	attempt *catalog.Attempt
	home    []block.NodeID
}

// advances are those that a gateway has.
type advances struct {
	objects *Objects
	used    arrivals
	mutex   sync.Mutex
	stocks  map[batchKey]*stock
}

// stock are those for one kind of group.
type stock struct {
	left    []advance // the oldest, which has the least stamp, first
	drawing int       // draws under way, or whose attempts are not all used or given up
	busy    bool      // one is being announced
	paused  time.Time
}

const (
	mostAdvances = 16          // of one kind
	advanceLife  = time.Second // after which one is given up
)

// take returns one for a group, and has others announced, if groups of that kind are written so fast that they will be used.
func (a *advances) take(key batchKey) (advance, bool) {
	now := time.Now()
	perSecond := a.used.note(key.kind(), now)
	life := min(advanceLife, a.objects.groups.AttemptTime()/8)
	want := min(mostAdvances, int((perSecond-1/lately.Seconds())*life.Seconds())) // what a lone one counts is no rate
	a.mutex.Lock()
	defer a.mutex.Unlock()
	s := a.stocks[key]
	if s == nil && want > 0 {
		s = &stock{}
		a.stocks[key] = s
	}
	if s == nil || now.Before(s.paused) {
		return advance{}, false
	}
	var taken advance
	found := len(s.left) > 0
	if found {
		taken, s.left = s.left[0], s.left[1:]
	}
	if missing := want - len(s.left); missing > want/2 && !s.busy {
		s.busy, s.drawing = true, s.drawing+1
		a.objects.background.Go(func(ctx context.Context) { a.draw(ctx, key, s, missing, life) })
	}
	return taken, found
}

// draw announces some, and gives those up that are not used for so long.
func (a *advances) draw(ctx context.Context, key batchKey, s *stock, count int, life time.Duration) {
	drawn, err := a.objects.announceAhead(ctx, key, count)
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
	a.mutex.Lock()
	left := slices.DeleteFunc(drawn, func(one advance) bool { return !slices.ContainsFunc(s.left, one.is) })
	s.left = slices.DeleteFunc(s.left, func(one advance) bool { return slices.ContainsFunc(left, one.is) })
	if s.drawing--; s.drawing == 0 {
		delete(a.stocks, key)
	}
	a.mutex.Unlock()
	a.objects.discard(ctx, left)
}

func (a advance) is(other advance) bool { return a.attempt == other.attempt }

// refused has none used for a while, after the commit of one was refused.
func (a *advances) refused(key batchKey) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if s := a.stocks[key]; s != nil {
		s.paused = time.Now().Add(advanceLife)
	}
}

// announceAhead announces attempts for groups of small objects that are not known yet. Of those that could not be it says why.
func (o *Objects) announceAhead(ctx context.Context, key batchKey, count int) ([]advance, error) {
	code, err := o.groups.CodeFor(key.class, key.scheme)
	if err != nil {
		return nil, err
	}
	p := o.placing(key.class, code)
	attempts, err := o.catalog.BeginAhead(ctx, o.groups.Deadline(), count, p.blocks)
	if len(attempts) == 0 { // somebody may be choosing nodes yet
		return nil, err
	}
	if p.nowhere != nil {
		for _, attempt := range attempts {
			p.nowhere = o.groups.Abandon(ctx, attempt, p.nowhere)
		}
		return nil, p.nowhere
	}
	drawn := make([]advance, len(attempts))
	for i, attempt := range attempts {
		drawn[i] = advance{attempt, p.homes[attempt.Stamp()]}
	}
	return drawn, err
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
	nowhere error // why there are no nodes for one
}

func (o *Objects) placing(class *api.Class, code *group.Code) *placing {
	return &placing{agents: o.agents, class: class, code: code, homes: map[block.Stamp][]block.NodeID{}}
}

// blocks are those of the group of one attempt.
func (p *placing) blocks(stamp block.Stamp) []catalog.BlockSet {
	home, err := p.agents.Place(p.class, p.agents.Turns.Add(1), 0)
	if err != nil {
		p.nowhere = err
		return nil
	}
	p.homes[stamp] = home
	return []catalog.BlockSet{group.Announce(block.GroupID{Stamp: stamp}, p.code, home)}
}

// unsent are the blocks that were announced ahead for a group and not written, as its columns are empty.
func unsent(group *catalog.Group) []block.Address {
	var never []block.Address
	for _, column := range group.Empty() {
		never = append(never, block.Address{Node: group.Home[column], Group: group.ID, Slot: column, Stamp: group.ID.Stamp})
	}
	return never
}

// discard gives up attempts that were not used, also when ctx has ended.
func (o *Objects) discard(ctx context.Context, left []advance) {
	if len(left) == 0 {
		return
	}
	attempts := make([]*catalog.Attempt, len(left))
	for i, one := range left {
		attempts[i] = one.attempt
	}
	if err := o.catalog.Discard(context.WithoutCancel(ctx), attempts...); err != nil {
		o.log.Warn("giving up attempts that were announced ahead; they expire", "cause", err)
	}
}

// wasAhead reports whether a commit was refused because its attempt was announced ahead.
func wasAhead(err error) bool {
	var stale *catalog.StaleError
	return errors.As(err, &stale) && stale.Has(catalog.ViolationAhead)
}

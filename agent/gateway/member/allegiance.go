package member

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/wire"
)

// Agents obey one timeline of one catalog. So a gateway shows them its own with every probe, and is alarmed where one of them
// knows more of it, as then it lost something or is a copy (protocol, rules 24 to 26).

// farewell bounds how long the agents are told that the gateway stops.
const farewell = 2 * time.Second

// timelines is how far the catalog has come, as agents are shown it, and what they told of that: what one lacks is read of the
// catalog again, and shown.
type timelines struct {
	catalog *catalog.Catalog

	mutex sync.Mutex
	told  map[string][]int64 // by the start of a gateway
}

func (t *timelines) hear(lacks map[string][]int64) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.told == nil {
		t.told = map[string][]int64{}
	}
	for start, counts := range lacks {
		most := make([]int64, max(len(counts), len(t.told[start])))
		copy(most, t.told[start])
		for lane, count := range counts {
			most[lane] = max(most[lane], count)
		}
		t.told[start] = most
	}
}

func (t *timelines) heard() map[string][]int64 {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return maps.Clone(t.told)
}

// read reads how far the catalog has come.
func (t *timelines) read(ctx context.Context) (*wire.Timeline, error) {
	heard := t.heard() // before the catalog is read
	read, err := t.catalog.Timeline(ctx, slices.Sorted(maps.Keys(heard)))
	if err != nil {
		return nil, err
	}
	return &wire.Timeline{
		Start: t.catalog.Start(), Sessions: read.Sessions, Ended: read.Ended, Disowned: read.Disowned, Told: heard,
	}, nil
}

// show greets a node with a timeline and, where it refuses that, once more with what was read after it had told what it
// knows. A second refusal says that the catalog is behind what the node has obeyed, or is a copy, unless it has gone on
// meanwhile.
func show(ctx context.Context, a *Agents, target *Agent, known block.Incarnation, shown *wire.Timeline) (hello wire.HelloReply, err error) {
	hello, err = a.greet(ctx, target, known, shown)
	if err != nil || hello.Allegiance == nil || !hello.Allegiance.Refused() {
		return hello, err
	}
	a.timelines.hear(hello.Allegiance.Lacks)
	if shown, err = a.timelines.read(ctx); err != nil {
		return hello, err
	}
	hello, err = a.greet(ctx, target, known, shown)
	if err != nil || hello.Allegiance == nil || !hello.Allegiance.Refused() {
		return hello, err
	}
	a.timelines.hear(hello.Allegiance.Lacks)
	if why := refusal(shown, hello.Allegiance); why != "" {
		alarm := catalog.Alarm{Gateway: a.gateway, At: a.Clock().UnixMilli(), Node: target.Node.ID, Refused: why}
		return hello, a.catalog.RaiseAlarm(ctx, alarm)
	}
	return hello, nil
}

// refusal says in words what a node has against a timeline that was read after it had told what it knows; empty if that may
// have changed meanwhile.
func refusal(shown *wire.Timeline, answer *wire.Allegiance) string {
	read := asRead(shown)
	for _, start := range answer.Expelled {
		if _, has := read.Counts(start); has && !slices.Contains(shown.Disowned, start) {
			return fmt.Sprintf("obeys another catalog, which does not know start %s: this one is a copy of it", start)
		}
	}
	for _, start := range slices.Sorted(maps.Keys(answer.Lacks)) {
		counts, has := read.Counts(start)
		before, wasTold := shown.Told[start]
		switch {
		case wasTold && !has:
			return fmt.Sprintf("has obeyed start %s, which this catalog does not know", start)
		case wasTold && !catalog.ContainsCounts(counts, before):
			return fmt.Sprintf("has seen updates of start %s that this catalog lacks", start)
		}
	}
	return ""
}

// Deleter has nodes delete blocks.
type Deleter struct{ Agents *Agents }

// Delete has a node delete blocks that were found to be dead: orphans are those that a search found. still returns those of
// them that are dead yet. It returns how many were deleted, and those that the node has left as they are another's. It fails
// with wire.ErrNotObeyed while the node, or most of them, do not obey this gateway, or the node knows that the catalog has
// gone on.
func (d Deleter) Delete(
	ctx context.Context, id block.NodeID, orphans bool, still func(ctx context.Context) ([]block.Address, error),
) (deleted int, foreign []block.Address, err error) {
	a := d.Agents
	target, err := a.Get(id)
	if err != nil {
		return 0, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	if err := d.checkObeyed(); err != nil {
		return 0, nil, err
	}
	// First the node remembers a catalog in which they are dead: no earlier state of it is obeyed after that. Then the catalog
	// is read again, as it may have lost that since.
	before, err := a.timelines.read(ctx)
	if err != nil {
		return 0, nil, err
	}
	hello, err := show(ctx, a, target, "", before)
	if err != nil {
		return 0, nil, err
	}
	if answer := hello.Allegiance; answer == nil || !answer.Obeyed {
		return 0, nil, notObeyed(id, answer)
	}
	dead, err := still(ctx)
	if err != nil || len(dead) == 0 {
		return 0, nil, err
	}
	now, err := a.timelines.read(ctx)
	if err != nil {
		return 0, nil, err
	}
	if !asRead(now).Contains(asRead(before)) {
		return 0, nil, fmt.Errorf("node %s: %w: some that were there a moment ago", id, catalog.ErrBehind)
	}
	var reply wire.DeleteReply
	request := wire.DeleteRequest{Addresses: dead, Orphans: orphans, Timeline: now}
	if _, err := a.Call(ctx, id, wire.OpDelete, request, nil, &reply); err != nil {
		return 0, nil, err
	}
	return len(dead) - len(reply.Foreign), reply.Foreign, nil
}

// asRead is what was read of the catalog to show it.
func asRead(shown *wire.Timeline) *catalog.Timeline {
	return &catalog.Timeline{Sessions: shown.Sessions, Ended: shown.Ended, Disowned: shown.Disowned}
}

func notObeyed(id block.NodeID, answer *wire.Allegiance) error {
	if answer != nil && answer.Newcomer {
		return fmt.Errorf("node %s: %w, or has not heard yet that the gateways before this one are gone", id, wire.ErrNotObeyed)
	}
	return fmt.Errorf("node %s: %w", id, wire.ErrNotObeyed)
}

// checkObeyed returns an error while this gateway is refused by a node, or not obeyed by most members.
func (d Deleter) checkObeyed() error {
	down, members, obey := d.Agents.patient().down, 0, 0
	for _, target := range d.Agents.All() {
		members++
		answer, at := target.allegiance()
		switch {
		case answer == nil:
		case answer.Refused():
			return notObeyed(target.Node.ID, answer)
		case answer.Obeyed && time.Since(at) <= down:
			obey++
		}
	}
	if 2*obey <= members {
		return fmt.Errorf("%w, or has not heard yet that the gateways before this one are gone: so say all but %d of %d nodes",
			wire.ErrNotObeyed, obey, members)
	}
	return nil
}

// allegiance returns what the node answered last to the timeline that it was shown, and when.
func (t *Agent) allegiance() (answer *wire.Allegiance, at time.Time) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.obeys, t.obeysAt
}

// Starts returns the starts of gateways that the nodes know, and the members that did not say.
func (m *Membership) Starts() (starts []string, unheard []block.NodeID) {
	down := m.agents.patient().down
	for _, target := range m.agents.All() {
		target.mutex.Lock()
		starts = append(starts, target.Hello.Starts...)
		if time.Since(target.greetedAt) > down {
			unheard = append(unheard, target.Node.ID)
		}
		target.mutex.Unlock()
	}
	slices.Sort(starts)
	return slices.Compact(starts), unheard
}

// Refusal is what nodes have against gateways.
type Refusal struct {
	Node     block.NodeID
	Refused  bool     // this gateway
	Newcomer bool     // this gateway may not delete yet
	Expelled []string // starts of gateways that worked on a copy of the catalog
}

// Refusals returns the nodes that do not obey this gateway, or have expelled others.
func (m *Membership) Refusals() (list []Refusal) {
	for _, target := range m.agents.All() {
		answer, _ := target.allegiance()
		if answer == nil || answer.Obeyed && len(answer.Expelled) == 0 {
			continue
		}
		list = append(list, Refusal{Node: target.Node.ID, Refused: answer.Refused(), Newcomer: answer.Newcomer, Expelled: answer.Expelled})
	}
	return list
}

// Leave tells the agents that this gateway asks for nothing more, so that the next one need not wait until it is forgotten.
func (m *Membership) Leave() {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	shown, err := m.agents.timelines.read(ctx)
	if err != nil {
		return // it is over already
	}
	shown.Closing = true
	var tells sync.WaitGroup
	for _, target := range m.agents.All() {
		if trusted, _, _ := target.State(); !trusted {
			continue
		}
		tells.Go(func() {
			if _, err := m.agents.greet(ctx, target, "", shown); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				m.log.Debug("telling a node that the gateway stops", "node", target.Node.ID, "cause", err)
			}
		})
	}
	tells.Wait()
}

// Expelled returns the marks of the starts that nodes have expelled: what they wrote is no sign that this catalog is behind.
func (d Deleter) Expelled() map[uint32]bool {
	marks := map[uint32]bool{}
	for _, target := range d.Agents.All() {
		answer, _ := target.allegiance()
		if answer == nil {
			continue
		}
		for _, start := range answer.Expelled {
			marks[block.Mark(start)] = true
		}
	}
	return marks
}

// String says what it is in words.
func (r Refusal) String() string {
	switch {
	case r.Refused:
		return "it obeys another catalog than this gateway's"
	case r.Newcomer:
		return "it deletes nothing yet for this gateway, as gateways before it have not been silent for long enough"
	}
	return "it has refused " + strings.Join(r.Expelled, ", ") + ", which worked on a copy of the catalog"
}

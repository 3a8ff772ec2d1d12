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
	"github.com/restripe/restripe/agent/gateway/api"
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
	told  map[string]block.Counts // by the start of a gateway
}

func (t *timelines) hear(lacks map[string]block.Counts) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.told == nil {
		t.told = map[string]block.Counts{}
	}
	for start, counts := range lacks {
		t.told[start] = t.told[start].Max(counts)
	}
}

func (t *timelines) heard() map[string]block.Counts {
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
	return &wire.Timeline{Start: t.catalog.Start(), Read: *read, Told: heard}, nil
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
	read := &shown.Read
	for _, start := range answer.Expelled {
		if _, has := read.Counts(start); has && !slices.Contains(read.Disowned, start) {
			return fmt.Sprintf("obeys another catalog, which does not know start %s: this one is a copy of it", start)
		}
	}
	for _, start := range slices.Sorted(maps.Keys(answer.Lacks)) {
		counts, has := read.Counts(start)
		before, wasTold := shown.Told[start]
		switch {
		case wasTold && !has:
			return fmt.Sprintf("has obeyed start %s, which this catalog does not know", start)
		case wasTold && !counts.Contains(before):
			return fmt.Sprintf("has seen updates of start %s that this catalog lacks", start)
		}
	}
	return ""
}

// Witness has all nodes but spare of those named take note of what this start of the gateway has done, where the engine of the
// catalog may lose what it acknowledged (protocol, rule 26): from then on they refuse a catalog that has lost it. It fails with
// ErrUnknownOutcome where too few answer.
func Witness(ctx context.Context, a *Agents, ids []block.NodeID, spare int) error {
	if !a.catalog.MayLose() {
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop() // the last need not be waited for
	request := wire.WitnessRequest{Start: a.catalog.Start(), Counts: a.catalog.Counts()}
	answers := make(chan error, len(ids))
	for _, id := range ids {
		go func() {
			_, err := a.Call(ctx, id, wire.OpWitness, request, nil, nil)
			answers <- err
		}()
	}
	var errs []error
	for missing := len(ids) - spare; missing > 0; {
		if err := <-answers; err == nil {
			missing--
		} else if errs = append(errs, err); len(errs) > spare {
			return fmt.Errorf("%w: it took effect, but a crash of the catalog might lose it, and too few nodes took note to see that: %w",
				api.ErrUnknownOutcome, errors.Join(errs...))
		}
	}
	return nil
}

// Deletion has nodes delete blocks that were found to be dead before it began.
type Deletion struct {
	agents *Agents
	before *wire.Timeline
	obey   map[block.NodeID]bool
}

// BeginDeletion shows all nodes how far the catalog has come: no earlier state of it is obeyed after that, none in which what
// was found dead is not. It fails with wire.ErrNotObeyed if one of them refuses, or not most of them obey.
func (m *Membership) BeginDeletion(ctx context.Context) (*Deletion, error) {
	a := m.agents
	ctx, cancel := context.WithTimeout(ctx, greatestPatience) // one slow node does not keep the others waiting for long
	defer cancel()
	before, err := a.timelines.read(ctx)
	if err != nil {
		return nil, err
	}
	members := a.All()
	answers := make([]*wire.Allegiance, len(members))
	var shows sync.WaitGroup
	for i, target := range members {
		if trusted, _, _ := target.State(); !trusted {
			continue
		}
		shows.Go(func() {
			hello, err := show(ctx, a, target, "", before)
			if err != nil {
				a.log.Debug("showing a node how far the catalog has come", "node", target.Node.ID, "cause", err)
			}
			answers[i] = hello.Allegiance
		})
	}
	shows.Wait()
	d := &Deletion{agents: a, before: before, obey: map[block.NodeID]bool{}}
	for i, target := range members {
		switch answer := answers[i]; {
		case answer == nil:
		case answer.Refused():
			return nil, fmt.Errorf("node %s: %w", target.Node.ID, wire.ErrNotObeyed)
		case answer.Obeyed:
			d.obey[target.Node.ID] = true
		}
	}
	if 2*len(d.obey) <= len(members) {
		return nil, fmt.Errorf("%w, or has not heard yet that the gateways before this one are gone: so say all but %d of %d nodes",
			wire.ErrNotObeyed, len(d.obey), len(members))
	}
	return d, nil
}

// Delete has a node delete blocks: orphans are those that a search found. still returns those of them that are dead yet. It
// returns how many were deleted, and those that the node has left as they are another's. It fails with wire.ErrNotObeyed where
// the node does not obey, or knows that the catalog has gone on.
func (d *Deletion) Delete(
	ctx context.Context, id block.NodeID, orphans bool, still func(ctx context.Context) ([]block.Address, error),
) (deleted int, foreign []block.Address, err error) {
	if !d.obey[id] {
		return 0, nil, fmt.Errorf("node %s: %w, or not yet this gateway", id, wire.ErrNotObeyed)
	}
	ctx, cancel := context.WithTimeout(ctx, d.agents.timeout)
	defer cancel()
	// The catalog is read again: it may have lost that they are dead since.
	dead, err := still(ctx)
	if err != nil || len(dead) == 0 {
		return 0, nil, err
	}
	now, err := d.agents.timelines.read(ctx)
	if err != nil {
		return 0, nil, err
	}
	if !now.Read.Contains(&d.before.Read) {
		return 0, nil, fmt.Errorf("node %s: %w: some that were there a moment ago", id, catalog.ErrBehind)
	}
	var reply wire.DeleteReply
	request := wire.DeleteRequest{Addresses: dead, Orphans: orphans, Timeline: now}
	if _, err := d.agents.Call(ctx, id, wire.OpDelete, request, nil, &reply); err != nil {
		return 0, nil, err
	}
	return len(dead) - len(reply.Foreign), reply.Foreign, nil
}

// allegiance returns what the node answered last to the timeline that it was shown.
func (t *Agent) allegiance() *wire.Allegiance {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.obeys
}

// Starts returns the starts of gateways that the nodes know, and the members that were not heard since that time.
func (m *Membership) Starts(since time.Time) (starts []string, unheard []block.NodeID) {
	for _, target := range m.agents.All() {
		target.mutex.Lock()
		starts = append(starts, target.Hello.Starts...)
		if target.greetedAt.Before(since) {
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
		answer := target.allegiance()
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
func (m *Membership) Expelled() map[uint32]bool {
	marks := map[uint32]bool{}
	for _, target := range m.agents.All() {
		answer := target.allegiance()
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

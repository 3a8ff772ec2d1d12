package gateways

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
)

// Snapshot is what the gateways of a backend said. It is shared: do not change it.
type Snapshot struct {
	At      time.Time
	Status  api.Status
	Heat    api.HeatReport
	Heats   map[string]*api.ClassHeat // of Heat, by class
	Classes map[string]api.ClassInfo
}

// NewSnapshot puts answers together.
func NewSnapshot(at time.Time, status api.Status, heat api.HeatReport, classes []api.ClassInfo) *Snapshot {
	s := &Snapshot{At: at, Status: status, Heat: heat, Heats: map[string]*api.ClassHeat{}, Classes: map[string]api.ClassInfo{}}
	for i := range heat.Classes {
		s.Heats[heat.Classes[i].Class] = &heat.Classes[i]
	}
	for _, class := range classes {
		s.Classes[class.Name] = class
	}
	return s
}

// Walk is what a walk over every object and group of a backend found. It is shared: do not change it.
type Walk struct {
	Status api.Status
	Began  time.Time
	Ended  time.Time
	states map[string]string // of the nodes when the walk began, by their names
}

// At is when what the walk found was so. Where counting takes long, gateways tell of their last count.
func (w *Walk) At() time.Time {
	if w.Status.CountedAt != nil {
		return *w.Status.CountedAt
	}
	return w.Began
}

// Holds reports whether the nodes are still in the states they were in when the walk began.
func (w *Walk) Holds(nodes []api.NodeStatus) bool { return maps.Equal(w.states, nodeStates(nodes)) }

func nodeStates(nodes []api.NodeStatus) map[string]string {
	states := make(map[string]string, len(nodes))
	for i := range nodes {
		states[string(nodes[i].ID)] = nodes[i].State
	}
	return states
}

// walkRest is how many times as long as a walk took the next one waits, unless a node changed its state.
const walkRest = 20

// Observer asks the gateways of one backend and remembers what they said. Its readings can be read without waiting. It is
// safe for concurrent use; Observers make it.
type Observer struct {
	Status  Reading[api.Status] // without what a walk alone tells
	Heat    Reading[api.HeatReport]
	Classes Reading[[]api.ClassInfo]
	Load    Reading[api.Load]
	Walked  Reading[Walk]

	gateway   Gateway
	addresses []string
	now       func() time.Time
	walks     *walks

	observing sync.Mutex // held while observing; of what follows
	snapshot  *Snapshot
	failure   error
	tried     time.Time

	mutex sync.Mutex // of what follows
	walk  *walkUnderWay
}

// walkUnderWay is a walk that has not ended; err may be read when ended is closed.
type walkUnderWay struct {
	stop  context.CancelFunc
	ended chan struct{}
	err   error
}

// Gateway returns the gateways that are observed.
func (o *Observer) Gateway() Gateway { return o.gateway }

// retire ends a walk that is under way and drops idle connections. Whoever has the observer still may go on with it.
func (o *Observer) retire() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.walk != nil {
		o.walk.stop()
	}
	Close(o.gateway)
}

// Observe returns what the gateways say, or said no longer ago than the age. A failure is remembered as long.
func (o *Observer) Observe(ctx context.Context, age time.Duration) (*Snapshot, error) {
	o.observing.Lock()
	defer o.observing.Unlock()
	if within(o.now(), o.tried, age) {
		return o.snapshot, o.failure
	}
	seen, err := o.ask(ctx, age)
	if ctx.Err() != nil {
		return nil, ctx.Err() // says nothing about the gateways
	}
	o.tried, o.snapshot, o.failure = o.now(), seen, err
	return seen, err
}

func (o *Observer) ask(ctx context.Context, age time.Duration) (*Snapshot, error) {
	status, err := o.Status.Ask(ctx, o.now, age, o.gateway.StatusBrief)
	if err != nil {
		return nil, fmt.Errorf("asking for the status: %w", err)
	}
	_, _, fresh := o.Status.Get()
	heat, err := o.Heat.Ask(ctx, o.now, age, o.gateway.Heat)
	if err != nil && !errors.Is(err, api.ErrUnavailable) { // it is there some time after a start
		return nil, fmt.Errorf("asking for the heat: %w", err)
	}
	classes, err := o.Classes.Ask(ctx, o.now, age, o.gateway.Classes)
	if err != nil {
		return nil, fmt.Errorf("asking for the classes: %w", err)
	}
	return NewSnapshot(fresh.Answered, status, heat, classes), nil
}

// Refresh asks for the status and the load now, and for heat and classes too where all is wanted, everything at once. The
// readings tell what came of it.
func (o *Observer) Refresh(ctx context.Context, all bool) {
	var asking sync.WaitGroup
	refresh(ctx, o, &asking, &o.Status, o.gateway.StatusBrief)
	refresh(ctx, o, &asking, &o.Load, o.gateway.Load)
	if all {
		refresh(ctx, o, &asking, &o.Heat, o.gateway.Heat)
		refresh(ctx, o, &asking, &o.Classes, o.gateway.Classes)
	}
	asking.Wait()
}

func refresh[T any](ctx context.Context, o *Observer, asking *sync.WaitGroup, into *Reading[T], question func(context.Context) (T, error)) {
	asking.Go(func() {
		if _, err := into.Ask(ctx, o.now, 0, question); err != nil {
			return // the reading has it
		}
	})
}

// AskLoad returns what clients ask, or asked no longer ago than the age.
func (o *Observer) AskLoad(ctx context.Context, age time.Duration) (api.Load, error) {
	load, err := o.Load.Ask(ctx, o.now, age, o.gateway.Load)
	if err != nil {
		return api.Load{}, fmt.Errorf("asking for the load: %w", err)
	}
	return load, nil
}

// Learn adds to what was seen what the gateways have just been told: a class, or with nil that there is none.
func (o *Observer) Learn(name string, class *api.ClassInfo) {
	o.observing.Lock()
	defer o.observing.Unlock()
	o.Classes.change(func(old []api.ClassInfo) []api.ClassInfo {
		list := slices.DeleteFunc(slices.Clone(old), func(info api.ClassInfo) bool { return info.Name == name })
		if class != nil {
			list = append(list, *class)
		}
		return list
	})
	if o.snapshot == nil {
		return
	}
	seen := *o.snapshot // others look at the old one
	seen.Classes = maps.Clone(seen.Classes)
	if class == nil {
		delete(seen.Classes, name)
	} else {
		seen.Classes[name] = *class
	}
	o.snapshot = &seen
}

// Rest returns how long what the last walk found serves, given that the nodes stay in the states they are in and that a
// caller wants it to serve for the age at least: 0 or less where another walk is due.
func (o *Observer) Rest(age time.Duration) time.Duration {
	walk, known, _ := o.Walked.Get()
	if !known {
		return 0
	}
	since := o.now().Sub(walk.Ended)
	if since < 0 {
		return 0
	}
	return max(age, walkRest*walk.Ended.Sub(walk.Began)) - since
}

// Walk walks over every object and group, unless a walk that holds rests still; Walked has what it finds. Whoever comes
// while one is under way waits for its end. The walk goes on when the context ends first, which is the error then.
func (o *Observer) Walk(ctx context.Context, age time.Duration) error {
	status, err := o.Status.Ask(ctx, o.now, age, o.gateway.StatusBrief)
	if err != nil {
		if ctx.Err() == nil {
			o.Walked.Set(o.now(), Walk{}, err)
		}
		return err
	}
	under := o.join(status.Nodes, age)
	if under == nil {
		return nil
	}
	select {
	case <-under.ended:
		return under.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// join returns the walk that is under way, begun now if it is time to; nil if none is needed.
func (o *Observer) join(nodes []api.NodeStatus, age time.Duration) *walkUnderWay {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.walk != nil {
		return o.walk
	}
	if last, known, _ := o.Walked.Get(); known && last.Holds(nodes) && o.Rest(age) > 0 {
		return nil
	}
	ctx, stop := context.WithCancel(o.walks.lifetime)
	under := &walkUnderWay{stop: stop, ended: make(chan struct{})}
	began, states := o.now(), nodeStates(nodes)
	begun := o.walks.begin(func() {
		defer close(under.ended)
		defer stop()
		status, err := o.gateway.Status(ctx)
		o.mutex.Lock()
		defer o.mutex.Unlock()
		o.walk = nil
		if err != nil {
			under.err = fmt.Errorf("walking over every group: %w", err)
		}
		if ctx.Err() == nil { // otherwise it says nothing about the gateways
			ended := o.now()
			o.Walked.Set(ended, Walk{Status: status, Began: began, Ended: ended, states: states}, err)
		}
	})
	if !begun {
		under.err = context.Canceled
		close(under.ended)
		stop()
		return under
	}
	o.walk = under
	return under
}

// walks are the walks of all observers that are under way, which end with their lifetime.
type walks struct {
	lifetime context.Context
	stop     context.CancelFunc

	mutex   sync.Mutex // of what follows
	closed  bool
	running sync.WaitGroup
}

// begin runs a walk by itself; false if none may begin any more.
func (w *walks) begin(walk func()) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if !w.closed {
		w.running.Go(walk)
	}
	return !w.closed
}

// close ends all walks and waits for that.
func (w *walks) close() {
	w.mutex.Lock()
	w.closed = true
	w.mutex.Unlock()
	w.stop()
	w.running.Wait()
}

package console

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/console/signal"
	"github.com/restripe/restripe/operator/gateways"
)

// seenBackend is one backend as the console sees it.
type seenBackend struct {
	name     string
	pool     *gateways.Pool // for people's questions and changes
	observer *gateways.Observer
	wanted   signal.Wanted // to be asked now
	walk     signal.Wanted // to be walked over now
	stop     context.CancelFunc

	nodes    gateways.Reading[api.NodeList]
	repair   gateways.Reading[api.RepairStatus]
	scrub    gateways.Reading[api.Scrub]
	findings gateways.Reading[[]api.ScrubFinding]

	compaction gateways.Reading[*api.Compaction] // nil: of a release that has none
	balance    gateways.Reading[*api.Balance]    // as compaction
}

// quickPatience bounds one question to one gateway that is quickly answered.
const quickPatience = 5 * time.Second

// slowEvery is how many rounds of questions there are to one that asks for heat, classes, scrubs and compactions too.
const slowEvery = 5

// seenBackends asks the gateways of every backend that is declared again and again.
type seenBackends struct {
	declared    *mirror[*v1alpha1.StorageBackend]
	redeclare   *signal.Signal // something declared changed
	changed     *signal.Signal // something seen changed
	observers   *gateways.Observers
	interval    time.Duration
	patience    time.Duration
	credentials gateways.Credentials
	now         func() time.Time

	mutex  sync.Mutex // of what follows
	byName map[string]*seenBackend
}

// run asks until the context ends.
func (s *seenBackends) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	defer s.stopAll()
	for {
		declared := s.redeclare.Wait()
		s.refresh(ctx, &running)
		select {
		case <-declared:
		case <-ctx.Done():
			return
		}
	}
}

// refresh begins with backends that are new or have other gateways, and ends with those that are gone.
func (s *seenBackends) refresh(ctx context.Context, running *sync.WaitGroup) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	gone := s.byName
	s.byName = map[string]*seenBackend{}
	for _, backend := range s.declared.all() {
		observer, err := s.observers.Of(backend)
		if err != nil {
			continue // the API server checks addresses; what is wrong with one is in the backend's conditions
		}
		if seen := gone[backend.Name]; seen != nil && seen.observer == observer {
			s.byName[backend.Name] = seen
			delete(gone, backend.Name)
			continue
		}
		pool, err := gateways.NewPool(backend.GatewayAddresses(), s.patience, s.credentials)
		if err != nil {
			continue // as above
		}
		within, stop := context.WithCancel(ctx)
		seen := &seenBackend{name: backend.Name, pool: pool, observer: observer, wanted: signal.NewWanted(), walk: signal.NewWanted(), stop: stop}
		s.byName[backend.Name] = seen
		running.Go(func() { s.watch(within, seen) })
	}
	for name, seen := range gone {
		seen.stop()
		if s.byName[name] == nil {
			s.observers.Forget(name)
		}
	}
}

func (s *seenBackends) stopAll() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, seen := range s.byName {
		seen.stop()
	}
}

// watch asks one backend until the context ends.
func (s *seenBackends) watch(ctx context.Context, seen *seenBackend) {
	defer seen.pool.Close()
	var walking sync.WaitGroup
	defer walking.Wait()
	walking.Go(func() { s.walkAgain(ctx, seen) })
	ticker := time.NewTicker(s.interval)
	defer ticker.Stop()
	for count := 0; ; count++ {
		before := seen.nodeStates()
		s.ask(ctx, seen, count%slowEvery == 0)
		if ctx.Err() != nil {
			return
		}
		if !maps.Equal(before, seen.nodeStates()) {
			seen.walk.Notify()
		}
		s.changed.Notify()
		select {
		case <-ticker.C:
		case <-seen.wanted:
		case <-ctx.Done():
			return
		}
	}
}

// walkAgain asks again and again for what is only known by walking over every object and group, until the context ends.
func (s *seenBackends) walkAgain(ctx context.Context, seen *seenBackend) {
	slow := slowEvery * s.interval
	for {
		err := seen.observer.Walk(ctx, slow)
		if ctx.Err() != nil {
			return
		}
		s.changed.Notify()
		wait := seen.observer.Rest(slow)
		if err != nil {
			wait = max(slow, wait)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-seen.walk:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// nodeStates are the states of the nodes when they were asked for last.
func (b *seenBackend) nodeStates() map[string]string {
	list, _, _ := b.nodes.Get()
	states := make(map[string]string, len(list.Nodes))
	for i := range list.Nodes {
		states[string(list.Nodes[i].ID)] = list.Nodes[i].State
	}
	return states
}

// ask asks everything at once, so that it takes as long as the slowest answer.
func (s *seenBackends) ask(ctx context.Context, b *seenBackend, slow bool) {
	_, known, _ := b.observer.Heat.Get()
	slow = slow || !known
	var asking sync.WaitGroup
	asking.Go(func() { b.observer.Refresh(ctx, slow) })
	observe(ctx, &asking, s, b, &b.nodes, (*client.Client).Nodes)
	observe(ctx, &asking, s, b, &b.repair, (*client.Client).RepairStatus)
	observe(ctx, &asking, s, b, &b.balance, balanceOf)
	if slow {
		observe(ctx, &asking, s, b, &b.scrub, (*client.Client).Scrub)
		observe(ctx, &asking, s, b, &b.findings, (*client.Client).ScrubFindings)
		observe(ctx, &asking, s, b, &b.compaction, compactionOf)
	}
	asking.Wait()
}

func observe[T any](
	ctx context.Context, asking *sync.WaitGroup, s *seenBackends, b *seenBackend, into *gateways.Reading[T],
	call func(*client.Client, context.Context) (T, error),
) {
	asking.Go(func() {
		value, err := gateways.Ask(ctx, b.pool, s.patience, func(ctx context.Context, c *client.Client) (T, error) { return call(c, ctx) })
		if ctx.Err() == nil {
			into.Set(s.now(), value, err)
		}
	})
}

// at returns a backend, nil if there is none of the name.
func (s *seenBackends) at(name string) *seenBackend {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.byName[name]
}

// all returns every backend, or one where its name is not empty.
func (s *seenBackends) all(name string) []*seenBackend {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var list []*seenBackend
	for each, seen := range s.byName {
		if name == "" || name == each {
			list = append(list, seen)
		}
	}
	slices.SortFunc(list, func(a, b *seenBackend) int { return compareText(a.name, b.name) })
	return list
}

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
)

// facet is one thing that the gateways of a backend tell.
type facet[T any] struct {
	mutex sync.Mutex
	value T
	known bool
	fresh freshness
}

// get returns the last answer; known is false while there was none.
func (f *facet[T]) get() (value T, known bool, fresh freshness) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.value, f.known, f.fresh
}

// set takes an answer, or that there was none: then the last one stays.
func (f *facet[T]) set(now time.Time, value T, err error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if err != nil {
		f.fresh = f.fresh.failure(now, err)
		return
	}
	f.value, f.known, f.fresh = value, true, f.fresh.success(now)
}

// backendLook is what is known of one backend.
type backendLook struct {
	name      string
	addresses []string
	gateways  *gateways
	again     chan struct{} // look now
	stop      context.CancelFunc

	status   facet[api.Status]
	nodes    facet[api.NodeList]
	load     facet[api.Load]
	repair   facet[api.RepairStatus]
	heat     facet[api.HeatReport]
	classes  facet[[]api.ClassInfo]
	scrub    facet[api.Scrub]
	findings facet[[]api.ScrubFinding]

	whole facet[gatheredStatus] // by a walk over every object and group
	walk  chan struct{}         // walk now
}

// gatheredStatus is a status with when the walk behind it began.
type gatheredStatus struct {
	api.Status
	began time.Time
}

// lookPatience bounds one question to one gateway that is quickly answered.
const lookPatience = 5 * time.Second

// slowEvery is how many looks there are to one that asks for heat, classes and scrubs too.
const slowEvery = 5

// A walk over every object and group may take long: so much is waited for it, and so many times as long as it took until
// the next, unless a node changed its state.
const (
	walkPatience = 5 * time.Minute
	walkRest     = 20
)

// lookout looks at every backend that is declared.
type lookout struct {
	backends *mirror[*v1alpha1.StorageBackend]
	declared *signal // something declared changed
	changed  *signal // something seen changed
	interval time.Duration
	patience time.Duration
	now      func() time.Time

	mutex sync.Mutex // of what follows
	looks map[string]*backendLook
}

// run looks until the context ends.
func (l *lookout) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	defer l.stopAll()
	for {
		declared := l.declared.wait()
		l.refresh(ctx, &running)
		select {
		case <-declared:
		case <-ctx.Done():
			return
		}
	}
}

// refresh begins to look at backends that are new or have other gateways, and ends with those that are gone.
func (l *lookout) refresh(ctx context.Context, running *sync.WaitGroup) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	gone := l.looks
	l.looks = map[string]*backendLook{}
	for _, backend := range l.backends.all() {
		addresses := addressesOf(backend)
		if look := gone[backend.Name]; look != nil && slices.Equal(look.addresses, addresses) {
			l.looks[backend.Name] = look
			delete(gone, backend.Name)
			continue
		}
		g, err := dial(addresses)
		if err != nil {
			continue // the API server checks addresses; what is wrong with one is in the backend's conditions
		}
		within, stop := context.WithCancel(ctx)
		look := &backendLook{name: backend.Name, addresses: addresses, gateways: g, again: make(chan struct{}, 1), walk: make(chan struct{}, 1), stop: stop}
		l.looks[backend.Name] = look
		running.Go(func() { l.watch(within, look) })
	}
	for _, look := range gone {
		look.stop()
	}
}

func addressesOf(backend *v1alpha1.StorageBackend) []string {
	addresses := make([]string, len(backend.Spec.Gateways))
	for i, address := range backend.Spec.Gateways {
		addresses[i] = string(address)
	}
	return addresses
}

func (l *lookout) stopAll() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, look := range l.looks {
		look.stop()
	}
}

// watch looks at one backend until the context ends.
func (l *lookout) watch(ctx context.Context, look *backendLook) {
	defer look.gateways.close()
	var walking sync.WaitGroup
	defer walking.Wait()
	walking.Go(func() { l.walk(ctx, look) })
	ticker := time.NewTicker(l.interval)
	defer ticker.Stop()
	for count := 0; ; count++ {
		before := look.nodeStates()
		l.look(ctx, look, count%slowEvery == 0)
		if ctx.Err() != nil {
			return
		}
		if !maps.Equal(before, look.nodeStates()) {
			poke(look.walk)
		}
		l.changed.notify()
		select {
		case <-ticker.C:
		case <-look.again:
		case <-ctx.Done():
			return
		}
	}
}

// walk asks again and again for what is only known by looking at every object and group, until the context ends.
func (l *lookout) walk(ctx context.Context, look *backendLook) {
	for {
		began := l.now()
		status, err := ask(ctx, look.gateways, walkPatience, func(ctx context.Context, c *client.Client) (api.Status, error) { return c.Status(ctx) })
		if ctx.Err() != nil {
			return
		}
		took := l.now().Sub(began)
		look.whole.set(l.now(), gatheredStatus{status, began}, err)
		l.changed.notify()
		timer := time.NewTimer(max(slowEvery*l.interval, walkRest*took))
		select {
		case <-timer.C:
		case <-look.walk:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// nodeStates are the states of the nodes at the last look.
func (b *backendLook) nodeStates() map[string]string {
	list, _, _ := b.nodes.get()
	states := make(map[string]string, len(list.Nodes))
	for i := range list.Nodes {
		states[string(list.Nodes[i].ID)] = list.Nodes[i].State
	}
	return states
}

// look asks everything at once, so that it takes as long as the slowest answer.
func (l *lookout) look(ctx context.Context, b *backendLook, slow bool) {
	var asking sync.WaitGroup
	observe(ctx, &asking, l, b, &b.status, (*client.Client).StatusBrief)
	observe(ctx, &asking, l, b, &b.nodes, (*client.Client).Nodes)
	observe(ctx, &asking, l, b, &b.repair, (*client.Client).RepairStatus)
	asking.Go(func() {
		load, err := b.worstLoad(ctx, l.patience)
		if ctx.Err() == nil {
			b.load.set(l.now(), load, err)
		}
	})
	_, known, _ := b.heat.get()
	if slow || !known {
		observe(ctx, &asking, l, b, &b.heat, (*client.Client).Heat)
		observe(ctx, &asking, l, b, &b.classes, (*client.Client).Classes)
		observe(ctx, &asking, l, b, &b.scrub, (*client.Client).Scrub)
		observe(ctx, &asking, l, b, &b.findings, (*client.Client).ScrubFindings)
	}
	asking.Wait()
}

func observe[T any](ctx context.Context, asking *sync.WaitGroup, l *lookout, b *backendLook, into *facet[T], call func(*client.Client, context.Context) (T, error)) {
	asking.Go(func() {
		value, err := ask(ctx, b.gateways, l.patience, func(ctx context.Context, c *client.Client) (T, error) { return call(c, ctx) })
		if ctx.Err() == nil {
			into.set(l.now(), value, err)
		}
	})
}

// worstLoad asks every gateway, as each knows its own clients alone: the longest waits, and the sums.
func (b *backendLook) worstLoad(ctx context.Context, patience time.Duration) (worst api.Load, err error) {
	answers := make([]api.Load, len(b.gateways.clients))
	failures := make([]error, len(b.gateways.clients))
	var asking sync.WaitGroup
	for i, c := range b.gateways.clients {
		asking.Go(func() {
			answers[i], failures[i] = askOne(ctx, c, patience, func(ctx context.Context, c *client.Client) (api.Load, error) { return c.Load(ctx) })
		})
	}
	asking.Wait()
	answered := false
	for i, load := range answers {
		if failures[i] != nil {
			err = failures[i]
			continue
		}
		answered = true
		worst.WindowSeconds = max(worst.WindowSeconds, load.WindowSeconds)
		worst.P50Seconds, worst.P99Seconds = max(worst.P50Seconds, load.P50Seconds), max(worst.P99Seconds, load.P99Seconds)
		worst.Requests += load.Requests
		worst.TransitionBytesPerSecond += load.TransitionBytesPerSecond
	}
	if answered {
		err = nil
	}
	return worst, err
}

// hurry has a backend looked at now, after something was changed there.
func (b *backendLook) hurry() { poke(b.again) }

func poke(wish chan<- struct{}) {
	select {
	case wish <- struct{}{}:
	default: // it is asked for already
	}
}

// at returns the look at a backend, nil if there is none.
func (l *lookout) at(backend string) *backendLook {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.looks[backend]
}

// all returns the looks at every backend, or at one where its name is not empty.
func (l *lookout) all(backend string) []*backendLook {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var looks []*backendLook
	for name, look := range l.looks {
		if backend == "" || backend == name {
			looks = append(looks, look)
		}
	}
	slices.SortFunc(looks, func(a, b *backendLook) int { return compareText(a.name, b.name) })
	return looks
}

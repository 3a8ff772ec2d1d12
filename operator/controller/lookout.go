package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// lookout looks at the gateways on behalf of all reconcilers, so that a thousand policies of one backend cost it no
// more than one. What it remembers is only what it would be told again.
type lookout struct {
	dial  Dialer
	clock clock.PassiveClock

	mutex  sync.Mutex        // of the map
	places map[string]*place // by the backend's name
}

// place is one backend as it was seen.
type place struct {
	mutex     sync.Mutex // held while looking
	uid       types.UID
	addresses []string
	gateway   Gateway
	sight     *sight
	tried     time.Time
	failure   error
	load      api.Load
	loaded    time.Time
	survey    *survey
}

// sight is what the gateways of a backend said. It is shared: do not change it.
type sight struct {
	at      time.Time
	status  api.Status
	heat    api.HeatReport
	heats   map[string]*api.ClassHeat // of heat, by class
	classes map[string]api.ClassInfo
}

// survey is what a walk over every group of a backend found. It is shared: do not change it.
type survey struct {
	states   map[string]string // of the nodes when the walk began, by their names
	ended    time.Time
	took     time.Duration
	canLose  int   // as gateway.Status has it
	notWhole int64 // groups
}

func newLookout(dial Dialer, clock clock.PassiveClock) *lookout {
	return &lookout{dial: dial, clock: clock, places: map[string]*place{}}
}

func (l *lookout) place(backend *v1alpha1.StorageBackend) *place {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	found := l.places[backend.Name]
	if found == nil {
		found = &place{}
		l.places[backend.Name] = found
	}
	return found
}

// forget drops what is remembered of a backend.
func (l *lookout) forget(backend string) {
	l.mutex.Lock()
	found := l.places[backend]
	delete(l.places, backend)
	l.mutex.Unlock()
	if found != nil {
		found.mutex.Lock()
		defer found.mutex.Unlock()
		found.close()
	}
}

func (p *place) close() {
	if closer, can := p.gateway.(interface{ Close() }); can {
		closer.Close()
	}
}

// connect returns the gateways of a backend. The caller holds the mutex of the place.
func (p *place) connect(dial Dialer, backend *v1alpha1.StorageBackend) (Gateway, error) {
	addresses := make([]string, 0, len(backend.Spec.Gateways))
	for _, address := range backend.Spec.Gateways {
		addresses = append(addresses, string(address))
	}
	if p.gateway != nil && p.uid == backend.UID && slices.Equal(p.addresses, addresses) {
		return p.gateway, nil
	}
	made, err := dial(addresses)
	if err != nil {
		return nil, fmt.Errorf("backend %s: %w", backend.Name, err)
	}
	p.close()
	p.uid, p.addresses, p.gateway = backend.UID, addresses, made
	p.sight, p.tried, p.failure, p.load, p.loaded, p.survey = nil, time.Time{}, nil, api.Load{}, time.Time{}, nil
	return made, nil
}

// gateway returns the gateways of a backend.
func (l *lookout) gateway(backend *v1alpha1.StorageBackend) (Gateway, error) {
	p := l.place(backend)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.connect(l.dial, backend)
}

// look returns what the gateways of a backend say, or said no longer ago than the age. A failure is remembered as long,
// so that gateways that do not answer hold up one reconciler and not all.
func (l *lookout) look(ctx context.Context, backend *v1alpha1.StorageBackend, age time.Duration) (*sight, error) {
	p := l.place(backend)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	g, err := p.connect(l.dial, backend)
	if err != nil {
		return nil, err
	}
	if since := l.clock.Since(p.tried); !p.tried.IsZero() && since >= 0 && since < age {
		return p.sight, p.failure
	}
	seen, err := see(ctx, g)
	if ctx.Err() != nil {
		return nil, ctx.Err() // says nothing about the gateways
	}
	p.tried, p.failure, p.sight = l.clock.Now(), err, nil
	if err == nil {
		seen.at = p.tried
		p.sight = seen
	}
	return p.sight, p.failure
}

// surveyed returns what the last walk over the groups of a backend found, and whether the nodes are still in the states they
// were in then. It is nil before the first walk.
func (l *lookout) surveyed(backend *v1alpha1.StorageBackend, nodes []api.NodeStatus) (found *survey, current bool) {
	p := l.place(backend)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.survey, p.survey != nil && maps.Equal(p.survey.states, nodeStates(nodes))
}

// walkRest is how many times as long as a walk took the next one waits, unless a node changed its state.
const walkRest = 20

// walk has the gateways of a backend walk over every group, if it is time to.
func (l *lookout) walk(ctx context.Context, backend *v1alpha1.StorageBackend, nodes []api.NodeStatus) error {
	last, current := l.surveyed(backend, nodes)
	if current && l.clock.Since(last.ended) < walkRest*last.took {
		return nil
	}
	g, err := l.gateway(backend)
	if err != nil {
		return err
	}
	began := l.clock.Now()
	status, err := g.Status(ctx)
	if err != nil {
		return fmt.Errorf("having every group of backend %s looked at: %w", backend.Name, err)
	}
	ended := l.clock.Now()
	p := l.place(backend)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.gateway == g { // otherwise the backend has other gateways now
		p.survey = &survey{states: nodeStates(nodes), ended: ended, took: ended.Sub(began), canLose: status.CanLose, notWhole: status.NotWhole}
	}
	return nil
}

func nodeStates(nodes []api.NodeStatus) map[string]string {
	states := make(map[string]string, len(nodes))
	for i := range nodes {
		states[string(nodes[i].ID)] = nodes[i].State
	}
	return states
}

// learn adds to what was seen what the gateways have just been told: a class, or with nil that there is none.
func (l *lookout) learn(backend *v1alpha1.StorageBackend, name string, class *api.ClassInfo) {
	p := l.place(backend)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.sight == nil {
		return
	}
	seen := *p.sight // others look at the old one
	seen.classes = maps.Clone(seen.classes)
	if class == nil {
		delete(seen.classes, name)
	} else {
		seen.classes[name] = *class
	}
	p.sight = &seen
}

// load returns what clients of a backend ask, or asked no longer ago than the age.
func (l *lookout) load(ctx context.Context, backend *v1alpha1.StorageBackend, age time.Duration) (api.Load, error) {
	p := l.place(backend)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	g, err := p.connect(l.dial, backend)
	if err != nil {
		return api.Load{}, err
	}
	if since := l.clock.Since(p.loaded); !p.loaded.IsZero() && since >= 0 && since < age {
		return p.load, nil
	}
	load, err := g.Load(ctx)
	if err != nil {
		return api.Load{}, fmt.Errorf("asking for the load: %w", err)
	}
	p.load, p.loaded = load, l.clock.Now()
	return load, nil
}

func see(ctx context.Context, g Gateway) (*sight, error) {
	s := &sight{heats: map[string]*api.ClassHeat{}, classes: map[string]api.ClassInfo{}}
	var err error
	if s.status, err = g.StatusBrief(ctx); err != nil {
		return nil, fmt.Errorf("asking for the status: %w", err)
	}
	if s.heat, err = g.Heat(ctx); err != nil && !errors.Is(err, api.ErrUnavailable) { // it is there some time after a start
		return nil, fmt.Errorf("asking for the heat: %w", err)
	}
	classes, err := g.Classes(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking for the classes: %w", err)
	}
	for i := range s.heat.Classes {
		s.heats[s.heat.Classes[i].Class] = &s.heat.Classes[i]
	}
	for _, class := range classes {
		s.classes[class.Name] = class
	}
	return s, nil
}

package gateways

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// Observers are the observers of backends, one of each. Whoever shares them shares what they remember. They are safe for
// concurrent use.
type Observers struct {
	dial  Dialer
	now   func() time.Time
	walks walks

	mutex  sync.Mutex // of what follows
	byName map[string]observed
}

// observed is the observer of a backend as it was declared.
type observed struct {
	uid types.UID
	*Observer
}

// NewObservers returns observers that reach gateways by the dialer and go by the clock. Close them in the end.
func NewObservers(dial Dialer, now func() time.Time) *Observers {
	o := &Observers{dial: dial, now: now, byName: map[string]observed{}}
	o.walks.lifetime, o.walks.stop = context.WithCancel(context.Background())
	return o
}

// Of returns the observer of a backend: the same one as long as the backend is the same and has the same gateways.
func (o *Observers) Of(backend *v1alpha1.StorageBackend) (*Observer, error) {
	addresses := backend.GatewayAddresses()
	o.mutex.Lock()
	defer o.mutex.Unlock()
	old, found := o.byName[backend.Name]
	if found && old.uid == backend.UID && slices.Equal(old.addresses, addresses) {
		return old.Observer, nil
	}
	made, err := o.dial(addresses)
	if err != nil {
		return nil, fmt.Errorf("backend %s: %w", backend.Name, err)
	}
	if found {
		old.retire()
	}
	fresh := &Observer{gateway: made, addresses: addresses, now: o.now, walks: &o.walks}
	o.byName[backend.Name] = observed{backend.UID, fresh}
	return fresh, nil
}

// Forget drops what is remembered of a backend that is gone.
func (o *Observers) Forget(backend string) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if old, found := o.byName[backend]; found {
		old.retire()
		delete(o.byName, backend)
	}
}

// Close ends the walks that are under way and waits for that. No other begins.
func (o *Observers) Close() {
	o.walks.close()
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for name, old := range o.byName {
		old.retire()
		delete(o.byName, name)
	}
}

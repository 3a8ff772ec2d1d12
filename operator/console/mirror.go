package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// newClient returns a client of the API server. The kinds are known, so that it need not be up.
func newClient(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the kinds: %w", err)
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion})
	for kind, plural := range v1alpha1.Kinds {
		mapper.AddSpecific(v1alpha1.GroupVersion.WithKind(kind), v1alpha1.GroupVersion.WithResource(plural), v1alpha1.GroupVersion.WithResource(kind), meta.RESTScopeRoot)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("reaching the API server at %s: %w", config.Host, err)
	}
	return c, nil
}

// The shape of waiting after the API server did not answer, and between two watches.
const (
	firstBackoff   = 100 * time.Millisecond
	longestBackoff = 5 * time.Second
)

// mirror is a copy of all objects of one kind, kept by watching. Objects in it are never changed.
type mirror[P client.Object] struct {
	client  client.WithWatch
	list    func() client.ObjectList
	now     func() time.Time
	changed *signal

	mutex   sync.Mutex // of what follows
	objects map[string]P
	fresh   freshness
	version string // resourceVersion to watch from; empty: list first
}

func newMirror[P client.Object](c client.WithWatch, list func() client.ObjectList, now func() time.Time, changed *signal) *mirror[P] {
	return &mirror[P]{client: c, list: list, now: now, changed: changed, objects: map[string]P{}}
}

// run keeps the mirror until the context ends.
func (m *mirror[P]) run(ctx context.Context) {
	wait := firstBackoff
	for ctx.Err() == nil {
		err := m.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			wait = firstBackoff
		} else {
			m.fail(err)
		}
		pause(ctx, wait)
		if err != nil {
			wait = min(2*wait, longestBackoff)
		}
	}
}

// follow lists where that is needed, and watches until the watch ends.
func (m *mirror[P]) follow(ctx context.Context) error {
	if m.version == "" {
		if err := m.relist(ctx); err != nil {
			return err
		}
	}
	watching, err := m.client.Watch(ctx, m.list(), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: m.version, AllowWatchBookmarks: true}})
	if err != nil {
		m.version = ""
		return err
	}
	defer watching.Stop()
	m.succeed()
	for event := range watching.ResultChan() {
		if err := m.take(event); err != nil {
			m.version = ""
			if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
				return nil // too long ago: list again
			}
			return err
		}
	}
	return nil
}

func (m *mirror[P]) relist(ctx context.Context) error {
	list := m.list()
	if err := m.client.List(ctx, list); err != nil {
		return err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	objects := make(map[string]P, len(items))
	for _, item := range items {
		if object, is := item.(P); is {
			objects[object.GetName()] = object
		}
	}
	m.mutex.Lock()
	m.objects, m.version, m.fresh = objects, list.GetResourceVersion(), m.fresh.success(m.now())
	m.mutex.Unlock()
	m.changed.notify()
	return nil
}

func (m *mirror[P]) take(event watch.Event) error {
	if event.Type == watch.Error {
		return cmp.Or(apierrors.FromObject(event.Object), errors.New("the watch broke"))
	}
	object, is := event.Object.(P)
	if !is {
		return fmt.Errorf("the watch brought a %T", event.Object)
	}
	m.mutex.Lock()
	m.version = object.GetResourceVersion()
	switch event.Type {
	case watch.Added, watch.Modified:
		m.objects[object.GetName()] = object
	case watch.Deleted:
		delete(m.objects, object.GetName())
	}
	m.mutex.Unlock()
	if event.Type != watch.Bookmark {
		m.changed.notify()
	}
	return nil
}

func (m *mirror[P]) fail(err error) {
	m.mutex.Lock()
	m.fresh = m.fresh.failure(m.now(), err)
	m.mutex.Unlock()
	m.changed.notify()
}

func (m *mirror[P]) succeed() {
	m.mutex.Lock()
	recovered := m.fresh.err != nil
	m.fresh = m.fresh.success(m.now())
	m.mutex.Unlock()
	if recovered {
		m.changed.notify()
	}
}

// put enters what a call of this server has just written, unless the watch was faster.
func (m *mirror[P]) put(object P) {
	m.mutex.Lock()
	if there, is := m.objects[object.GetName()]; !is || !newer(there, object) {
		m.objects[object.GetName()] = object
	}
	m.mutex.Unlock()
	m.changed.notify()
}

// newer reports whether a is a later state than b. What numbers versions does so in order.
func newer(a, b client.Object) bool {
	versionA, errA := strconv.ParseUint(a.GetResourceVersion(), 10, 64)
	versionB, errB := strconv.ParseUint(b.GetResourceVersion(), 10, 64)
	return errA == nil && errB == nil && versionA > versionB
}

// get returns an object, which must not be changed.
func (m *mirror[P]) get(name string) (object P, found bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	object, found = m.objects[name]
	return object, found
}

// all returns every object by name; they must not be changed.
func (m *mirror[P]) all() []P {
	m.mutex.Lock()
	objects := slices.Collect(maps.Values(m.objects))
	m.mutex.Unlock()
	slices.SortFunc(objects, func(a, b P) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return objects
}

// freshness is that of now: a watch that is open says that nothing changed.
func (m *mirror[P]) freshness() freshness {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if f := m.fresh; f.err != nil || f.answered.IsZero() {
		return f
	}
	return freshness{answered: m.now()}
}

// world is the mirrors of all kinds.
type world struct {
	client      client.WithWatch
	changed     *signal
	backends    *mirror[*v1alpha1.StorageBackend]
	schemes     *mirror[*v1alpha1.RedundancyScheme]
	policies    *mirror[*v1alpha1.RedundancyPolicy]
	transitions *mirror[*v1alpha1.Transition]
}

func newWorld(c client.WithWatch, now func() time.Time, changed *signal) *world {
	return &world{
		client: c, changed: changed,
		backends:    newMirror[*v1alpha1.StorageBackend](c, func() client.ObjectList { return &v1alpha1.StorageBackendList{} }, now, changed),
		schemes:     newMirror[*v1alpha1.RedundancyScheme](c, func() client.ObjectList { return &v1alpha1.RedundancySchemeList{} }, now, changed),
		policies:    newMirror[*v1alpha1.RedundancyPolicy](c, func() client.ObjectList { return &v1alpha1.RedundancyPolicyList{} }, now, changed),
		transitions: newMirror[*v1alpha1.Transition](c, func() client.ObjectList { return &v1alpha1.TransitionList{} }, now, changed),
	}
}

// run keeps all mirrors until the context ends.
func (w *world) run(ctx context.Context) {
	var running sync.WaitGroup
	for _, run := range []func(context.Context){w.backends.run, w.schemes.run, w.policies.run, w.transitions.run} {
		running.Go(func() { run(ctx) })
	}
	running.Wait()
}

// freshness is the worst of the mirrors'.
func (w *world) freshness() freshness {
	return w.backends.freshness().worse(w.schemes.freshness()).worse(w.policies.freshness()).worse(w.transitions.freshness())
}

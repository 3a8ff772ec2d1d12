package console

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/console/signal"
	"github.com/restripe/restripe/operator/gateways"
)

// newClient returns a client of the API server. The kinds are known, so that it need not be up.
func newClient(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the kinds: %w", err)
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion})
	for kind, plural := range v1alpha1.Kinds {
		mapper.AddSpecific(
			v1alpha1.GroupVersion.WithKind(kind),
			v1alpha1.GroupVersion.WithResource(plural),
			v1alpha1.GroupVersion.WithResource(kind),
			meta.RESTScopeRoot,
		)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("reaching the API server at %s: %w", config.Host, err)
	}
	return c, nil
}

// again says how long to wait after the API server did not answer: 100 ms, doubling up to five seconds.
func again() *wait.Backoff {
	return &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Steps: 7, Cap: 5 * time.Second, Jitter: 0.1}
}

// mirror is a copy of all objects of one kind, which a reflector keeps by watching. Objects in it are never changed.
type mirror[P client.Object] struct {
	client  client.WithWatch
	kind    P // an empty object
	list    func() client.ObjectList
	now     func() time.Time
	changed *signal.Signal
	outside *outside

	mutex   sync.Mutex // of what follows
	objects map[string]P
	fresh   gateways.Freshness
	listed  bool // all objects were there once
}

func newMirror[P client.Object](
	c client.WithWatch,
	kind P,
	list func() client.ObjectList,
	now func() time.Time,
	changed *signal.Signal,
	outside *outside,
) *mirror[P] {
	return &mirror[P]{client: c, kind: kind, list: list, now: now, changed: changed, outside: outside, objects: map[string]P{}}
}

// run keeps the mirror until the context ends.
func (m *mirror[P]) run(ctx context.Context) {
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := m.list()
			err := m.client.List(ctx, list, &client.ListOptions{Raw: &options})
			m.answered(ctx, err, false)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			watching, err := m.client.Watch(ctx, m.list(), &client.ListOptions{Raw: &options})
			// With initial events, the objects are yet to come.
			m.answered(ctx, err, options.SendInitialEvents == nil)
			return watching, err
		},
	}
	reflector := cache.NewReflectorWithOptions(source, m.kind, m, cache.ReflectorOptions{Name: "console", Backoff: again()})
	reflector.RunWithContext(klog.NewContext(ctx, logr.Discard())) // failures are told by the freshness
}

// answered takes note of an answer of the API server, which is a failure with an error. An answer that does not make the
// mirror complete leaves the freshness to Replace.
func (m *mirror[P]) answered(ctx context.Context, err error, complete bool) {
	if ctx.Err() != nil || err == nil && !complete {
		return
	}
	m.mutex.Lock()
	recovered := m.fresh.Err != nil
	if err == nil {
		m.fresh = m.fresh.Success(m.now())
	} else {
		m.fresh = m.fresh.Failure(m.now(), err)
	}
	m.mutex.Unlock()
	if recovered || err != nil {
		m.changed.Notify()
	}
}

// Add enters an object that the reflector brings.
func (m *mirror[P]) Add(object any) error {
	entered, is := object.(P)
	if !is {
		return fmt.Errorf("the watch brought a %T", object)
	}
	m.put(entered)
	m.outside.saw(kindName(m.kind), entered)
	return nil
}

// kindName is the name of an object's kind.
func kindName(object client.Object) string { return reflect.TypeOf(object).Elem().Name() }

// Update enters an object that the reflector brings.
func (m *mirror[P]) Update(object any) error { return m.Add(object) }

// Delete takes out an object that the reflector says is gone.
func (m *mirror[P]) Delete(object any) error {
	gone, is := object.(P)
	if !is {
		return fmt.Errorf("the watch brought a %T", object)
	}
	m.mutex.Lock()
	delete(m.objects, gone.GetName())
	m.mutex.Unlock()
	m.outside.gone(gone)
	m.changed.Notify()
	return nil
}

// Replace takes all objects that there are, but for those of which a call of this server has written a later state.
func (m *mirror[P]) Replace(list []any, _ string) error {
	objects := make(map[string]P, len(list))
	m.mutex.Lock()
	for _, object := range list {
		entered, is := object.(P)
		if !is {
			m.mutex.Unlock()
			return fmt.Errorf("the list has a %T", object)
		}
		if there, known := m.objects[entered.GetName()]; known && newer(there, entered) {
			entered = there
		}
		objects[entered.GetName()] = entered
	}
	first := !m.listed
	m.objects, m.fresh, m.listed = objects, m.fresh.Success(m.now()), true
	m.mutex.Unlock()
	for _, object := range objects {
		if first {
			m.outside.begin(object)
		} else {
			m.outside.saw(kindName(m.kind), object)
		}
	}
	m.changed.Notify()
	return nil
}

// Resync does nothing: nobody remembers more than the mirror.
func (m *mirror[P]) Resync() error { return nil }

// put enters an object, which may be what a call of this server has just written, unless a later state is there.
func (m *mirror[P]) put(object P) {
	m.mutex.Lock()
	if there, is := m.objects[object.GetName()]; !is || !newer(there, object) {
		m.objects[object.GetName()] = object
	}
	m.mutex.Unlock()
	m.changed.Notify()
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
func (m *mirror[P]) freshness() gateways.Freshness {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if f := m.fresh; f.Err != nil || f.Answered.IsZero() {
		return f
	}
	return gateways.Freshness{Answered: m.now()}
}

// world is the mirrors of all kinds.
type world struct {
	client      client.WithWatch
	changed     *signal.Signal
	outside     *outside
	backends    *mirror[*v1alpha1.StorageBackend]
	schemes     *mirror[*v1alpha1.RedundancyScheme]
	policies    *mirror[*v1alpha1.RedundancyPolicy]
	transitions *mirror[*v1alpha1.Transition]
}

func newWorld(c client.WithWatch, now func() time.Time, changed *signal.Signal, outside *outside) *world {
	return &world{
		client: c, changed: changed, outside: outside,
		backends: newMirror(
			c,
			&v1alpha1.StorageBackend{},
			func() client.ObjectList { return &v1alpha1.StorageBackendList{} },
			now,
			changed,
			outside,
		),
		schemes: newMirror(
			c,
			&v1alpha1.RedundancyScheme{},
			func() client.ObjectList { return &v1alpha1.RedundancySchemeList{} },
			now,
			changed,
			outside,
		),
		policies: newMirror(
			c,
			&v1alpha1.RedundancyPolicy{},
			func() client.ObjectList { return &v1alpha1.RedundancyPolicyList{} },
			now,
			changed,
			outside,
		),
		transitions: newMirror(c, &v1alpha1.Transition{}, func() client.ObjectList { return &v1alpha1.TransitionList{} }, now, changed, outside),
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
func (w *world) freshness() gateways.Freshness {
	return w.backends.freshness().Worse(w.schemes.freshness()).Worse(w.policies.freshness()).Worse(w.transitions.freshness())
}

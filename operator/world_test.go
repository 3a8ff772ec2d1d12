package operator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/restripe/restripe/operator"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/apiserver"
	"github.com/restripe/restripe/operator/gateways"
	"github.com/restripe/restripe/operator/gateways/gatewaysfake"
	"github.com/restripe/restripe/operator/operatortest"
)

// world is an API server, gateways in memory and a clock that runs fast.
type world struct {
	t        testing.TB
	server   *apiserver.Server
	folder   string
	client   client.Client
	clock    *fastClock
	gateways map[string]*gatewaysfake.Cluster // by address
	calls    atomic.Int64                     // of the operators to the API server, watches left out
	byCall   sync.Map                         // "PATCH transitions" -> *atomic.Int64
	cut      atomic.Int64                     // the operators are cut off after so many calls more, to the gateways too; negative: never
}

// speed is how many seconds pass in one.
const speed = 100

// patience is how long, by the real clock, a test waits for what must come.
const patience = 5 * time.Minute

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, folder: t.TempDir(), clock: newFastClock(speed), gateways: map[string]*gatewaysfake.Cluster{}}
	w.cut.Store(-1)
	w.startServer()
	t.Cleanup(func() {
		if err := w.server.Stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	return w
}

func (w *world) startServer() {
	w.t.Helper()
	server, err := apiserver.Start(w.t.Context(), apiserver.Options{Directory: w.folder, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.server = server
	w.client = operatortest.Client(w.t, server.RESTConfig(), "person")
}

// gateway returns the gateways of a backend, made when first asked for.
func (w *world) gateway(name string) *gatewaysfake.Cluster {
	address := "http://" + name + ":7480"
	if w.gateways[address] == nil {
		w.gateways[address] = gatewaysfake.New(w.clock, 16, 64<<20)
	}
	return w.gateways[address]
}

func (w *world) dial(addresses []string) (gateways.Gateway, error) {
	if g := w.gateways[addresses[0]]; g != nil {
		return g, nil
	}
	return nil, fmt.Errorf("nobody listens at %s", addresses[0])
}

// meter counts the calls to the API server, and breaks the connection when it is told to.
type meter struct {
	w      *world
	next   http.RoundTripper
	broken func()
}

var errCut = errors.New("the connection is cut")

func (m *meter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "" {
		if strings.Contains(r.URL.Path, v1alpha1.GroupVersion.Group+"/") {
			m.w.calls.Add(1)
			kind := strings.SplitN(r.URL.Path[strings.Index(r.URL.Path, "v1alpha1/")+len("v1alpha1/"):], "/", 2)[0]
			n, _ := m.w.byCall.LoadOrStore(r.Method+" "+kind, new(atomic.Int64))
			n.(*atomic.Int64).Add(1)
		}
		if m.w.isCut() {
			m.broken()
			if rand.IntN(2) == 0 { // it is done, and nobody hears of it
				if done, err := m.next.RoundTrip(r.WithContext(context.WithoutCancel(r.Context()))); err == nil {
					done.Body.Close()
				}
			}
			return nil, errCut
		}
	}
	return m.next.RoundTrip(r)
}

// isCut counts a call and reports whether it is beyond the last one that gets through.
func (w *world) isCut() bool {
	if w.cut.Load() < 0 {
		return false
	}
	if w.cut.Add(-1) < 0 {
		w.cut.Store(0)
		return true
	}
	return false
}

// operatorRun is an operator that runs.
type operatorRun struct {
	stop  context.CancelFunc
	ended chan error
}

func (o *operatorRun) wait() error { return <-o.ended }

// start starts an operator; broken, where given, is called when its connection is cut.
func (w *world) start(change ...func(*operator.Options)) *operatorRun {
	ctx, stop := context.WithCancel(context.Background())
	config := w.server.RESTConfig()
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &meter{w: w, next: next, broken: stop} })
	dial := func(addresses []string) (gateways.Gateway, error) {
		g, err := w.dial(addresses)
		return &cutGateway{w: w, to: g, broken: stop}, err
	}
	options := operator.Options{RESTConfig: config, Clock: w.clock, Dial: dial, Logger: logger()}
	for _, c := range change {
		c(&options)
	}
	run := &operatorRun{stop: stop, ended: make(chan error, 1)}
	go func() { run.ended <- operator.Run(ctx, options) }()
	return run
}

// operator starts an operator that runs until the test ends.
func (w *world) operator(change ...func(*operator.Options)) *operatorRun {
	run := w.start(change...)
	w.t.Cleanup(func() {
		run.stop()
		if err := run.wait(); err != nil {
			w.t.Errorf("the operator: %v", err)
		}
	})
	return run
}

// logger shows what operators say where RESTRIPE_TEST_LOG is set.
func logger() *slog.Logger {
	out := io.Discard
	if os.Getenv("RESTRIPE_TEST_LOG") != "" {
		out = os.Stderr
	}
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// apply declares objects, as a person does.
func (w *world) apply(manifests ...string) {
	w.t.Helper()
	for _, manifest := range manifests {
		if err := w.try(manifest); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) try(manifest string) error {
	text, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		return err
	}
	var head metav1.PartialObjectMetadata
	if err := yaml.Unmarshal(text, &head); err != nil {
		return err
	}
	object, err := w.client.Scheme().New(v1alpha1.GroupVersion.WithKind(head.Kind))
	if err != nil {
		return err
	}
	named := object.(client.Object)
	named.SetName(head.Name)
	return w.client.Patch(w.t.Context(), named, client.RawPatch(types.ApplyPatchType, text), client.ForceOwnership)
}

// patch changes an object as `kubectl patch --type merge` does.
func (w *world) patch(object client.Object, change string) {
	w.t.Helper()
	if err := w.client.Patch(w.t.Context(), object, client.RawPatch(types.MergePatchType, []byte(change))); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) delete(object client.Object) {
	w.t.Helper()
	if err := w.client.Delete(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
}

// get reads an object; nil if there is none.
func get[T client.Object](w *world, object T, name string) (T, bool) {
	w.t.Helper()
	err := w.client.Get(w.t.Context(), types.NamespacedName{Name: name}, object)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return object, err == nil
}

func (w *world) policy(name string) *v1alpha1.RedundancyPolicy {
	w.t.Helper()
	policy, found := get(w, &v1alpha1.RedundancyPolicy{}, name)
	if !found {
		return nil
	}
	return policy
}

func (w *world) transitions() []v1alpha1.Transition {
	w.t.Helper()
	var list v1alpha1.TransitionList
	if err := w.client.List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// eventually waits until something holds.
func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(patience); !holds(); <-again.C {
		if time.Now().After(end) {
			w.t.Fatalf("waited %v in vain: %s\n%s", patience, what, w.picture())
		}
	}
}

// picture is everything declared, for a failed test.
func (w *world) picture() string {
	var text strings.Builder
	show := func(kind, name string, generation int64, conditions []metav1.Condition) {
		fmt.Fprintf(&text, "%s %s, generation %d\n", kind, name, generation)
		for _, c := range conditions {
			fmt.Fprintf(&text, "    %-16s %-8s %-22s %s\n", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	var backends v1alpha1.StorageBackendList
	var policies v1alpha1.RedundancyPolicyList
	var transitions v1alpha1.TransitionList
	for _, list := range []client.ObjectList{&backends, &policies, &transitions} {
		if err := w.client.List(context.Background(), list); err != nil {
			return err.Error()
		}
	}
	for _, b := range backends.Items {
		show("backend", b.Name, b.Generation, b.Status.Conditions)
	}
	for _, p := range policies.Items {
		show("policy", p.Name, p.Generation, p.Status.Conditions)
	}
	for _, t := range transitions.Items {
		show("transition", t.Name, t.Generation, t.Status.Conditions)
	}
	for address, g := range w.gateways {
		fmt.Fprintf(&text, "gateway %s: %v, calls %v\n", address, g.Transitions(), g.Calls())
	}
	return text.String()
}

// is reports whether a condition of an object is true for its present generation.
func is(object client.Object, conditions []metav1.Condition, kind string) bool {
	condition := meta.FindStatusCondition(conditions, kind)
	return condition != nil && condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == object.GetGeneration()
}

// reason is that of a condition.
func reason(conditions []metav1.Condition, kind string) string {
	if condition := meta.FindStatusCondition(conditions, kind); condition != nil {
		return condition.Reason
	}
	return ""
}

// converged waits until a policy has converged.
func (w *world) converged(name string) {
	w.t.Helper()
	w.eventually("policy "+name+" converges", func() bool {
		policy := w.policy(name)
		return policy != nil && is(policy, policy.Status.Conditions, v1alpha1.ConditionConverged)
	})
}

func backend(name string) string {
	return "apiVersion: restripe.io/v1alpha1\nkind: StorageBackend\nmetadata: {name: " + name + "}\nspec: {type: file, gateways: ['http://" + name + ":7480']}\n"
}

// mediaPolicy moves what is used less than once a day to rs(12,2), and what is used ten times a day to rep(3).
func mediaPolicy(more string) string {
	return `apiVersion: restripe.io/v1alpha1
kind: RedundancyPolicy
metadata: {name: media}
spec:
  backendRef: disks
  selector: {prefixes: [media/]}
  ladder: [rep(3), 'rs(4,2)', 'rs(12,2)']
  temperature:
    halfLife: 1h
    dwell: 1h
    rules:
    - {scheme: rep(3), atLeast: 16}
    - {scheme: 'rs(12,2)', below: 1}
` + more
}

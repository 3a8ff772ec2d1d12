package operator_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/operator"
	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// slow is a budget under which there is time to do something in mid-transition.
const slow = "  budget: {bytesPerSecond: 16Mi}\n"

// gone waits until an object is no more.
func (w *world) gone(object client.Object, name string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%T %s is gone", object, name), func() bool {
		_, found := get(w, object, name)
		return !found
	})
}

func TestDeletingATransitionCancelsItsJob(t *testing.T) {
	w := newWorld(t)
	g := w.media(slow)
	running := w.one("Running")
	w.patch(w.policy("media"), `{"spec":{"stopPolicy":"Hold"}}`)
	w.delete(running)
	w.gone(&v1alpha1.Transition{}, running.Name)
	if state := job(g, running).State; state != api.TransitionCancelled {
		t.Errorf("the job is %s", state)
	}
	w.patch(w.policy("media"), `{"spec":{"stopPolicy":"None"}}`)
	w.converged("media")
	unbroken(t, g)
}

func TestDeletingAPolicyEndsItsTransitions(t *testing.T) {
	w := newWorld(t)
	g := w.media(slow)
	running := w.one("Running")
	w.delete(w.policy("media"))
	w.gone(&v1alpha1.RedundancyPolicy{}, "media")
	if n := len(w.transitions()); n > 0 {
		t.Errorf("%d transitions are left", n)
	}
	if state := job(g, running).State; state != api.TransitionCancelled {
		t.Errorf("the job is %s", state)
	}
	if names := g.ClassNames(); !slices.Contains(names, "media") {
		t.Errorf("the class is gone and its objects are not: %v", names)
	}
	w.apply(mediaPolicy(""))
	w.converged("media")
	unbroken(t, g)
}

func TestABackendInUseDoesNotVanish(t *testing.T) {
	w := newWorld(t)
	g := w.media(slow)
	w.one("Running")
	w.eventually("the backend counts its groups", func() bool {
		b, _ := get(w, &v1alpha1.StorageBackend{}, "disks")
		return b.Status.Groups > 0
	})
	b, _ := get(w, &v1alpha1.StorageBackend{}, "disks")
	if err := w.client.Delete(t.Context(), b); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "restripe.io/confirm-delete=disks") {
		t.Fatalf("deleting a backend that holds objects: %v", err)
	}
	w.patch(b, `{"metadata":{"annotations":{"restripe.io/confirm-delete":"disks"}}}`)
	w.delete(b)
	w.eventually("the backend says what keeps it", func() bool {
		b, found := get(w, &v1alpha1.StorageBackend{}, "disks")
		return found && reason(b.Status.Conditions, "Reconciling") == "InUse"
	})
	w.eventually("the policy says so", func() bool {
		return reason(w.policy("media").Status.Conditions, "Feasible") == "BackendMissing"
	})
	w.delete(w.policy("media"))
	w.gone(&v1alpha1.RedundancyPolicy{}, "media")
	if b, found := get(w, &v1alpha1.StorageBackend{}, "disks"); !found {
		t.Fatal("the backend vanished with objects in it")
	} else if b.Status.Groups != mediaGroups {
		t.Errorf("the backend says %d groups", b.Status.Groups)
	}
	g.Empty("media")
	w.gone(&v1alpha1.StorageBackend{}, "disks")
}

func TestASchemeInUseDoesNotVanish(t *testing.T) {
	w := newWorld(t)
	w.apply("apiVersion: restripe.io/v1alpha1\nkind: RedundancyScheme\nmetadata: {name: wide}\nspec: {k: 12, m: 2}\n")
	g := w.gateway("disks")
	w.apply(backend("disks"), strings.ReplaceAll(mediaPolicy(slow), "'rs(12,2)'", "wide"))
	w.operator()
	w.fill(g, "media", "rep(3)", 0, mediaGroups)
	w.one("Running")
	s, _ := get(w, &v1alpha1.RedundancyScheme{}, "wide")
	if s.Status.Code != "rs(12,2)" || s.Status.Overhead != "1.17x" || s.Status.CanLose != 2 || s.Status.Policies != 1 {
		t.Errorf("status is %+v", s.Status)
	}
	w.delete(s)
	w.eventually("the scheme says what keeps it", func() bool {
		s, found := get(w, &v1alpha1.RedundancyScheme{}, "wide")
		return found && reason(s.Status.Conditions, "Ready") == "InUse"
	})
	w.converged("media")
	w.apply(mediaPolicy(slow))
	w.gone(&v1alpha1.RedundancyScheme{}, "wide")
	w.converged("media")
	unbroken(t, g)
}

func TestEditingAPolicyInMidTransition(t *testing.T) {
	w := newWorld(t)
	g := w.media(slow)
	running := w.one("Running")
	w.apply(strings.NewReplacer("rs(12,2)", "rs(8,2)", "dwell: 1h", "dwell: 1m").Replace(mediaPolicy("")))
	w.eventually("the transition to a scheme that left the ladder ends", func() bool {
		return job(g, running).State == api.TransitionCancelled
	})
	w.eventually("all groups are where they belong now", func() bool { return g.Groups("media")["rs(8,2)"] == mediaGroups })
	w.converged("media")
	unbroken(t, g)
}

func TestHoldAndDrain(t *testing.T) {
	w := newWorld(t)
	g := w.media(slow)
	running := w.one("Running")
	w.patch(w.policy("media"), `{"spec":{"stopPolicy":"HoldAndDrain"}}`)
	w.eventually("what runs is cancelled", func() bool { return job(g, running).State == api.TransitionCancelled })
	w.eventually("the policy is drained", func() bool {
		p := w.policy("media")
		return p.Status.ActiveTransitions == 0 && reason(p.Status.Conditions, "Paused") == "Drained"
	})
	w.patch(w.policy("media"), `{"spec":{"stopPolicy":"None"}}`)
	w.converged("media")
	unbroken(t, g)
}

func TestAClassRenamed(t *testing.T) {
	w := newWorld(t)
	g := w.gateway("disks")
	w.apply(backend("disks"), mediaPolicy(""))
	w.operator()
	w.converged("media")
	w.apply(strings.Replace(mediaPolicy(""), "selector: {", "selector: {class: films, ", 1))
	w.eventually("the new class has the prefix", func() bool { return slices.Contains(g.ClassNames(), "films") })
	w.converged("media")
	w.eventually("the old class, which is empty, is gone", func() bool { return fmt.Sprint(g.ClassNames()) == "[films]" })
}

func TestTheAPIServerRestarts(t *testing.T) {
	w := newWorld(t)
	g := w.media(slow)
	running := w.one("Running")
	if err := w.server.Stop(); err != nil {
		t.Fatal(err)
	}
	w.startServer()
	w.converged("media")
	if x, found := get(w, &v1alpha1.Transition{}, running.Name); !found || x.Status.Summary.State != "Done" || len(w.transitions()) != 1 {
		t.Errorf("transitions are\n%s", w.picture())
	}
	unbroken(t, g)
}

func TestOneOfTwoOperatorsActs(t *testing.T) {
	w := newWorld(t)
	g := w.gateway("disks")
	w.apply(backend("disks"), mediaPolicy(slow))
	elect := func(o *operator.Options) { o.Election.LockFile = w.folder + "/operator.lock" }
	first := w.start(elect)
	w.fill(g, "media", "rep(3)", 0, mediaGroups)
	w.one("Running")
	w.operator(elect) // the second one
	before := g.Calls()["StartTransition"]
	first.stop()
	if err := first.wait(); err != nil {
		t.Fatal(err)
	}
	w.converged("media")
	if after := g.Calls()["StartTransition"]; before != 1 || after != 1 {
		t.Errorf("the one transition was started %d times by the first operator and %d times in all", before, after)
	}
	unbroken(t, g)
}

func TestTheSecondOperatorWaits(t *testing.T) {
	w := newWorld(t)
	elect := func(o *operator.Options) { o.Election.LockFile = w.folder + "/operator.lock" }
	w.apply(backend("disks"))
	g := w.gateway("disks")
	w.operator(elect)
	w.eventually("the first one acts", func() bool { return g.Calls()["StatusBrief"] > 0 })
	other := newWorld(t) // of which the second one knows, and would see at once
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	options := operator.Options{RESTConfig: other.server.RESTConfig(), Dial: other.dial, Clock: other.clock, Logger: logger()}
	elect(&options)
	other.apply(backend("disks"))
	if err := operator.Run(ctx, options); err != nil {
		t.Errorf("the second one: %v", err)
	}
	if calls := other.gateway("disks").Calls(); len(calls) > 0 {
		t.Errorf("the second one acted: %v", calls)
	}
}

// An object keeps its class: a policy that selects objects of another one says so, and a class that is left behind is named.
func TestObjectsOfOtherClassesAreTold(t *testing.T) {
	w := newWorld(t)
	g := w.gateway("disks")
	w.apply(backend("disks"), mediaPolicy(""))
	g.Stray("media", "default", 40, 3<<20)
	w.operator()
	w.eventually("the policy says what it does not manage", func() bool {
		p := w.policy("media")
		converged := meta.FindStatusCondition(p.Status.Conditions, "Converged")
		return converged != nil && converged.Reason == "ObjectsElsewhere" && strings.Contains(converged.Message, "class default (40 objects, 3.0 MiB)") &&
			is(p, p.Status.Conditions, "Stalled")
	})
	w.fill(g, "media", "rs(12,2)", 0, 47)
	w.patch(w.policy("media"), `{"spec":{"selector":{"class":"other"}}}`)
	w.eventually("the backend names the class that was left behind", func() bool {
		b, _ := get(w, &v1alpha1.StorageBackend{}, "disks")
		managed := meta.FindStatusCondition(b.Status.Conditions, "Managed")
		return managed != nil && managed.Reason == "ClassesUnmanaged" && strings.Contains(managed.Message, "class media (47 objects")
	})
}

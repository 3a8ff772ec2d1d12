package controller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/decide"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func transitionNamed(name, policy string) *v1alpha1.Transition {
	t := &v1alpha1.Transition{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(start)},
	}
	t.Spec.PolicyRef = policy
	return t
}

func TestWhoSharesABudget(t *testing.T) {
	var pools budgetPools
	a, b := pools.of(transitionNamed("a", "media")), pools.of(transitionNamed("b", "media"))
	other, alone, lonely := pools.of(transitionNamed("c", "logs")), pools.of(transitionNamed("d", "")), pools.of(transitionNamed("e", ""))
	if a != b || a == other || alone == lonely || alone == a {
		t.Error("transitions of a policy share its budget, and nobody else does")
	}
}

// However late gateways learn what they may do, and whatever is lost on the way, all of them together never do more than
// the budget allows.
func TestAPoolNeverExceedsItsBudget(t *testing.T) {
	const total, node = 100 << 20, 30 << 20
	limits := decide.Limits{Total: total, Node: node, Domain: decide.Unlimited, Concurrency: 3}
	moved := 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		pool := &budgetPool{known: true, runners: map[types.UID]*decide.Runner{}}
		var running []*v1alpha1.Transition
		real := map[string]decide.Grant{} // what the gateways do
		created := 0
		for step := range 200 {
			if len(running) == 0 || random.IntN(12) == 0 {
				created++
				running = append(running, transitionNamed(fmt.Sprint("t", created), "media"))
			}
			at := random.IntN(len(running))
			one := running[at]
			if random.IntN(25) == 0 { // it ends
				delete(real, one.Name)
				pool.leave(one)
				running = append(running[:at], running[at+1:]...)
				continue
			}
			var job *decide.Job
			if applied := real[one.Name]; applied.Runs() {
				job = &decide.Job{State: decide.JobRunning, Applied: applied}
			}
			pool.observe(one, job)
			granted := pool.grant(one, limits, random.IntN(5) > 0)
			switch random.IntN(4) {
			case 0: // lost on the way
			default:
				real[one.Name] = granted
			}
			var sum int64
			for name, doing := range real {
				sum += doing.Total
				if doing.Node > node {
					t.Fatalf("seed %d step %d: %s may use %d bytes per second of a node", seed, step, name, doing.Node)
				}
			}
			if sum > total {
				t.Fatalf("seed %d step %d: all may use %d bytes per second of %d: %v", seed, step, sum, total, real)
			}
			if sum > 0 {
				moved++
			}
		}
	}
	if moved < 10_000 {
		t.Errorf("something may move in %d steps alone", moved)
	}
}

// jobs are what the gateways say of transitions.
type jobs struct {
	known map[string]api.Transition
	fail  error
	asked []string
}

func (j *jobs) Transition(_ context.Context, id string) (api.Transition, error) {
	j.asked = append(j.asked, id)
	if j.fail != nil {
		return api.Transition{}, j.fail
	}
	if job, found := j.known[id]; found {
		return job, nil
	}
	return api.Transition{}, &client.Error{Code: api.CodeNotFound, Message: "none"}
}

func TestAPoolThatBeginsAnewAsksTheGateways(t *testing.T) {
	running, paused, fresh, ended := transitionNamed(
		"running",
		"media",
	), transitionNamed(
		"paused",
		"media",
	), transitionNamed(
		"fresh",
		"media",
	), transitionNamed(
		"ended",
		"media",
	)
	ended.Status.CompletionTime = &metav1.Time{Time: start}
	siblings := []v1alpha1.Transition{*running, *paused, *fresh, *ended}
	gateways := &jobs{fail: client.ErrUnreachable, known: map[string]api.Transition{
		decide.JobID(running, 0): {State: api.TransitionRunning, BytesPerSecond: 60 << 20},
		decide.JobID(paused, 0):  {State: api.TransitionPaused, BytesPerSecond: 70 << 20},
	}}
	pool := (&budgetPools{}).of(running)
	if err := pool.fill(t.Context(), gateways, siblings); !errors.Is(err, client.ErrUnreachable) {
		t.Fatalf("gateways that do not answer: %v", err)
	}
	gateways.fail, gateways.asked = nil, nil
	for range 2 {
		if err := pool.fill(t.Context(), gateways, siblings); err != nil {
			t.Fatal(err)
		}
	}
	if len(gateways.asked) != 3 {
		t.Errorf("it asked for %v", gateways.asked)
	}
	limits := decide.Limits{Total: 100 << 20, Node: decide.Unlimited, Domain: decide.Unlimited, Concurrency: 2}
	pool.observe(fresh, nil)
	if granted := pool.grant(fresh, limits, true); granted.Total > 40<<20 {
		t.Errorf("while another one may use 60 MiB/s of 100, a new one is granted %d", granted.Total)
	}
	// What has ended elsewhere keeps nothing.
	pool.keep([]v1alpha1.Transition{*fresh, *ended}, fresh)
	pool.observe(fresh, nil)
	if granted := pool.grant(fresh, limits, true); granted.Total != 100<<20 {
		t.Errorf("alone, it is granted %d", granted.Total)
	}
}

// A pool that begins anew while transitions give way to clients goes on from where it was, not from full speed.
func TestGivingWayGoesOn(t *testing.T) {
	limits := decide.Limits{
		Total:       100 << 20,
		Node:        decide.Unlimited,
		Domain:      decide.Unlimited,
		Concurrency: 1,
		Latency:     50 * time.Millisecond,
	}
	calm := decide.Load{Window: 10 * time.Second, Requests: 1000, P99: 45 * time.Millisecond}
	held := transitionNamed("held", "media")
	pool := (&budgetPools{}).of(held)
	pool.observe(
		held,
		&decide.Job{State: decide.JobRunning, Applied: decide.Grant{Total: 20 << 20, Node: decide.Unlimited, Domain: decide.Unlimited}},
	)
	pool.giveWay(limits, calm, start)
	if granted := pool.grant(held, limits, true); granted.Total > 30<<20 {
		t.Errorf("held to 20 MiB/s before, it is granted %d bytes per second", granted.Total)
	}
	full := (&budgetPools{}).of(held)
	full.observe(
		held,
		&decide.Job{State: decide.JobRunning, Applied: decide.Grant{Total: 100 << 20, Node: decide.Unlimited, Domain: decide.Unlimited}},
	)
	full.giveWay(limits, calm, start)
	if granted := full.grant(held, limits, true); granted.Total != 100<<20 {
		t.Errorf("at full speed before, it is granted %d bytes per second", granted.Total)
	}
}

package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/decide"
	"github.com/restripe/restripe/operator/gateways"
)

// budgetPool is the transitions that share one budget: those of a policy, or one that a person made by itself. It knows what
// the gateways have been told, so that what they are told next never adds up to more than the budget. A pool that begins
// anew asks the gateways.
type budgetPool struct {
	mutex   sync.Mutex
	known   bool // the gateways have been asked
	resumed bool // the backoff goes on from what they said
	runners map[types.UID]*decide.Runner
	backoff decide.Backoff
}

// budgetPools are the budget pools by what shares them.
type budgetPools struct {
	mutex sync.Mutex
	all   map[string]*budgetPool
}

func (p *budgetPools) of(transition *v1alpha1.Transition) *budgetPool {
	key := "policy/" + transition.Spec.PolicyRef
	if transition.Spec.PolicyRef == "" {
		key = "transition/" + string(transition.UID)
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.all == nil {
		p.all = map[string]*budgetPool{}
	}
	found := p.all[key]
	if found == nil {
		found = &budgetPool{runners: map[types.UID]*decide.Runner{}}
		p.all[key] = found
	}
	return found
}

// fill asks the gateways what they have been told of the transitions of a pool. The caller holds the mutex.
func (p *budgetPool) fill(ctx context.Context, g gateways.TransitionReader, siblings []v1alpha1.Transition) error {
	if p.known {
		return nil
	}
	for i := range siblings {
		t := &siblings[i]
		if t.Status.CompletionTime != nil {
			continue
		}
		job, err := g.Transition(ctx, decide.JobID(t, t.Status.Retries))
		if errors.Is(err, api.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("asking for transition %s: %w", t.Name, err)
		}
		found := jobOf(&job)
		if found.State != decide.JobRunning {
			continue
		}
		runner := decide.RunnerOf(t, found.Applied)
		runner.Wants = true
		p.runners[t.UID] = &runner
	}
	p.known = true
	return nil
}

// observe takes note of what the gateways say of a transition. The caller holds the mutex.
func (p *budgetPool) observe(t *v1alpha1.Transition, job *decide.Job) {
	var applied decide.Grant
	if job != nil && job.State == decide.JobRunning {
		applied = job.Applied
	}
	runner := decide.RunnerOf(t, applied)
	p.runners[t.UID] = &runner
}

// grant is what a transition may use, given whether it wants to run. It counts as told from now on. The caller holds the
// mutex.
func (p *budgetPool) grant(t *v1alpha1.Transition, limits decide.Limits, wants bool) decide.Grant {
	runner := p.runners[t.UID]
	runner.Wants = wants
	runners := make([]decide.Runner, 0, len(p.runners))
	for _, other := range p.runners {
		runners = append(runners, *other)
	}
	granted := decide.Allocate(limits.Under(p.backoff.Limit()), runners)[t.Name]
	// Until the gateways have answered, they may do what they were told before or what they are told now.
	runner.Applied = decide.Grant{
		Total: max(
			runner.Applied.Total,
			granted.Total,
		), Node: max(runner.Applied.Node, granted.Node), Domain: max(runner.Applied.Domain, granted.Domain),
	}
	return granted
}

// leave forgets a transition that has ended. The caller holds the mutex.
func (p *budgetPool) leave(t *v1alpha1.Transition) { delete(p.runners, t.UID) }

// giveWay looks at the load. A pool that begins anew goes on from what it was held to. The caller holds the mutex.
func (p *budgetPool) giveWay(limits decide.Limits, load decide.Load, now time.Time) {
	if !p.resumed && limits.Latency > 0 {
		p.resumed = true
		var told int64
		for _, runner := range p.runners {
			told += min(runner.Applied.Total, limits.Total-min(limits.Total, told))
		}
		if told > 0 && told < limits.Total {
			p.backoff.Ceiling = told
		}
	}
	p.backoff = p.backoff.Next(limits, load, now)
}

// keep forgets the runners that are no longer among the siblings. The caller holds the mutex.
func (p *budgetPool) keep(siblings []v1alpha1.Transition, self *v1alpha1.Transition) {
	there := map[types.UID]bool{self.UID: true}
	for i := range siblings {
		if siblings[i].Status.CompletionTime == nil {
			there[siblings[i].UID] = true
		}
	}
	for uid := range p.runners {
		if !there[uid] {
			delete(p.runners, uid)
		}
	}
}

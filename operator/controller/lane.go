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
)

// lane is the transitions that share one budget: those of a policy, or one that a person made by itself. It knows what
// the gateways have been told, so that what they are told next never adds up to more than the budget. A lane that begins
// anew asks the gateways.
type lane struct {
	mutex   sync.Mutex
	known   bool // the gateways have been asked
	resumed bool // the backoff goes on from what they said
	runners map[types.UID]*decide.Runner
	backoff decide.Backoff
}

// lanes are the lanes by what shares them.
type lanes struct {
	mutex sync.Mutex
	all   map[string]*lane
}

func (l *lanes) of(transition *v1alpha1.Transition) *lane {
	key := "policy/" + transition.Spec.PolicyRef
	if transition.Spec.PolicyRef == "" {
		key = "transition/" + string(transition.UID)
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.all == nil {
		l.all = map[string]*lane{}
	}
	found := l.all[key]
	if found == nil {
		found = &lane{runners: map[types.UID]*decide.Runner{}}
		l.all[key] = found
	}
	return found
}

// fill asks the gateways what they have been told of the transitions of a lane. The caller holds the mutex.
func (l *lane) fill(ctx context.Context, g Gateway, mates []v1alpha1.Transition) error {
	if l.known {
		return nil
	}
	for i := range mates {
		t := &mates[i]
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
		l.runners[t.UID] = &runner
	}
	l.known = true
	return nil
}

// observe takes note of what the gateways say of a transition. The caller holds the mutex.
func (l *lane) observe(t *v1alpha1.Transition, job *decide.Job) {
	var applied decide.Grant
	if job != nil && job.State == decide.JobRunning {
		applied = job.Applied
	}
	runner := decide.RunnerOf(t, applied)
	l.runners[t.UID] = &runner
}

// grant is what a transition may use, given whether it wants to run. It counts as told from now on. The caller holds the
// mutex.
func (l *lane) grant(t *v1alpha1.Transition, limits decide.Limits, wants bool) decide.Grant {
	runner := l.runners[t.UID]
	runner.Wants = wants
	runners := make([]decide.Runner, 0, len(l.runners))
	for _, other := range l.runners {
		runners = append(runners, *other)
	}
	granted := decide.Allocate(limits.Under(l.backoff.Limit()), runners)[t.Name]
	// Until the gateways have answered, they may do what they were told before or what they are told now.
	runner.Applied = decide.Grant{
		Total: max(runner.Applied.Total, granted.Total), Node: max(runner.Applied.Node, granted.Node), Domain: max(runner.Applied.Domain, granted.Domain),
	}
	return granted
}

// leave forgets a transition that has ended. The caller holds the mutex.
func (l *lane) leave(t *v1alpha1.Transition) { delete(l.runners, t.UID) }

// giveWay looks at the load. A lane that begins anew goes on from what it was held to. The caller holds the mutex.
func (l *lane) giveWay(limits decide.Limits, load decide.Load, now time.Time) {
	if !l.resumed && limits.Latency > 0 {
		l.resumed = true
		var told int64
		for _, runner := range l.runners {
			told += min(runner.Applied.Total, limits.Total-min(limits.Total, told))
		}
		if told > 0 && told < limits.Total {
			l.backoff.Ceiling = told
		}
	}
	l.backoff = l.backoff.Next(limits, load, now)
}

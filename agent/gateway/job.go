package gateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
)

// jobs are the transitions this gateway carries out. A job's record in the catalog is what counts: it is saved about
// once a second, survives kill -9, and may be changed by any gateway; the runner obeys what it finds there.
type jobs struct {
	gateway *Gateway
	mutex   sync.Mutex
	runners map[string]*runner
}

// jobBody is what a gateway keeps in a job's record.
type jobBody struct {
	Transition api.Transition `json:"transition"`
	Cursor     block.GroupID  `json:"cursor"` // class selectors: every group up to it is done
}

// runner carries out one transition.
type runner struct {
	gateway *Gateway
	to      stripe.Scheme
	how     how
	chosen  *selection // by which groups of a class are selected; nil for other selectors
	pacer   *pacer
	halt    chan struct{} // closed: start no further groups
	halting sync.Once
	done    chan struct{} // closed when the runner has saved for the last time

	mutex   sync.Mutex // of what follows
	job     catalog.Job
	body    jobBody
	saved   rates     // limits as of the last save
	resumed time.Time // start of this run
	earlier float64   // seconds of earlier runs
	wanted  api.TransitionState
	taken   bool // another gateway goes on with it
}

func (j *jobs) init(g *Gateway) { j.gateway, j.runners = g, map[string]*runner{} }

// takeUp starts the runners of transitions that are this gateway's to carry out and that it does not carry out: those an
// earlier start left running, and those whose record was saved although that could not be learned.
func (j *jobs) takeUp(ctx context.Context) error {
	list, err := j.gateway.catalog.Jobs(ctx)
	if err != nil {
		return fmt.Errorf("reading transitions: %w", err)
	}
	for _, job := range list {
		idle, _, err := j.isIdle(&job)
		if err != nil {
			return err
		}
		if !idle {
			continue
		}
		// It may have ended since they were listed.
		current, err := j.gateway.catalog.Job(ctx, job.ID)
		if errors.Is(err, catalog.ErrNoJob) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading transition %s: %w", job.ID, err)
		}
		idle, body, err := j.isIdle(current)
		if err != nil {
			return err
		}
		if !idle {
			continue
		}
		if err := j.start(*current, body); err != nil {
			return err
		}
	}
	return nil
}

// isIdle reports whether a transition should be carried out here and is not.
func (j *jobs) isIdle(job *catalog.Job) (idle bool, body jobBody, err error) {
	if err := json.Unmarshal(job.Body, &body); err != nil {
		return false, body, fmt.Errorf("reading transition %s: %w", job.ID, err)
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return job.Owner == j.gateway.options.ID && body.Transition.State == api.TransitionRunning && j.runners[job.ID] == nil, body, nil
}

// start begins to carry out a transition, unless that is done already.
func (j *jobs) start(job catalog.Job, body jobBody) error {
	t := &body.Transition
	to, err := stripe.ParseScheme(t.To)
	if err != nil {
		return fmt.Errorf("transition %s: %w", t.ID, err)
	}
	r := &runner{
		gateway: j.gateway, to: to, job: job, body: body, halt: make(chan struct{}), done: make(chan struct{}),
		how:   how{planner: t.Planner, objective: stripe.Objective(t.Objective), proxy: block.NodeID(t.Proxy)},
		saved: ratesOf(t), pacer: newPacer(ratesOf(t), j.gateway.agents.domainOf), resumed: time.Now(), earlier: t.ElapsedSeconds, wanted: api.TransitionRunning,
	}
	if t.Selector.Class != "" {
		r.chosen = selectionOf(t, to)
	}
	r.how.admit = r.admit
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if j.runners[t.ID] != nil {
		return nil
	}
	j.runners[t.ID] = r
	j.gateway.background(func(ctx context.Context) {
		r.run(ctx)
		j.mutex.Lock()
		delete(j.runners, t.ID)
		j.mutex.Unlock()
		close(r.done)
		j.gateway.heat.kick()
	})
	return nil
}

// runner returns the runner of a transition that is carried out here, or nil.
func (j *jobs) runner(id string) *runner {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.runners[id]
}

// throttle changes the limits of a transition that is carried out here. here is false for others; of a runner that ends
// the last save has been waited for, so that the record is what has to change.
func (j *jobs) throttle(ctx context.Context, id string, request api.ThrottleRequest) (t api.Transition, here bool, err error) {
	r := j.runner(id)
	if r == nil {
		return api.Transition{}, false, nil
	}
	if r.throttle(request) {
		return r.progress(), true, nil
	}
	return api.Transition{}, false, r.ended(ctx)
}

// ratesOf are the limits of a transition.
func ratesOf(t *api.Transition) rates {
	return rates{total: t.BytesPerSecond, node: t.NodeBytesPerSecond, domain: t.DomainBytesPerSecond}
}

// admit is asked right before a group's plan is carried out: it waits until the plan fits the budget, and tells whether
// the group is still selected.
func (r *runner) admit(ctx context.Context, group *catalog.Group, plan *run) (bool, error) {
	if !r.selects(group) {
		return false, nil
	}
	if err := r.pacer.wait(ctx, r.halt, plan.load()); err != nil {
		return false, err
	}
	return r.selects(group), nil
}

func (r *runner) selects(group *catalog.Group) bool {
	return r.chosen == nil || r.gateway.selects(r.chosen, group.ID, group.Scheme, group.Settled)
}

// StartTransition begins to take the selected objects to another scheme. A request that names an id which exists already
// returns the transition of that id as it is now, or ErrConflict where that one is another.
func (g *Gateway) StartTransition(ctx context.Context, request api.TransitionRequest) (api.Transition, error) {
	t, to, err := transitionOf(&request)
	if err != nil {
		return api.Transition{}, err
	}
	if t.ID != "" {
		switch found, err := g.repeated(ctx, &t); {
		case err == nil:
			return found, nil
		case !errors.Is(err, api.ErrNotFound):
			return api.Transition{}, err
		}
	}
	if err := g.checkTransition(ctx, &t, to); err != nil {
		return api.Transition{}, err
	}
	if t.ID == "" {
		var salt [3]byte
		if _, err := rand.Read(salt[:]); err != nil {
			return api.Transition{}, fmt.Errorf("naming the transition: %w", err)
		}
		t.ID = t.Started.Format("20060102-150405-") + hex.EncodeToString(salt[:])
	}
	job := catalog.Job{ID: t.ID, Owner: g.options.ID}
	body := jobBody{Transition: t}
	err = g.saveJob(ctx, &job, &body)
	if errors.Is(err, catalog.ErrStale) && !errors.Is(err, catalog.ErrUnknown) {
		return g.repeated(ctx, &t) // another request of the same id was faster
	}
	if err != nil {
		return api.Transition{}, err
	}
	if err := g.jobs.start(job, body); err != nil {
		return api.Transition{}, err
	}
	if err := g.forgetTransitions(ctx); err != nil {
		g.log.Warn("forgetting old transitions", "cause", err)
	}
	return t, nil
}

// keptTransitions is how many transitions that have ended are remembered.
const keptTransitions = 1000

// forgetTransitions removes the records of those that ended first, beyond the number that is remembered.
func (g *Gateway) forgetTransitions(ctx context.Context) error {
	list, err := g.catalog.Jobs(ctx)
	if err != nil || len(list) <= keptTransitions {
		return err
	}
	ended := map[string]time.Time{}
	for _, job := range list {
		var body jobBody
		if err := json.Unmarshal(job.Body, &body); err != nil {
			return fmt.Errorf("reading transition %s: %w", job.ID, err)
		}
		if t := &body.Transition; t.State.Final() && t.Finished != nil {
			ended[job.ID] = *t.Finished
		}
	}
	list = slices.DeleteFunc(list, func(job catalog.Job) bool { return ended[job.ID].IsZero() })
	slices.SortStableFunc(list, func(a, b catalog.Job) int { return ended[b.ID].Compare(ended[a.ID]) })
	for _, job := range list[min(keptTransitions, len(list)):] {
		if err := g.catalog.DropJob(ctx, job); err != nil {
			return err
		}
	}
	return nil
}

// repeated returns the transition that has the id of t, if it is the same one.
func (g *Gateway) repeated(ctx context.Context, t *api.Transition) (api.Transition, error) {
	found, err := g.Transition(ctx, t.ID)
	if err != nil {
		return api.Transition{}, err
	}
	if !isSame(&found, t) {
		return api.Transition{}, api.Refuse(api.ErrConflict, "transition %s exists and takes other groups, or takes them elsewhere; choose another id", t.ID)
	}
	return found, nil
}

func (g *Gateway) saveJob(ctx context.Context, job *catalog.Job, body *jobBody) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encoding transition %s: %w", job.ID, err)
	}
	job.Body = encoded
	if err := g.catalog.SaveJob(ctx, job); err != nil {
		return fmt.Errorf("saving transition %s: %w", job.ID, err)
	}
	return nil
}

// Transitions lists all transitions, newest first; running ones as they are now.
func (g *Gateway) Transitions(ctx context.Context) ([]api.Transition, error) {
	list, err := g.catalog.Jobs(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading transitions: %w", err)
	}
	transitions := make([]api.Transition, 0, len(list))
	for _, job := range list {
		t, err := g.present(job)
		if err != nil {
			return nil, err
		}
		transitions = append(transitions, t)
	}
	slices.SortStableFunc(transitions, func(a, b api.Transition) int { return b.Started.Compare(a.Started) })
	return transitions, nil
}

// Transition returns one transition as it is now.
func (g *Gateway) Transition(ctx context.Context, id string) (api.Transition, error) {
	job, err := g.job(ctx, id)
	if err != nil {
		return api.Transition{}, err
	}
	return g.present(job)
}

func (g *Gateway) job(ctx context.Context, id string) (catalog.Job, error) {
	job, err := g.catalog.Job(ctx, id)
	if errors.Is(err, catalog.ErrNoJob) {
		return catalog.Job{}, api.Refuse(api.ErrNotFound, "there is no transition %q; list them to see the names", id)
	}
	if err != nil {
		return catalog.Job{}, fmt.Errorf("reading transition %s: %w", id, err)
	}
	return *job, nil
}

// present returns the live progress of a job run here, else what its record says. A record that is not running any more
// goes before what this gateway has not noticed yet.
func (g *Gateway) present(job catalog.Job) (api.Transition, error) {
	var body jobBody
	if err := json.Unmarshal(job.Body, &body); err != nil {
		return api.Transition{}, fmt.Errorf("reading transition %s: %w", job.ID, err)
	}
	if r := g.jobs.runner(job.ID); r != nil && body.Transition.State == api.TransitionRunning {
		return r.progress(), nil
	}
	return body.Transition, nil
}

// PauseTransition, ResumeTransition and CancelTransition change the state of a transition. Groups under way are finished
// first; what was done stays done.
func (g *Gateway) PauseTransition(ctx context.Context, id string) (api.Transition, error) {
	return g.steer(ctx, id, api.TransitionPaused, nil)
}

// CancelTransition ends a transition.
func (g *Gateway) CancelTransition(ctx context.Context, id string) (api.Transition, error) {
	return g.steer(ctx, id, api.TransitionCancelled, nil)
}

// ResumeTransition goes on with a paused transition, or one that failed; bytesPerSecond, where given, is its new budget.
func (g *Gateway) ResumeTransition(ctx context.Context, id string, bytesPerSecond *int64) (api.Transition, error) {
	if bytesPerSecond != nil && *bytesPerSecond < 0 {
		return api.Transition{}, api.Refuse(api.ErrBadRequest, "a rate of %d bytes per second; give a positive one, or 0 for no limit", *bytesPerSecond)
	}
	return g.steer(ctx, id, api.TransitionRunning, bytesPerSecond)
}

// ThrottleTransition changes the limits of a transition that has not ended. A running one goes by them at once, or within
// a second where another gateway carries it out.
func (g *Gateway) ThrottleTransition(ctx context.Context, id string, request api.ThrottleRequest) (api.Transition, error) {
	if err := request.Check(); err != nil {
		return api.Transition{}, err
	}
	if t, here, err := g.jobs.throttle(ctx, id, request); err != nil || here {
		return t, err
	}
	for {
		job, err := g.job(ctx, id)
		if err != nil {
			return api.Transition{}, err
		}
		var body jobBody
		if err := json.Unmarshal(job.Body, &body); err != nil {
			return api.Transition{}, fmt.Errorf("reading transition %s: %w", id, err)
		}
		if body.Transition.State.Final() {
			return api.Transition{}, api.Refuse(api.ErrBadRequest, "transition %s is %s already", id, body.Transition.State)
		}
		setLimits(&body.Transition, ratesOf(&body.Transition).changed(request))
		if err = g.saveJob(ctx, &job, &body); err == nil {
			return body.Transition, nil
		}
		if !errors.Is(err, catalog.ErrStale) {
			return api.Transition{}, err
		}
	}
}

func (g *Gateway) steer(ctx context.Context, id string, wanted api.TransitionState, bytesPerSecond *int64) (api.Transition, error) {
	if wanted == api.TransitionRunning {
		if t, here, err := g.jobs.throttle(ctx, id, api.ThrottleRequest{BytesPerSecond: bytesPerSecond}); err != nil || here {
			return t, err
		}
	} else if r := g.jobs.runner(id); r != nil {
		r.stop(wanted)
		if err := r.ended(ctx); err != nil {
			return api.Transition{}, err
		}
	}
	for {
		job, err := g.job(ctx, id)
		if err != nil {
			return api.Transition{}, err
		}
		var body jobBody
		if err := json.Unmarshal(job.Body, &body); err != nil {
			return api.Transition{}, fmt.Errorf("reading transition %s: %w", id, err)
		}
		t := &body.Transition
		switch {
		case t.State == wanted:
			return *t, nil
		case t.State == api.TransitionDone || t.State == api.TransitionCancelled || t.State == api.TransitionFailed && wanted != api.TransitionRunning:
			return api.Transition{}, api.Refuse(api.ErrBadRequest, "transition %s is %s already", id, t.State)
		}
		t.State, t.Finished = wanted, nil
		if wanted.Final() {
			now := time.Now().UTC()
			t.Finished = &now
		}
		if bytesPerSecond != nil {
			t.BytesPerSecond = *bytesPerSecond
		}
		if wanted == api.TransitionRunning {
			job.Owner, t.Error = g.options.ID, ""
		}
		err = g.saveJob(ctx, &job, &body)
		if errors.Is(err, catalog.ErrStale) {
			continue // its runner saved meanwhile
		}
		if err != nil {
			return api.Transition{}, err
		}
		if wanted == api.TransitionRunning {
			return *t, g.jobs.start(job, body)
		}
		return *t, nil
	}
}

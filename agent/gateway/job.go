package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
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
	Transition Transition    `json:"transition"`
	Cursor     block.GroupID `json:"cursor"` // class selectors: every group up to it is done
}

// runner carries out one transition.
type runner struct {
	gateway *Gateway
	to      stripe.Scheme
	how     how
	limiter *rate.Limiter
	halt    chan struct{} // closed: start no further groups
	halting sync.Once
	done    chan struct{} // closed when the runner has saved for the last time

	mutex   sync.Mutex // of what follows
	job     catalog.Job
	body    jobBody
	resumed time.Time // start of this run
	earlier float64   // seconds of earlier runs
	wanted  TransitionState
	taken   bool // another gateway goes on with it
}

func (j *jobs) init(g *Gateway) { j.gateway, j.runners = g, map[string]*runner{} }

// resumeOwned starts the runners of the transitions an earlier start of this gateway left running.
func (j *jobs) resumeOwned(ctx context.Context) error {
	list, err := j.gateway.catalog.Jobs(ctx)
	if err != nil {
		return fmt.Errorf("reading transitions: %w", err)
	}
	for _, job := range list {
		var body jobBody
		if err := json.Unmarshal(job.Body, &body); err != nil {
			return fmt.Errorf("reading transition %s: %w", job.ID, err)
		}
		if job.Owner == j.gateway.options.ID && body.Transition.State == TransitionRunning {
			if err := j.start(job, body); err != nil {
				return err
			}
		}
	}
	return nil
}

// start begins to carry out a transition.
func (j *jobs) start(job catalog.Job, body jobBody) error {
	t := &body.Transition
	to, err := stripe.ParseScheme(t.To)
	if err != nil {
		return fmt.Errorf("transition %s: %w", t.ID, err)
	}
	r := &runner{
		gateway: j.gateway, to: to, job: job, body: body, halt: make(chan struct{}), done: make(chan struct{}),
		how:     how{planner: t.Planner, objective: stripe.Objective(t.Objective), proxy: block.NodeID(t.Proxy)},
		limiter: limiterFor(t.BytesPerSecond), resumed: time.Now(), earlier: t.ElapsedSeconds, wanted: TransitionRunning,
	}
	r.how.throttle = r.throttle
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.runners[t.ID] = r
	j.gateway.background(func(ctx context.Context) {
		r.run(ctx)
		j.mutex.Lock()
		if j.runners[t.ID] == r {
			delete(j.runners, t.ID)
		}
		j.mutex.Unlock()
		close(r.done)
	})
	return nil
}

func limiterFor(bytesPerSecond int64) *rate.Limiter {
	if bytesPerSecond <= 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(bytesPerSecond), int(max(bytesPerSecond, 1<<20)))
}

// throttle waits until a group's bytes fit the budget.
func (r *runner) throttle(ctx context.Context, bytes int64) error {
	burst := r.limiter.Burst()
	if r.limiter.Limit() == rate.Inf {
		return nil
	}
	for bytes > 0 {
		n := min(bytes, int64(burst))
		if err := r.limiter.WaitN(ctx, int(n)); err != nil {
			return fmt.Errorf("waiting for the transition's budget: %w", err)
		}
		bytes -= n
	}
	return nil
}

// StartTransition begins to take the selected objects to another scheme.
func (g *Gateway) StartTransition(ctx context.Context, request TransitionRequest) (Transition, error) {
	to, err := stripe.ParseScheme(request.To)
	if err != nil {
		return Transition{}, refuse(ErrBadRequest, "%w", err)
	}
	t := Transition{
		Selector: request.Selector, To: to.String(), Planner: cmp.Or(request.Planner, "restripe"),
		Objective: cmp.Or(request.Objective, string(stripe.LeastNetwork)), Proxy: request.Proxy, BytesPerSecond: request.BytesPerSecond,
		State: TransitionRunning, Started: time.Now().UTC(), ETASeconds: -1, Baselines: map[string]int64{},
	}
	if err := g.checkTransition(ctx, &t, to); err != nil {
		return Transition{}, err
	}
	var salt [3]byte
	if _, err := rand.Read(salt[:]); err != nil {
		return Transition{}, fmt.Errorf("naming the transition: %w", err)
	}
	t.ID = t.Started.Format("20060102-150405-") + hex.EncodeToString(salt[:])
	job := catalog.Job{ID: t.ID, Owner: g.options.ID}
	body := jobBody{Transition: t}
	if err := g.saveJob(ctx, &job, &body); err != nil {
		return Transition{}, err
	}
	return t, g.jobs.start(job, body)
}

func (g *Gateway) checkTransition(ctx context.Context, t *Transition, to stripe.Scheme) error {
	if !slices.Contains(stripe.Planners(), t.Planner) {
		return refuse(ErrBadRequest, "there is no planner %q; the planners are %s", t.Planner, strings.Join(stripe.Planners(), ", "))
	}
	switch stripe.Objective(t.Objective) {
	case stripe.LeastNetwork, stripe.LeastReads, stripe.LeastBottleneck:
	default:
		return refuse(ErrBadRequest, "there is no objective %q; the objectives are network, reads, bottleneck", t.Objective)
	}
	if t.BytesPerSecond < 0 {
		return refuse(ErrBadRequest, "a rate of %d bytes per second; give a positive one, or 0 for no limit", t.BytesPerSecond)
	}
	if t.Proxy != "" {
		if _, err := g.agents.get(block.NodeID(t.Proxy)); err != nil {
			return refuse(ErrBadRequest, "proxy: %w", err)
		}
	}
	selectors := 0
	if t.Selector.Class != "" {
		selectors++
		class, err := g.classFor("", t.Selector.Class)
		if err != nil {
			return err
		}
		if !class.Ladder.Contains(to) {
			return refuse(ErrBadRequest, "scheme %s is not on the ladder %s of class %s; choose one of its schemes, or put this one on the ladder in the class file", to, class.Ladder, class.Name)
		}
	}
	if t.Selector.Key64 != "" {
		selectors++
		key, err := DecodeKey(t.Selector.Key64)
		if err != nil {
			return refuse(ErrBadRequest, "key64: %w", err)
		}
		snapshot, err := g.catalog.Snapshot(ctx, key)
		if err != nil {
			return err
		}
		for _, group := range snapshot.Groups {
			if _, err := g.codeUnder(group, to); err != nil {
				return err
			}
		}
	}
	if t.Selector.Prefix64 != nil {
		selectors++
		if _, err := DecodeKey(*t.Selector.Prefix64); err != nil {
			return refuse(ErrBadRequest, "prefix64: %w", err)
		}
	}
	if selectors != 1 {
		return refuse(ErrBadRequest, "a transition selects by exactly one of key, prefix and class; %d were given", selectors)
	}
	return nil
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
func (g *Gateway) Transitions(ctx context.Context) ([]Transition, error) {
	list, err := g.catalog.Jobs(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading transitions: %w", err)
	}
	transitions := make([]Transition, 0, len(list))
	for _, job := range list {
		t, err := g.present(job)
		if err != nil {
			return nil, err
		}
		transitions = append(transitions, t)
	}
	slices.SortStableFunc(transitions, func(a, b Transition) int { return b.Started.Compare(a.Started) })
	return transitions, nil
}

// Transition returns one transition as it is now.
func (g *Gateway) Transition(ctx context.Context, id string) (Transition, error) {
	job, err := g.job(ctx, id)
	if err != nil {
		return Transition{}, err
	}
	return g.present(job)
}

func (g *Gateway) job(ctx context.Context, id string) (catalog.Job, error) {
	job, err := g.catalog.Job(ctx, id)
	if errors.Is(err, catalog.ErrNoJob) {
		return catalog.Job{}, refuse(ErrNotFound, "there is no transition %q; list them to see the names", id)
	}
	if err != nil {
		return catalog.Job{}, fmt.Errorf("reading transition %s: %w", id, err)
	}
	return *job, nil
}

// present returns the live progress of a job run here, else what its record says.
func (g *Gateway) present(job catalog.Job) (Transition, error) {
	g.jobs.mutex.Lock()
	r := g.jobs.runners[job.ID]
	g.jobs.mutex.Unlock()
	if r != nil {
		return r.progress(), nil
	}
	var body jobBody
	if err := json.Unmarshal(job.Body, &body); err != nil {
		return Transition{}, fmt.Errorf("reading transition %s: %w", job.ID, err)
	}
	return body.Transition, nil
}

// PauseTransition, ResumeTransition and CancelTransition change the state of a transition. Groups under way are finished
// first; what was done stays done.
func (g *Gateway) PauseTransition(ctx context.Context, id string) (Transition, error) {
	return g.steer(ctx, id, TransitionPaused, nil)
}

// CancelTransition ends a transition.
func (g *Gateway) CancelTransition(ctx context.Context, id string) (Transition, error) {
	return g.steer(ctx, id, TransitionCancelled, nil)
}

// ResumeTransition goes on with a paused transition, or one that failed; bytesPerSecond, where given, is its new budget.
func (g *Gateway) ResumeTransition(ctx context.Context, id string, bytesPerSecond *int64) (Transition, error) {
	return g.steer(ctx, id, TransitionRunning, bytesPerSecond)
}

func (g *Gateway) steer(ctx context.Context, id string, wanted TransitionState, bytesPerSecond *int64) (Transition, error) {
	g.jobs.mutex.Lock()
	r := g.jobs.runners[id]
	g.jobs.mutex.Unlock()
	if r != nil {
		if wanted == TransitionRunning {
			r.adjust(bytesPerSecond)
			return r.progress(), nil
		}
		r.stop(wanted)
		select {
		case <-r.done:
		case <-ctx.Done():
			return Transition{}, ctx.Err()
		}
	}
	for {
		job, err := g.job(ctx, id)
		if err != nil {
			return Transition{}, err
		}
		var body jobBody
		if err := json.Unmarshal(job.Body, &body); err != nil {
			return Transition{}, fmt.Errorf("reading transition %s: %w", id, err)
		}
		t := &body.Transition
		switch {
		case t.State == wanted:
			return *t, nil
		case t.State == TransitionDone || t.State == TransitionCancelled || t.State == TransitionFailed && wanted != TransitionRunning:
			return Transition{}, refuse(ErrBadRequest, "transition %s is %s already", id, t.State)
		}
		t.State, t.Finished = wanted, nil
		if wanted.Final() {
			now := time.Now().UTC()
			t.Finished = &now
		}
		if bytesPerSecond != nil {
			t.BytesPerSecond = *bytesPerSecond
		}
		if wanted == TransitionRunning {
			job.Owner, t.Error = g.options.ID, ""
		}
		err = g.saveJob(ctx, &job, &body)
		if errors.Is(err, catalog.ErrStale) {
			continue // its runner saved meanwhile
		}
		if err != nil {
			return Transition{}, err
		}
		if wanted == TransitionRunning {
			return *t, g.jobs.start(job, body)
		}
		return *t, nil
	}
}

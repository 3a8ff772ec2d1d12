package transition

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/class"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/gateway/job"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/gateway/object"
	"github.com/restripe/restripe/agent/gateway/relocate"
	"github.com/restripe/restripe/agent/gateway/repair"
	"github.com/restripe/restripe/agent/gateway/temperature"
	"github.com/restripe/restripe/agent/stripe"
)

// Coordinator carries out the transitions that are this gateway's. A job's record in the catalog is what counts: it is saved about
// once a second, survives kill -9, and may be changed by any gateway; the runner obeys what it finds there.
type Coordinator struct {
	catalog    *catalog.Catalog
	agents     *member.Agents
	groups     *group.Groups
	classes    *class.Registry
	objects    *object.Objects
	repairs    *repair.Repairs
	relocator  *relocate.Relocator
	heat       *temperature.Thermometer
	background *job.Background
	log        *slog.Logger
	id         string // of the gateway
	now        func() time.Time
	moved      func(api.Traffic)

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
	coordinator *Coordinator
	id          string // of the transition
	to          stripe.Scheme
	options     options
	becomes     becomes
	chosen      *selection // by which groups of a class are selected; nil for other selectors
	pacer       *group.Pacer
	copies      copies
	*job.Run

	mutex  sync.Mutex // of what follows
	job    catalog.Job
	body   jobBody
	saved  group.Rates // limits as of the last save
	wanted api.TransitionState
	taken  bool                   // another gateway goes on with it
	stuck  map[block.GroupID]bool // groups that wait
}

// Parts are what a Coordinator works with. All are required.
type Parts struct {
	Catalog    *catalog.Catalog
	Agents     *member.Agents
	Groups     *group.Groups
	Classes    *class.Registry
	Objects    *object.Objects
	Repairs    *repair.Repairs
	Relocator  *relocate.Relocator
	Heat       *temperature.Thermometer
	Background *job.Background
	Logger     *slog.Logger

	ID    string            // of the gateway
	Now   func() time.Time  // the clock of temperature
	Moved func(api.Traffic) // is told what each group cost
}

// New returns a coordinator that carries out nothing before TakeUp.
func New(parts Parts) *Coordinator {
	return &Coordinator{
		catalog: parts.Catalog, agents: parts.Agents, groups: parts.Groups, classes: parts.Classes,
		objects: parts.Objects, repairs: parts.Repairs, relocator: parts.Relocator, heat: parts.Heat, background: parts.Background, log: parts.Logger,
		id: parts.ID, now: parts.Now, moved: parts.Moved,
		runners: map[string]*runner{},
	}
}

// Loop takes up transitions, and has what other gateways declare of those under way obeyed at once, for as long as ctx lives.
func (j *Coordinator) Loop(ctx context.Context) {
	job.Watched(ctx, j.catalog.Watch(ctx, catalog.SubjectJobs), job.Slowly, func(ctx context.Context) error {
		j.mutex.Lock()
		for _, r := range j.runners {
			r.Look()
		}
		j.mutex.Unlock()
		err := j.TakeUp(ctx)
		if err != nil && ctx.Err() == nil {
			j.log.Warn("taking up transitions", "cause", err)
		}
		return err
	})
}

// TakeUp starts the runners of transitions that are this gateway's to carry out and that it does not carry out: those an
// earlier start left running, and those whose record was saved although that could not be learned.
func (j *Coordinator) TakeUp(ctx context.Context) error {
	list, err := j.catalog.Jobs(ctx)
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
		current, err := j.catalog.Job(ctx, job.ID)
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
func (j *Coordinator) isIdle(job *catalog.Job) (idle bool, body jobBody, err error) {
	if err := json.Unmarshal(job.Body, &body); err != nil {
		return false, body, fmt.Errorf("reading transition %s: %w", job.ID, err)
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return job.Owner == j.id && body.Transition.State == api.TransitionRunning && j.runners[job.ID] == nil, body, nil
}

// start begins to carry out a transition, unless that is done already.
func (j *Coordinator) start(record catalog.Job, body jobBody) error {
	t := &body.Transition
	to, err := j.target(t)
	if err != nil {
		return fmt.Errorf("transition %s: %w", t.ID, err)
	}
	r := &runner{
		coordinator: j, id: t.ID, to: to, job: record, body: body, Run: job.NewRun(t.ElapsedSeconds),
		options: options{planner: t.Planner, objective: stripe.Objective(t.Objective), proxy: block.NodeID(t.Proxy)},
		saved:   ratesOf(t), pacer: group.NewPacer(ratesOf(t), j.agents.DomainOf), wanted: api.TransitionRunning,
	}
	if t.Into != "" {
		r.becomes = becomes{into: t.Into, from: t.Selector.Class}
	} else if t.Selector.Class != "" {
		r.chosen = selectionOf(t, to)
	}
	r.options.admit = r.admit
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if j.runners[t.ID] != nil {
		return nil
	}
	j.runners[t.ID] = r
	j.background.Go(func(ctx context.Context) {
		r.run(ctx)
		j.mutex.Lock()
		delete(j.runners, t.ID)
		j.mutex.Unlock()
		r.End()
		j.heat.Notify()
	})
	return nil
}

// runner returns the runner of a transition that is carried out here, or nil.
func (j *Coordinator) runner(id string) *runner {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.runners[id]
}

// throttle changes the limits of a transition that is carried out here. here is false for others; of a runner that ends
// the last save has been waited for, so that the record is what has to change.
func (j *Coordinator) throttle(ctx context.Context, id string, request api.ThrottleRequest) (t api.Transition, here bool, err error) {
	r := j.runner(id)
	if r == nil {
		return api.Transition{}, false, nil
	}
	if r.throttle(request) {
		return r.progress(), true, nil
	}
	return api.Transition{}, false, r.Ended(ctx)
}

// ratesOf are the limits of a transition.
func ratesOf(t *api.Transition) group.Rates {
	return group.Rates{Total: t.BytesPerSecond, Node: t.NodeBytesPerSecond, Domain: t.DomainBytesPerSecond}
}

// admit is asked right before a group's plan is carried out: it waits until the plan fits the budget, and tells whether
// the group is still selected.
func (r *runner) admit(ctx context.Context, group *catalog.Group, plan *group.Execution) (bool, error) {
	if !r.selects(group) {
		return false, nil
	}
	if affordable, err := r.afford(ctx, group, plan); err != nil || !affordable {
		return false, err
	}
	return r.selects(group), nil
}

// afford waits until a plan fits the budget of the transition.
func (r *runner) afford(ctx context.Context, _ *catalog.Group, plan *group.Execution) (bool, error) {
	err := r.pacer.Wait(ctx, r.Halting(), plan.Load())
	return err == nil, err
}

func (r *runner) selects(group *catalog.Group) bool {
	return r.chosen == nil || r.coordinator.selects(r.chosen, summaryOf(group))
}

// StartTransition begins to take the selected objects to another scheme. A request that names an id which exists already
// returns the transition of that id as it is now, or ErrConflict where that one is another.
func (j *Coordinator) StartTransition(ctx context.Context, request api.TransitionRequest) (api.Transition, error) {
	t, to, err := transitionOf(&request)
	if err != nil {
		return api.Transition{}, err
	}
	if t.ID != "" {
		switch found, err := j.repeated(ctx, &t); {
		case err == nil:
			return found, nil
		case !errors.Is(err, api.ErrNotFound):
			return api.Transition{}, err
		}
	}
	if request.Into != "" {
		err = j.checkInto(&request)
	} else {
		err = j.checkTransition(ctx, &t, to)
	}
	if err != nil {
		return api.Transition{}, err
	}
	if t.ID == "" {
		var salt [3]byte
		if _, err := rand.Read(salt[:]); err != nil {
			return api.Transition{}, fmt.Errorf("naming the transition: %w", err)
		}
		t.ID = t.Started.Format("20060102-150405-") + hex.EncodeToString(salt[:])
	}
	job := catalog.Job{ID: t.ID, Owner: j.id}
	body := jobBody{Transition: t}
	err = saveJob(ctx, j.catalog.TellJob, &job, &body)
	if errors.Is(err, catalog.ErrStale) && !errors.Is(err, catalog.ErrUnknown) {
		return j.repeated(ctx, &t) // another request of the same id was faster
	}
	if err != nil {
		return api.Transition{}, err
	}
	if err := j.start(job, body); err != nil {
		return api.Transition{}, err
	}
	if err := j.forgetTransitions(ctx); err != nil {
		j.log.Warn("forgetting old transitions", "cause", err)
	}
	return t, nil
}

// keptTransitions is how many transitions that have ended are remembered.
const keptTransitions = 1000

// forgetTransitions removes the records of those that ended first, beyond the number that is remembered.
func (j *Coordinator) forgetTransitions(ctx context.Context) error {
	list, err := j.catalog.Jobs(ctx)
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
		if err := j.catalog.DropJob(ctx, job); err != nil {
			return err
		}
	}
	return nil
}

// repeated returns the transition that has the id of t, if it is the same one.
func (j *Coordinator) repeated(ctx context.Context, t *api.Transition) (api.Transition, error) {
	found, err := j.Transition(ctx, t.ID)
	if err != nil {
		return api.Transition{}, err
	}
	if !isSame(&found, t) {
		return api.Transition{}, api.Refuse(api.ErrConflict, "transition %s exists and takes other groups, or takes them elsewhere; choose another id", t.ID)
	}
	return found, nil
}

// saveJob saves a job by one of the ways that the catalog has.
func saveJob(ctx context.Context, save func(context.Context, *catalog.Job) error, job *catalog.Job, body *jobBody) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encoding transition %s: %w", job.ID, err)
	}
	job.Body = encoded
	if err := save(ctx, job); err != nil {
		return fmt.Errorf("saving transition %s: %w", job.ID, err)
	}
	return nil
}

// Transitions lists all transitions, newest first; running ones as they are now.
func (j *Coordinator) Transitions(ctx context.Context) ([]api.Transition, error) {
	list, err := j.catalog.Jobs(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading transitions: %w", err)
	}
	transitions := make([]api.Transition, 0, len(list))
	for _, job := range list {
		t, err := j.present(job)
		if err != nil {
			return nil, err
		}
		transitions = append(transitions, t)
	}
	slices.SortStableFunc(transitions, func(a, b api.Transition) int { return b.Started.Compare(a.Started) })
	return transitions, nil
}

// Transition returns one transition as it is now.
func (j *Coordinator) Transition(ctx context.Context, id string) (api.Transition, error) {
	job, err := j.job(ctx, id)
	if err != nil {
		return api.Transition{}, err
	}
	return j.present(job)
}

func (j *Coordinator) job(ctx context.Context, id string) (catalog.Job, error) {
	job, err := j.catalog.Job(ctx, id)
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
func (j *Coordinator) present(job catalog.Job) (api.Transition, error) {
	var body jobBody
	if err := json.Unmarshal(job.Body, &body); err != nil {
		return api.Transition{}, fmt.Errorf("reading transition %s: %w", job.ID, err)
	}
	if r := j.runner(job.ID); r != nil && body.Transition.State == api.TransitionRunning {
		return r.progress(), nil
	}
	return body.Transition, nil
}

// PauseTransition, ResumeTransition and CancelTransition change the state of a transition. Groups under way are finished
// first; what was done stays done.
func (j *Coordinator) PauseTransition(ctx context.Context, id string) (api.Transition, error) {
	return j.steer(ctx, id, api.TransitionPaused, nil)
}

// CancelTransition ends a transition.
func (j *Coordinator) CancelTransition(ctx context.Context, id string) (api.Transition, error) {
	return j.steer(ctx, id, api.TransitionCancelled, nil)
}

// ResumeTransition goes on with a paused transition, or one that failed; bytesPerSecond, where given, is its new budget.
func (j *Coordinator) ResumeTransition(ctx context.Context, id string, bytesPerSecond *int64) (api.Transition, error) {
	if bytesPerSecond != nil && *bytesPerSecond < 0 {
		return api.Transition{}, api.Refuse(api.ErrBadRequest, "a rate of %d bytes per second; give a positive one, or 0 for no limit", *bytesPerSecond)
	}
	return j.steer(ctx, id, api.TransitionRunning, bytesPerSecond)
}

// ThrottleTransition changes the limits of a transition that has not ended. A running one goes by them at once, or as soon as
// another gateway that carries it out is told.
func (j *Coordinator) ThrottleTransition(ctx context.Context, id string, request api.ThrottleRequest) (api.Transition, error) {
	if err := request.Check(); err != nil {
		return api.Transition{}, err
	}
	if t, here, err := j.throttle(ctx, id, request); err != nil || here {
		return t, err
	}
	for {
		job, err := j.job(ctx, id)
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
		setLimits(&body.Transition, ratesOf(&body.Transition).Changed(request))
		if err = saveJob(ctx, j.catalog.TellJob, &job, &body); err == nil {
			return body.Transition, nil
		}
		if !errors.Is(err, catalog.ErrStale) {
			return api.Transition{}, err
		}
	}
}

func (j *Coordinator) steer(ctx context.Context, id string, wanted api.TransitionState, bytesPerSecond *int64) (api.Transition, error) {
	if wanted == api.TransitionRunning {
		if t, here, err := j.throttle(ctx, id, api.ThrottleRequest{BytesPerSecond: bytesPerSecond}); err != nil || here {
			return t, err
		}
	} else if r := j.runner(id); r != nil {
		r.stop(wanted)
		if err := r.Ended(ctx); err != nil {
			return api.Transition{}, err
		}
	}
	for {
		job, err := j.job(ctx, id)
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
			job.Owner, t.Error = j.id, ""
		}
		err = saveJob(ctx, j.catalog.TellJob, &job, &body)
		if errors.Is(err, catalog.ErrStale) {
			continue // its runner saved meanwhile
		}
		if err != nil {
			return api.Transition{}, err
		}
		if wanted == api.TransitionRunning {
			return *t, j.start(job, body)
		}
		return *t, nil
	}
}

package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/wire"
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
			return refuse(ErrBadRequest, "scheme %s is not on the ladder %s of class %s", to, class.Ladder, class.Name)
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

func (r *runner) adjust(bytesPerSecond *int64) {
	if bytesPerSecond == nil {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.body.Transition.BytesPerSecond = *bytesPerSecond
	fresh := limiterFor(*bytesPerSecond)
	r.limiter.SetLimit(fresh.Limit())
	r.limiter.SetBurst(fresh.Burst())
}

// stop has the runner end in the given state once the groups under way are finished.
func (r *runner) stop(wanted TransitionState) {
	r.mutex.Lock()
	r.wanted = wanted
	r.mutex.Unlock()
	r.halting.Do(func() { close(r.halt) })
}

func (r *runner) halted() bool {
	select {
	case <-r.halt:
		return true
	default:
		return false
	}
}

// progress is the transition as of now.
func (r *runner) progress() Transition {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	t := r.body.Transition
	t.Baselines = maps.Clone(t.Baselines)
	now := time.Since(r.resumed).Seconds()
	if !t.State.Final() {
		t.ElapsedSeconds = r.earlier + now
	}
	t.ETASeconds = -1
	if left := t.BytesTotal - t.BytesDone; t.State == TransitionRunning && t.BytesDone > 0 {
		t.ETASeconds = max(0, float64(left)/float64(t.BytesDone)*t.ElapsedSeconds)
	}
	return t
}

// jobConcurrency is how many groups of one transition are under way at once.
const jobConcurrency = 4

// run works until the transition ends, is halted, or the gateway closes. In the last case the record keeps saying
// "running", which is what the next start resumes.
func (r *runner) run(ctx context.Context) {
	saving, stopSaving := context.WithCancel(ctx)
	var saver sync.WaitGroup
	saver.Go(func() { every(saving, time.Second, func(ctx context.Context) { r.save(ctx) }) })
	err := r.work(ctx)
	stopSaving()
	saver.Wait()
	if ctx.Err() != nil {
		r.save(context.WithoutCancel(ctx))
		return
	}
	t := r.progress()
	now := time.Now().UTC()
	r.mutex.Lock()
	state := &r.body.Transition
	state.ElapsedSeconds = t.ElapsedSeconds
	switch {
	case r.wanted != TransitionRunning:
		state.State = r.wanted
	case err != nil:
		state.State, state.Error = TransitionFailed, err.Error()
	default:
		state.State, state.Error = TransitionDone, ""
	}
	if state.State.Final() {
		state.Finished = &now
	}
	r.mutex.Unlock()
	for try := 0; !r.save(ctx) && pause(ctx, try) == nil; try++ {
	}
}

// save writes the record. Where another gateway changed it, that gateway's wish is taken over and obeyed.
func (r *runner) save(ctx context.Context) bool {
	t := r.progress()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	body := r.body
	body.Transition.ElapsedSeconds, body.Transition.ETASeconds = t.ElapsedSeconds, t.ETASeconds
	job := r.job
	err := r.gateway.saveJob(ctx, &job, &body)
	if err == nil {
		r.job = job
		return true
	}
	if errors.Is(err, catalog.ErrStale) {
		fresh, readErr := r.gateway.catalog.Job(ctx, r.job.ID)
		var theirs jobBody
		if readErr == nil && json.Unmarshal(fresh.Body, &theirs) == nil {
			r.job = *fresh
			if theirs.Transition.State != TransitionRunning && r.wanted == TransitionRunning {
				r.wanted = theirs.Transition.State
				r.halting.Do(func() { close(r.halt) })
			}
		}
		return false
	}
	if ctx.Err() == nil {
		r.gateway.log.Warn("saving the progress of a transition", "transition", r.job.ID, "cause", err)
	}
	return false
}

// item is one piece of work: a group to take along in place, or objects to move out of a group they share.
type item struct {
	group   block.GroupID
	bytes   int64
	rewrite []string // keys
}

// work finds what is selected and takes it to the scheme, a few groups at a time.
func (r *runner) work(ctx context.Context) error {
	items, err := r.find(ctx)
	if err != nil {
		return err
	}
	r.mutex.Lock()
	t := &r.body.Transition
	t.GroupsTotal, t.BytesTotal = t.GroupsDone+t.GroupsSkipped, t.BytesDone
	for _, item := range items {
		t.GroupsTotal++
		t.BytesTotal += item.bytes
	}
	r.mutex.Unlock()
	var (
		workers  sync.WaitGroup
		mutex    sync.Mutex
		failures []error
		next     int
		finished = make([]bool, len(items))
		upTo     int
	)
	for range jobConcurrency {
		workers.Go(func() {
			for {
				mutex.Lock()
				if next == len(items) || r.halted() || ctx.Err() != nil {
					mutex.Unlock()
					return
				}
				index := next
				next++
				mutex.Unlock()
				err := r.insist(ctx, &items[index])
				mutex.Lock()
				if err != nil {
					failures = append(failures, err)
				} else if ctx.Err() == nil {
					finished[index] = true
				}
				for upTo < len(items) && finished[upTo] {
					upTo++
				}
				if upTo > 0 {
					r.mutex.Lock()
					r.body.Cursor = items[upTo-1].group
					r.mutex.Unlock()
				}
				mutex.Unlock()
			}
		})
	}
	workers.Wait()
	if len(failures) > 0 {
		return fmt.Errorf("%d of %d groups could not be taken to %s; the first: %w", len(failures), len(items), r.to, failures[0])
	}
	return nil
}

// find lists the work that is left.
func (r *runner) find(ctx context.Context) ([]item, error) {
	g := r.gateway
	r.mutex.Lock()
	selector, cursor := r.body.Transition.Selector, r.body.Cursor
	r.mutex.Unlock()
	if selector.Class != "" {
		var items []item
		err := g.eachGroup(ctx, cursor, func(view *catalog.GroupView) error {
			if view.Class == selector.Class && view.Scheme != r.to.String() {
				items = append(items, item{group: view.ID, bytes: bytesOf(&view.Group)})
			}
			return nil
		})
		return items, err
	}
	selected := map[block.GroupID][]string{}
	extents := map[block.GroupID]int64{}
	note := func(object *catalog.Object) error {
		for _, extent := range object.Extents {
			extents[extent.Group]++
			keys := selected[extent.Group]
			if len(keys) == 0 || keys[len(keys)-1] != object.Key {
				selected[extent.Group] = append(keys, object.Key)
			}
		}
		return nil
	}
	var err error
	if selector.Key64 != "" {
		var key string
		if key, err = DecodeKey(selector.Key64); err == nil {
			var snapshot *catalog.Snapshot
			if snapshot, err = g.catalog.Snapshot(ctx, key); err == nil {
				err = note(&snapshot.Object)
			} else if errors.Is(err, catalog.ErrNoObject) {
				err = nil // deleted since: nothing is left to do
			}
		}
	} else {
		var prefix string
		if prefix, err = DecodeKey(*selector.Prefix64); err == nil {
			err = g.eachObject(ctx, prefix, note)
		}
	}
	if err != nil {
		return nil, err
	}
	var items []item
	for id, keys := range selected {
		view, err := g.catalog.Group(ctx, id)
		if errors.Is(err, catalog.ErrNoGroup) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if view.Scheme == r.to.String() {
			continue
		}
		work := item{group: id, bytes: bytesOf(&view.Group)}
		if view.Packed && view.Live > extents[id] {
			work.rewrite = keys
		}
		items = append(items, work)
	}
	slices.SortFunc(items, func(a, b item) int { return cmp.Compare(a.group.String(), b.group.String()) })
	return items, nil
}

func bytesOf(group *catalog.Group) int64 {
	ladder, err := stripe.ParseLadder(group.Ladder)
	if err != nil {
		return 0 // its transition will say so
	}
	layout, err := stripe.NewLayout(ladder, group.Columns, stripe.Mode(group.Mode))
	if err != nil {
		return 0
	}
	return int64(layout.Cells()) * int64(group.CellBytes)
}

// oddTries is how often a failure of no known kind is tried again.
const oddTries = 5

// insist takes one item to the scheme. What passes by itself (other writers, nodes that are away) is waited for; blocks
// that are lost are rebuilt first. It gives up on what no waiting cures.
func (r *runner) insist(ctx context.Context, work *item) error {
	odd := 0
	for try := 0; ; try++ {
		r.mutex.Lock()
		r.body.Transition.Attempts++
		r.mutex.Unlock()
		cost, err := r.once(ctx, work)
		if err == nil {
			r.count(work, cost)
			return nil
		}
		if ctx.Err() != nil || r.halted() && try > 0 {
			return nil
		}
		switch {
		case errors.Is(err, errNotWhole), goneBlock(err):
			if _, repairErr := r.gateway.repairGroup(ctx, work.group, false); repairErr != nil {
				if errors.Is(repairErr, ErrDataLoss) {
					return fmt.Errorf("group %s: %w", work.group, repairErr)
				}
				err = errors.Join(err, repairErr)
			}
		case errors.Is(err, ErrConflict), errors.Is(err, catalog.ErrStale), errors.Is(err, wire.ErrBusy):
		case unanswered(err), errors.Is(err, ErrUnavailable), errors.Is(err, ErrTooFewNodes), errors.Is(err, ErrUnknown), isFull(err):
		case errors.Is(err, ErrBadRequest), errors.Is(err, ErrDataLoss):
			return fmt.Errorf("group %s: %w", work.group, err)
		default:
			if odd++; odd == oddTries {
				return fmt.Errorf("group %s: %w", work.group, err)
			}
		}
		r.mutex.Lock()
		r.body.Transition.Error = "waiting: " + err.Error()
		r.mutex.Unlock()
		if err := r.wait(ctx, try); err != nil {
			return nil
		}
	}
}

// wait is pause, cut short when the runner is halted.
func (r *runner) wait(ctx context.Context, try int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-r.halt:
			cancel()
		case <-ctx.Done():
		}
	}()
	return pause(ctx, try)
}

func (r *runner) once(ctx context.Context, work *item) (*moved, error) {
	if work.rewrite == nil {
		return r.gateway.transitionGroup(ctx, work.group, r.to, r.how)
	}
	byClass := map[string][]*catalog.Snapshot{}
	for _, key := range work.rewrite {
		snapshot, err := r.gateway.catalog.Snapshot(ctx, key)
		if errors.Is(err, catalog.ErrNoObject) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if snapshot.Groups[work.group] != nil && len(snapshot.Object.Extents) == 1 {
			byClass[snapshot.Object.Class] = append(byClass[snapshot.Object.Class], snapshot)
		}
	}
	cost := &moved{}
	for name, snapshots := range byClass {
		class, err := r.gateway.classFor("", name)
		if err != nil {
			return nil, err
		}
		if !class.Ladder.Contains(r.to) {
			return nil, refuse(ErrBadRequest, "scheme %s is not on the ladder %s of class %s", r.to, class.Ladder, class.Name)
		}
		if err := r.gateway.moveObjects(ctx, class, r.to, snapshots); err != nil {
			return nil, err
		}
		cost.objects += int64(len(snapshots))
	}
	return cost, nil
}

func (r *runner) count(work *item, cost *moved) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	t := &r.body.Transition
	t.Error = ""
	t.BytesDone += work.bytes
	t.ObjectsRewritten += cost.objects
	if cost.skipped {
		t.GroupsSkipped++
		return
	}
	t.GroupsDone++
	t.Predicted.add(cost.predicted)
	t.Measured.add(cost.measured)
	r.gateway.metrics.addMoved(cost.measured)
	if t.Baselines == nil {
		t.Baselines = map[string]int64{}
	}
	for name, bytes := range cost.baselines {
		t.Baselines[name] += bytes
	}
}

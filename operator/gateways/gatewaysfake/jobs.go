package gatewaysfake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
)

// job is one transition.
type job struct {
	state    api.Transition
	request  api.TransitionRequest
	from, to stripe.Scheme
	advanced time.Time
	credit   float64 // bytes that may be moved already
	failure  error   // what it ends with instead of going on
}

// advance carries all transitions on to now. The caller holds the mutex.
func (c *Cluster) advance() {
	now := c.clock.Now()
	for _, j := range c.jobs {
		if j.state.State == api.TransitionRunning {
			c.carryOn(j, now)
		}
		j.advanced = now
	}
}

// carryOn lets a transition do what its rate allows since it was last looked at.
func (c *Cluster) carryOn(j *job, now time.Time) {
	elapsed := now.Sub(j.advanced).Seconds()
	if j.failure != nil {
		j.end(api.TransitionFailed, now)
		j.state.Error, j.failure = j.failure.Error(), nil
		return
	}
	rate := j.state.BytesPerSecond
	if rate == 0 {
		rate = c.speed
	}
	j.credit += float64(rate) * max(0, elapsed)
	j.state.ElapsedSeconds += max(0, elapsed)
	k := c.classes[j.request.Class]
	if k == nil {
		j.end(api.TransitionDone, now)
		return
	}
	for _, b := range slices.Clone(k.stock) {
		if b.groups == 0 || !j.selects(b, now) {
			continue
		}
		if !c.move(k, j, b, now) {
			j.estimate(k, now)
			return
		}
	}
	j.end(api.TransitionDone, now)
	j.state.ETASeconds = -1
}

// move takes as many groups of a batch as the credit allows, and reports whether that was all of them.
func (c *Cluster) move(k *class, j *job, b *batch, now time.Time) bool {
	cost := k.cost(b.scheme, j.to)
	each := max(1, int64(cost.BlocksRead+cost.BlocksSent+cost.BlocksWritten)*b.cellBytes)
	n := min(b.groups, int64(j.credit/float64(each)))
	if n > 0 {
		j.credit -= float64(n * each)
		b.groups -= n
		k.stock = append(k.stock, &batch{scheme: j.to, groups: n, cellBytes: b.cellBytes, heat: b.heat, since: now})
		traffic := api.Traffic{
			BlocksRead: n * int64(cost.BlocksRead), BlocksSent: n * int64(cost.BlocksSent), BlocksWritten: n * int64(cost.BlocksWritten),
			BytesRead: n * int64(cost.BlocksRead) * b.cellBytes, BytesSent: n * int64(cost.BlocksSent) * b.cellBytes, BytesWritten: n * int64(cost.BlocksWritten) * b.cellBytes,
		}
		j.state.Measured, j.state.Predicted = sum(j.state.Measured, traffic), sum(j.state.Predicted, traffic)
		j.state.GroupsDone += n
		j.state.BytesDone += n * b.cellBytes * int64(k.layout.Cells())
	}
	return b.groups == 0
}

// estimate counts what is left.
func (j *job) estimate(k *class, now time.Time) {
	groups, bytes := j.left(k, now)
	j.state.GroupsTotal, j.state.BytesTotal = j.state.GroupsDone+groups, j.state.BytesDone+bytes
	j.state.ETASeconds = -1
	if j.state.BytesDone > 0 && j.state.ElapsedSeconds > 0 {
		j.state.ETASeconds = float64(bytes) * j.state.ElapsedSeconds / float64(j.state.BytesDone)
	}
}

func (j *job) left(k *class, now time.Time) (groups, bytes int64) {
	for _, b := range k.stock {
		if b.groups > 0 && j.selects(b, now) {
			groups += b.groups
			bytes += b.groups * b.cellBytes * int64(k.layout.Cells())
		}
	}
	return groups, bytes
}

func (j *job) end(state api.TransitionState, now time.Time) {
	j.state.State, j.state.Finished, j.credit = state, &now, 0
	j.state.GroupsTotal, j.state.BytesTotal = max(j.state.GroupsDone, j.state.GroupsTotal), max(j.state.BytesDone, j.state.BytesTotal)
}

// selects reports whether a group of the batch is one of the transition's.
func (j *job) selects(b *batch, now time.Time) bool {
	if b.scheme == j.to || j.request.From != "" && b.scheme != j.from {
		return false
	}
	heat := b.heat(now)
	if least := j.request.HeatAtLeast; least != nil && heat < *least {
		return false
	}
	if below := j.request.HeatBelow; below != nil && heat >= *below {
		return false
	}
	return now.Sub(b.since).Seconds() >= j.request.SettledSeconds
}

// cost is that of the proved plan for one group.
func (k *class) cost(from, to stripe.Scheme) stripe.Cost {
	plan, err := stripe.NewPlan(k.layout, from, to, stripe.PlannerRestripe, stripe.LeastNetwork)
	if err != nil {
		return stripe.Cost{BlocksRead: k.layout.Cells(), BlocksWritten: k.layout.Cells()}
	}
	return plan.Cost
}

// newJob reads a request as the gateways do.
func (c *Cluster) newJob(request api.TransitionRequest) (*job, *class, error) {
	k := c.classes[request.Class]
	if k == nil {
		return nil, nil, refusal(api.CodeBadRequest, "there is no class %q", request.Class)
	}
	j := &job{request: request, advanced: c.clock.Now()}
	var err error
	if j.to, err = stripe.ParseScheme(request.To); err != nil {
		return nil, nil, refusal(api.CodeBadRequest, "%v", err)
	}
	if request.From != "" {
		if j.from, err = stripe.ParseScheme(request.From); err != nil {
			return nil, nil, refusal(api.CodeBadRequest, "%v", err)
		}
	}
	if j.from == j.to {
		return nil, nil, refusal(api.CodeBadRequest, "from %s to %s is no transition", j.from, j.to)
	}
	if !k.layout.Ladder.Contains(j.to) {
		return nil, nil, refusal(api.CodeBadRequest, "scheme %s is not on the ladder %s of class %s", j.to, k.layout.Ladder, request.Class)
	}
	return j, k, nil
}

// Estimate sums up the plans of the groups that are selected now.
func (c *Cluster) Estimate(_ context.Context, request api.TransitionRequest) (api.Estimate, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err := c.begin("Estimate"); err != nil {
		return api.Estimate{}, err
	}
	j, k, err := c.newJob(request)
	if err != nil {
		return api.Estimate{}, err
	}
	now := c.clock.Now()
	estimate := api.Estimate{At: now}
	for _, b := range k.stock {
		if b.groups == 0 || !j.selects(b, now) {
			continue
		}
		cost := k.cost(b.scheme, j.to)
		estimate.Groups += b.groups
		estimate.Bytes += b.groups * b.cellBytes * int64(k.layout.Cells())
		estimate.BytesRead += b.groups * int64(cost.BlocksRead) * b.cellBytes
		estimate.BytesSent += b.groups * int64(cost.BlocksSent) * b.cellBytes
		estimate.BytesWritten += b.groups * int64(cost.BlocksWritten) * b.cellBytes
		estimate.StoredBefore += b.groups * k.storedBytes(b)
		estimate.StoredAfter += b.groups * k.storedBytes(&batch{scheme: j.to, cellBytes: b.cellBytes})
		estimate.ReencodeBytesSent += b.groups * int64(k.layout.Cells()) * b.cellBytes
	}
	estimate.PeakBytes = estimate.BytesWritten
	hash := sha256.Sum256([]byte(request.Class + request.From + request.To + k.info.Ladder))
	estimate.PlanHash = hex.EncodeToString(hash[:8])
	return estimate, nil
}

// StartTransition starts a transition, or returns the one that has the id.
func (c *Cluster) StartTransition(_ context.Context, request api.TransitionRequest) (api.Transition, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err := c.begin("StartTransition"); err != nil {
		return api.Transition{}, err
	}
	if started := c.jobs[request.ID]; started != nil {
		return started.state, nil
	}
	j, k, err := c.newJob(request)
	if err != nil {
		return api.Transition{}, err
	}
	now := c.clock.Now()
	j.state = api.Transition{
		ID: request.ID, Selector: request.Selector, From: request.From, To: request.To, HeatAtLeast: request.HeatAtLeast, HeatBelow: request.HeatBelow,
		SettledSeconds: request.SettledSeconds, Planner: stripe.PlannerRestripe, State: api.TransitionRunning, ETASeconds: -1, Started: now,
		BytesPerSecond: request.BytesPerSecond, NodeBytesPerSecond: request.NodeBytesPerSecond, DomainBytesPerSecond: request.DomainBytesPerSecond,
		Concurrency: request.Concurrency, Baselines: map[string]int64{},
	}
	j.state.GroupsTotal, j.state.BytesTotal = j.left(k, now)
	c.forbidOverlap(j)
	c.jobs[request.ID] = j
	c.forbidExcess()
	return j.state, nil
}

// forbidOverlap writes down that another transition could touch the same groups.
func (c *Cluster) forbidOverlap(j *job) {
	for _, other := range c.jobs {
		if other.state.State.Final() || other.request.Class != j.request.Class || other.request.From != j.request.From {
			continue
		}
		if below(j.request.HeatAtLeast, other.request.HeatBelow) && below(other.request.HeatAtLeast, j.request.HeatBelow) {
			c.broken = append(c.broken, fmt.Sprintf("transition %s may touch the groups of %s, which has not ended", j.request.ID, other.request.ID))
		}
	}
}

// below reports whether a range that begins at low begins before one that ends at high does.
func below(low, high *float64) bool { return low == nil || high == nil || *low < *high }

// Transition returns a transition.
func (c *Cluster) Transition(_ context.Context, id string) (api.Transition, error) {
	return c.steer("Transition", id, func(*job) error { return nil })
}

// Pause stops a transition for a while.
func (c *Cluster) Pause(_ context.Context, id string) (api.Transition, error) {
	return c.steer("Pause", id, func(j *job) error { return j.become(api.TransitionPaused) })
}

// Resume goes on with a transition that is paused or has failed.
func (c *Cluster) Resume(_ context.Context, id string, bytesPerSecond *int64) (api.Transition, error) {
	return c.steer("Resume", id, func(j *job) error {
		if bytesPerSecond != nil && *bytesPerSecond < 0 {
			return refusal(api.CodeBadRequest, "a rate of %d bytes per second; give a positive one, or 0 for no limit", *bytesPerSecond)
		}
		if err := j.become(api.TransitionRunning); err != nil {
			return err
		}
		if bytesPerSecond != nil {
			j.state.BytesPerSecond = *bytesPerSecond
		}
		return nil
	})
}

// Cancel ends a transition.
func (c *Cluster) Cancel(_ context.Context, id string) (api.Transition, error) {
	return c.steer("Cancel", id, func(j *job) error {
		if err := j.become(api.TransitionCancelled); err != nil {
			return err
		}
		if j.state.Finished == nil {
			j.end(api.TransitionCancelled, c.clock.Now())
		}
		return nil
	})
}

// Throttle changes the limits of a transition.
func (c *Cluster) Throttle(_ context.Context, id string, limits api.ThrottleRequest) (api.Transition, error) {
	return c.steer("Throttle", id, func(j *job) error {
		if j.state.State.Final() {
			return refusal(api.CodeBadRequest, "transition %s is %s already", id, j.state.State)
		}
		return change(limits, &j.state.BytesPerSecond, &j.state.NodeBytesPerSecond, &j.state.DomainBytesPerSecond)
	})
}

func (c *Cluster) steer(call, id string, change func(*job) error) (api.Transition, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err := c.begin(call); err != nil {
		return api.Transition{}, err
	}
	j := c.jobs[id]
	if j == nil {
		return api.Transition{}, refusal(api.CodeNotFound, "there is no transition %q", id)
	}
	if err := change(j); err != nil {
		return api.Transition{}, err
	}
	c.forbidExcess()
	return j.state, nil
}

// become changes the state as the gateways allow it.
func (j *job) become(wanted api.TransitionState) error {
	state := j.state.State
	switch {
	case state == wanted:
		return nil
	case state == api.TransitionDone, state == api.TransitionCancelled,
		state == api.TransitionFailed && wanted != api.TransitionRunning:
		return refusal(api.CodeBadRequest, "transition %s is %s already", j.request.ID, state)
	}
	j.state.State, j.state.Error = wanted, ""
	if !wanted.Final() {
		j.state.Finished = nil
	}
	return nil
}

// Fail makes the transitions that run end with the error when they go on.
func (c *Cluster) Fail(failure error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, j := range c.jobs {
		if j.state.State == api.TransitionRunning {
			j.failure = failure
		}
	}
}

// Transitions returns all transitions as they are, by id.
func (c *Cluster) Transitions() map[string]api.Transition {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.advance()
	states := map[string]api.Transition{}
	for id, j := range c.jobs {
		states[id] = j.state
	}
	return states
}

func sum(a, b api.Traffic) api.Traffic {
	a.BlocksRead += b.BlocksRead
	a.BlocksSent += b.BlocksSent
	a.BlocksWritten += b.BlocksWritten
	a.BytesRead += b.BytesRead
	a.BytesSent += b.BytesSent
	a.BytesWritten += b.BytesWritten
	return a
}

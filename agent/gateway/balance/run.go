package balance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/gateway/job"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/gateway/relocate"
)

// run is the balance being carried out here.
type run struct {
	*Balancer
	*job.Run
	pacer *group.Pacer

	mutex sync.Mutex // of what follows
	saved catalog.Job
	state api.Balance
	taken bool // the record is somebody else's now
}

// newRun is the run of the balance in the record, which can be steered from now on.
func (b *Balancer) newRun(record catalog.Job, state api.Balance) *run {
	r := &run{
		Balancer: b, Run: job.NewRun(state.ElapsedSeconds), saved: record, state: state,
		pacer: group.NewPacer(group.Rates{Total: state.BytesPerSecond}, b.Agents.DomainOf),
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.running = r
	return r
}

// run carries the balance out until it ends or is stopped.
func (r *run) run(ctx context.Context) error {
	defer func() {
		r.Balancer.mutex.Lock()
		r.running = nil
		r.Balancer.mutex.Unlock()
		r.metrics.left.Set(0)
		r.End()
	}()
	err := r.Saving(ctx, saved, func(ctx context.Context) {
		if err := r.saveBy(ctx, r.Catalog.SaveBalance); err != nil && ctx.Err() == nil {
			r.Logger.Warn("saving the progress of a balance", "cause", err)
		}
	}, r.work)
	r.update(func(state *api.Balance) {
		state.ElapsedSeconds = r.Elapsed()
		switch {
		case ctx.Err() != nil:
			state.Owner = "" // another gateway may go on at once
		case r.Halted():
		case err != nil:
			state.Error = err.Error() // the next look at the record goes on
		default:
			now := time.Now().UTC()
			state.State, state.Finished, state.ETASeconds, state.Waits = api.BalanceDone, &now, 0, ""
			r.Logger.Info("the nodes are balanced", "slots", state.SlotsMoved)
		}
	})
	return errors.Join(err, r.saveBy(context.WithoutCancel(ctx), r.Catalog.TellBalance))
}

func (r *run) update(change func(*api.Balance)) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	change(&r.state)
}

// progress is the balance as of now.
func (r *run) progress() api.Balance {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	state := r.state
	if state.State != api.BalanceRunning {
		return state
	}
	state.ElapsedSeconds = r.Elapsed()
	switch {
	case !state.Planned:
		state.ETASeconds = -1
	case state.BytesMoved == 0:
		state.ETASeconds = seconds(state.BytesTotal, state.BytesPerSecond)
	default:
		state.ETASeconds = job.ETA(state.BytesMoved, state.BytesTotal, state.ElapsedSeconds)
	}
	return state
}

// saveBy writes the record. Where somebody else has changed it, the run ends.
func (r *run) saveBy(ctx context.Context, by func(context.Context, *catalog.Job) error) error {
	now := r.progress()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.taken {
		return nil
	}
	record := r.saved
	err := save(ctx, by, &record, &now)
	switch {
	case err == nil:
		r.saved = record
	case errors.Is(err, catalog.ErrStale):
		r.taken = true
		r.Halt()
		return nil
	}
	return err
}

// The first and the longest wait after a round in which nothing could be moved.
const (
	shortRest = time.Second
	longRest  = time.Minute
)

// work plans and moves, round after round, until every node holds about its share or nothing more can be moved.
func (r *run) work(ctx context.Context) error {
	for rest := shortRest; ; {
		l, err := r.look(ctx, r.Halted, mostSteps, nil)
		if err != nil || r.Halted() {
			return err
		}
		if names := unheard(l.before); len(names) > 0 {
			r.update(func(state *api.Balance) { state.Waits = waitsFor(names) })
			if err := r.pause(ctx, shortRest); err != nil || r.Halted() {
				return err
			}
			continue
		}
		r.update(func(state *api.Balance) {
			state.Waits, state.Planned, state.BytesTotal = "", true, state.BytesMoved+l.plan.bytes
		})
		if len(l.plan.steps) == 0 {
			r.update(func(state *api.Balance) { state.Note = uneven(l.before, l.slot) })
			return nil
		}
		moved := r.carryOut(ctx, l.plan.steps)
		r.Members.ForgetCounts()
		if err := ctx.Err(); err != nil || r.Halted() {
			return err
		}
		if moved > 0 {
			rest = shortRest
			continue
		}
		if err := r.pause(ctx, rest); err != nil || r.Halted() {
			return err
		}
		rest = min(2*rest, longRest)
	}
}

// pause waits, unless the run is halted.
func (r *run) pause(ctx context.Context, while time.Duration) error {
	timer := time.NewTimer(while)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Halting():
	case <-ctx.Done():
	}
	return ctx.Err()
}

// carryOut moves what was planned, of the coldest groups first, and returns how many slots that were.
func (r *run) carryOut(ctx context.Context, steps []step) (moved int) {
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.heat, b.heat) })
	var mutex sync.Mutex
	var work errgroup.Group
	work.SetLimit(workers)
	for i := range steps {
		if r.Halted() || ctx.Err() != nil {
			break
		}
		work.Go(func() error {
			done := r.move(ctx, &steps[i])
			mutex.Lock()
			defer mutex.Unlock()
			moved += done
			return nil
		})
	}
	_ = work.Wait() // what went wrong is noted
	return moved
}

// move moves what was planned of one group, within the rate.
func (r *run) move(ctx context.Context, of *step) (slots int) {
	done, err := relocate.MoveSlots(ctx, r.Relocator, of.id, of.moves,
		func(ctx context.Context, _ *catalog.Group, plan *group.Execution) (bool, error) {
			if err := r.pacer.Wait(ctx, r.Halting(), plan.Load()); err != nil {
				return false, err
			}
			return !r.Halted(), nil
		})
	if errors.Is(err, group.ErrHalted) || ctx.Err() != nil {
		err = nil // it is left for whoever goes on
	}
	r.metrics.moved.Add(float64(done.Bytes))
	r.update(func(state *api.Balance) {
		if err != nil {
			state.GroupsFailed++
			state.Error = fmt.Sprintf("group %s: %v", of.id, err)
		}
		state.BytesMoved += done.Bytes
		state.SlotsMoved += int64(done.Slots)
		state.BytesSent += done.Sent
		r.metrics.left.Set(float64(state.BytesLeft()))
	})
	if err != nil && !member.Unanswered(err) {
		r.Logger.Warn("a block could not be moved for the balance", "group", of.id, "cause", err)
	}
	return done.Slots
}

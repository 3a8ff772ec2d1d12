package balance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/job"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/gateway/relocate"
)

// How a balance goes about.
const (
	DefaultRate = 32 << 20 // bytes read, sent and written per second where nobody says otherwise

	lease     = 10 * time.Second // after which a record that does not change is of a gateway that is gone
	saved     = 2 * time.Second  // between saves of the progress
	followed  = 5 * time.Second  // between looks at the record while another gateway works
	workers   = 2                // groups worked on side by side
	mostSteps = 1 << 16          // groups whose moves are kept at a time
)

// Parts are what a Balancer works with.
type Parts struct {
	Catalog   *catalog.Catalog
	Agents    *member.Agents
	Members   *member.Membership
	Relocator *relocate.Relocator
	Heat      func(*catalog.Group) float64 // how often a group is used
	Logger    *slog.Logger
	ID        string // of the gateway
	Start     string // of this start of it
	Metrics   prometheus.Registerer
}

// Balancer carries out the balance of a cluster, or leaves that to another gateway: the record in the catalog names one. Two that both
// believe it is them move more than they must and harm nothing.
type Balancer struct {
	Parts
	wake    job.Wake // look at the record now
	metrics *metrics

	mutex   sync.Mutex // of what follows
	running *run
	version uint64    // of the record, as seen last
	since   time.Time // when that was seen first

	steering sync.Mutex // nothing begins here while somebody steers here
}

// New returns a balancer that does nothing by itself before Loop runs.
func New(parts Parts) *Balancer {
	return &Balancer{Parts: parts, wake: job.NewWake(), metrics: newMetrics(parts.Metrics)}
}

// Loop carries out what the record says, for as long as the gateway lives.
func (b *Balancer) Loop(ctx context.Context) {
	tokens := b.Catalog.Watch(ctx, catalog.SubjectBalance)
	for ctx.Err() == nil {
		isRunning, err := b.step(ctx, tokens)
		if err != nil && ctx.Err() == nil {
			b.Logger.Warn("balancing", "cause", err)
		}
		period := job.SafetyPeriod
		if isRunning || err != nil {
			period = followed
		}
		timer := time.NewTimer(period)
		select {
		case <-ctx.Done():
		case <-b.wake:
		case _, open := <-tokens:
			if !open {
				tokens = nil // the engine was closed, which reading tells
			}
		case <-timer.C:
		}
		timer.Stop()
	}
}

// step looks at the record and carries the balance out if it is this gateway's to do. It reports whether one is running.
func (b *Balancer) step(ctx context.Context, tokens <-chan struct{}) (isRunning bool, err error) {
	r, isRunning, err := b.begin(ctx)
	if err != nil || r == nil {
		return isRunning, err
	}
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-watching.Done():
				return
			case _, open := <-tokens:
				if !open {
					return
				}
				r.Look()
			}
		}
	})
	err = r.run(ctx)
	stop()
	watch.Wait()
	b.wake.Notify() // somebody may have changed the record
	return true, err
}

// begin decides whether to carry the balance out and, if so, says that in the record and returns its run.
func (b *Balancer) begin(ctx context.Context) (r *run, isRunning bool, err error) {
	b.steering.Lock()
	defer b.steering.Unlock()
	record, state, err := b.record(ctx)
	if err != nil || !b.isOurs(record, &state, time.Now()) {
		return nil, state.State == api.BalanceRunning, err
	}
	state.Owner = b.owner()
	if err := save(ctx, b.Catalog.SaveBalance, record, &state); err != nil {
		if errors.Is(err, catalog.ErrStale) {
			return nil, true, nil // another gateway was faster
		}
		return nil, true, err
	}
	return b.newRun(*record, state), true, nil
}

// isOurs reports whether this gateway is to go on with the balance. It is pure but for the memory of when the record was last seen to
// change.
func (b *Balancer) isOurs(record *catalog.Job, state *api.Balance, now time.Time) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if record.Version != b.version || b.since.IsZero() {
		b.version, b.since = record.Version, now
	}
	if state.State != api.BalanceRunning {
		return false
	}
	// One start of a gateway lives at a time: what is of an earlier one is this one's to go on with.
	return state.Owner == "" || strings.HasPrefix(state.Owner, catalog.Owner(b.ID, "")) || now.Sub(b.since) > lease
}

func (b *Balancer) owner() string { return catalog.Owner(b.ID, b.Start) }

// record reads the record; without one there was no balance yet.
func (b *Balancer) record(ctx context.Context) (*catalog.Job, api.Balance, error) {
	state := api.Balance{State: api.BalanceNone, ETASeconds: -1}
	record, err := b.Catalog.Balance(ctx)
	if errors.Is(err, catalog.ErrNoJob) {
		return &catalog.Job{}, state, nil
	}
	if err == nil {
		err = json.Unmarshal(record.Body, &state)
	}
	if err != nil {
		return nil, state, fmt.Errorf("reading the balance: %w", err)
	}
	return record, state, nil
}

// save saves the record by one of the ways that the catalog has.
func save(ctx context.Context, by func(context.Context, *catalog.Job) error, record *catalog.Job, state *api.Balance) error {
	encoded, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("encoding the balance: %w", err)
	}
	record.Body, record.Owner = encoded, state.Owner
	if err := by(ctx, record); err != nil {
		return fmt.Errorf("saving the balance: %w", err)
	}
	return nil
}

// Balance returns the balance of the cluster as it is now.
func (b *Balancer) Balance(ctx context.Context) (api.Balance, error) {
	_, state, err := b.record(ctx)
	if err != nil {
		return state, err
	}
	if r := b.current(); r != nil && state.State == api.BalanceRunning && state.Owner == b.owner() {
		return r.progress(), nil
	}
	return state, nil
}

func (b *Balancer) current() *run {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.running
}

// StartBalance begins a balance, or gives the one under way another rate and goes on with it.
func (b *Balancer) StartBalance(ctx context.Context, request api.BalanceRequest) (api.Balance, error) {
	rate, err := rateOf(request.BytesPerSecond, DefaultRate)
	if err != nil {
		return api.Balance{}, err
	}
	return b.steer(ctx, func(state *api.Balance) error {
		if !state.IsUnderWay() {
			*state = api.Balance{
				Number: state.Number + 1, State: api.BalanceRunning, BytesPerSecond: rate, Started: time.Now().UTC(), ETASeconds: -1,
			}
		} else if request.BytesPerSecond != nil {
			state.BytesPerSecond = rate
		}
		if state.State == api.BalanceRunning {
			state.Owner = b.owner()
		}
		return nil
	})
}

// rateOf is the rate that somebody asks for.
func rateOf(asked *int64, absent int64) (int64, error) {
	switch {
	case asked == nil:
		return absent, nil
	case *asked < 0:
		return 0, api.Refuse(api.ErrBadRequest, "a rate of %d bytes per second; give a positive one, or 0 for no limit", *asked)
	}
	return *asked, nil
}

// PauseBalance stops the balance until it is resumed. Groups under way are finished.
func (b *Balancer) PauseBalance(ctx context.Context) (api.Balance, error) {
	return b.steer(ctx, func(state *api.Balance) error {
		if !state.IsUnderWay() {
			return noneUnderWay("pause")
		}
		state.State, state.ETASeconds, state.Waits = api.BalancePaused, -1, ""
		return nil
	})
}

// ResumeBalance goes on where the balance was paused.
func (b *Balancer) ResumeBalance(ctx context.Context) (api.Balance, error) {
	return b.steer(ctx, func(state *api.Balance) error {
		if !state.IsUnderWay() {
			return noneUnderWay("resume")
		}
		state.State, state.Owner = api.BalanceRunning, b.owner()
		return nil
	})
}

// CancelBalance ends the balance. What was moved stays where it is.
func (b *Balancer) CancelBalance(ctx context.Context) (api.Balance, error) {
	return b.steer(ctx, func(state *api.Balance) error {
		if !state.IsUnderWay() {
			return noneUnderWay("cancel")
		}
		now := time.Now().UTC()
		state.State, state.Finished, state.ETASeconds, state.Waits = api.BalanceCancelled, &now, 0, ""
		return nil
	})
}

func noneUnderWay(to string) error {
	return api.Refuse(api.ErrConflict, "there is no balance under way to %s; `restripe node balance` begins one", to)
}

// steer changes the record, after what this gateway has under way has stopped and saved.
func (b *Balancer) steer(ctx context.Context, change func(*api.Balance) error) (api.Balance, error) {
	b.steering.Lock()
	defer b.steering.Unlock()
	for {
		if r := b.current(); r != nil {
			r.Halt()
			if err := r.Ended(ctx); err != nil {
				return api.Balance{}, err
			}
		}
		record, state, err := b.record(ctx)
		if err != nil {
			return state, err
		}
		if err := change(&state); err != nil {
			b.wake.Notify() // to go on with what was halted
			return state, err
		}
		err = save(ctx, b.Catalog.TellBalance, record, &state)
		if errors.Is(err, catalog.ErrStale) && ctx.Err() == nil {
			continue
		}
		b.wake.Notify()
		return state, err
	}
}

// Plan tells what a balance would move now, at a rate or the default, and were the nodes that are added members too. It changes nothing.
func (b *Balancer) Plan(ctx context.Context, bytesPerSecond *int64, added ...member.Member) (api.BalancePlan, error) {
	rate, err := rateOf(bytesPerSecond, DefaultRate)
	if err != nil {
		return api.BalancePlan{}, err
	}
	look, err := b.look(ctx, func() bool { return false }, 0, added)
	if err != nil {
		return api.BalancePlan{}, err
	}
	return look.plan.describe(look.before, look.slot, rate), nil
}

// look is what there was when every record was read, and what follows from that.
type look struct {
	before []*member.Stake
	slot   int64 // bytes of the largest
	plan   *plan
}

// look reads the records of all groups and plans what to move, of which the moves of so many groups are kept: first of the colder half
// of all bytes, then of the rest. It ends early once halted says so, with what it has.
func (b *Balancer) look(ctx context.Context, halted func() bool, keep int, added []member.Member) (*look, error) {
	counted := &census{nodes: map[block.NodeID]int64{}}
	if err := b.each(ctx, halted, func(of *catalog.Group) bool {
		counted.add(of, b.Heat(of))
		return true
	}); err != nil {
		return nil, err
	}
	members := append(b.Agents.Members(), added...)
	l := &look{slot: counted.slot, before: member.Stakes(members, counted.nodes)}
	l.plan = newPlan(members, member.Stakes(members, counted.nodes), keep)
	if member.AreEven(l.before, l.slot) {
		return l, nil
	}
	last, all := counted.coldest()
	for _, cold := range []bool{true, false} {
		if !cold && all {
			break
		}
		if err := b.each(ctx, halted, func(of *catalog.Group) bool {
			if heat := b.Heat(of); heatBucket(heat) <= last == cold {
				l.plan.add(of, heat)
			}
			return !l.plan.isOver()
		}); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// recordsShare is the share of the time in which records are read: the catalog has others to serve.
const recordsShare = 0.5

// each visits the records of all groups until visit says that it is enough, or halted does.
func (b *Balancer) each(ctx context.Context, halted func() bool, visit func(*catalog.Group) bool) error {
	began := time.Now()
	for groups, err := range b.Catalog.GroupRecords(ctx) {
		if err != nil {
			return fmt.Errorf("reading the groups: %w", err)
		}
		for i := range groups {
			if !visit(&groups[i]) {
				return nil
			}
		}
		if halted() || !job.Rest(ctx, time.Since(began), recordsShare) {
			return ctx.Err()
		}
		began = time.Now()
	}
	return nil
}

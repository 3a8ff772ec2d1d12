package group

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
)

// Rates limit a transition, or repair, in bytes per second; 0 is no limit.
type Rates struct {
	Total, Node, Domain int64
}

// Changed returns the rates with those limits that a request names in place of what they were.
func (r Rates) Changed(request api.ThrottleRequest) Rates {
	for _, change := range []struct{ limit, to *int64 }{
		{&r.Total, request.BytesPerSecond}, {&r.Node, request.NodeBytesPerSecond}, {&r.Domain, request.DomainBytesPerSecond},
	} {
		if change.to != nil {
			*change.limit = *change.to
		}
	}
	return r
}

// Load is what carrying out a plan for one group asks of the cluster.
type Load struct {
	Total int64                  // bytes read, sent and written
	nodes map[block.NodeID]int64 // the same at each node, and bytes it receives
}

// Pacer keeps work on groups within its rates. A group is paid for before it is worked on, out of what has accrued since
// it was asked for, one group after the other; so at every instant the bytes of the groups begun are within the rates, but
// for what accrues in a second. While no group waits next to nothing accrues: work that begins after a pause begins at its
// rate, and not with a burst that readers would feel.
type Pacer struct {
	domainOf func(block.NodeID) string
	turn     chan struct{} // one token: held by the group that is being paid for

	mutex   sync.Mutex // of what follows
	changed chan struct{}
	limits  Rates
	buckets map[string]*bucket
}

// bucket is what has accrued for one limit.
type bucket struct {
	bytes float64
	at    time.Time
}

// accrual is how long unused bytes accrue while groups wait for others, and idleAccrual while none does.
const (
	accrual     = time.Second
	idleAccrual = time.Second / 10
)

// NewPacer returns a pacer with nothing saved up. domainOf names the failure domain of a node.
func NewPacer(limits Rates, domainOf func(block.NodeID) string) *Pacer {
	return &Pacer{
		domainOf: domainOf, turn: make(chan struct{}, 1), changed: make(chan struct{}), limits: limits,
		buckets: map[string]*bucket{},
	}
}

// Set changes the rates. Who waits goes by the new ones at once.
func (p *Pacer) Set(limits Rates, now time.Time) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for name, b := range p.buckets { // what accrued so far is kept: a wait must end however often rates change
		b.accrue(float64(p.limits.of(name)), math.Inf(1), now)
	}
	p.limits = limits
	close(p.changed)
	p.changed = make(chan struct{})
}

// The names of buckets begin with what they limit.
const (
	bucketTotal  = "total"
	bucketNode   = "n/"
	bucketDomain = "d/"
)

func (r Rates) of(name string) int64 {
	switch {
	case name == bucketTotal:
		return r.Total
	case name[:2] == bucketNode:
		return r.Node
	}
	return r.Domain
}

// IsWaiting reports whether some work waits for the rates.
func (p *Pacer) IsWaiting() bool { return len(p.turn) > 0 }

// demands returns what a load asks of each bucket.
func (p *Pacer) demands(l Load) map[string]int64 {
	demands := map[string]int64{bucketTotal: l.Total}
	for id, bytes := range l.nodes {
		demands[bucketNode+string(id)] += bytes
		demands[bucketDomain+p.domainOf(id)] += bytes
	}
	return demands
}

// accrue adds what has come since it was last called, at a rate in bytes per second, as far as there is no more than most.
func (b *bucket) accrue(rate, most float64, now time.Time) {
	b.bytes = min(b.bytes+rate*max(0, now.Sub(b.at).Seconds()), most)
	b.at = now
}

// pass has all buckets accrue, each for so long at most; what they have is not taken away.
func (p *Pacer) pass(most time.Duration, now time.Time) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for name, b := range p.buckets {
		rate := float64(p.limits.of(name))
		b.accrue(rate, max(b.bytes, rate*most.Seconds()), now)
	}
}

// pay takes the demands out of their buckets if there is enough in each, or returns how long to wait.
func (p *Pacer) pay(demands map[string]int64, now time.Time) (wait time.Duration, changed <-chan struct{}) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for name, demand := range demands {
		rate := float64(p.limits.of(name))
		if rate <= 0 {
			delete(p.buckets, name) // a limit that comes later begins with nothing
			continue
		}
		b := p.buckets[name]
		if b == nil {
			b = &bucket{at: now}
			p.buckets[name] = b
		}
		b.accrue(rate, max(rate*accrual.Seconds(), float64(demand)), now)
		if short := float64(demand) - b.bytes; short > 0 {
			wait = max(wait, time.Duration(min(short/rate, time.Hour.Seconds())*float64(time.Second)), time.Millisecond)
		}
	}
	if wait == 0 {
		for name, demand := range demands {
			if b := p.buckets[name]; b != nil {
				b.bytes -= float64(demand)
			}
		}
	}
	return wait, p.changed
}

// Wait returns when a load fits the rates. It gives up with ErrHalted once halt is closed.
func (p *Pacer) Wait(ctx context.Context, halt <-chan struct{}, l Load) error {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-halt:
		return ErrHalted
	case <-ctx.Done():
		return fmt.Errorf("waiting for the budget: %w", ctx.Err())
	}
	p.pass(idleAccrual, time.Now()) // since the last group had its turn
	defer func() { p.pass(accrual, time.Now()) }()
	demands := p.demands(l)
	for {
		wait, changed := p.pay(demands, time.Now())
		if wait == 0 {
			return nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-changed:
		case <-halt:
			timer.Stop()
			return ErrHalted
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("waiting for the budget: %w", ctx.Err())
		}
		timer.Stop()
	}
}

// Load adds up what a bound plan asks of each node.
func (r *Execution) Load() Load {
	cell := int64(r.Group.CellBytes)
	cost := r.Plan.Cost
	l := Load{Total: int64(cost.BlocksRead+cost.BlocksSent+cost.BlocksWritten) * cell, nodes: map[block.NodeID]int64{}}
	for _, program := range r.Plan.Programs {
		id := r.Nodes[program.Position]
		for _, input := range program.Inputs {
			if input.Kind == stripe.SourceBlock {
				l.nodes[id] += cell
			}
		}
		for _, row := range program.Rows {
			if row.Message < 0 {
				l.nodes[id] += cell
			}
		}
	}
	for _, message := range r.Plan.Messages {
		l.nodes[r.Nodes[message.From]] += cell
		l.nodes[r.Nodes[message.To]] += cell
	}
	return l
}

// ErrHalted says that a group was left as it is because the runner was told to stop.
var ErrHalted = errors.New("halted")

// Admission waits until a plan may be carried out and tells whether it still should be.
type Admission func(ctx context.Context, group *catalog.Group, plan *Execution) (bool, error)

package price

import (
	"fmt"
	"math"

	"github.com/restripe/restripe/agent/stripe"
)

// Move is what a transition would do, for all its groups together.
type Move struct {
	From, To     stripe.Scheme
	BytesSent    int64 // over the network
	Operations   int64 // blocks read and written
	StoredBefore int64 // bytes on the nodes, redundancy included
	StoredAfter  int64
}

// OperationsOf returns how many blocks are read and written to take so many groups of a ladder from one scheme to
// another.
func OperationsOf(ladder stripe.Ladder, from, to stripe.Scheme, groups int64) (int64, error) {
	layout, err := stripe.NewLayout(ladder, 0, stripe.ModeFree)
	if err != nil {
		return 0, fmt.Errorf("counting the operations of %s to %s: %w", from, to, err)
	}
	plan, err := stripe.NewPlan(layout, from, to, stripe.PlannerRestripe, stripe.LeastNetwork)
	if err != nil {
		return 0, fmt.Errorf("counting the operations of %s to %s: %w", from, to, err)
	}
	return groups * int64(plan.Cost.BlocksRead+plan.Cost.BlocksWritten), nil
}

// Direction is what a move does to what is stored.
type Direction string

// The directions.
const (
	Cooling Direction = "cooling" // stores less
	Heating Direction = "heating" // stores more
	Level   Direction = "level"   // stores the same
)

// Verdict is whether a move should be made.
type Verdict struct {
	Worthwhile    bool
	Direction     Direction
	Cost          float64 // of moving, once
	MonthlySaving float64 // of storage; negative where the move stores more
	// PaybackMonths is Cost by MonthlySaving: 0 where moving costs nothing, +Inf where it never pays.
	PaybackMonths float64
	Message       string // the verdict in words, for a condition
}

// Judge returns the verdict on a move.
//
// A move that stores less is made for money, and must have paid for itself within the payback time. A move that stores
// more is made for what has no price here: copies to read from, or losses to survive. The temperature rule or the ladder
// that asks for it is the statement that it is worth it, so it is worthwhile, and the message says what it costs. A move
// that stores the same is worthwhile if it survives more losses or costs nothing.
func (t Table) Judge(m Move) Verdict {
	v := Verdict{
		Cost:          t.Network(m.BytesSent) + t.Operations(m.Operations),
		MonthlySaving: t.Storage(m.StoredBefore - m.StoredAfter),
	}
	switch {
	case m.StoredAfter < m.StoredBefore:
		v.Direction = Cooling
		t.judgeCooling(&v)
	case m.StoredAfter > m.StoredBefore:
		v.Direction, v.Worthwhile, v.PaybackMonths = Heating, true, math.Inf(1)
		v.Message = fmt.Sprintf("%s and %s a month more; %s", costs(v.Cost), Amount(-v.MonthlySaving), m.gain())
	default:
		v.Direction = Level
		v.Worthwhile = v.Cost == 0 || m.To.M > m.From.M
		if v.Cost > 0 {
			v.PaybackMonths = math.Inf(1)
		}
		v.Message = costs(v.Cost) + " and saves nothing"
		if m.To.M > m.From.M {
			v.Message += "; " + m.gain()
		}
	}
	return v
}

func (t Table) judgeCooling(v *Verdict) {
	if v.Cost == 0 {
		v.Worthwhile = true
		v.Message = fmt.Sprintf("costs nothing, saves %s a month", Amount(v.MonthlySaving))
		return
	}
	if v.MonthlySaving == 0 { // storage is free
		v.PaybackMonths = math.Inf(1)
		v.Message = costs(v.Cost) + " and saves nothing, as storage costs nothing"
		return
	}
	v.PaybackMonths = v.Cost / v.MonthlySaving
	v.Worthwhile = v.PaybackMonths <= t.PaybackMonths
	v.Message = fmt.Sprintf("%s, saves %s a month, pays back in %s, limit %s",
		costs(v.Cost), Amount(v.MonthlySaving), monthsText(v.PaybackMonths, t.PaybackMonths), numberText(t.PaybackMonths))
}

// gain says what a move that stores no less brings.
func (m Move) gain() string {
	switch {
	case m.To.M > m.From.M && m.To.Replication() && !m.From.Replication():
		return fmt.Sprintf("that buys %d copies to read from, and the loss of %d nodes instead of %d", m.To.M+1, m.To.M, m.From.M)
	case m.To.M > m.From.M:
		return fmt.Sprintf("that buys the loss of %d nodes instead of %d", m.To.M, m.From.M)
	case m.To.Replication():
		return fmt.Sprintf("that buys %d copies to read from", m.To.M+1)
	}
	return fmt.Sprintf("that buys repair and degraded reads from %d blocks instead of %d", m.To.K, m.From.K)
}

func costs(amount float64) string {
	if amount == 0 {
		return "costs nothing"
	}
	return "costs " + Amount(amount)
}

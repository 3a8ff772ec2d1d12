package reliability

import (
	"fmt"
	"math"

	"github.com/restripe/restripe/agent/stripe"
)

// Figures are what a model says.
type Figures struct {
	// MeanYearsToLoss is the mean time to data loss.
	MeanYearsToLoss float64 `json:"meanYearsToLoss"`
	// AnnualLoss is the probability that data is lost within a year.
	AnnualLoss float64 `json:"annualLoss"`
	// Nines is -log10 of AnnualLoss: 9 is a durability of 99.9999999 % over a year.
	Nines float64 `json:"nines"`
	// DegradedShare is the share of the year in which a node is missing, so that some read has to be decoded or go to
	// another copy. It is 1 minus Ring's availability (Appendix A.3).
	DegradedShare float64 `json:"degradedShare"`
}

// RS returns the figures of one stripe of a scheme on as many nodes as it has blocks (Appendix A.1). The error wraps
// ErrModel.
func RS(scheme stripe.Scheme, rates Rates) (Figures, error) { return SRS(scheme, scheme.K, rates) }

// SRS returns the figures of a group of a scheme whose stripes are stretched over columns data nodes and share M parity
// nodes (Appendix A.2): data is lost if any stripe is. columns is at least K; where K does not divide it, at most 20. The
// error wraps ErrModel.
func SRS(scheme stripe.Scheme, columns int, rates Rates) (Figures, error) {
	c, err := newChain(scheme, columns, rates)
	if err != nil {
		return Figures{}, err
	}
	return c.figures(), nil
}

// Cluster returns the figures of all groups of a scheme on so many nodes together, where there are so many groups that
// any M+1 nodes have a stripe in common: data is lost as soon as M+1 nodes are missing at once. It is pessimistic where
// groups are few. nodes is at least K+M. The error wraps ErrModel.
func Cluster(scheme stripe.Scheme, nodes int, rates Rates) (Figures, error) {
	if err := check(scheme, nodes-scheme.M, rates); err != nil {
		return Figures{}, err
	}
	shares := make([]float64, scheme.M+1)
	for i := range shares {
		shares[i] = 1
	}
	return chainOf(shares, nodes-scheme.M, scheme.M, rates).figures(), nil
}

func check(scheme stripe.Scheme, columns int, rates Rates) error {
	if err := scheme.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrModel, err)
	}
	if columns < scheme.K {
		return fmt.Errorf("%w: %s over %d nodes; it takes at least %d", ErrModel, scheme, columns+scheme.M, scheme.K+scheme.M)
	}
	return rates.validate()
}

func newChain(scheme stripe.Scheme, columns int, rates Rates) (chain, error) {
	if err := check(scheme, columns, rates); err != nil {
		return chain{}, err
	}
	if columns > stripe.MaxData {
		return chain{}, fmt.Errorf("%w: a group of %d columns; a group has at most %d", ErrModel, columns, stripe.MaxData)
	}
	shares, err := survivable(scheme, columns)
	if err != nil {
		return chain{}, err
	}
	return chainOf(shares, columns, scheme.M, rates), nil
}

// deepest is how many failures beyond M a chain follows; one more counts as a loss, which is pessimistic by less than
// can be seen wherever repair is faster than failure.
const deepest = 12

// chainOf builds the chain of Figure 15. shares[i] is f(i-1): the share of sets of i nodes whose loss is survived. One
// node is repaired at a time. The mean of the repair rates over how many of the i failed nodes hold data, which is
// hypergeometric, does not depend on i: every failed node is a data node with probability columns/(columns+parity).
func chainOf(shares []float64, columns, parity int, rates Rates) chain {
	states := min(len(shares), parity+1+deepest)
	nodes := float64(columns + parity)
	repair := (float64(columns)*rates.DataRepair + float64(parity)*rates.ParityRepair) / nodes
	c := chain{fail: make([]float64, states), repair: make([]float64, states), lose: make([]float64, states)}
	for i := range states {
		failing := (nodes - float64(i)) * rates.Failure
		kept := 0.0
		if i+1 < states {
			kept = shares[i+1] / shares[i]
			c.fail[i] = failing * kept
		}
		// Where all sets of i+1 nodes are survived kept is exactly 1, so nothing cancels that matters.
		c.lose[i] = failing * (1 - kept)
		if i > 0 {
			c.repair[i] = repair
		}
	}
	return c
}

func (c chain) figures() Figures {
	lost, degraded := c.after(1)
	return Figures{
		MeanYearsToLoss: c.meanTimeToLoss(), AnnualLoss: lost, Nines: max(0, -math.Log10(lost)), DegradedShare: degraded,
	}
}

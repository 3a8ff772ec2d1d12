package price

import (
	"fmt"

	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/words"
)

// Rung is what lies on one step of a ladder.
type Rung struct {
	Scheme      stripe.Scheme
	StoredBytes int64 // redundancy included
}

// Savings compares what is stored with keeping everything on the first step of the ladder.
type Savings struct {
	First       stripe.Scheme
	StoredBytes int64
	// BaselineBytes is what would be stored on the first step.
	BaselineBytes int64
	SavedBytes    int64   // may be negative, where the first step is not the dearest
	PerMonth      float64 // of storage
	Spent         float64 // on moves so far
}

// SavingsOf returns the savings of a class with so much on each step of its ladder, whose moves sent so many bytes and
// read and wrote so many blocks. Padding and dead space are taken to grow with the overhead. A ladder without steps saves
// nothing.
func (t Table) SavingsOf(ladder stripe.Ladder, rungs []Rung, bytesSent, operations int64) Savings {
	s := Savings{Spent: t.Network(bytesSent) + t.Operations(operations)}
	if len(ladder) == 0 {
		return s
	}
	s.First = ladder[0]
	for _, rung := range rungs {
		s.StoredBytes += rung.StoredBytes
		s.BaselineBytes += int64(float64(rung.StoredBytes) * s.First.Overhead() / rung.Scheme.Overhead())
	}
	s.SavedBytes = s.BaselineBytes - s.StoredBytes
	s.PerMonth = t.Storage(s.SavedBytes)
	return s
}

// String says it in a sentence.
func (s Savings) String() string {
	switch {
	case s.SavedBytes > 0:
		return fmt.Sprintf("stores %s less than %s everywhere would (%s of %s), %s a month; moves cost %s so far",
			words.Bytes(s.SavedBytes), s.First, words.Bytes(s.StoredBytes), words.Bytes(s.BaselineBytes),
			Amount(s.PerMonth), Amount(s.Spent))
	case s.SavedBytes < 0:
		return fmt.Sprintf("stores %s more than %s everywhere would, %s a month; moves cost %s so far",
			words.Bytes(-s.SavedBytes), s.First, Amount(-s.PerMonth), Amount(s.Spent))
	}
	return fmt.Sprintf("stores as much as %s everywhere would; moves cost %s so far", s.First, Amount(s.Spent))
}

// Status is the savings as the status of a policy has them.
func (s Savings) Status() *v1alpha1.Savings {
	return &v1alpha1.Savings{SavedBytes: s.SavedBytes, PerMonth: Amount(s.PerMonth), Spent: Amount(s.Spent)}
}

package price

import (
	"testing"

	"github.com/restripe/restripe/agent/stripe"
)

func TestSavings(t *testing.T) {
	rep3, rs42, rs122 := stripe.Replicas(3), stripe.RS(4, 2), stripe.RS(12, 2)
	ladder := stripe.Ladder{rep3, rs42, rs122}
	for _, c := range []struct {
		intent         string
		ladder         stripe.Ladder
		rungs          []Rung
		sent, blocks   int64
		text           string
		perMonth, paid string
	}{
		{
			"cold data saves", ladder, []Rung{{rep3, 300 * gib}, {rs42, 150 * gib}, {rs122, 700 * gib}}, 100 * gib, 2_500_000,
			"stores 1.2 TiB less than rep(3) everywhere would (1.1 TiB of 2.3 TiB), 25.00 a month; moves cost 2.00 so far", "25.00", "2.00",
		},
		{
			"nothing was cold", ladder, []Rung{{rep3, 300 * gib}}, 0, 0,
			"stores as much as rep(3) everywhere would; moves cost 0 so far", "0", "0",
		},
		{"nothing is stored", ladder, nil, 0, 0, "stores as much as rep(3) everywhere would; moves cost 0 so far", "0", "0"},
		{
			"the first step is the leanest", stripe.Ladder{rs122, rep3}, []Rung{{rs122, 14 * gib}, {rep3, 36 * gib}}, gib, 0,
			"stores 22 GiB more than rs(12,2) everywhere would, 0.44 a month; moves cost 0.01 so far", "-0.44", "0.01",
		},
	} {
		s := prices.SavingsOf(c.ladder, c.rungs, c.sent, c.blocks)
		if s.String() != c.text {
			t.Errorf("%s: %q, want %q", c.intent, s, c.text)
		}
		if status := s.Status(); status.PerMonth != c.perMonth || status.Spent != c.paid || status.SavedBytes != s.BaselineBytes-s.StoredBytes {
			t.Errorf("%s: %+v", c.intent, status)
		}
	}
	if s := prices.SavingsOf(nil, []Rung{{rep3, gib}}, gib, 0); s.SavedBytes != 0 || s.Spent != 0.01 {
		t.Errorf("no ladder: %+v", s)
	}
}

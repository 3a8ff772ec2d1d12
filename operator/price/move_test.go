package price

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/stripe"
)

var prices = Table{StorageGiBMonth: 0.02, NetworkGiB: 0.01, MillionOperations: 0.4, PaybackMonths: 6}

func TestJudge(t *testing.T) {
	rep3, rs42, rs63, rs122 := stripe.Replicas(3), stripe.RS(4, 2), stripe.RS(6, 3), stripe.RS(12, 2)
	for _, c := range []struct {
		intent     string
		move       Move
		worthwhile bool
		direction  Direction
		message    string
	}{
		{
			"a merge sends nothing and costs its operations",
			Move{From: rep3, To: rs42, Operations: 1_000_000, StoredBefore: 300 * gib, StoredAfter: 150 * gib},
			true, Cooling, "costs 0.40, saves 3.00 a month, pays back in 0.1 months, limit 6",
		},
		{
			"too dear for what it saves",
			Move{From: rs42, To: rs122, BytesSent: 410 * gib, StoredBefore: 150 * gib, StoredAfter: 135 * gib},
			false, Cooling, "costs 4.10, saves 0.30 a month, pays back in 13.7 months, limit 6",
		},
		{
			"just at the limit",
			Move{From: rs42, To: rs122, BytesSent: 180 * gib, StoredBefore: 150 * gib, StoredAfter: 135 * gib},
			true, Cooling, "costs 1.80, saves 0.30 a month, pays back in 6.0 months, limit 6",
		},
		{
			"as little over the limit as one decimal does not show",
			Move{From: rs42, To: rs122, BytesSent: 181 * gib, StoredBefore: 150 * gib, StoredAfter: 135 * gib},
			false, Cooling, "costs 1.81, saves 0.30 a month, pays back in 6.03 months, limit 6",
		},
		{
			"dropping parity costs nothing",
			Move{From: rs63, To: stripe.RS(6, 2), StoredBefore: 9 * gib, StoredAfter: 8 * gib},
			true, Cooling, "costs nothing, saves 0.02 a month",
		},
		{
			"small amounts keep two digits",
			Move{From: rep3, To: rs42, Operations: 300, StoredBefore: 3 << 20, StoredAfter: 3 << 19},
			true, Cooling, "costs 0.00012, saves 0.000029 a month, pays back in 4.1 months, limit 6",
		},
		{
			"heating costs storage and is asked for",
			Move{From: rs122, To: rep3, BytesSent: 200 * gib, StoredBefore: 117 * gib, StoredAfter: 300 * gib},
			true, Heating, "costs 2.00 and 3.66 a month more; that buys 3 copies to read from",
		},
		{
			"heating to a narrower code",
			Move{From: rs122, To: rs42, BytesSent: 100 * gib, StoredBefore: 117 * gib, StoredAfter: 150 * gib},
			true, Heating, "costs 1.00 and 0.66 a month more; that buys repair and degraded reads from 4 blocks instead of 12",
		},
		{
			"more parity is asked for too",
			Move{From: rs42, To: stripe.RS(4, 3), BytesSent: 100 * gib, StoredBefore: 150 * gib, StoredAfter: 175 * gib},
			true, Heating, "costs 1.00 and 0.50 a month more; that buys the loss of 3 nodes instead of 2",
		},
		{
			"heating that also makes safer",
			Move{From: stripe.RS(4, 1), To: rep3, BytesSent: 100 * gib, StoredBefore: 125 * gib, StoredAfter: 300 * gib},
			true, Heating, "costs 1.00 and 3.50 a month more; that buys 3 copies to read from, and the loss of 2 nodes instead of 1",
		},
		{
			"safer at the same size",
			Move{From: rs42, To: rs63, BytesSent: 100 * gib, StoredBefore: 150 * gib, StoredAfter: 150 * gib},
			true, Level, "costs 1.00 and saves nothing; that buys the loss of 3 nodes instead of 2",
		},
		{
			"less safe at the same size",
			Move{From: rs63, To: rs42, BytesSent: 100 * gib, StoredBefore: 150 * gib, StoredAfter: 150 * gib},
			false, Level, "costs 1.00 and saves nothing",
		},
		{"nothing at all", Move{From: rs63, To: rs42}, true, Level, "costs nothing and saves nothing"},
	} {
		v := prices.Judge(c.move)
		if v.Worthwhile != c.worthwhile || v.Direction != c.direction || v.Message != c.message {
			t.Errorf("%s: %v, %s, %q; want %v, %s, %q", c.intent, v.Worthwhile, v.Direction, v.Message, c.worthwhile, c.direction, c.message)
		}
	}
}

func TestJudgeWhereSomethingIsFree(t *testing.T) {
	cooling := Move{From: stripe.RS(4, 2), To: stripe.RS(12, 2), BytesSent: gib, StoredBefore: 3 * gib, StoredAfter: 2 * gib}
	freeStorage := prices
	freeStorage.StorageGiBMonth = 0
	if v := freeStorage.Judge(cooling); v.Worthwhile || !math.IsInf(v.PaybackMonths, 1) || v.Message != "costs 0.01 and saves nothing, as storage costs nothing" {
		t.Errorf("free storage: %+v", v)
	}
	freeMoves := prices
	freeMoves.NetworkGiB, freeMoves.MillionOperations, freeMoves.PaybackMonths = 0, 0, 0
	if v := freeMoves.Judge(cooling); !v.Worthwhile || v.PaybackMonths != 0 {
		t.Errorf("free moves: %+v", v)
	}
	patient := prices
	patient.PaybackMonths = 0
	if v := patient.Judge(cooling); v.Worthwhile {
		t.Errorf("no payback time: %+v", v)
	}
}

// A move that is refused is refused at higher prices of moving, and one that is made is made at higher prices of storage.
func TestJudgeIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.Int64Range(0, 1<<50)
		m := Move{
			From: stripe.RS(4, 2), To: stripe.RS(12, 2), BytesSent: bytes.Draw(t, "sent"), Operations: bytes.Draw(t, "operations"),
			StoredBefore: bytes.Draw(t, "before"), StoredAfter: bytes.Draw(t, "after"),
		}
		v := prices.Judge(m)
		dearer := prices
		dearer.NetworkGiB *= 1 + rapid.Float64Range(0, 100).Draw(t, "network")
		dearer.MillionOperations *= 1 + rapid.Float64Range(0, 100).Draw(t, "operations price")
		if w := dearer.Judge(m); w.Worthwhile && !v.Worthwhile {
			t.Fatalf("%+v is made only where it is dearer", m)
		}
		dearer = prices
		dearer.StorageGiBMonth *= 1 + rapid.Float64Range(0, 100).Draw(t, "storage")
		if w := dearer.Judge(m); v.Worthwhile && !w.Worthwhile {
			t.Fatalf("%+v is not made where storage is dearer", m)
		}
		if v.Message == "" || v.Cost < 0 || (v.Direction == Heating) != (v.MonthlySaving < 0) {
			t.Fatalf("%+v: %+v", m, v)
		}
	})
}

func TestOperations(t *testing.T) {
	ladder, err := stripe.ParseLadder("rep(3),rs(4,2),rs(12,2)")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, to   stripe.Scheme
		operations int64
	}{
		{stripe.Replicas(3), stripe.RS(12, 2), 7 * (12*2 + 2)}, // every scaled replica is read, two parity blocks are written
		{stripe.RS(4, 2), stripe.RS(12, 2), 7 * (3*2 + 2)},
		{stripe.RS(4, 2), stripe.RS(4, 2), 0},
	} {
		operations, err := OperationsOf(ladder, c.from, c.to, 7)
		if err != nil || operations != c.operations {
			t.Errorf("%s to %s: %d operations, %v; want %d", c.from, c.to, operations, err, c.operations)
		}
	}
	if _, err := OperationsOf(ladder, stripe.RS(5, 2), stripe.RS(12, 2), 1); err == nil {
		t.Error("a scheme that is not on the ladder was planned")
	}
}

package price

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/restripe/restripe/agent/stripe"
)

// Ring, Section 6.2 and Figure 10: the price of five traces under Rep(3) (hot), SRS(3,2,3) (cold) and Rep(1) (simple),
// at list prices of a cloud's hot and cool storage; simple is hot with puts at a third. docs/prices.md says what can be
// compared. The list prices are per GB and 10,000 operations, here per GiB and million.
func ringTariffs() (simple, hot, cold Tariff) {
	hot = Tariff{StorageGiBMonth: 0.0184, MillionPuts: 5, MillionGets: 0.4}
	cold = Tariff{StorageGiBMonth: 0.01, MillionPuts: 10, MillionGets: 1}
	simple = hot
	simple.MillionPuts /= 3
	return simple, hot, cold
}

// syntheticTrace draws requests, each a put with the given probability, on a constant volume.
func syntheticTrace(requests int, putShare, gib float64) Workload {
	w := Workload{GiB: gib}
	random := rand.New(rand.NewPCG(10, 2018))
	for range requests {
		if random.Float64() < putShare {
			w.Puts++
		} else {
			w.Gets++
		}
	}
	return w
}

// relative returns the prices of hot and cold, relative to no replication.
func relative(simple, hot, cold Tariff, w Workload) (hotRatio, coldRatio float64) {
	base := simple.Month(w).Total()
	return hot.Month(w).Total() / base, cold.Month(w).Total() / base
}

// What the text says of Figure 10: for Financial1 cold is 5.5 times as dear as simple and twice as dear as hot.
func TestRingPricesOfPutHeavyTraces(t *testing.T) {
	simple, hot, cold := ringTariffs()
	hotRatio, coldRatio := relative(simple, hot, cold, syntheticTrace(500_000, 0.77, 2))
	t.Logf("puts 77 %%: hot %.2f, cold %.2f of simple; the paper has cold 5.5, and 2 of hot", hotRatio, coldRatio)
	if math.Abs(coldRatio-5.5) > 0.2 || math.Abs(coldRatio/hotRatio-2) > 0.1 {
		t.Errorf("cold is %.2f of simple and %.2f of hot, want about 5.5 and 2", coldRatio, coldRatio/hotRatio)
	}
	// The other financial trace has fewer puts than gets; the order is the same, the ratios are smaller.
	fewerHot, fewerCold := relative(simple, hot, cold, syntheticTrace(500_000, 0.18, 2))
	t.Logf("puts 18 %%: hot %.2f, cold %.2f of simple", fewerHot, fewerCold)
	if !(1 < fewerHot && fewerHot < fewerCold && fewerCold < coldRatio && fewerHot < hotRatio) {
		t.Errorf("hot %.2f, cold %.2f of simple", fewerHot, fewerCold)
	}
}

// Get-heavy traces: hot is as dear as simple, as only their puts differ; cold is dearer while requests are the bill, and
// cheaper once the volume is: "depending on access pattern of traces and the volume of stored data".
func TestRingPricesOfGetHeavyTraces(t *testing.T) {
	simple, hot, cold := ringTariffs()
	busyHot, busyCold := relative(simple, hot, cold, syntheticTrace(1_000_000, 0.0002, 2))
	idleHot, idleCold := relative(simple, hot, cold, syntheticTrace(1_000_000, 0.0002, 500))
	t.Logf("gets 99.98 %%: on 2 GiB hot %.2f, cold %.2f of simple; on 500 GiB hot %.2f, cold %.2f", busyHot, busyCold, idleHot, idleCold)
	if busyHot > 1.01 || idleHot > 1.01 || busyCold < 2 || idleCold > 0.7 {
		t.Errorf("on 2 GiB hot %.2f, cold %.2f of simple; on 500 GiB hot %.2f, cold %.2f", busyHot, busyCold, idleHot, idleCold)
	}
}

// The same traces at this package's own prices, which follow from bytes and blocks: storing dominates get-heavy classes
// and their order is by overhead; puts dominate put-heavy ones, where rs(3,2) costs what rep(3) does, as a put changes as
// many blocks, and both three times what rep(1) does.
func TestOwnPricesOfRingsTraces(t *testing.T) {
	const bytes = 4096
	simple, hot, cold := prices.Tariff(stripe.Replicas(1), bytes), prices.Tariff(stripe.Replicas(3), bytes), prices.Tariff(stripe.RS(3, 2), bytes)
	hotRatio, coldRatio := relative(simple, hot, cold, syntheticTrace(500_000, 0.77, 2))
	if math.Abs(hotRatio-2.75) > 0.2 || hotRatio/coldRatio < 1 || hotRatio/coldRatio > 1.1 {
		t.Errorf("put-heavy: hot %.2f, cold %.2f of simple", hotRatio, coldRatio)
	}
	hotRatio, coldRatio = relative(simple, hot, cold, syntheticTrace(1_000_000, 0.0002, 500))
	if math.Abs(hotRatio-3) > 0.1 || math.Abs(coldRatio-5.0/3) > 0.1 {
		t.Errorf("get-heavy: hot %.2f, cold %.2f of simple", hotRatio, coldRatio)
	}
}

// A put is counted as the blocks that the update plan reads and writes, and the units it sends beside the one that comes in.
func TestTariffFollowsTheUpdatePlan(t *testing.T) {
	for _, scheme := range []stripe.Scheme{stripe.Replicas(1), stripe.Replicas(3), stripe.RS(4, 2), stripe.RS(12, 4)} {
		layout, err := stripe.NewLayout(stripe.Ladder{scheme}, 0, stripe.ModeFree)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := stripe.NewUpdatePlan(layout, scheme, []int{0})
		if err != nil {
			t.Fatal(err)
		}
		operations := Table{MillionOperations: 1}.Tariff(scheme, 1)
		if want := float64(plan.Cost.BlocksRead + plan.Cost.BlocksWritten); operations.MillionPuts != want || operations.MillionGets != 1 {
			t.Errorf("%s: %+v, want %v operations a put", scheme, operations, want)
		}
		network := Table{NetworkGiB: 1e-6}.Tariff(scheme, gib)
		if want := float64(plan.Cost.BlocksSent + 1); math.Abs(network.MillionPuts-want) > 1e-9 || math.Abs(network.MillionGets-1) > 1e-9 {
			t.Errorf("%s: %+v, want %v GiB a put", scheme, network, want)
		}
	}
}

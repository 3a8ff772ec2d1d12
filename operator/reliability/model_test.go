package reliability

import (
	"errors"
	"math"
	"math/bits"
	"testing"

	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/stripe"
)

// near reports whether two positive numbers differ by no more than a part.
func near(a, b, part float64) bool { return math.Abs(a-b) <= part*math.Abs(b) }

// The codes of rs(k,m) are symmetric in their nodes, so the chain over the number of failed nodes is the exact one.
func TestRSIsTheExactSubsetChain(t *testing.T) {
	rates := Rates{Failure: 0.25, DataRepair: 400, ParityRepair: 400}
	for _, scheme := range []stripe.Scheme{stripe.Replicas(1), stripe.Replicas(2), stripe.Replicas(3), stripe.RS(2, 1), stripe.RS(3, 2), stripe.RS(4, 2), stripe.RS(3, 3)} {
		got, err := RS(scheme, rates)
		if err != nil {
			t.Fatal(err)
		}
		exact := subsets(scheme.K, scheme.M, wholeStripe(scheme.K), rates)
		if want := exact.meanTime(); !near(got.MeanYearsToLoss, want, 1e-12) {
			t.Errorf("%s: %v years to loss, want %v", scheme, got.MeanYearsToLoss, want)
		}
		if len(exact) > 20 {
			continue // the exponential of a larger matrix takes the oracle seconds
		}
		if want := exact.loss(1); !near(got.AnnualLoss, want, 1e-11) {
			t.Errorf("%s: annual loss %v, want %v", scheme, got.AnnualLoss, want)
		}
	}
}

// Mean times in closed form, worked by hand: rs(k,1) is (a+b+mu)/(a*b), and with two parities
// (b*c + a*c + a*b + mu*(a+c) + mu^2) / (a*b*c), where a, b, c are the failures of all nodes, one less, two less.
func TestMeanTimesInClosedForm(t *testing.T) {
	const failure, repair = 0.1, 250.0
	rates := Rates{failure, repair, repair}
	for k := 1; k <= 12; k++ {
		a, b := float64(k+1)*failure, float64(k)*failure
		if got, err := RS(stripe.RS(k, 1), rates); err != nil || !near(got.MeanYearsToLoss, (a+b+repair)/(a*b), 1e-13) {
			t.Errorf("rs(%d,1): %+v, %v; want %v years", k, got, err, (a+b+repair)/(a*b))
		}
		a, b, c := float64(k+2)*failure, float64(k+1)*failure, float64(k)*failure
		want := (b*c + a*c + a*b + repair*(a+c) + repair*repair) / (a * b * c)
		if got, err := RS(stripe.RS(k, 2), rates); err != nil || !near(got.MeanYearsToLoss, want, 1e-13) {
			t.Errorf("rs(%d,2): %+v, %v; want %v years", k, got, err, want)
		}
	}
}

// Appendix A.2's example, with the failures of 5 nodes: 5, 4, 3 times one node's.
func TestRingsExample(t *testing.T) {
	c, err := newChain(stripe.RS(2, 1), 4, StretchedRates(2, 4, 1, 100))
	if err != nil {
		t.Fatal(err)
	}
	repair := (4*200.0 + 100) / 5 // data nodes are repaired at (s/k)*mu = 200
	want := chain{fail: []float64{5, 4 * 2. / 5, 0}, repair: []float64{0, repair, repair}, lose: []float64{0, 4 * 3. / 5, 3}}
	for i := range 3 {
		if !near(c.fail[i], want.fail[i], 1e-15) || !near(c.repair[i], want.repair[i], 1e-15) || !near(c.lose[i], want.lose[i], 1e-15) || len(c.fail) != 3 {
			t.Errorf("%+v, want %+v", c, want)
		}
	}
}

// The mean of the repair rates that Appendix A.2 takes over the hypergeometric number of failed data nodes is the same
// in every state.
func TestRepairRatesOfTheAppendix(t *testing.T) {
	rates := StretchedRates(3, 7, 0.1, 90)
	const columns, parity = 7, 2
	want := (columns*rates.DataRepair + parity*rates.ParityRepair) / (columns + parity)
	for i := 1; i <= 6; i++ {
		var mean float64
		for data := range i + 1 {
			share := choose(columns, data) * choose(parity, i-data) / choose(columns+parity, i)
			mean += share * (float64(data)*rates.DataRepair + float64(i-data)*rates.ParityRepair) / float64(i)
		}
		if !near(mean, want, 1e-14) {
			t.Errorf("%d failed: %v, want %v", i, mean, want)
		}
	}
}

// Stretched codes survive exactly the failures that the rank of their generator says: 4 of 10 pairs for SRS(2,1,4).
func TestSurvivableSetsByRank(t *testing.T) {
	for _, c := range []struct {
		scheme  stripe.Scheme
		columns int
	}{
		{stripe.RS(2, 1), 3}, {stripe.RS(2, 1), 4}, {stripe.RS(3, 1), 4}, {stripe.RS(3, 2), 5}, {stripe.RS(3, 2), 6}, {stripe.RS(4, 2), 6},
		{stripe.Replicas(3), 4}, {stripe.RS(4, 3), 8}, {stripe.RS(3, 3), 3}, {stripe.Replicas(1), 3},
	} {
		shares, err := survivable(c.scheme, c.columns)
		if err != nil {
			t.Fatal(err)
		}
		nodes := c.columns + c.scheme.M
		counts := make([]float64, nodes+1)
		for set := range uint32(1) << nodes {
			if decodable(c.scheme, c.columns, set) {
				counts[bits.OnesCount32(set)]++
			}
		}
		for i, count := range counts {
			got := 0.0
			if i < len(shares) {
				got = shares[i]
			}
			if want := count / choose(nodes, i); !near(got, want, 1e-12) {
				t.Errorf("%s over %d columns, %d lost: %v of all sets, want %v", c.scheme, c.columns, i, got, want)
			}
		}
		if c.scheme == stripe.RS(2, 1) && c.columns == 4 && shares[2] != 0.4 {
			t.Errorf("SRS(2,1,4) survives %v of the pairs, want 4 of 10", shares[2])
		}
	}
}

// Where stripes overlap they are enumerated, where not a product counts them; both agree where both apply.
func TestBothWaysOfCounting(t *testing.T) {
	for _, c := range [][3]int{{1, 2, 6}, {2, 1, 8}, {3, 2, 9}, {4, 3, 12}, {6, 4, 6}} {
		scheme := stripe.RS(c[0], c[1])
		product, enumerated := disjointSets(scheme, c[2]/c[0]), overlappingSets(scheme, c[2])
		for most := range enumerated {
			for i, want := range enumerated[most] {
				got := 0.0
				if i < len(product[most]) {
					got = product[most][i]
				}
				if got != want {
					t.Errorf("%s over %d columns, %d lost, at most %d of a stripe: %v sets, want %v", scheme, c[2], i, most, got, want)
				}
			}
		}
	}
}

// The stretched chain lumps sets of equal size together as if all were equally likely. With equal repair rates, as where
// groups are rotated over the nodes, it is within 0.2 % of the exact chain over sets. With the appendix's rates it is
// optimistic by the factors below: it averages rates where times would have to be, and parity nodes, slow to repair and
// in every stripe, are missing together more often than it takes them to be.
func TestSRSBesideTheExactSubsetChain(t *testing.T) {
	for _, c := range []struct {
		scheme  stripe.Scheme
		columns int
		ring    float64 // mean time with the appendix's rates, by the exact one
	}{
		{stripe.RS(2, 1), 3, 1.03}, {stripe.RS(2, 1), 4, 1.20}, {stripe.RS(3, 1), 5, 1.04},
		{stripe.RS(3, 2), 6, 1.45}, {stripe.Replicas(3), 4, 4.49}, {stripe.RS(2, 2), 6, 2.54},
	} {
		stripes := stretchedStripes(c.scheme.K, c.columns)
		ratio := func(rates Rates) float64 {
			got, err := SRS(c.scheme, c.columns, rates)
			if err != nil {
				t.Fatal(err)
			}
			return got.MeanYearsToLoss / subsets(c.columns, c.scheme.M, stripes, rates).meanTime()
		}
		if equal := ratio(Rates{0.1, 200, 200}); !near(equal, 1, 0.002) {
			t.Errorf("%s over %d columns, equal rates: %v of the exact mean time", c.scheme, c.columns, equal)
		}
		if ring := ratio(StretchedRates(c.scheme.K, c.columns, 0.1, 200)); !near(ring, c.ring, 0.01) {
			t.Errorf("%s over %d columns, the appendix's rates: %v of the exact mean time, want %v", c.scheme, c.columns, ring, c.ring)
		}
	}
}

// Any chain's figures against the oracle, over many orders of magnitude, down to losses that a probability of 1 hides.
func TestFiguresAgainstTheOracle(t *testing.T) {
	tiny := 0
	rapid.Check(t, func(t *rapid.T) {
		scheme := stripe.RS(rapid.IntRange(1, 12).Draw(t, "k"), rapid.IntRange(1, 8).Draw(t, "m"))
		columns := scheme.K * rapid.IntRange(1, 3).Draw(t, "stripes")
		failure := math.Pow(10, rapid.Float64Range(-5, 1.5).Draw(t, "failure"))
		repair := math.Pow(10, rapid.Float64Range(-1, 6).Draw(t, "repair"))
		c, err := newChain(scheme, columns, StretchedRates(scheme.K, columns, failure, repair))
		if err != nil {
			t.Fatal(err)
		}
		c = c.upTo(scheme.M + 3) // keeps the oracle quick
		got, oracle := c.figures(), generatorOf(c)
		if want := oracle.meanTime(); !near(got.MeanYearsToLoss, want, 1e-12) {
			t.Fatalf("%v years to loss, want %v", got.MeanYearsToLoss, want)
		}
		want := oracle.loss(1)
		if !near(got.AnnualLoss, want, 1e-9) {
			t.Fatalf("annual loss %v, want %v", got.AnnualLoss, want)
		}
		if want < 1e-15 {
			tiny++
		}
	})
	if tiny == 0 {
		t.Error("no case was below 1e-15")
	}
}

// upTo cuts a chain off behind a state.
func (c chain) upTo(state int) chain {
	states := min(len(c.fail), state+1)
	cut := chain{fail: append([]float64{}, c.fail[:states]...), repair: c.repair[:states], lose: append([]float64{}, c.lose[:states]...)}
	cut.lose[states-1] += cut.fail[states-1]
	cut.fail[states-1] = 0
	return cut
}

func TestFifteenNinesKeepTheirDigits(t *testing.T) {
	c, err := newChain(stripe.RS(8, 4), 8, Rates{0.01, 250, 250})
	if err != nil {
		t.Fatal(err)
	}
	got, want := c.figures(), generatorOf(c).loss(1)
	if got.Nines < 14 || !near(got.AnnualLoss, want, 1e-12) {
		t.Errorf("%v nines, annual loss %v, want %v", got.Nines, got.AnnualLoss, want)
	}
}

func TestFiguresMoveTheRightWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, m := rapid.IntRange(1, 12).Draw(t, "k"), rapid.IntRange(1, 7).Draw(t, "m")
		columns := k * rapid.IntRange(1, 4).Draw(t, "stripes")
		rates := Rates{math.Pow(10, rapid.Float64Range(-4, 0).Draw(t, "failure")), math.Pow(10, rapid.Float64Range(1, 5).Draw(t, "repair")), 0}
		rates.ParityRepair = rates.DataRepair
		figures := func(k, m, columns int, rates Rates) Figures {
			f, err := SRS(stripe.RS(k, m), columns, rates)
			if err != nil {
				t.Fatal(err)
			}
			if !(f.AnnualLoss > 0 && f.AnnualLoss <= 1 && f.DegradedShare > 0 && f.DegradedShare <= 1+1e-9 && f.MeanYearsToLoss > 0) {
				t.Fatalf("%+v", f)
			}
			return f
		}
		here := figures(k, m, columns, rates)
		worse := rates
		worse.Failure *= 2
		slower := rates
		slower.DataRepair, slower.ParityRepair = rates.DataRepair/2, rates.ParityRepair/2
		const rounding = 1e-9
		for name, other := range map[string]Figures{
			"more failures": figures(k, m, columns, worse), "slower repair": figures(k, m, columns, slower),
			"a wider group": figures(k, m, columns+k, rates), "one parity less": figures(k, m-1+btoi(m == 1), columns, rates),
		} {
			if other.AnnualLoss < here.AnnualLoss*(1-rounding) || other.MeanYearsToLoss > here.MeanYearsToLoss*(1+rounding) {
				t.Fatalf("%s is safer: %+v, before %+v", name, other, here)
			}
		}
		cluster, err := Cluster(stripe.RS(k, m), columns+m, rates)
		if err != nil || cluster.AnnualLoss < here.AnnualLoss*(1-rounding) {
			t.Fatalf("all groups of so many nodes are safer than one: %+v, one %+v, %v", cluster, here, err)
		}
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestModelsRefuse(t *testing.T) {
	good := Rates{0.1, 100, 100}
	for name, call := range map[string]func() (Figures, error){
		"a scheme that cannot be":   func() (Figures, error) { return RS(stripe.Scheme{}, good) },
		"fewer columns than k":      func() (Figures, error) { return SRS(stripe.RS(4, 2), 3, good) },
		"more columns than a group": func() (Figures, error) { return SRS(stripe.RS(4, 2), 128, good) },
		"too many overlapping":      func() (Figures, error) { return SRS(stripe.RS(4, 2), 23, good) },
		"fewer nodes than blocks":   func() (Figures, error) { return Cluster(stripe.RS(4, 2), 5, good) },
		"no failures":               func() (Figures, error) { return RS(stripe.RS(4, 2), Rates{0, 1, 1}) },
		"no number":                 func() (Figures, error) { return RS(stripe.RS(4, 2), Rates{math.NaN(), 1, 1}) },
		"repair in no time":         func() (Figures, error) { return RS(stripe.RS(4, 2), Rates{1, math.Inf(1), 1}) },
	} {
		if figures, err := call(); !errors.Is(err, ErrModel) {
			t.Errorf("%s: %+v, %v", name, figures, err)
		}
	}
}

func TestEnvironment(t *testing.T) {
	e := Environment{FailurePercent: 4, RepairBandwidth: 100, NodeBytes: 1000, DetectionSeconds: 60}
	if got := e.RepairSeconds(4); got != 100 {
		t.Errorf("%v seconds", got)
	}
	if got := e.Rates(4); !near(got.DataRepair, secondsPerYear/100, 1e-15) || got.ParityRepair != got.DataRepair || got.Failure != 0.04 {
		t.Errorf("%+v", got)
	}
	for _, wrong := range []Environment{
		{FailurePercent: 0, RepairBandwidth: 1, NodeBytes: 1}, {FailurePercent: 4, RepairBandwidth: 0, NodeBytes: 1},
		{FailurePercent: 4, RepairBandwidth: 1}, {FailurePercent: 4, RepairBandwidth: 1, NodeBytes: -1},
		{FailurePercent: math.NaN(), RepairBandwidth: 1, NodeBytes: 1}, {FailurePercent: 4, RepairBandwidth: 1, NodeBytes: 1, DetectionSeconds: 1e12},
	} {
		if err := wrong.Validate(); !errors.Is(err, ErrModel) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	if err := DefaultEnvironment().Validate(); err != nil {
		t.Error(err)
	}
}

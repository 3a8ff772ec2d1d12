package main

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
)

// zipf draws ranks 0 to n-1, of which rank r comes with a probability in proportion to (r+1)^-exponent. It is exact, also for exponents
// below 1, which math/rand does not have: rejection-inversion, W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates
// from monotone discrete distributions", ACM TOMACS 6(3), 1996.
type zipf struct {
	n        int
	exponent float64

	// The integral of the hat at both ends, and how far from its integer a value is taken without looking closer.
	first, last, shortcut float64
}

func newZipf(n int, exponent float64) *zipf {
	z := &zipf{n: n, exponent: exponent}
	z.first, z.last = z.integral(1.5)-1, z.integral(float64(n)+0.5)
	z.shortcut = 2 - z.inverse(z.integral(2.5)-z.hat(2))
	return z
}

func (z *zipf) hat(x float64) float64 { return math.Exp(-z.exponent * math.Log(x)) }

// integral is that of the hat, up to a constant: (x^(1-exponent) - 1) / (1-exponent), which is log x where the exponent is 1.
func (z *zipf) integral(x float64) float64 {
	logarithm := math.Log(x)
	return expm1Over((1-z.exponent)*logarithm) * logarithm
}

func (z *zipf) inverse(y float64) float64 {
	t := max(-1, y*(1-z.exponent)) // rounding may lead below, where the hat has no value
	return math.Exp(log1pOver(t) * y)
}

// expm1Over is (exp(x) - 1) / x, and log1pOver is log(1 + x) / x, both with their limits at 0.
func expm1Over(x float64) float64 {
	if math.Abs(x) > 1e-8 {
		return math.Expm1(x) / x
	}
	return 1 + x/2
}

func log1pOver(x float64) float64 {
	if math.Abs(x) > 1e-8 {
		return math.Log1p(x) / x
	}
	return 1 - x/2
}

func (z *zipf) draw(random *rand.Rand) int {
	for {
		u := z.last + random.Float64()*(z.first-z.last)
		x := z.inverse(u)
		k := min(max(1, int(x+0.5)), z.n)
		if float64(k)-x <= z.shortcut || u >= z.integral(float64(k)+0.5)-z.hat(float64(k)) {
			return k - 1
		}
	}
}

// distribution is how the keys of a workload are drawn.
type distribution struct {
	name     string
	exponent float64 // of the Zipf distribution; 0: all alike
}

var distributions = []distribution{{"uniform", 0}, {"Zipf 0.8", 0.8}, {"Zipf 0.99", 0.99}}

// heavy is the distribution by which YCSB draws where nothing else is said.
var heavy = distributions[2]

// drawer returns what draws one of n records. Ranks are scrambled over the records as in YCSB, by a hash (FNV-1a of the rank, modulo n),
// so that records which are drawn much are no neighbours. Two ranks may fall onto one record, as there.
func (d distribution) drawer(n int) func(random *rand.Rand) int {
	if d.exponent == 0 {
		return func(random *rand.Rand) int { return random.IntN(n) }
	}
	ranks := newZipf(n, d.exponent)
	return func(random *rand.Rand) int { return scrambled(ranks.draw(random), n) }
}

func scrambled(rank, n int) int {
	hash := fnv.New64a()
	var bytes [8]byte
	for i := range bytes {
		bytes[i] = byte(rank >> (8 * i))
	}
	_, _ = hash.Write(bytes[:]) // never fails
	return int(hash.Sum64() % uint64(n))
}

// weibull draws how long it is until the next failure. With a shape below 1 failures come in bursts; 0.7 to 0.8 is what large clusters
// have (TriEC, Section 6.3.1), 1 would be independent failures.
type weibull struct{ shape, scale float64 }

// weibullOfMean is the distribution of a shape that has a mean.
func weibullOfMean(mean, shape float64) weibull {
	return weibull{shape: shape, scale: mean / math.Gamma(1+1/shape)}
}

func (w weibull) draw(random *rand.Rand) float64 {
	return w.scale * math.Pow(-math.Log(1-random.Float64()), 1/w.shape)
}

// fitWeibull is the distribution under which values, all above 0, are likeliest, and the standard error of its shape: the shape solves
//
//	sum(x^shape log x) / sum(x^shape) - 1/shape = mean(log x)
//
// whose left side grows with the shape. The error is that of large samples: shape * sqrt(6) / (pi * sqrt(count)).
func fitWeibull(values []float64) (fit weibull, shapeError float64, err error) {
	if len(values) < 2 {
		return fit, 0, fmt.Errorf("fitting a Weibull distribution: %d values are too few; measure longer", len(values))
	}
	count, most, logs := float64(len(values)), 0.0, 0.0
	for _, x := range values {
		if x <= 0 {
			return fit, 0, fmt.Errorf("fitting a Weibull distribution: %g is not above 0", x)
		}
		most, logs = max(most, x), logs+math.Log(x)
	}
	// Values are divided by the largest one, so that no power overflows.
	excess := func(shape float64) float64 {
		powers, weighted := 0.0, 0.0
		for _, x := range values {
			power := math.Pow(x/most, shape)
			powers, weighted = powers+power, weighted+power*math.Log(x)
		}
		return weighted/powers - 1/shape - logs/count
	}
	low, high := 1e-3, 1e3
	if excess(low) > 0 || excess(high) < 0 {
		return fit, 0, errors.New("fitting a Weibull distribution: the values are all alike")
	}
	for range 100 {
		if middle := (low + high) / 2; excess(middle) < 0 {
			low = middle
		} else {
			high = middle
		}
	}
	fit.shape = (low + high) / 2
	powers := 0.0
	for _, x := range values {
		powers += math.Pow(x/most, fit.shape)
	}
	fit.scale = most * math.Pow(powers/count, 1/fit.shape)
	return fit, fit.shape * math.Sqrt(6) / (math.Pi * math.Sqrt(count)), nil
}

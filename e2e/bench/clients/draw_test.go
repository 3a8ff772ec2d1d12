package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// chiSquare compares counts with probabilities, and returns by how many standard deviations the statistic is above what it would be on
// average. Classes of fewer than five expected draws are taken together, where the statistic would not be distributed as it should.
func chiSquare(counts []int, probability func(i int) float64) float64 {
	total := 0
	for _, count := range counts {
		total += count
	}
	statistic, classes, expected, seen := 0.0, 0, 0.0, 0.0
	for i, count := range counts {
		expected, seen = expected+float64(total)*probability(i), seen+float64(count)
		if expected >= 5 {
			statistic, classes, expected, seen = statistic+(seen-expected)*(seen-expected)/expected, classes+1, 0, 0
		}
	}
	freedom := float64(classes - 1)
	return (statistic - freedom) / math.Sqrt(2*freedom)
}

// powers are the probabilities of a Zipf distribution.
func powers(n int, exponent float64) []float64 {
	list, sum := make([]float64, n), 0.0
	for i := range list {
		list[i] = math.Pow(float64(i+1), -exponent)
		sum += list[i]
	}
	for i := range list {
		list[i] /= sum
	}
	return list
}

func TestZipfDrawsAsOftenAsItShould(t *testing.T) {
	for _, exponent := range []float64{0.8, 0.99, 1, 1.2} {
		for _, n := range []int{1, 2, 10, 1000} {
			t.Run(fmt.Sprint(exponent, "/", n), func(t *testing.T) {
				random, drawn, counts := rand.New(rand.NewPCG(7, uint64(n))), newZipf(n, exponent), make([]int, n)
				for range 400_000 {
					counts[drawn.draw(random)]++
				}
				if n == 1 {
					return
				}
				want := powers(n, exponent)
				// With a fixed seed this never changes; five deviations would come once in millions of seeds.
				if far := chiSquare(counts, func(i int) float64 { return want[i] }); far > 5 {
					t.Errorf("chi-square is %.1f deviations above its mean", far)
				}
				if n > 2 { // a mistake in the exponent by 0.03 has to show
					other := powers(n, exponent+0.03)
					if far := chiSquare(counts, func(i int) float64 { return other[i] }); far < 5 {
						t.Errorf("chi-square against an exponent of %.2f is only %.1f deviations above its mean", exponent+0.03, far)
					}
				}
			})
		}
	}
}

func TestRecordsAreDrawnByTheirRanks(t *testing.T) {
	const n = 1000
	for _, d := range distributions {
		t.Run(d.name, func(t *testing.T) {
			random, draw, counts := rand.New(rand.NewPCG(11, 3)), d.drawer(n), make([]int, n)
			for range 400_000 {
				counts[draw(random)]++
			}
			want := powers(n, d.exponent) // all alike with 0
			if d.exponent > 0 {
				byRank := want
				want = make([]float64, n)
				for rank, probability := range byRank {
					want[scrambled(rank, n)] += probability
				}
				if first, second := scrambled(0, n), scrambled(1, n); first == second || first+1 == second || second+1 == first {
					t.Errorf("the two that are drawn most are %d and %d", first, second)
				}
			}
			if far := chiSquare(counts, func(i int) float64 { return want[i] }); far > 5 {
				t.Errorf("chi-square is %.1f deviations above its mean", far)
			}
		})
	}
}

func TestWeibullHasItsShapeAndMean(t *testing.T) {
	const draws = 20_000
	for _, shape := range []float64{0.7, 0.75, 0.8, 1, 2} {
		t.Run(fmt.Sprint(shape), func(t *testing.T) {
			random, drawn := rand.New(rand.NewPCG(5, 9)), weibullOfMean(100, shape)
			values, sum := make([]float64, draws), 0.0
			for i := range values {
				values[i] = drawn.draw(random)
				sum += values[i]
			}
			fit, shapeError, err := fitWeibull(values)
			if err != nil {
				t.Fatal(err)
			}
			// The shape has an error of shape * 0.78 / sqrt(draws), 0.0041 for 0.75: four of them tell 0.7 from 0.75 and from 0.8.
			if math.Abs(fit.shape-shape) > 4*shapeError || shapeError > 0.006*shape {
				t.Errorf("the fit has the shape %.4f, with an error of %.4f", fit.shape, shapeError)
			}
			if math.Abs(fit.scale-drawn.scale)/drawn.scale > 4*1.06/shape/math.Sqrt(draws) { // scale's error: 1.053 scale / (shape sqrt(n))
				t.Errorf("the fit has the scale %.2f, drawn were %.2f", fit.scale, drawn.scale)
			}
			deviation := 100 * math.Sqrt(math.Gamma(1+2/shape)/math.Pow(math.Gamma(1+1/shape), 2)-1) // of one draw
			if mean := sum / draws; math.Abs(mean-100) > 4*deviation/math.Sqrt(draws) {
				t.Errorf("the mean is %.2f", mean)
			}
			if shape < 1 && (1-fit.shape)/shapeError < 20 {
				t.Errorf("independent failures, of the shape 1, are not ruled out")
			}
		})
	}
}

func TestWhatCannotBeFitted(t *testing.T) {
	for _, values := range [][]float64{nil, {1}, {1, 0}, {1, -1}, {3, 3, 3}} {
		if fit, _, err := fitWeibull(values); err == nil {
			t.Errorf("%v is fitted by %v", values, fit)
		}
	}
}

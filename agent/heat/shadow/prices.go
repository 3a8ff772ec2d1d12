package shadow

import (
	"errors"
	"fmt"
	"math"
)

// ErrPrices says that prices cannot be reckoned with.
var ErrPrices = errors.New("prices of rungs cannot be used")

// Prices are what one byte of a class costs on the rungs of its ladder, hottest first, in bytes stored for a day.
type Prices struct {
	Stored []float64   // for each day: 3 under rep(3)
	Use    []float64   // for each use of its group, beyond what that costs on the rung where it costs least
	Move   [][]float64 // for each move, by rung from and to
}

// Check reports what cannot be reckoned with: no rungs, tables of other sizes, prices that are negative or no numbers.
func (p *Prices) Check() error {
	if len(p.Stored) == 0 || len(p.Use) != len(p.Stored) || len(p.Move) != len(p.Stored) {
		return fmt.Errorf("%w: %d rungs are stored, %d used, %d left; give every rung once", ErrPrices, len(p.Stored), len(p.Use), len(p.Move))
	}
	for rung := range p.Stored {
		if len(p.Move[rung]) != len(p.Stored) {
			return fmt.Errorf("%w: from rung %d there are %d moves, for %d rungs", ErrPrices, rung, len(p.Move[rung]), len(p.Stored))
		}
		for _, price := range append([]float64{p.Stored[rung], p.Use[rung]}, p.Move[rung]...) {
			if !(price >= 0) || math.IsInf(price, 1) {
				return fmt.Errorf("%w: %v of rung %d; give 0 or more", ErrPrices, price, rung)
			}
		}
	}
	return nil
}

// Best returns the rung on which a byte costs least whose group is used so many times a day; the first of several.
func (p *Prices) Best(rate float64) int {
	best, least := 0, math.Inf(1)
	for rung := range p.Stored {
		if cost := p.Stored[rung] + rate*p.Use[rung]; cost < least {
			best, least = rung, cost
		}
	}
	return best
}

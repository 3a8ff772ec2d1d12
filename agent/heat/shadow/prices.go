package shadow

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
)

// ErrPrices says that prices cannot be reckoned with.
var ErrPrices = errors.New("prices of rungs cannot be used")

// Prices are what one byte of a class costs on the rungs of its ladder, hottest first.
type Prices api.RungPrices

// Check reports what cannot be reckoned with.
func (p *Prices) Check() error {
	if err := (*api.RungPrices)(p).Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrPrices, err)
	}
	return nil
}

// Day returns what a byte costs in a day on a rung whose group is used so many times.
func (p *Prices) Day(rung int, rate float64) float64 { return p.Stored[rung] + rate*p.Use[rung] }

// never is how long a move takes to pay for itself that never does.
const never = 100 * 365 * 24 * time.Hour

// Payback returns how long it takes until a move to a colder rung has paid for itself by what is stored less; 0 for others.
func (p *Prices) Payback(from, to int) time.Duration {
	saved := p.Stored[from] - p.Stored[to]
	switch {
	case to <= from || p.Move[from][to] == 0:
		return 0
	case saved <= 0 || p.Move[from][to]/saved*24 >= never.Hours():
		return never
	}
	return time.Duration(p.Move[from][to] / saved * 24 * float64(time.Hour)).Round(time.Minute)
}

// Best returns the rung on which a byte costs least whose group is used so many times a day; the first of several.
func (p *Prices) Best(rate float64) int {
	best, least := 0, math.Inf(1)
	for rung := range p.Stored {
		if cost := p.Day(rung, rate); cost < least {
			best, least = rung, cost
		}
	}
	return best
}

package shadow

import (
	"math"
	"time"
)

// Estimate is how often groups of a class are used, as far as it is known from all of them.
type Estimate struct {
	Mean  float64 // uses a day
	Prior float64 // days
}

// The least and the most that Prior is, in days.
const (
	leastPrior = 0.1
	mostPrior  = 60
)

// Rate returns how many times a day a group is used of which so much was counted while it was watched for so long.
func (e Estimate) Rate(counted, watched float64) float64 {
	return (counted + e.Prior*e.Mean) / (watched + e.Prior)
}

// Watched returns what a counter with a half-life has of one use a day, after so many days.
func Watched(halfLife time.Duration, days float64) float64 {
	life := halfLife.Hours() / 24
	return life / math.Ln2 * (1 - math.Exp2(-days/life))
}

// counts is what an Estimate is made of: sums over groups, in two passes.
type counts struct {
	counted, watched float64
	apart            float64 // squares of how far groups are from what the mean says
	noise            float64 // those that chance alone would make, for each use a day of the mean
	watchedSquares   float64
}

func (c *counts) mean() float64 {
	if c.watched == 0 {
		return 0
	}
	return c.counted / c.watched
}

// estimate has the mean of the first pass, and as prior what explains how much further groups are apart than chance makes
// them (by moments).
func (c *counts) estimate() Estimate {
	e := Estimate{Mean: c.mean(), Prior: mostPrior}
	if beyond := c.apart - e.Mean*c.noise; beyond > 0 {
		e.Prior = min(mostPrior, max(leastPrior, e.Mean*c.watchedSquares/beyond))
	}
	return e
}

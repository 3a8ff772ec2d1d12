package shadow

import (
	"math"
	"time"
)

// Estimate is how often groups of a class are used, as far as it is known from all of them.
type Estimate struct {
	Mean  float64 `json:"mean"`  // uses a day
	Prior float64 `json:"prior"` // days
	Floor bool    `json:"floor"` // no group is taken to be used less than Mean
}

// The least and the most that Prior is, in days.
const (
	leastPrior = 0.1
	mostPrior  = 60
)

// Rate returns how many times a day a group is used of which so much was counted while it was watched for so long.
func (e Estimate) Rate(counted, watched float64) float64 {
	rate := (counted + e.Prior*e.Mean) / (watched + e.Prior)
	if e.Floor {
		return max(rate, e.Mean)
	}
	return rate
}

// Watched returns what a counter with a half-life has of one use a day, after so many days.
func Watched(halfLife time.Duration, days float64) float64 {
	life := halfLife.Hours() / 24
	return life / math.Ln2 * (1 - math.Exp2(-days/life))
}

// Sums are what an Estimate is made of. The zero value is of no groups.
type Sums struct {
	counted, watched                         float64
	countedSquares, products, watchedSquares float64
	noise                                    float64 // squares that chance alone makes, for each use a day of the mean
}

// Add adds a group of which so much was counted under a half-life, for so many days.
func (s *Sums) Add(halfLife time.Duration, counted, days float64) {
	watched := Watched(halfLife, days)
	s.counted += counted
	s.watched += watched
	s.countedSquares += counted * counted
	s.products += counted * watched
	s.watchedSquares += watched * watched
	s.noise += Watched(halfLife/2, days)
}

// Estimate has the mean of all groups, and as prior what explains how much further groups are apart than chance makes them (by
// moments).
func (s *Sums) Estimate() Estimate {
	e := Estimate{Prior: mostPrior}
	if s.watched > 0 {
		e.Mean = s.counted / s.watched
	}
	apart := s.countedSquares - 2*e.Mean*s.products + e.Mean*e.Mean*s.watchedSquares
	if beyond := apart - e.Mean*s.noise; beyond > 0 {
		e.Prior = min(mostPrior, max(leastPrior, e.Mean*s.watchedSquares/beyond))
	}
	return e
}

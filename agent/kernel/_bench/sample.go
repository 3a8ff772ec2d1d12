package main

import (
	"fmt"
	"slices"
)

// sample is one quantity measured in each of several rounds.
type sample []float64

// median returns the middle value, or the mean of the two in the middle. The sample must not be empty.
func (s sample) median() float64 {
	sorted := slices.Sorted(slices.Values(s))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// least is the smallest value.
func (s sample) least() float64 { return slices.Min(s) }

// most is the largest value.
func (s sample) most() float64 { return slices.Max(s) }

// spread shows the smallest and the largest value.
func (s sample) spread() string { return fmt.Sprintf("%.2f to %.2f", s.least(), s.most()) }

// over divides round by round: what was measured at about the same time is compared. The samples are equally long.
func (s sample) over(other sample) sample {
	ratios := make(sample, len(s))
	for i := range s {
		ratios[i] = s[i] / other[i]
	}
	return ratios
}

// String shows the median and the worst round of a ratio of which more is better.
func (s sample) String() string { return fmt.Sprintf("%.2f, %.2f", s.median(), s.least()) }

//go:build linux

package main

import (
	"slices"
	"time"
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

// most and least are the extremes.
func (s sample) most() float64  { return slices.Max(s) }
func (s sample) least() float64 { return slices.Min(s) }

// over divides round by round: what was measured at about the same time is compared. The samples are equally long.
func (s sample) over(peer sample) sample {
	ratios := make(sample, len(s))
	for i := range s {
		ratios[i] = s[i] / peer[i]
	}
	return ratios
}

// quantile returns the value at or below which a share q, 0 to 1, of the durations lies. There must be some.
func quantile(durations []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(durations))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

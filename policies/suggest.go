package policies

import (
	"slices"
	"strings"
)

// suggest returns "; did you mean NAME?" for the known name nearest to what was written, or "" if none is near.
func suggest(written string, known []string) string {
	best, distance := "", max(1, len(written)/3)+1
	for _, name := range slices.Sorted(slices.Values(known)) {
		d := editDistance(strings.ToLower(written), strings.ToLower(name))
		if d < distance {
			best, distance = name, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// editDistance counts insertions, deletions, replacements and swaps of neighbours that turn a into b (optimal string
// alignment).
func editDistance(a, b string) int {
	const longest = 64
	if len(a) > longest || len(b) > longest {
		return longest
	}
	var before, previous []int
	current := make([]int, len(b)+1)
	for j := range current {
		current[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, previous, current = previous, current, make([]int, len(b)+1)
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
	}
	return current[len(b)]
}

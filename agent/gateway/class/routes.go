package class

import (
	"maps"
	"slices"
)

// Routes say which class a key belongs to: the one with the longest prefix that matches. They never change.
type Routes struct {
	classes  map[string]string   // names, by prefix
	prefixes map[string][]string // in order, by class
	lengths  []int               // of the prefixes, longest first, each once
}

func newRoutes(entries []*Entry) *Routes {
	r := &Routes{classes: map[string]string{}, prefixes: map[string][]string{}}
	lengths := map[int]bool{}
	for _, entry := range entries {
		r.prefixes[entry.Name] = slices.Sorted(slices.Values(entry.Prefixes))
		for _, prefix := range entry.Prefixes {
			r.classes[prefix], lengths[len(prefix)] = entry.Name, true
		}
	}
	r.lengths = slices.Sorted(maps.Keys(lengths))
	slices.Reverse(r.lengths)
	return r
}

// Class returns the name of the class a key belongs to; found is false if no prefix matches.
func (r *Routes) Class(key string) (name string, found bool) {
	for _, length := range r.lengths {
		if length > len(key) {
			continue
		}
		if name, found := r.classes[key[:length]]; found {
			return name, true
		}
	}
	return "", false
}

// Prefixes returns the prefixes of a class, in order.
func (r *Routes) Prefixes(class string) []string { return r.prefixes[class] }

package arrange

import (
	"cmp"
	"math"
	"slices"

	"github.com/restripe/restripe/agent/heat/sketch"
)

// The parts of what is put or moved together, as metrics have them.
const (
	All     = "all" // in one group
	Popular = "popular"
	Others  = "others"
)

// Order sorts objects so that those lie together that die about as soon and are about as hot: those first that are written most,
// by powers of the square root of two, and among these those that are read most. Others keep their order.
func Order[T any](objects []T, counts func(T) sketch.Counts) {
	type ranked struct {
		object T
		rank   int
		reads  float64
	}
	list := make([]ranked, len(objects))
	for i, object := range objects {
		of := counts(object)
		list[i] = ranked{object, rank(of.Writes), of.Reads}
	}
	slices.SortStableFunc(list, func(a, b ranked) int { return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(b.reads, a.reads)) })
	for i := range list {
		objects[i] = list[i].object
	}
}

// rank is the power of the square root of two that so many writes are; of fewer than two 0. What is put for the first time has one, and no history: it
// comes last.
func rank(writes float64) int {
	if writes < 2 {
		return 0
	}
	return int(2 * math.Log2(writes))
}

// leastHalf is how many objects a group has at least that is made because some are more popular than others. A group more costs
// records, blocks and a commit, whatever is in it; with so many objects that is little for each, and columns are as full as before.
const leastHalf = 128

// Halves splits objects that were put together into the popular ones and others, of about as many bytes each, in place: the popular
// are objects[:n]. n is 0 where there are too few for two groups, or all are written about as often as each other, as new ones are.
func Halves[T any](objects []T, size func(T) int, counts func(T) sketch.Counts) (n int) {
	if len(objects) < 2*leastHalf {
		return 0
	}
	Order(objects, counts)
	if rank(counts(objects[0]).Writes) == rank(counts(objects[len(objects)-1]).Writes) {
		return 0
	}
	total, half := 0, 0
	for _, object := range objects {
		total += size(object)
	}
	for n = 0; n < len(objects)-leastHalf && (n < leastHalf || 2*half < total); n++ {
		half += size(objects[n])
	}
	return n
}

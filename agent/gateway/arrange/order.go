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
	slices.SortStableFunc(list, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(b.reads, a.reads))
	})
	for i := range list {
		objects[i] = list[i].object
	}
}

// rank is the power of the square root of two that so many writes are; of fewer than two 0. What is put for the first time has one,
// and no history: it comes last.
func rank(writes float64) int {
	if writes < 2 {
		return 0
	}
	return int(2 * math.Log2(writes))
}

// What makes two groups of what would fill one worth it. A group more costs records, blocks and a commit, whatever is in it.
const (
	leastHalf  = 128 // objects in each: columns are as full as before, and a group is little for each object
	leastApart = 4   // times that popular objects are written as often as others: that keys differ by chance gains nothing
)

// Halves splits objects that were put together into the popular ones and others, of about as many bytes each, in place: the popular
// are objects[:n]. n is 0 where that is not worth it, as there are too few, or they are written about as often as each other.
func Halves[T any](objects []T, size func(T) int, counts func(T) sketch.Counts) (n int) {
	if len(objects) < 2*leastHalf {
		return 0
	}
	Order(objects, counts)
	total, half := 0, 0
	for _, object := range objects {
		total += size(object)
	}
	for n = 0; n < len(objects)-leastHalf && (n < leastHalf || 2*half < total); n++ {
		half += size(objects[n])
	}
	mean := func(objects []T) (mean float64) {
		for _, object := range objects {
			mean += max(1, counts(object).Writes) / float64(len(objects))
		}
		return mean
	}
	if mean(objects[:n]) < leastApart*mean(objects[n:]) {
		return 0
	}
	return n
}

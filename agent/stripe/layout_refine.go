package stripe

import (
	"cmp"
	"slices"
)

// refine cuts the stripes of parent into stripes of k by the chain construction: every parent stripe yields as many
// whole stripes as fit and a rest of r = K mod k cells; in windows of k/g parent stripes, r/g of them (seeds) give their
// whole rest to one cross stripe each, which the rests of the other (k-r)/g (suppliers) complete.
//
// Why a free column is always found: when t cells of a supplier are due, it has given at most r-t cells and the cross
// stripe holds at most k-t, so at least K-(r-t)-(k-t) >= t of its columns are open.
// Why it is optimal for every m, in both directions: the whole stripes and the seeds' rests attain the largest possible
// overlaps, stripe by stripe, and the overlap graph of a window is a tree.
//
// coarse lists the partitions whose stripes should be kept together where the construction leaves a choice, the most
// important first.
func refine(parent *cut, k, columns int, coarse []*cut) *cut {
	r := &refinery{columns: columns, k: k, of: make([]int32, len(parent.of)), load: make([]int, columns)}
	nested := func(c *cut) bool { return c.k%k == 0 }
	for _, c := range coarse {
		if c != parent && parent.k%k == 0 && nested(c) {
			r.coarse = append(r.coarse, c)
		}
	}
	for _, c := range coarse {
		if c != parent && !(parent.k%k == 0 && nested(c)) {
			r.coarse = append(r.coarse, c)
		}
	}
	for _, c := range r.coarse {
		r.inParent = append(r.inParent, make([]int32, len(c.stripes)))
		r.inCross = append(r.inCross, make([]int32, len(c.stripes)))
	}
	cells := len(parent.of)
	r.stripes = make([][]int32, 0, cells/k)
	sources := r.sources(parent)
	rest := parent.k % k
	if rest == 0 {
		for _, source := range sources {
			r.cutRuns(source.cells)
		}
		return &cut{k: k, stripes: r.stripes, of: r.of}
	}
	common := gcd(k, parent.k)
	window := k / common
	for first := 0; first < len(sources); first += window {
		r.cutWindow(sources[first:first+window], rest, rest/common)
	}
	return &cut{k: k, stripes: r.stripes, of: r.of}
}

type refinery struct {
	columns int
	k       int
	coarse  []*cut
	stripes [][]int32
	of      []int32
	load    []int // cells of each column in cross stripes

	// Per coarse partition and stripe of it, how many cells of the parent stripe and of the cross stripe in hand it
	// holds; zero between uses.
	inParent, inCross [][]int32
}

// source is a parent stripe on its way to being cut up.
type source struct {
	index int32
	cells []int32 // what is left of it, in the order in which whole stripes are cut
	key   []int32 // sort key against the coarse partitions
}

// sources returns the parent stripes so ordered that neighbours share coarse stripes, with their cells so ordered that
// whole stripes are cut from large groups of one coarse stripe.
func (r *refinery) sources(parent *cut) []*source {
	sources := make([]*source, len(parent.stripes))
	for index, stripe := range parent.stripes {
		s := &source{index: int32(index), cells: slices.Clone(stripe)}
		groups := make([][]int32, len(r.coarse)) // per coarse partition: size of each cell's group
		for level, c := range r.coarse {
			sizes := r.inParent[level]
			count(s.cells, c, sizes, 1)
			mainStripe, overlap := int32(-1), int32(0)
			groups[level] = make([]int32, len(s.cells))
			for i, cell := range s.cells {
				size := sizes[c.of[cell]]
				groups[level][i] = size
				if size > overlap || size == overlap && c.of[cell] < mainStripe {
					mainStripe, overlap = c.of[cell], size
				}
			}
			count(s.cells, c, sizes, -1)
			s.key = append(s.key, mainStripe, -overlap)
		}
		order := make([]int, len(s.cells))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int {
			for level, c := range r.coarse {
				if d := cmp.Or(cmp.Compare(groups[level][b], groups[level][a]),
					cmp.Compare(c.of[s.cells[a]], c.of[s.cells[b]])); d != 0 {
					return d
				}
			}
			return cmp.Compare(s.cells[a], s.cells[b])
		})
		sorted := make([]int32, len(order))
		for i, at := range order {
			sorted[i] = s.cells[at]
		}
		s.cells = sorted
		sources[index] = s
	}
	slices.SortFunc(sources, func(a, b *source) int {
		return cmp.Or(slices.Compare(a.key, b.key), cmp.Compare(a.index, b.index))
	})
	return sources
}

// count adds by to the number of cells that each stripe of c holds of cells.
func count(cells []int32, c *cut, sizes []int32, by int32) {
	for _, cell := range cells {
		sizes[c.of[cell]] += by
	}
}

func (r *refinery) emit(stripe []int32) {
	for _, cell := range stripe {
		r.of[cell] = int32(len(r.stripes))
	}
	r.stripes = append(r.stripes, stripe)
}

func (r *refinery) cutRuns(cells []int32) {
	for len(cells) > 0 {
		r.emit(cells[:r.k:r.k])
		cells = cells[r.k:]
	}
}

// cutWindow cuts one window of parent stripes with rests of rest cells; seeds of them found a cross stripe each.
func (r *refinery) cutWindow(window []*source, rest, seeds int) {
	need := r.k - rest
	suppliersUpTo := func(c int) int { return (c*need + rest - 1) / rest }
	var seedSources, suppliers []*source
	for c := range seeds {
		seedSources = append(seedSources, window[0])
		count := suppliersUpTo(c+1) - suppliersUpTo(c)
		suppliers = append(suppliers, window[1:1+count]...)
		window = window[1+count:]
	}
	crosses := make([]*cross, seeds)
	current, left := 0, rest
	for c, seed := range seedSources {
		crosses[c] = &cross{}
		r.take(crosses[c], seed, rest)
		for missing := need; missing > 0; {
			if left == 0 {
				current, left = current+1, rest
			}
			count := min(missing, left)
			r.take(crosses[c], suppliers[current], count)
			missing, left = missing-count, left-count
		}
	}
	for c, seed := range seedSources {
		r.cutRuns(seed.cells)
		for i := suppliersUpTo(c); i < suppliersUpTo(c+1); i++ {
			r.cutRuns(suppliers[i].cells)
		}
	}
	for _, cross := range crosses {
		r.emit(cross.cells)
	}
}

// cross is a cross stripe being filled.
type cross struct {
	cells []int32
	used  [MaxData]bool // columns
}

// take moves the wanted number of cells of s whose columns are open to c. It prefers cells whose coarse stripe c holds
// most of already, then cells of small groups, then the columns that have given least.
func (r *refinery) take(c *cross, s *source, wanted int) {
	r.countBoth(c, s, 1)
	levels := len(r.coarse)
	for range wanted {
		best, bestKey := -1, takeKey{}
		for i, cell := range s.cells {
			if c.used[int(cell)%r.columns] {
				continue
			}
			key := takeKey{}
			for level, coarse := range r.coarse {
				key[level] = -r.inCross[level][coarse.of[cell]]
				key[levels+level] = r.inParent[level][coarse.of[cell]]
			}
			key[2*levels], key[2*levels+1] = int32(r.load[int(cell)%r.columns]), cell
			if best < 0 || slices.Compare(key[:2*levels+2], bestKey[:2*levels+2]) < 0 {
				best, bestKey = i, key
			}
		}
		cell := s.cells[best]
		column := int(cell) % r.columns
		c.used[column] = true
		c.cells = append(c.cells, cell)
		r.load[column]++
		s.cells = slices.Delete(s.cells, best, best+1)
		for level, coarse := range r.coarse {
			r.inCross[level][coarse.of[cell]]++
			r.inParent[level][coarse.of[cell]]--
		}
	}
	r.countBoth(c, s, -1)
}

// takeKey orders the cells a cross stripe may take: a value per coarse partition for the cross stripe, another for the
// parent stripe, the load of the column, and the cell.
type takeKey [2*MaxSchemes + 2]int32

func (r *refinery) countBoth(c *cross, s *source, by int32) {
	for level, coarse := range r.coarse {
		count(c.cells, coarse, r.inCross[level], by)
		count(s.cells, coarse, r.inParent[level], by)
	}
}

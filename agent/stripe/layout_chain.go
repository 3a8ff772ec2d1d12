package stripe

import "cmp"

// treeBudget bounds the search for the best tree of parents: all trees are tried when their number times cells (in
// atoms) times levels stays below it, else the chain and the divisibility trees only. Part of LayoutVersion.
const treeBudget = 1_500_000

// ladderCuts returns a cut for every width (ascending, none of them 1) of a group of rows x columns, in cells.
//
// Any tree that gives every width a wider parent makes the steps between widths and their parents optimal at once
// (refine); the search tries trees, both orders of looking at the other partitions, and row-major order, keeps the
// lowest score, and polishes it (polish). It works on atoms: with g the common divisor of all widths and the columns, g
// neighbouring columns act as one.
func ladderCuts(widths []int, columns, rows int, mode Mode) []*cut {
	search := newChainSearch(widths, columns, rows, mode)
	search.run()
	search.polish()
	cuts := make([]*cut, len(widths))
	for level := range cuts {
		cuts[level] = search.best[level].expand(search.atom, search.columns)
	}
	return cuts
}

// expand replaces every cell by atom cells in neighbouring columns.
func (c *cut) expand(atom, columns int) *cut {
	if atom == 1 {
		return c
	}
	stripes := make([][]int32, len(c.stripes))
	for index, stripe := range c.stripes {
		wide := make([]int32, 0, len(stripe)*atom)
		for _, cell := range stripe {
			for i := range int32(atom) {
				wide = append(wide, cell*int32(atom)+i)
			}
		}
		stripes[index] = wide
	}
	return newCut(c.k*atom, len(c.of)*atom, stripes)
}

// chainSearch looks for the best partitions of every level; the last level is the rows of the group.
type chainSearch struct {
	atom    int // cells per atom
	columns int // in atoms
	cells   int // in atoms
	widths  []int
	real    int // levels that belong to the ladder: all, or all but the last
	mode    Mode

	best      []*cut
	bestScore score
}

func newChainSearch(widths []int, columns, rows int, mode Mode) *chainSearch {
	atom := columns
	for _, k := range widths {
		atom = gcd(atom, k)
	}
	s := &chainSearch{atom: atom, columns: columns / atom, mode: mode, real: len(widths)}
	for _, k := range widths {
		s.widths = append(s.widths, k/atom)
	}
	if s.widths[len(widths)-1] != s.columns {
		s.widths = append(s.widths, s.columns)
	}
	s.cells = rows * s.columns
	return s
}

func (s *chainSearch) run() {
	levels := len(s.widths)
	top := levels - 1
	trial := make([]*cut, levels)
	for level, k := range s.widths {
		trial[level] = runs(s.cells, k)
	}
	s.keep(trial, s.layoutScore(trial))

	chain := make([][]int, top)
	smallest := make([][]int, top)
	largest := make([][]int, top)
	every := make([][]int, top)
	trees := 1
	for level := range top {
		chain[level] = []int{level + 1}
		smallest[level], largest[level] = chain[level], chain[level]
		for parent := top; parent > level; parent-- {
			if s.widths[parent]%s.widths[level] == 0 {
				smallest[level] = []int{parent}
			}
		}
		for parent := level + 1; parent <= top; parent++ {
			every[level] = append(every[level], parent)
			if s.widths[parent]%s.widths[level] == 0 {
				largest[level] = []int{parent}
			}
		}
		trees *= top - level
	}
	starts := [][][]int{chain, smallest, largest}
	if trees*s.cells*levels <= treeBudget {
		starts = [][][]int{every}
	}
	for _, parents := range starts {
		for _, finestFirst := range []bool{false, true} {
			fresh := make([]*cut, levels)
			fresh[top] = trial[top]
			s.explore(fresh, top-1, parents, finestFirst, score{})
		}
	}
}

// explore builds the levels from level down with every allowed choice of parents.
func (s *chainSearch) explore(built []*cut, level int, parents [][]int, finestFirst bool, sofar score) {
	if level < 0 {
		s.keep(built, sofar)
		return
	}
	var coarse []*cut
	for i := level + 1; i < len(built); i++ {
		if finestFirst {
			coarse = append(coarse, built[i])
		} else {
			coarse = append(coarse, built[len(built)-i+level])
		}
	}
	for _, parent := range parents[level] {
		built[level] = refine(built[parent], s.widths[level], s.columns, coarse)
		s.explore(built, level-1, parents, finestFirst, sofar.plus(s.levelScore(built, level)))
	}
}

func (s *chainSearch) keep(cuts []*cut, total score) {
	if s.best == nil || total.less(s.bestScore) {
		s.best, s.bestScore = append([]*cut(nil), cuts...), total
	}
}

// score compares layouts: the strict cost of the pairs the mode insists on first, then the weighted cost of all pairs,
// then the strict cost of adjacent pairs, so that of equals the one wins that is best for every m.
type score struct {
	strict, weighted, adjacent int
}

func (s score) plus(other score) score {
	return score{s.strict + other.strict, s.weighted + other.weighted, s.adjacent + other.adjacent}
}

func (s score) minus(other score) score {
	return score{s.strict - other.strict, s.weighted - other.weighted, s.adjacent - other.adjacent}
}

func (s score) less(other score) bool {
	return cmp.Or(cmp.Compare(s.strict, other.strict), cmp.Compare(s.weighted, other.weighted),
		cmp.Compare(s.adjacent, other.adjacent)) < 0
}

// importance is what a mode makes of the steps between two levels, in both directions.
type importance struct {
	weight   int
	insisted bool // their strict cost comes before everything
	adjacent bool
}

func (s *chainSearch) importance(level, wider int) importance {
	rank := importance{weight: 1, adjacent: wider == level+1}
	switch s.mode {
	case ModeFree:
		rank.insisted = s.widths[wider]%s.widths[level] == 0
		if rank.adjacent {
			rank.weight = 4
		}
	case ModeAdj:
		rank.insisted = rank.adjacent
	}
	return rank
}

func (i importance) score(strict, weighted int) score {
	total := score{weighted: i.weight * weighted}
	if i.insisted {
		total.strict = strict
	}
	if i.adjacent {
		total.adjacent = strict
	}
	return total
}

// layoutScore scores all pairs of levels.
func (s *chainSearch) layoutScore(cuts []*cut) score {
	total := score{}
	for level := range s.real {
		total = total.plus(s.levelScore(cuts, level))
	}
	return total
}

// levelScore scores the pairs of a level with the wider levels of the ladder, both directions.
func (s *chainSearch) levelScore(cuts []*cut, level int) score {
	total := score{}
	for wider := level + 1; wider < s.real; wider++ {
		rank := s.importance(level, wider)
		for _, pair := range [][2]*cut{{cuts[level], cuts[wider]}, {cuts[wider], cuts[level]}} {
			total = total.plus(rank.score(s.stepCost(pair[0], pair[1])))
		}
	}
	return total
}

// stepCost adds up the costs of the stripes on the way from one partition to another.
func (s *chainSearch) stepCost(from, to *cut) (strict, weighted int) {
	counts := make([]int, len(to.stripes))
	for _, stripe := range from.stripes {
		overlap, segments := 0, 0
		for _, cell := range stripe {
			if counts[to.of[cell]]++; counts[to.of[cell]] == 1 {
				segments++
			}
		}
		for _, cell := range stripe {
			overlap = max(overlap, counts[to.of[cell]])
			counts[to.of[cell]] = 0
		}
		stripeStrict, stripeWeighted := s.stripeCost(from.k, overlap, segments)
		strict, weighted = strict+stripeStrict, weighted+stripeWeighted
	}
	return strict, weighted
}

// stripeCost is the cost of one stripe of k atoms that falls into this many segments, the largest of overlap atoms. The
// sum of the strict costs of a step is least exactly where reads and network are least for every m; the weighted cost is
// reads and network at m = 2 and m = 3.
func (s *chainSearch) stripeCost(k, overlap, segments int) (strict, weighted int) {
	loose := k - overlap
	strict = k*k - overlap*(overlap-1)/2 + loose + segments
	for _, parities := range [...]int{2, 3} {
		weighted += min(k*s.atom, parities+loose*s.atom) + loose*s.atom + (parities-1)*(segments-1)
	}
	return strict, weighted
}

// leastCost is the least stepCost of any two partitions into stripes of from and of to atoms: with l = lcm(from,to),
// lI = l/from and lF = l/to, per l atoms lI mod lF stripes overlap by to mod from, the others wholly, and the segments
// join the stripes to a tree, so that those beyond the first of each stripe are lF-1.
func (s *chainSearch) leastCost(from, to int) (strict, weighted int) {
	window := lcm(from, to)
	initial, final := window/from, window/to
	split := initial % final
	wholeStrict, wholeWeighted := s.stripeCost(from, from, 1)
	strict, weighted = (initial-split)*wholeStrict, (initial-split)*wholeWeighted
	if split > 0 {
		splitStrict, splitWeighted := s.stripeCost(from, to%from, 1)
		strict, weighted = strict+split*splitStrict, weighted+split*splitWeighted
	}
	strict, weighted = strict+final-1, weighted+segmentCost*(final-1)
	return strict * (s.cells / window), weighted * (s.cells / window)
}

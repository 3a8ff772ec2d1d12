package kernel

import (
	"encoding/binary"
	"slices"
)

const (
	// sliceBytes is the size of a slice in an array of them; the assembly finds blocks by such offsets.
	sliceBytes = 24
	// workingSetBytes is what the pieces of the blocks of a part take together: they stay in the second-level cache. Pieces
	// for the first level are so short that the loops of the tiles cost more than they save.
	workingSetBytes = 128 << 10
	// maxCallBytes is how much of a block one call of the assembly works on at most, because the scheduler cannot interrupt
	// it; it is a multiple of every step.
	maxCallBytes = 256 << 10
	// pieceGrain is what a piece is a multiple of: twice the most that any kernel takes in one step.
	pieceGrain = 1024
)

// part is a set of rows that share inputs with each other and with no other row. Its tiles are applied to one piece of
// the blocks after the other.
type part struct {
	tiles      []tile
	pieceBytes int
}

// tile is up to maxTileRows rows that have the same columns and are made in one pass over these.
type tile struct {
	rows         []uint32 // offsets into the array of outputs
	columns      []uint32 // offsets into the array of inputs; the first ones of them have only coefficients of one
	ones         int
	onesRow      bool // all coefficients of the first row are one
	coefficients []byte
}

// column is one input's entries, those with coefficient one first.
type column struct {
	factors      []factor // index is the output
	rows         []uint32 // offsets into the array of outputs
	coefficients []byte   // of all the rows
}

const (
	// maxColumnRows is how many rows a column is added to at once.
	maxColumnRows = 4
	// columnPieceBytes is how much of an input is added to all rows in turn, while it is in the first-level cache.
	columnPieceBytes = 16 << 10
)

// pieceBytes returns how much of the input a call works on.
func (c *column) pieceBytes() int {
	if len(c.rows) > maxColumnRows {
		return columnPieceBytes
	}
	return maxCallBytes
}

// maxTileRows returns how many rows a path makes in a pass.
func (p path) maxTileRows() int {
	if p == avx2 {
		return 4
	}
	return 6
}

func arrangeColumns(byColumn [][]factor, p path) []column {
	columns := make([]column, len(byColumn))
	for i, factors := range byColumn {
		c := &columns[i]
		slices.SortStableFunc(factors, func(a, b factor) int { return boolOrder(a.coefficient == 1, b.coefficient == 1) })
		c.factors = factors
		c.rows = make([]uint32, 0, len(factors))
		for _, f := range factors {
			c.rows = append(c.rows, uint32(f.index)*sliceBytes)
			if p != generic {
				c.coefficients = appendCoefficient(c.coefficients, p, f.coefficient)
			}
		}
	}
	return columns
}

// arrange orders the rows of a matrix for the registers and the cache.
func arrange(rows [][]factor, p path) []part {
	// Rows with the same columns can share the loads of these.
	var order []string
	groups := map[string][]int{}
	var key []byte
	for i, row := range rows {
		if len(row) == 0 {
			continue
		}
		key = key[:0]
		for _, f := range row {
			key = binary.LittleEndian.AppendUint32(key, uint32(f.index))
		}
		if groups[string(key)] == nil {
			order = append(order, string(key))
		}
		groups[string(key)] = append(groups[string(key)], i)
	}
	var tiles []tile
	for _, support := range order {
		tiles = append(tiles, cover(rows, groups[support], p)...)
	}
	return split(tiles)
}

// cover makes tiles of rows with the same columns, the cheaper way: as many rows at once as possible, or one by one,
// where every coefficient of one is a sum instead of a product.
func cover(rows [][]factor, members []int, p path) (tiles []tile) {
	slices.SortStableFunc(members, func(a, b int) int { return boolOrder(allOnes(rows[a]), allOnes(rows[b])) })
	single, shared := len(members), (len(members)+p.maxTileRows()-1)/p.maxTileRows()
	chosen := shared
	if costOf(rows, members, single) < costOf(rows, members, shared) {
		chosen = single
	}
	for i := range chosen {
		tiles = append(tiles, newTile(rows, share(members, i, chosen), p))
	}
	return tiles
}

// share returns the i-th of so many nearly equal shares.
func share(members []int, i, shares int) []int {
	return members[i*len(members)/shares : (i+1)*len(members)/shares]
}

// costOf is the cost of rows in so many tiles.
func costOf(rows [][]factor, members []int, tiles int) (sum int) {
	for i := range tiles {
		sum += cost(rows, share(members, i, tiles))
	}
	return sum
}

// boolOrder puts true first.
func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

func allOnes(row []factor) bool {
	return !slices.ContainsFunc(row, func(f factor) bool { return f.coefficient != 1 })
}

// tileCost is what a tile costs for each vector beside its arithmetic: its loops, and loading its columns once more.
const tileCost = 3

// cost models how long a tile takes for each vector, in half cycles of a core that starts one product and one sum of
// three, or two such sums, and two loads in a cycle.
func cost(rows [][]factor, members []int) int {
	columns := len(rows[members[0]])
	ones := onesColumns(rows, members)
	multiplied := len(members)
	if len(members) > 1 && allOnes(rows[members[0]]) {
		multiplied--
	}
	products := multiplied * (columns - ones)
	sums := len(members) * columns / 2
	return max(2*products, products+sums, columns) + tileCost
}

// onesColumns returns how many columns have coefficient one in all the rows.
func onesColumns(rows [][]factor, members []int) (count int) {
	for at := range rows[members[0]] {
		if onesColumn(rows, members, at) {
			count++
		}
	}
	return count
}

func onesColumn(rows [][]factor, members []int, at int) bool {
	return !slices.ContainsFunc(members, func(i int) bool { return rows[i][at].coefficient != 1 })
}

// newTile arranges rows with the same columns; if one of them has only ones it is the first.
func newTile(rows [][]factor, members []int, p path) tile {
	t := tile{rows: make([]uint32, len(members)), onesRow: len(members) > 1 && allOnes(rows[members[0]])}
	for i, row := range members {
		t.rows[i] = uint32(row) * sliceBytes
	}
	multiplied := members
	if t.onesRow {
		multiplied = members[1:]
	}
	shared := rows[members[0]]
	t.columns = make([]uint32, 0, len(shared))
	others := make([]int, 0, len(shared))
	for at, f := range shared {
		if onesColumn(rows, members, at) {
			t.columns = append(t.columns, uint32(f.index)*sliceBytes)
		} else {
			others = append(others, at)
		}
	}
	t.ones = len(t.columns)
	for _, at := range others {
		t.columns = append(t.columns, uint32(shared[at].index)*sliceBytes)
	}
	// In the order the kernels take them: an odd first column, then two columns at a time.
	t.coefficients = make([]byte, 0, len(others)*len(multiplied)*p.coefficientBytes())
	for len(others) > 0 {
		width := 2 - len(others)&1
		for _, row := range multiplied {
			for _, at := range others[:width] {
				t.coefficients = appendCoefficient(t.coefficients, p, rows[row][at].coefficient)
			}
		}
		others = others[width:]
	}
	return t
}

// split puts tiles that share inputs, directly or through others, into one part.
func split(tiles []tile) []part {
	// The representative of a set of tiles is the first of them.
	leader := make([]int, len(tiles))
	find := func(i int) int {
		for leader[i] != i {
			leader[i] = leader[leader[i]]
			i = leader[i]
		}
		return i
	}
	user := map[uint32]int{}
	for i, t := range tiles {
		leader[i] = i
		for _, c := range t.columns {
			if other, used := user[c]; used {
				a, b := find(other), find(i)
				leader[max(a, b)] = min(a, b)
			} else {
				user[c] = i
			}
		}
	}
	index := map[int]int{}
	var parts []part
	for i, t := range tiles {
		at, known := index[find(i)]
		if !known {
			at = len(parts)
			index[find(i)] = at
			parts = append(parts, part{})
		}
		parts[at].tiles = append(parts[at].tiles, t)
	}
	for i := range parts {
		parts[i].pieceBytes = pieceBytes(parts[i].tiles)
	}
	return parts
}

// pieceBytes returns how much of each block a part should work on at a time.
func pieceBytes(tiles []tile) int {
	if len(tiles) == 1 {
		return maxCallBytes // each block is passed over once in any case
	}
	inputs := map[uint32]bool{}
	blocks := 0
	for _, t := range tiles {
		blocks += len(t.rows)
		for _, c := range t.columns {
			inputs[c] = true
		}
	}
	blocks += len(inputs)
	return max(workingSetBytes/blocks/pieceGrain, 1) * pieceGrain
}

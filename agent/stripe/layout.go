package stripe

import (
	"fmt"
	"slices"
)

// Mode says what a layout favours where a ladder cannot have everything.
type Mode string

// The modes of a layout.
const (
	ModeFree Mode = "free" // default: every dividing pair nested, so its demotion sends nothing
	ModeAdj  Mode = "adj"  // every adjacent step at the pairwise minimum, for every m
	ModeAll  Mode = "all"  // lowest sum over all pairs
	ModeRow  Mode = "row"  // row-major baseline
	ModePair Mode = "pair" // closed-form ERS-aware placement of a two-point ladder (ERS Section 3.3), baseline
)

// Modes lists every mode, the default first.
func Modes() []Mode { return []Mode{ModeFree, ModeAdj, ModeAll, ModeRow, ModePair} }

// LayoutVersion numbers the algorithm behind NewLayout. Stored groups depend on it: any change of a layout needs a new
// number, and the old one must stay readable.
const LayoutVersion = 1

// MaxCells is the largest group NewLayout makes.
const MaxCells = 400_000

// Layout says, for every scheme of a ladder, how the cells of a group fall into stripes. Immutable; shared.
type Layout struct {
	Version    int
	Ladder     Ladder
	Mode       Mode
	Rows       int // R
	Columns    int // w
	partitions map[int]*Partition
	whole      *Layout   // with all columns; nil: it is that
	empty      columnSet // of which nothing is stored
}

// Partition is how the cells fall into stripes of K cells. Cell r*Columns+c is the cell in row r of column c.
type Partition struct {
	K        int
	Stripes  [][]int32 // cells of each stripe, ascending; stripes ordered by their first cell
	StripeOf []int32   // stripe of each cell
}

type layoutKey struct {
	ladder  string
	columns int
	mode    Mode
}

// layouts keeps about four million cell labels.
var layouts = newBoundedCache[layoutKey, *Layout](4_000_000)

// NewLayout returns the layout of a group of this many columns whose class may take the schemes of ladder; columns 0
// means the ladder's width, an empty mode means ModeFree. The group has R = lcm(all k, columns)/columns rows, the fewest
// possible. A partition depends on k alone, so schemes that differ in m share one.
//
// Equal arguments give the same layout on every machine. Every stripe has distinct columns, and every partition covers
// every cell once; both are checked before the layout is returned. Errors wrap ErrScheme or ErrLayout.
func NewLayout(ladder Ladder, columns int, mode Mode) (*Layout, error) {
	if err := ladder.Validate(); err != nil {
		return nil, fmt.Errorf("laying out a group: %w", err)
	}
	if columns == 0 {
		columns = ladder.Width()
	}
	if mode == "" {
		mode = ModeFree
	}
	key := layoutKey{ladder.String(), columns, mode}
	if layout, found := layouts.get(key); found {
		return layout, nil
	}
	layout, err := buildLayout(slices.Clone(ladder), columns, mode)
	if err != nil {
		return nil, fmt.Errorf("laying out %s over %d columns: %w", key.ladder, columns, err)
	}
	return layouts.add(key, layout, layout.Cells()*len(layout.partitions)), nil
}

func buildLayout(ladder Ladder, columns int, mode Mode) (*Layout, error) {
	if columns < ladder.Width() {
		return nil, fmt.Errorf("%w: the widest scheme needs %d columns; use at least as many", ErrLayout, ladder.Width())
	}
	if columns > MaxData {
		return nil, fmt.Errorf("%w: a group has at most %d columns", ErrLayout, MaxData)
	}
	if !slices.Contains(Modes(), mode) {
		return nil, fmt.Errorf("%w: no mode is called %q; use one of %v", ErrLayout, mode, Modes())
	}
	widths := ladder.widths()
	cells := columns
	for _, k := range widths {
		cells = lcm(cells, k)
		if cells > MaxCells {
			return nil, fmt.Errorf("%w: a group would have more than %d cells; choose widths with more common factors",
				ErrLayout, MaxCells)
		}
	}
	layout := &Layout{
		Version: LayoutVersion, Ladder: ladder, Mode: mode, Rows: cells / columns, Columns: columns,
		partitions: make(map[int]*Partition),
	}
	cuts, err := layout.cuts(widths)
	if err != nil {
		return nil, err
	}
	for _, cut := range cuts {
		layout.partitions[cut.k] = cut.partition(cells)
	}
	if err := layout.verify(widths); err != nil {
		return nil, err
	}
	return layout, nil
}

// widths returns the distinct k of the ladder, ascending.
func (l Ladder) widths() []int {
	var widths []int
	for _, scheme := range l {
		widths = append(widths, scheme.K)
	}
	slices.Sort(widths)
	return slices.Compact(widths)
}

// cuts returns a cut for every width, in cells.
func (l *Layout) cuts(widths []int) ([]*cut, error) {
	var cuts []*cut
	if widths[0] == 1 {
		cuts = append(cuts, runs(l.Cells(), 1))
		widths = widths[1:]
	}
	switch {
	case len(widths) == 0:
		return cuts, nil
	case l.Mode == ModeRow:
		for _, k := range widths {
			cuts = append(cuts, runs(l.Cells(), k))
		}
		return cuts, nil
	case l.Mode == ModePair:
		if len(widths) > 2 || widths[len(widths)-1] != l.Columns {
			return nil, fmt.Errorf("%w: mode pair takes two widths besides 1, the larger equal to the columns; use mode free",
				ErrLayout)
		}
		for _, k := range widths {
			if k == l.Columns {
				cuts = append(cuts, runs(l.Cells(), k))
			} else {
				cuts = append(cuts, pairCut(k, l.Columns))
			}
		}
		return cuts, nil
	}
	return append(cuts, ladderCuts(widths, l.Columns, l.Rows, l.Mode)...), nil
}

// verify checks that every width has a partition that covers every cell once with stripes of distinct columns.
func (l *Layout) verify(widths []int) error {
	for _, k := range widths {
		partition := l.partitions[k]
		if partition == nil || len(partition.Stripes)*k != l.Cells() {
			return fmt.Errorf("%w: internal error: the partition for k = %d is incomplete", ErrLayout, k)
		}
		for index, cells := range partition.Stripes {
			var seen [MaxData]bool
			for _, cell := range cells {
				column := int(cell) % l.Columns
				if seen[column] || partition.StripeOf[cell] != int32(index) {
					return fmt.Errorf("%w: internal error: stripe %d for k = %d repeats a column or cell", ErrLayout, index, k)
				}
				seen[column] = true
			}
			if len(cells) != k {
				return fmt.Errorf("%w: internal error: stripe %d for k = %d has %d cells", ErrLayout, index, k, len(cells))
			}
		}
	}
	return nil
}

// Cells returns the number of data cells of a group.
func (l *Layout) Cells() int { return l.Rows * l.Columns }

// CellIndex returns the index of the cell in this row of this column.
func (l *Layout) CellIndex(row, column int) int { return row*l.Columns + column }

// Partition returns how the cells fall into stripes of k; k must belong to a scheme of the ladder, else the error wraps
// ErrLayout. The result is shared: do not change it.
func (l *Layout) Partition(k int) (*Partition, error) {
	if partition := l.partitions[k]; partition != nil {
		return partition, nil
	}
	return nil, fmt.Errorf("%w: ladder %s has no scheme with k = %d", ErrLayout, l.Ladder, k)
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func lcm(a, b int) int { return a / gcd(a, b) * b }

// ParseLayout returns the layout that a record describes: of a version, of a ladder as text, in a mode, over so many columns.
// ErrLayout if this program does not know the version.
func ParseLayout(version int, ladder, mode string, columns int) (*Layout, error) {
	if version != LayoutVersion {
		return nil, fmt.Errorf("%w: layout version %d, and this program knows version %d; use the program that wrote it",
			ErrLayout, version, LayoutVersion)
	}
	parsed, err := ParseLadder(ladder)
	if err != nil {
		return nil, err
	}
	return NewLayout(parsed, columns, Mode(mode))
}

// Blocks is how many blocks a group has under a scheme of the ladder: its cells and their parities.
func (l *Layout) Blocks(scheme Scheme) int { return l.Cells() + l.Cells()/scheme.K*scheme.M }

package stripe

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type labelHash struct{ hash.Hash }

func newLabelHash() labelHash { return labelHash{sha256.New()} }

func (h labelHash) add(value int) {
	var word [4]byte
	binary.LittleEndian.PutUint32(word[:], uint32(value))
	h.Write(word[:])
}

func (h labelHash) String() string { return hex.EncodeToString(h.Sum(nil)[:8]) }

func hashLayout(l *Layout) string {
	h := newLabelHash()
	h.add(l.Rows)
	h.add(l.Columns)
	for _, k := range l.Ladder.widths() {
		h.add(k)
		for _, stripe := range l.partitions[k].StripeOf {
			h.add(int(stripe))
		}
	}
	return h.String()
}

// Stored groups depend on these layouts. A change here needs a new LayoutVersion that leaves version 1 readable.
func TestLayoutsArePinned(t *testing.T) {
	for _, c := range pinnedLayouts {
		ladder, err := ParseLadder(c.ladder)
		if err != nil {
			t.Fatal(err)
		}
		if got := hashLayout(mustLayout(t, ladder, c.columns, c.mode)); got != c.hash {
			t.Errorf("{%q, %d, %q, %q},", c.ladder, c.columns, c.mode, got)
		}
	}
}

// stepCost returns reads and network of a step by the formulas for a layout: sum of min(K, m+K-overlap), and loose cells
// plus (m-1) times the segments beyond the first.
func stepCost(a, b *Partition, m int) (reads, network int) {
	for _, cells := range a.Stripes {
		counts := make(map[int32]int)
		for _, cell := range cells {
			counts[b.StripeOf[cell]]++
		}
		overlap := 0
		for _, count := range counts {
			overlap = max(overlap, count)
		}
		reads += min(a.K, m+a.K-overlap)
		network += a.K - overlap + (m-1)*(len(counts)-1)
	}
	return reads, network
}

// bestStep returns the least any layout of the pair can have: the read bound, and the network formula on the overlap
// graphs with the fewest loose cells and segments.
func bestStep(cells, k, next, m int) (reads, network int) {
	window := lcm(k, next)
	windows := cells / window
	initial, final := window/k, window/next
	split, overlap := initial%final, next%k
	reads = (initial-split)*min(k, m) + split*min(k, m+k-overlap)
	return reads * windows, (split*(k-overlap) + (m-1)*(final-1)) * windows
}

// Mode adj: every adjacent step at the pairwise minimum, up and down, for every m at once.
// Mode free: every dividing pair nested.
func TestModesKeepTheirPromises(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		ladder := drawLadder(r)
		columns := ladder.Width()
		if rapid.Bool().Draw(r, "wider") {
			columns += rapid.IntRange(0, 4).Draw(r, "spare columns")
		}
		adjacent, err := NewLayout(ladder, columns, ModeAdj)
		if err != nil {
			r.Fatal(err)
		}
		widths := ladder.widths()
		for i := range len(widths) - 1 {
			for _, step := range [][2]int{{widths[i], widths[i+1]}, {widths[i+1], widths[i]}} {
				a, b := adjacent.partitions[step[0]], adjacent.partitions[step[1]]
				for m := 1; m <= 6; m++ {
					reads, network := stepCost(a, b, m)
					wantReads, wantNetwork := bestStep(adjacent.Cells(), step[0], step[1], m)
					if reads != wantReads || network != wantNetwork {
						r.Fatalf("%s, %v, m=%d: %d reads and %d sent, want %d and %d", ladder, step, m, reads, network, wantReads, wantNetwork)
					}
				}
			}
		}
		free, err := NewLayout(ladder, columns, ModeFree)
		if err != nil {
			r.Fatal(err)
		}
		for _, k := range widths {
			for _, wide := range widths {
				if wide%k != 0 {
					continue
				}
				for _, cells := range free.partitions[k].Stripes {
					for _, cell := range cells {
						if free.partitions[wide].StripeOf[cell] != free.partitions[wide].StripeOf[cells[0]] {
							r.Fatalf("%s: a stripe of %d lies in several stripes of %d", ladder, k, wide)
						}
					}
				}
			}
		}
	})
}

// The closed form equals the chain's costs for one pair, whatever the modes.
func TestModesAgreeOnOnePair(t *testing.T) {
	for wide := 3; wide <= 20; wide++ {
		for k := 2; k < wide; k++ {
			ladder := Ladder{RS(k, 2), RS(wide, 2)}
			pair := mustLayout(t, ladder, 0, ModePair)
			for _, mode := range []Mode{ModeFree, ModeAdj, ModeAll} {
				chain := mustLayout(t, ladder, 0, mode)
				for m := 1; m <= 4; m++ {
					for _, step := range [][2]int{{k, wide}, {wide, k}} {
						reads, network := stepCost(pair.partitions[step[0]], pair.partitions[step[1]], m)
						chainReads, chainNetwork := stepCost(chain.partitions[step[0]], chain.partitions[step[1]], m)
						if reads != chainReads || network != chainNetwork {
							t.Errorf("%s mode %s m=%d: %d, %d; pair %d, %d", ladder, mode, m, chainReads, chainNetwork, reads, network)
						}
					}
				}
			}
		}
	}
}

// Sums over adjacent steps, both ways, against the tables of the chain construction.
func TestLadderTotals(t *testing.T) {
	for _, c := range []struct {
		widths         []int
		m              int
		mode           Mode
		reads, network int
	}{
		{[]int{4, 6, 8, 12}, 2, ModeAdj, 78, 48}, {[]int{4, 6, 8, 12}, 2, ModeFree, 80, 50}, {[]int{4, 6, 8, 12}, 2, ModeRow, 80, 50},
		{[]int{4, 5, 6}, 2, ModeFree, 132, 78}, {[]int{4, 5, 6}, 2, ModeRow, 158, 99},
		{[]int{8, 10, 12}, 3, ModeFree, 220, 156}, {[]int{8, 10, 12}, 3, ModeRow, 267, 198},
		{[]int{10, 12, 14}, 2, ModeFree, 520, 354}, {[]int{10, 12, 14}, 2, ModeRow, 704, 538},
		{[]int{30, 31, 32}, 2, ModeFree, 5670, 3718}, {[]int{30, 31, 32}, 2, ModeRow, 18722, 16739},
	} {
		var ladder Ladder
		for _, k := range c.widths {
			ladder = append(ladder, RS(k, c.m))
		}
		layout := mustLayout(t, ladder, 0, c.mode)
		reads, network := 0, 0
		for i := range len(c.widths) - 1 {
			a, b := layout.partitions[c.widths[i]], layout.partitions[c.widths[i+1]]
			for _, step := range [][2]*Partition{{a, b}, {b, a}} {
				stepReads, stepNetwork := stepCost(step[0], step[1], c.m)
				reads, network = reads+stepReads, network+stepNetwork
			}
		}
		if reads != c.reads || network != c.network {
			t.Errorf("%s mode %s: %d reads and %d sent, want %d and %d", ladder, c.mode, reads, network, c.reads, c.network)
		}
	}
}

func TestLayoutsRefused(t *testing.T) {
	for _, c := range []struct {
		ladder  Ladder
		columns int
		mode    Mode
		want    error
	}{
		{Ladder{RS(4, 2)}, 3, "", ErrLayout},
		{Ladder{RS(4, 2)}, MaxData + 1, "", ErrLayout},
		{Ladder{RS(4, 2)}, 4, "diagonal", ErrLayout},
		{Ladder{RS(4, 2), RS(5, 2), RS(6, 2)}, 6, ModePair, ErrLayout},
		{Ladder{RS(4, 2), RS(5, 2)}, 6, ModePair, ErrLayout},
		{Ladder{RS(61, 2), RS(59, 2), RS(53, 2), RS(47, 2)}, 0, "", ErrLayout},
		{Ladder{}, 0, "", ErrScheme},
		{Ladder{RS(4, 2), RS(4, 2)}, 0, "", ErrScheme},
		{Ladder{RS(4, 0)}, 0, "", ErrScheme},
	} {
		if _, err := NewLayout(c.ladder, c.columns, c.mode); !errors.Is(err, c.want) {
			t.Errorf("%s over %d, mode %s: %v, want %v", c.ladder, c.columns, c.mode, err, c.want)
		}
	}
}

func TestLayoutIgnoresOrderAndParityOfLadder(t *testing.T) {
	a := mustLayout(t, Ladder{Replicas(3), RS(4, 2), RS(6, 2)}, 0, ModeFree)
	b := mustLayout(t, Ladder{RS(6, 4), RS(4, 1), RS(4, 3), Replicas(1)}, 0, ModeFree)
	for _, k := range []int{1, 4, 6} {
		if !slices.Equal(a.partitions[k].StripeOf, b.partitions[k].StripeOf) {
			t.Errorf("the partitions for k = %d differ", k)
		}
	}
}

func BenchmarkNewLayout(b *testing.B) {
	for _, text := range []string{"rep(3),rs(3,2),rs(6,2),rs(12,2)", "rs(4,2),rs(6,2),rs(8,2),rs(12,2)", "rs(10,2),rs(12,2),rs(14,2)", "rep(3),rs(4,2),rs(6,2),rs(9,2),rs(12,2),rs(16,2)", "rs(30,2),rs(31,2),rs(32,2)", "rs(11,2),rs(20,2),rs(28,2),rs(35,2),rs(44,2),rs(55,2)"} {
		ladder, err := ParseLadder(text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(text, func(b *testing.B) {
			for b.Loop() {
				if _, err := buildLayout(ladder, ladder.Width(), ModeFree); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

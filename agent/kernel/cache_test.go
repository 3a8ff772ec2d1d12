package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// consistent fails if the cache holds more than it may or does not know what it holds.
func (c *matrixCache) consistent(t rapid.TB) {
	t.Helper()
	terms := 0 // and rows and columns, which take memory too
	for element := c.recent.Front(); element != nil; element = element.Next() {
		m := element.Value.(*cachedMatrix)
		terms += len(m.terms) + m.shape.outputs + m.shape.inputs
		if c.entries[m.hash] != element {
			t.Fatalf("a matrix of %d entries is in the list and not in the index", len(m.terms))
		}
	}
	if terms != c.terms || len(c.entries) != c.recent.Len() {
		t.Fatalf("the cache counts %d, its matrices %d; %d are indexed, %d listed", c.terms, terms, len(c.entries), c.recent.Len())
	}
	if c.terms > maxCachedTerms {
		t.Fatalf("the cache holds %d, at most %d are allowed", c.terms, maxCachedTerms)
	}
}

// counted makes matrices that remember nothing but their path, and counts them.
type counted struct{ made int }

func (c *counted) make(s shape, terms []Term) (*Matrix, error) {
	c.made++
	return &Matrix{path: s.path}, nil
}

// distinct returns entries that differ from those of every other number.
func distinct(number, count int) []Term {
	terms := make([]Term, count)
	for i := range terms {
		terms[i] = Term{Output: i, Input: number, Coefficient: 1}
	}
	return terms
}

func TestCacheIsBounded(t *testing.T) {
	sizes := []int{0, 1, 5, 1000, maxCachedMatrixTerms - 1, maxCachedMatrixTerms, maxCachedMatrixTerms + 1}
	dimensions := []int{0, 3, 3000, maxCachedTerms, maxDimension}
	rapid.Check(t, func(t *rapid.T) {
		var cache matrixCache
		var maker counted
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			s := shape{rapid.SampledFrom(dimensions).Draw(t, "outputs"), rapid.SampledFrom(dimensions).Draw(t, "inputs"), generic}
			terms := distinct(rapid.IntRange(0, 20).Draw(t, "number"), rapid.SampledFrom(sizes).Draw(t, "entries"))
			if _, err := cache.get(s, terms, maker.make); err != nil {
				t.Fatal(err)
			}
			cache.consistent(t)
		}
	})
}

func TestCacheMakesAMatrixOnce(t *testing.T) {
	var cache matrixCache
	var maker counted
	get := func(s shape, terms []Term) *Matrix {
		m, err := cache.get(s, terms, maker.make)
		if err != nil {
			t.Fatal(err)
		}
		cache.consistent(t)
		return m
	}
	s := shape{2000, 50, generic}
	first := get(s, distinct(1, 1000))
	if again := get(s, distinct(1, 1000)); again != first || maker.made != 1 {
		t.Errorf("%d matrices made for one", maker.made)
	}
	// Shape, path, entries, their number, their order: all of it makes a difference.
	others := distinct(1, 1000)
	others[999].Coefficient = 2
	reversed := distinct(1, 1000)
	slices.Reverse(reversed)
	for i, other := range []struct {
		shape shape
		terms []Term
	}{
		{shape{2001, 50, generic}, distinct(1, 1000)}, {shape{2000, 51, generic}, distinct(1, 1000)}, {shape{50, 2000, generic}, distinct(1, 1000)},
		{shape{2000, 50, avx2}, distinct(1, 1000)}, {s, distinct(2, 1000)}, {s, distinct(1, 999)}, {s, others}, {s, reversed}, {s, nil},
	} {
		before := maker.made
		if m := get(other.shape, other.terms); m == first || maker.made == before || m.path != other.shape.path {
			t.Errorf("request %d was answered with a matrix of another", i)
		}
	}
}

// TestCacheKeepsTheLatestUsed fills it, uses the oldest again, and goes on until something has to go.
func TestCacheKeepsTheLatestUsed(t *testing.T) {
	var cache matrixCache
	var maker counted
	const each = 10_000
	get := func(number int) (made bool) {
		before := maker.made
		if _, err := cache.get(shape{0, 0, generic}, distinct(number, each), maker.make); err != nil {
			t.Fatal(err)
		}
		cache.consistent(t)
		return maker.made > before
	}
	fitting := maxCachedTerms / each
	for number := range fitting {
		get(number)
	}
	if get(0) {
		t.Errorf("%d matrices of %d entries do not fit", fitting, each)
	}
	get(fitting) // takes the place of number 1
	if get(0) {
		t.Error("a matrix used lately is gone")
	}
	if !get(1) {
		t.Error("the matrix not used for longest is still there")
	}
}

func TestCacheKeepsNoMistakes(t *testing.T) {
	var cache matrixCache
	broken := errors.New("broken")
	for range 2 {
		m, err := cache.get(shape{1, 1, generic}, distinct(0, 1), func(shape, []Term) (*Matrix, error) { return nil, broken })
		if m != nil || !errors.Is(err, broken) {
			t.Errorf("matrix %v and error %v", m, err)
		}
	}
	var maker counted
	if m, err := cache.get(shape{1, 1, generic}, distinct(0, 1), maker.make); m == nil || err != nil || maker.made != 1 {
		t.Errorf("after an error: matrix %v and error %v", m, err)
	}
}

// TestCacheTellsCollisionsApart puts a matrix where another one with the same hash is looked for.
func TestCacheTellsCollisionsApart(t *testing.T) {
	var cache matrixCache
	var maker counted
	wanted, wantedShape := distinct(1, 10), shape{20, 20, generic}
	hash := hashTerms(wantedShape, wanted)
	for name, other := range map[string]*cachedMatrix{
		"other entries": {hash, wantedShape, distinct(2, 10), &Matrix{}}, "fewer entries": {hash, wantedShape, wanted[:9], &Matrix{}},
		"other shape": {hash, shape{20, 21, generic}, wanted, &Matrix{}}, "other path": {hash, shape{20, 20, avx2}, wanted, &Matrix{}},
	} {
		cache.put(other)
		cache.consistent(t)
		m, err := cache.get(wantedShape, wanted, maker.make)
		if err != nil || m == other.matrix {
			t.Errorf("%s with the same hash: the matrix of the other, error %v", name, err)
		}
		cache.consistent(t)
		if again, err := cache.get(wantedShape, wanted, maker.make); err != nil || again != m {
			t.Errorf("%s: the matrix that took the place is not found", name)
		}
	}
}

// TestCacheCounts looks matrices up that are there, are not, and are too large to be kept, until some are forgotten.
func TestCacheCounts(t *testing.T) {
	var cache matrixCache
	var maker counted
	look := func(s shape, terms []Term) {
		t.Helper()
		if _, err := cache.get(s, terms, maker.make); err != nil {
			t.Fatal(err)
		}
	}
	look(shape{20, 20, generic}, distinct(1, 10))
	look(shape{20, 20, generic}, distinct(1, 10))
	look(shape{maxCachedMatrixTerms, 1, generic}, nil)
	if want := (CacheCounts{Hits: 1, Misses: 2}); cache.count != want {
		t.Errorf("%+v, want %+v", cache.count, want)
	}
	for i := range 8 { // each an eighth of the bound
		look(shape{maxCachedMatrixTerms - 1 - i, 1, generic}, nil)
	}
	if cache.count.Misses != 10 || cache.count.Evictions != 1 || maker.made != 10 {
		t.Errorf("%+v after %d were made", cache.count, maker.made)
	}
}

// TestCacheKeepsNoTermsOfTheCaller changes entries after they have been looked up.
func TestCacheKeepsNoTermsOfTheCaller(t *testing.T) {
	var cache matrixCache
	var maker counted
	terms := distinct(1, 10)
	if _, err := cache.get(shape{20, 20, generic}, terms, maker.make); err != nil {
		t.Fatal(err)
	}
	terms[3].Coefficient = 9
	if _, err := cache.get(shape{20, 20, generic}, distinct(1, 10), maker.make); err != nil || maker.made != 1 {
		t.Errorf("%d matrices made for one, error %v", maker.made, err)
	}
}

func TestEntriesInAnyOrder(t *testing.T) {
	onEveryPath(t, func(t *testing.T) {
		all := operations()
		for i, e := range fewShapes() {
			s := newSample(e, 700, uint64(i))
			for seed := range uint64(5) {
				rand.New(rand.NewPCG(seed, 3)).Shuffle(len(e.terms), func(i, j int) { e.terms[i], e.terms[j] = e.terms[j], e.terms[i] })
				r := newTrial(t, s, offsets(0, 0), offsets(0, 0))
				for _, o := range all {
					r.check(t, o, 0, 700)
				}
			}
		}
	})
}

// TestCompileFromManyGoroutines compiles few matrices at many places at once, and applies what comes back.
func TestCompileFromManyGoroutines(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 5
	}
	onEveryPath(t, func(t *testing.T) {
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				random := rand.New(rand.NewPCG(uint64(i), 4))
				for range rounds {
					if err := compileAndApply(random.IntN(6)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		compiled.mutex.Lock()
		defer compiled.mutex.Unlock()
		compiled.consistent(t)
	})
}

// compileAndApply uses a matrix that differs in its last coefficient only from those of other numbers, or is large.
func compileAndApply(number int) error {
	const inputs = 3
	outputs := 2 + number/4*3000
	var terms []Term
	for row := range outputs {
		for column := range inputs {
			terms = append(terms, Term{row, column, byte(1 + row + column)})
		}
	}
	terms[len(terms)-1].Coefficient = byte(100 + number)
	m, err := Compile(outputs, inputs, terms)
	if err != nil {
		return err
	}
	in, out := filled(inputs, 70, 1), make([][]byte, outputs)
	for i := range out {
		out[i] = make([]byte, 70)
	}
	m.Apply(out, in)
	want := make([]byte, 70)
	for _, term := range terms[len(terms)-inputs:] {
		for i, b := range in[term.Input] {
			want[i] ^= multiplyNaive(term.Coefficient, b)
		}
	}
	if last := out[outputs-1]; !bytes.Equal(last, want) {
		return fmt.Errorf("matrix %d: the last row is %x, want %x", number, last, want)
	}
	return nil
}

package stripe

import (
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// TestDecodeFromTheCache asks the same questions again and again, from several goroutines, and compares with answers
// computed anew.
func TestDecodeFromTheCache(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, m := rapid.IntRange(1, 6).Draw(t, "k"), rapid.IntRange(1, 4).Draw(t, "m")
		columns := rapid.SliceOfNDistinct(rapid.IntRange(0, 12), k, k, rapid.ID[int]).Draw(t, "columns")
		data := rapid.SliceOfN(rapid.IntRange(0, 12), 0, 6).Draw(t, "data")
		parities := rapid.SliceOfN(rapid.IntRange(0, m), 0, 4).Draw(t, "parities")
		wanted := rapid.SampledFrom(columns).Draw(t, "wanted")
		want, wantErr := decode(RS(k, m), columns, wanted, data, parities)
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				for range 2 {
					got, err := Decode(RS(k, m), columns, wanted, data, parities)
					if !slices.Equal(got, want) || (err == nil) != (wantErr == nil) {
						t.Errorf("from the cache %v, %v; computed %v, %v", got, err, want, wantErr)
					}
				}
			})
		}
		group.Wait()
	})
}

func TestDecodingsAreBounded(t *testing.T) {
	var cache decodingCache
	question := func(i int) []byte { return appendQuestion(nil, RS(4, 2), []int{i}, i, nil, nil) }
	for i := range 3 * maxDecodings {
		cache.put(question(i), []Part{{Index: i}})
		if len(cache.parts) > maxDecodings {
			t.Fatalf("%d answers are kept, at most %d may be", len(cache.parts), maxDecodings)
		}
	}
	if _, known := cache.get(question(2*maxDecodings - 1)); known {
		t.Error("the oldest answers are still there")
	}
	for i := 2 * maxDecodings; i < 3*maxDecodings; i++ {
		if parts, known := cache.get(question(i)); !known || parts[0].Index != i {
			t.Fatalf("answer %d is %v, %t", i, parts, known)
		}
	}
	if want := (CacheCounts{Hits: maxDecodings, Misses: 1, Evictions: 2 * maxDecodings}); cache.count != want {
		t.Errorf("%+v, want %+v", cache.count, want)
	}
}

func TestQuestionsOfDecodeAreDistinct(t *testing.T) {
	seen := map[string]int{}
	for i, question := range [][]byte{
		appendQuestion(nil, RS(2, 1), []int{1, 2}, 1, []int{3}, []int{0}),
		appendQuestion(nil, RS(2, 1), []int{1, 2}, 1, nil, []int{3, 0}),
		appendQuestion(nil, RS(2, 1), []int{1, 2, 3}, 1, nil, []int{0}),
		appendQuestion(nil, RS(2, 2), []int{1, 2}, 1, []int{3}, []int{0}),
		appendQuestion(nil, RS(2, 1), []int{1, 2}, 2, []int{3}, []int{0}),
		appendQuestion(nil, RS(2, 1), []int{2, 1}, 1, []int{3}, []int{0}),
	} {
		if other, twice := seen[string(question)]; twice {
			t.Errorf("questions %d and %d are the same", other, i)
		}
		seen[string(question)] = i
	}
}

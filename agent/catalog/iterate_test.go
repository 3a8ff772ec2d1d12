package catalog

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/mem"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// A walk yields everything once and in order, whatever the pages are like, ends with the first error, and reads no page that
// nobody wants.
func TestWalksGoPageByPage(t *testing.T) {
	errBroken := errors.New("the engine broke")
	for name, pages3 := range map[string][][]int{
		"none": {{}}, "one": {{1, 2}}, "full last": {{1, 2}, {3, 4}, {}}, "short last": {{1, 2}, {3}}, "empty between": {{1}, {}, {2}},
	} {
		var want []int
		for _, page := range pages3 {
			want = append(want, page...)
		}
		for _, broken := range []bool{false, true} {
			read := 0
			walk := func() func(func(*int, error) bool) {
				read = 0
				return codec.Items(codec.Pages(func() ([]int, bool, error) {
					if read == len(pages3) {
						return nil, true, errBroken
					}
					read++
					return pages3[read-1], !broken && read == len(pages3), nil
				}))
			}
			var seen []int
			var failed error
			for item, err := range walk() {
				if failed = err; err == nil {
					seen = append(seen, *item)
				}
			}
			if !slices.Equal(seen, want) || broken != errors.Is(failed, errBroken) {
				t.Errorf("%s, broken %t: have %v, %v", name, broken, seen, failed)
			}
			for range walk() {
				break
			}
			if len(want) > 0 && read > 1 {
				t.Errorf("%s: %d pages were read for one item", name, read)
			}
		}
	}
}

// A walk over records goes over all of a prefix from the place where it begins, whether or not they fill their pages.
func TestWalksOverRecords(t *testing.T) {
	for _, count := range []int{0, 1, codec.PageRecords - 1, codec.PageRecords, codec.PageRecords + 1, 2*codec.PageRecords + 5} {
		engine := mem.New()
		writes := []kv.Write{{Key: "n/before", Value: []byte{}}, {Key: "p/after", Value: []byte{}}}
		for i := range count {
			key := fmt.Sprintf("%05d", i)
			writes = append(writes, kv.Write{Key: schema.ObjectKey(key), Value: codec.Encode(Object{Key: key, Size: int64(i)})})
		}
		if _, err := engine.Update(t.Context(), nil, writes); err != nil {
			t.Fatal(err)
		}
		for _, after := range []int{-1, 0, count / 2} {
			place := schema.PrefixObject
			if after >= 0 {
				place = schema.ObjectKey(fmt.Sprintf("%05d", after))
			}
			next := after + 1
			for page, err := range codec.Records[ObjectSummary](t.Context(), engine, schema.PrefixObject, place) {
				if err != nil {
					t.Fatal(err)
				}
				for _, object := range page {
					if object.Size != int64(next) {
						t.Fatalf("of %d objects after %d, object %d came when %d was due", count, after, object.Size, next)
					}
					next++
				}
			}
			if next != max(count, after+1) {
				t.Errorf("of %d objects after %d the walk ended before object %d", count, after, next)
			}
		}
	}
}

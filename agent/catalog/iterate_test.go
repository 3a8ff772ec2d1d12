package catalog

import (
	"errors"
	"slices"
	"testing"
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
				return each(pages(func() ([]int, bool, error) {
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

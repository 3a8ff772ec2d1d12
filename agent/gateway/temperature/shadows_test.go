package temperature

import "testing"

// However many classes there are, what shadows take is bounded: about 300 bytes for each group that they follow, 64 MiB in all.
func TestShadowsAreBounded(t *testing.T) {
	for classes, want := range map[int]int{0: 10_000, 1: 10_000, 10: 10_000, 11: 9_090, 1_000: 100, 1_000_000: leastFollowed} {
		if got := mostOf(classes); got != want {
			t.Errorf("of each of %d classes %d groups are followed, want %d", classes, got, want)
		}
	}
	for _, classes := range []int{1, 3, 100, 1_000, 10_000} {
		if bytes := 300 * classes * mostOf(classes); bytes > 64<<20 {
			t.Errorf("shadows of %d classes take %d bytes", classes, bytes)
		}
	}
}

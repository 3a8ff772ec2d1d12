package console

import "testing"

func TestRatesHaveTwoDigits(t *testing.T) {
	for rate, want := range map[float64]int64{0: 0, 0.4: 0, 7.6: 8, 99.4: 99, 101: 100, 1_234_567: 1_200_000, 9_960_000: 10_000_000} {
		if got := twoDigits(rate); got != want {
			t.Errorf("%v is %d, want %d", rate, got, want)
		}
	}
}

//go:build linux

package main

import (
	"errors"
	"slices"
	"testing"
)

func TestParseProcessorTicks(t *testing.T) {
	got, err := parseProcessorTicks("cpu  100 20 30 400 5 6 7 8 90 10\ncpu0 1 2 3\n")
	if want := (processorTicks{stolen: 8, all: 576}); err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, bad := range []string{"", "cpu 1 2 3", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3 4 5 6 7 x", "cpu 1 2 -3 4 5 6 7 8"} {
		if got, err := parseProcessorTicks(bad); err == nil {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}

func TestReadProcessorTicks(t *testing.T) {
	if got, err := readProcessorTicks(); err != nil || got.all <= 0 || got.stolen > got.all {
		t.Errorf("got %v, %v", got, err)
	}
}

// The calmest rounds count, in their order, and nothing is measured once there are enough calm ones or no more time.
func TestCalm(t *testing.T) {
	for _, one := range []struct {
		name     string
		stolen   []int64 // percent, by round
		measured int
		kept     []int
		most     float64
	}{
		{"all are calm", []int64{0, 5}, 2, []int{0, 1}, 0.05},
		{"one is not", []int64{0, 30, 2}, 3, []int{0, 2}, 0.02},
		{"hardly any is", []int64{40, 20, 30, 1, 21, 22}, 6, []int{1, 3}, 0.2},
		{"none is", []int64{9, 9, 9, 9, 9, 9}, 6, []int{0, 1}, 0.09},
	} {
		var now processorTicks
		kept, d, err := calm(2, func() bool { return now.all < 600 }, func() (processorTicks, error) { return now, nil }, func(round int) (int, error) {
			now.all += 100
			now.stolen += one.stolen[round]
			return round, nil
		})
		if err != nil || !slices.Equal(kept, one.kept) || d.kept != 2 || d.measured != one.measured || d.most != one.most {
			t.Errorf("%s: rounds %v of %d, most %v, %v; want %v of %d, most %v", one.name, kept, d.measured, d.most, err, one.kept, one.measured, one.most)
		}
	}
	broken := errors.New("broken")
	still := func() (processorTicks, error) { return processorTicks{}, nil }
	if _, _, err := calm(1, forCalm(), still, func(int) (int, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("a round that fails gives %v", err)
	}
	if _, _, err := calm(1, forCalm(), func() (processorTicks, error) { return processorTicks{}, broken }, func(int) (int, error) { return 0, nil }); !errors.Is(err, broken) {
		t.Errorf("times that cannot be read give %v", err)
	}
}

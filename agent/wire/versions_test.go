package wire_test

import (
	"errors"
	"testing"

	"github.com/restripe/restripe/agent/wire"
)

func TestVersionsMeet(t *testing.T) {
	for _, c := range []struct {
		name        string
		ours, other wire.Versions
		want        uint8 // 0: none
	}{
		{"alike", wire.Versions{Least: 1, Most: 3}, wire.Versions{Least: 1, Most: 3}, 3},
		{"the other is newer", wire.Versions{Least: 1, Most: 2}, wire.Versions{Least: 2, Most: 3}, 2},
		{"the other is older", wire.Versions{Least: 2, Most: 3}, wire.Versions{Least: 1, Most: 2}, 2},
		{"the other says none", wire.Versions{Least: 1, Most: 2}, wire.Versions{}, 1},
		{"neither says one", wire.Versions{}, wire.Versions{}, 1},
		{"the other is too new", wire.Versions{Least: 1, Most: 2}, wire.Versions{Least: 3, Most: 4}, 0},
		{"the other is too old", wire.Versions{Least: 2, Most: 3}, wire.Versions{}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			version, err := c.ours.Meet(c.other, "the agent")
			if version != c.want || errors.Is(err, wire.ErrBadRequest) != (c.want == 0) {
				t.Fatalf("they meet in %d (%v), want %d", version, err, c.want)
			}
		})
	}
}

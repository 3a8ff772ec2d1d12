package block_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/restripe/restripe/agent/block"
)

// Names made by hand are those that fmt makes.
func TestNamesAsFmtMakesThem(t *testing.T) {
	for _, number := range []uint64{0, 1, 15, 16, 255, 256, 1 << 31, 1<<63 + 12345, math.MaxUint64} {
		stamp := block.Stamp{Sequence: number, Salt: ^number}
		group := block.GroupID{Stamp: stamp, Index: uint32(number)}
		address := block.Address{Node: "n", Group: group, Slot: int(number & 0x1ffff), Stamp: stamp}
		for got, want := range map[string]string{
			stamp.String(): fmt.Sprintf("%016x.%016x", stamp.Sequence, stamp.Salt),
			group.String(): fmt.Sprintf("%s.%08x", stamp, group.Index),
			address.Key():  fmt.Sprintf("%s%s/%02x/%s", block.KeyPrefix, group, address.Slot, stamp),
		} {
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	}
}

package ceph

import (
	"fmt"
	"testing"
)

func TestObjectsAreInOrderOfTheirHashesFromTheLowestBitOn(t *testing.T) {
	for i := range 1000 {
		one, other := fmt.Sprint("b/", i), fmt.Sprint("b/", i+1)
		if isBefore(one, other) == isBefore(other, one) || isBefore(one, one) {
			t.Errorf("%q and %q are in no order", one, other)
		}
		// Half of all hashes are even, and these are the first half.
		if even := nameHash(one)%2 == 0; even != (placeOf(one) < 1<<31) {
			t.Errorf("%q with hash %x is at %x", one, nameHash(one), placeOf(one))
		}
		if !isBefore("", one) || isBefore(one, "") {
			t.Errorf("the empty name is not before %q", one)
		}
	}
}

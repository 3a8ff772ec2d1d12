//go:build !ceph

package ceph

import (
	"errors"
	"strings"
	"testing"
)

func TestAProgramWithoutCephSaysHowToBuildOneWithIt(t *testing.T) {
	_, err := Open(t.Context(), Options{Pool: "node1"})
	if !errors.Is(err, ErrNotBuilt) || !strings.Contains(err.Error(), "-tags ceph") {
		t.Errorf("opening a pool: %v", err)
	}
}

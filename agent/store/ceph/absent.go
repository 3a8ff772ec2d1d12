//go:build !ceph

package ceph

import (
	"context"

	"github.com/restripe/restripe/agent/store"
)

// Open fails with ErrNotBuilt.
func Open(context.Context, Options) (store.Store, error) { return nil, ErrNotBuilt }

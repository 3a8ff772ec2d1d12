//go:build !ceph

package adopt

import (
	"context"
	"io"

	"github.com/restripe/restripe/agent/store/ceph/pools"
)

// Pool would be a pool of RADOS; this program reaches none.
type Pool struct{}

// OpenPool fails with pools.ErrWithoutCeph.
func OpenPool(*pools.Connection, PoolOptions) (*Pool, error) { return nil, pools.ErrWithoutCeph }

// Close does nothing.
func (p *Pool) Close() {}

// Survey fails with pools.ErrWithoutCeph.
func (p *Pool) Survey(context.Context) (Survey, error) { return Survey{}, pools.ErrWithoutCeph }

// List fails with pools.ErrWithoutCeph.
func (p *Pool) List(context.Context, func(name string) error) error { return pools.ErrWithoutCeph }

// Stat fails with pools.ErrWithoutCeph.
func (p *Pool) Stat(context.Context, string) (Version, error) {
	return Version{}, pools.ErrWithoutCeph
}

// Open fails with pools.ErrWithoutCeph.
func (p *Pool) Open(context.Context, string) (Content, error) { return nil, pools.ErrWithoutCeph }

// Put fails with pools.ErrWithoutCeph.
func (p *Pool) Put(context.Context, string, io.Reader, int64, Expectation) (Version, error) {
	return Version{}, pools.ErrWithoutCeph
}

// Trim fails with pools.ErrWithoutCeph.
func (p *Pool) Trim(context.Context, string, Version) error { return pools.ErrWithoutCeph }

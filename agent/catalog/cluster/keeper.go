// Package cluster keeps what a catalog has beside objects and groups: which nodes and gateways there are, what is declared of classes,
// repair and scrubs, how far work in the background has come, and what was counted. No rule of the commit protocol needs more of it than
// that a record is compared before it is changed.
package cluster

import (
	"bytes"
	"context"
	"time"

	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// Keeper keeps what there is in the cluster and what is declared. All methods are safe for concurrent use.
type Keeper struct{ records }

// Work keeps how far work in the background has come: jobs, the scrub and what it found, and what is declared of repair. All methods are
// safe for concurrent use.
type Work struct{ records }

// records are in an engine.
type records struct {
	engine kv.Engine
	retry  func(ctx context.Context, turn func(context.Context) (done bool, err error)) error
	draw   func() (uint64, error)
	now    func() time.Time
}

// New returns what keeps the records of an engine. retry asks an engine until it gives a clear answer, as kv.Retry does; draw returns
// 64 random bits.
func New(
	engine kv.Engine, retry func(ctx context.Context, turn func(context.Context) (done bool, err error)) error,
	draw func() (uint64, error), now func() time.Time,
) (*Keeper, *Work) {
	kept := records{engine: engine, retry: retry, draw: draw, now: now}
	return &Keeper{kept}, &Work{kept}
}

// apply carries out writes that may be repeated at any time.
func (r *records) apply(ctx context.Context, writes []kv.Write) error {
	return r.retry(ctx, func(ctx context.Context) (bool, error) {
		_, err := r.engine.Update(ctx, nil, writes)
		return err == nil, err
	})
}

// assign gives a record a value by comparing it with what was read, so that a request that arrives late does not bring
// back what was replaced since. What comes with it is written if it changes.
func (r *records) assign(ctx context.Context, key string, value []byte, with ...kv.Write) error {
	return r.retry(ctx, func(ctx context.Context) (bool, error) {
		values, err := r.engine.Read(ctx, key)
		if err != nil || bytes.Equal(values[0], value) {
			return err == nil, err
		}
		failed, err := r.engine.Update(ctx, []kv.Check{{Key: key, Value: values[0]}}, append(with, kv.Write{Key: key, Value: value}))
		return err == nil && len(failed) == 0, err
	})
}

// each visits every record with a prefix.
func (r *records) each(ctx context.Context, prefix string, visit func(kv.Record) error) error {
	return kv.Each(ctx, r.engine, prefix, visit)
}

// The records that are kept.
type (
	Node       = schema.Node
	Membership = schema.Membership
	Job        = schema.Job
	Class      = schema.Class
	View       = schema.View
)

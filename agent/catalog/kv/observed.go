package kv

import (
	"context"
	"sync/atomic"
	"time"
)

// Outcomes of operations, as Observed tells of them.
const (
	OutcomeDone     = "done"
	OutcomeConflict = "conflict" // a check of an update did not hold
	OutcomeError    = "error"
)

// Observer is told of an operation, "read", "scan" or "update", how it ended and how long it took.
type Observer func(operation, outcome string, took time.Duration)

// Observed is an engine whose operations an observer is told of.
type Observed struct {
	Engine
	observer atomic.Pointer[Observer]
}

// Observe has observer be told from now on.
func (o *Observed) Observe(observer Observer) { o.observer.Store(&observer) }

func (o *Observed) note(operation string, began time.Time, failed []int, err error) {
	observer := o.observer.Load()
	if observer == nil {
		return
	}
	outcome := OutcomeDone
	switch {
	case err != nil:
		outcome = OutcomeError
	case len(failed) > 0:
		outcome = OutcomeConflict
	}
	(*observer)(operation, outcome, time.Since(began))
}

// Read implements Engine.
func (o *Observed) Read(ctx context.Context, keys ...string) ([][]byte, error) {
	began := time.Now()
	values, err := o.Engine.Read(ctx, keys...)
	o.note("read", began, nil, err)
	return values, err
}

// ReadNow implements Nearby.
func (o *Observed) ReadNow(key string) (value []byte, known bool) {
	if nearby, is := o.Engine.(Nearby); is {
		return nearby.ReadNow(key)
	}
	return nil, false
}

// ReadAllNow implements Nearby. Where it is known it stands for a Read.
func (o *Observed) ReadAllNow(keys []string) (values [][]byte, known bool) {
	began := time.Now()
	if nearby, is := o.Engine.(Nearby); is {
		values, known = nearby.ReadAllNow(keys)
	}
	if known {
		o.note("read", began, nil, nil)
	}
	return values, known
}

// Scan implements Engine.
func (o *Observed) Scan(ctx context.Context, prefix, after string, limit int) ([]Record, error) {
	began := time.Now()
	records, err := o.Engine.Scan(ctx, prefix, after, limit)
	o.note("scan", began, nil, err)
	return records, err
}

// Update implements Engine.
func (o *Observed) Update(ctx context.Context, checks []Check, writes []Write) ([]int, error) {
	began := time.Now()
	failed, err := o.Engine.Update(ctx, checks, writes)
	o.note("update", began, failed, err)
	return failed, err
}

// MayLose implements Forgetful.
func (o *Observed) MayLose() bool {
	forgetful, is := o.Engine.(Forgetful)
	return is && forgetful.MayLose()
}

// Retries implements Reporting.
func (o *Observed) Retries() map[string]int64 {
	if reporting, is := o.Engine.(Reporting); is {
		return reporting.Retries()
	}
	return nil
}

// Replicas implements Reporting.
func (o *Observed) Replicas(ctx context.Context) ([]Replica, error) {
	if reporting, is := o.Engine.(Reporting); is {
		return reporting.Replicas(ctx)
	}
	return nil, nil
}

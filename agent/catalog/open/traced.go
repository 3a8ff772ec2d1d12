package open

import (
	"context"

	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/trace"
)

// traced is an engine whose operations are parts of traces.
type traced struct{ kv.Engine }

// Read implements kv.Engine.
func (t traced) Read(ctx context.Context, keys ...string) (values [][]byte, err error) {
	ctx, span := trace.BeginCall(ctx, "catalog read")
	defer func() { span.Int("restripe.records", int64(len(keys))).End(err) }()
	return t.Engine.Read(ctx, keys...)
}

// ReadNow implements kv.Nearby. It takes no time that would be worth a part of a trace.
func (t traced) ReadNow(key string) (value []byte, known bool) {
	if nearby, is := t.Engine.(kv.Nearby); is {
		return nearby.ReadNow(key)
	}
	return nil, false
}

// ReadAllNow implements kv.Nearby, likewise.
func (t traced) ReadAllNow(keys []string) (values [][]byte, known bool) {
	if nearby, is := t.Engine.(kv.Nearby); is {
		return nearby.ReadAllNow(keys)
	}
	return nil, false
}

// Scan implements kv.Engine.
func (t traced) Scan(ctx context.Context, prefix, after string, limit int) (records []kv.Record, err error) {
	ctx, span := trace.BeginCall(ctx, "catalog scan")
	defer func() { span.Int("restripe.records", int64(len(records))).End(err) }()
	return t.Engine.Scan(ctx, prefix, after, limit)
}

// Update implements kv.Engine.
func (t traced) Update(ctx context.Context, checks []kv.Check, writes []kv.Write) (failed []int, err error) {
	ctx, span := trace.BeginCall(ctx, "catalog update")
	defer func() {
		span.Int("restripe.records", int64(len(writes))).Int("restripe.checks.failed", int64(len(failed))).End(err)
	}()
	return t.Engine.Update(ctx, checks, writes)
}

// MayLose implements kv.Forgetful.
func (t traced) MayLose() bool {
	forgetful, is := t.Engine.(kv.Forgetful)
	return is && forgetful.MayLose()
}

// Retries implements kv.Reporting.
func (t traced) Retries() map[string]int64 {
	if reporting, is := t.Engine.(kv.Reporting); is {
		return reporting.Retries()
	}
	return nil
}

// Replicas implements kv.Reporting.
func (t traced) Replicas(ctx context.Context) ([]kv.Replica, error) {
	if reporting, is := t.Engine.(kv.Reporting); is {
		return reporting.Replicas(ctx)
	}
	return nil, nil
}

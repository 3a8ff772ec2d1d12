package etcd

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/restripe/restripe/agent/catalog/kv"
)

// A transaction that fails reads at once what its checks are about, where that is little; else it is read afterwards.
const (
	inlineRecords = 128
	inlineBytes   = 64 << 10
)

// Update implements kv.Engine.
func (e *Engine) Update(ctx context.Context, checks []kv.Check, writes []kv.Write) ([]int, error) {
	u := &update{engine: e, checks: checks, last: map[string][]byte{}, add: map[string]int64{}}
	for i := range writes {
		u.write(&writes[i])
	}
	release, err := e.counters.take(ctx, u.counts)
	if err != nil {
		return nil, fmt.Errorf("updating the catalog %s: %w", e.location, err)
	}
	defer release()
	for {
		failed, again, err := u.try(ctx)
		if !again {
			return failed, err
		}
		e.retries[kv.RetryConflict].Add(1)
	}
}

// update is one Update.
type update struct {
	engine *Engine
	checks []kv.Check
	order  []string          // keys that are set or removed
	last   map[string][]byte // what they have in the end; nil: nothing
	counts []string          // counters
	add    map[string]int64
	told   []byte
}

// write takes down an effect. A transaction of etcd changes a key once.
func (u *update) write(w *kv.Write) {
	if w.Notify {
		u.told = append(u.told, name(w.Key)...)
	}
	if w.Kind == kv.Increment {
		if _, known := u.add[w.Key]; !known {
			u.counts = append(u.counts, w.Key)
		}
		u.add[w.Key] += w.Add
		return
	}
	if _, known := u.last[w.Key]; !known {
		u.order = append(u.order, w.Key)
	}
	switch w.Kind {
	case kv.Remove:
		u.last[w.Key] = nil
	case kv.Count:
		u.last[w.Key] = strconv.AppendInt(nil, w.Add, 10)
	default:
		u.last[w.Key] = append([]byte{}, w.Value...)
	}
}

// try makes the update; again says that somebody changed a counter meanwhile, and nothing was done.
func (u *update) try(ctx context.Context) (failed []int, again bool, err error) {
	e := u.engine
	counted, err := u.count(ctx)
	if err != nil {
		return nil, false, err
	}
	var conditions []clientv3.Cmp
	var keys []string
	size := 0
	condition := func(key string, value []byte) {
		if value == nil {
			conditions = append(conditions, clientv3.Compare(clientv3.CreateRevision(e.prefix+key), "=", 0))
		} else {
			conditions = append(conditions, clientv3.Compare(clientv3.Value(e.prefix+key), "=", string(value)))
		}
		keys = append(keys, key)
		size += len(key)
	}
	for i := range u.checks {
		condition(u.checks[i].Key, u.checks[i].Value)
	}
	for _, key := range u.counts {
		condition(key, e.counters.known(key))
	}
	var otherwise []clientv3.Op
	if len(keys) <= inlineRecords && size <= inlineBytes {
		otherwise = e.gets(keys, 0)
	}
	then := u.effects(counted)
	answer, err := e.call(ctx, "updating", isUndone, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return e.client.Txn(ctx).If(conditions...).Then(then...).Else(otherwise...).Commit()
	})
	switch {
	case isTooLarge(err):
		return nil, false, fmt.Errorf("%w: %w", kv.ErrTooLarge, err)
	case err != nil:
		e.counters.forget(u.counts)
		return nil, false, err
	case answer.Succeeded:
		for i, key := range u.counts {
			e.counters.learn(key, counted[i])
		}
		return nil, false, nil
	}
	values := valuesIn(answer.Responses)
	if otherwise == nil {
		if values, err = e.Read(ctx, keys...); err != nil {
			return nil, false, err
		}
	}
	for i, key := range u.counts {
		e.counters.learn(key, values[len(u.checks)+i])
	}
	for i := range u.checks {
		if want, is := u.checks[i].Value, values[i]; (want == nil) != (is == nil) || !bytes.Equal(want, is) {
			failed = append(failed, i)
		}
	}
	return failed, len(failed) == 0, nil
}

// count returns what the counters will be, after what they are is known.
func (u *update) count(ctx context.Context) (counted [][]byte, err error) {
	e := u.engine
	var unknown []string
	for _, key := range u.counts {
		if !e.counters.isKnown(key) {
			unknown = append(unknown, key)
		}
	}
	values, err := e.Read(ctx, unknown...)
	if err != nil {
		return nil, err
	}
	for i, key := range unknown {
		e.counters.learn(key, values[i])
	}
	for _, key := range u.counts {
		before := int64(0)
		if text := e.counters.known(key); text != nil {
			if before, err = strconv.ParseInt(string(text), 10, 64); err != nil {
				e.counters.forget(u.counts)
				return nil, fmt.Errorf("updating the catalog %s: record %q is no counter: %w", e.location, key, err)
			}
		}
		counted = append(counted, strconv.AppendInt(nil, before+u.add[key], 10))
	}
	return counted, nil
}

// effects are what the transaction does where all holds.
func (u *update) effects(counted [][]byte) []clientv3.Op {
	e := u.engine
	var then []clientv3.Op
	for _, key := range u.order {
		if value := u.last[key]; value != nil {
			then = append(then, clientv3.OpPut(e.prefix+key, string(value)))
		} else {
			then = append(then, clientv3.OpDelete(e.prefix+key))
		}
	}
	for i, key := range u.counts {
		then = append(then, clientv3.OpPut(e.prefix+key, string(counted[i])))
	}
	if len(u.told) > 0 {
		then = append(then, clientv3.OpPut(e.told, string(u.told)))
	}
	return then
}

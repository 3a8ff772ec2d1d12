package catalog

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// removals is how many objects that have expired are removed at a time.
const removals = 16

// RemoveExpired removes the objects that have expired, by the catalog's clock, and returns how many those were, and the earlier versions
// that their objects do not name any more. Nobody has seen them since they expired, or were left out, so that no answer depends on it: one
// that fails is tried again by the next call.
func (o *objects) RemoveExpired(ctx context.Context) (removed int, err error) {
	for after := schema.PrefixExpiry; ; {
		records, err := o.engine.Scan(ctx, schema.PrefixExpiry, after, scanPage)
		if err != nil {
			return removed, fmt.Errorf("looking for objects that have expired: %w", err)
		}
		var work errgroup.Group
		work.SetLimit(removals)
		var done atomic.Int64
		due := 0
		for _, record := range records {
			at, key, err := schema.OfExpiry(record.Key)
			if err != nil {
				return removed, err
			}
			if at.After(o.now()) {
				break
			}
			due++
			work.Go(func() error {
				isDone, err := o.removeExpired(ctx, key, at)
				if isDone {
					done.Add(1)
				}
				return err
			})
		}
		err = work.Wait()
		removed += int(done.Load())
		if err != nil {
			return removed, fmt.Errorf("removing objects that have expired: %w", err)
		}
		if due < scanPage {
			return removed, nil
		}
		after = records[due-1].Key
	}
}

// HasExpired reports whether an object is gone, by the catalog's clock, though its record is still there.
func (o *objects) HasExpired(object *Object) bool { return object.HasExpired(o.now()) }

// removeExpired removes an object, if it is still the one that expires at that time, and reports whether it has.
func (o *objects) removeExpired(ctx context.Context, key string, at time.Time) (removed bool, err error) {
	name, err := o.requestName()
	if err != nil {
		return false, err
	}
	for {
		if removed, err = o.tryExpired(ctx, string(name), key, at); !errors.Is(err, errRace) {
			return removed, err
		}
	}
}

// tryExpired is removeExpired that may find that a record changed meanwhile, which is errRace.
func (o *objects) tryExpired(ctx context.Context, name, key string, at time.Time) (removed bool, err error) {
	if at.UnixMilli() == 0 {
		return false, o.tryDropped(ctx, name, key)
	}
	values, err := o.engine.Read(ctx, schema.ObjectKey(key), schema.KeyFloor)
	if err != nil || values[0] == nil {
		return false, err
	}
	object, err := codec.DecodeToChange[Object](schema.ObjectKey(key), values[0])
	if err != nil || object.Expires != at.UnixMilli() {
		return false, err
	}
	checks, writes, err := o.remove(name, values[1], values[0], &object)
	if err != nil {
		return false, err
	}
	failed, err := o.engine.Update(ctx, checks, writes)
	if err == nil && len(failed) > 0 {
		err = errRace
	}
	return err == nil, err
}

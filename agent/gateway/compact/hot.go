package compact

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/job"
)

// DefaultGather is for how long hot keys are gathered that are moved together.
const DefaultGather = 5 * time.Second

// Bounds on the hot keys that wait to be moved. One that finds no room is told of again with its next read.
const (
	mostWaiting = 4 * MostObjects
	mostBytes   = 4 * mostNames // of their names
)

// waiting are keys of small objects that have become hot where others lie, by class.
type waiting struct {
	wake job.Wake

	mutex  sync.Mutex // of what follows
	keys   map[string]map[string]bool
	count  int
	bytes  int
	paused map[string]time.Time // classes of which something could not be moved, until when
}

// Hot says that the key of a small object has become hot, which lies under a colder scheme than its class has for such keys.
func (c *Compactor) Hot(class, key string) {
	if c.options.Gather < 0 {
		return
	}
	w := &c.waiting
	w.mutex.Lock()
	defer w.mutex.Unlock()
	of := w.keys[class]
	if of[key] || time.Now().Before(w.paused[class]) {
		return
	}
	if w.count >= mostWaiting || w.bytes+len(key) > mostBytes {
		c.metrics.hotRefused.Inc()
		return
	}
	if of == nil {
		of = map[string]bool{}
		w.keys[class] = of
	}
	of[key] = true
	w.count, w.bytes = w.count+1, w.bytes+len(key)
	c.metrics.hotWaiting.Set(float64(w.count))
	w.wake.Notify()
}

// take takes all that wait.
func (c *Compactor) take() map[string]map[string]bool {
	w := &c.waiting
	w.mutex.Lock()
	defer w.mutex.Unlock()
	taken := w.keys
	w.keys, w.count, w.bytes = map[string]map[string]bool{}, 0, 0
	c.metrics.hotWaiting.Set(0)
	return taken
}

// pause has no keys of a class wait for a while.
func (c *Compactor) pause(class string) {
	w := &c.waiting
	w.mutex.Lock()
	defer w.mutex.Unlock()
	now := time.Now()
	maps.DeleteFunc(w.paused, func(_ string, until time.Time) bool { return until.Before(now) })
	w.paused[class] = now.Add(again)
}

// HotLoop moves hot keys to where their classes have them, for as long as the gateway lives. Between batches it rests as a compaction
// does.
func (c *Compactor) HotLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.waiting.wake:
		}
		if !job.Sleep(ctx, c.options.Gather) {
			return
		}
		taken := c.take()
		for _, name := range slices.Sorted(maps.Keys(taken)) {
			if err := c.heat(ctx, name, taken[name]); err != nil && ctx.Err() == nil {
				c.Logger.Warn("hot keys cannot be moved; they stay where they are, and are tried again as they are read", "class", name, "cause", err)
				c.pause(name)
			}
		}
	}
}

// heat moves those of some keys of a class to where its hot keys are which still lie elsewhere.
func (c *Compactor) heat(ctx context.Context, name string, keys map[string]bool) error {
	class := c.Classes.Named(name)
	if class == nil || class.HotKeys == nil { // it was changed meanwhile
		return nil
	}
	var found []*catalog.Snapshot
	began := time.Now()
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		snapshot, err := c.Catalog.Snapshot(ctx, key)
		if errors.Is(err, catalog.ErrNoObject) {
			continue
		}
		if err != nil {
			return err
		}
		if inside := lies(snapshot); inside != nil && snapshot.Object.Class == name && class.IsColder(inside.Scheme) {
			found = append(found, snapshot)
		}
	}
	job.Rest(ctx, time.Since(began), c.share())
	for _, next := range c.batches(&class.Class, found) {
		began := time.Now()
		_, err := c.carry(ctx, &class.Class, class.HotKeys.Scheme, &next)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, catalog.ErrStale): // all of them have changed; they are told of again
		case err != nil:
			return err
		default:
			c.metrics.moved.Add(float64(next.bytes))
			c.metrics.moveKeys(toHot, &next)
		}
		job.Rest(ctx, time.Since(began), c.share())
	}
	return nil
}

// lies is the group that a small object lies in; nil of other objects.
func lies(snapshot *catalog.Snapshot) *catalog.Group {
	extents := snapshot.Object.Extents
	if len(extents) != 1 || extents[0].Column == catalog.WholeGroup {
		return nil
	}
	if _, in, err := snapshot.Where(extents[0].Group, extents[0].Column); err == nil && in.Packed {
		return in
	}
	return nil
}

// homeOf is the scheme that an object goes back to from where hot keys are: the one that was asked for, or the default where that is
// not on the ladder. It is empty where an object was put there on purpose.
func homeOf(class *api.Class, snapshot *catalog.Snapshot) string {
	asked := snapshot.Object.Scheme
	if asked == class.HotKeys.Scheme.String() || lies(snapshot) == nil {
		return ""
	}
	if class.IsColder(asked) && class.IsOnLadder(asked) {
		return asked
	}
	if class.Default == class.HotKeys.Scheme {
		return ""
	}
	return class.Default.String()
}

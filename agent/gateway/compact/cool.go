package compact

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/arrange"
	"github.com/restripe/restripe/agent/gateway/temperature"
	"github.com/restripe/restripe/agent/stripe"
)

// hasCooled reports whether a group has been where hot keys lie for the dwell of its class, and some of its keys have cooled.
func (r *run) hasCooled(class *api.Class, fill *catalog.GroupFill) bool {
	if !temperature.IsOfHotKeys(class, &fill.GroupSummary) {
		return false
	}
	age := time.Duration(r.now-fill.Settled) * time.Millisecond
	return age >= class.Dwell && r.Heat.Cooled(class, fill.ID, fill.Live) != nil
}

// resting is for which part of a half-life a group of hot keys is not looked into that nothing left.
const resting = 1.0 / 8

func (c *Compactor) letRest(id block.GroupID, halfLife time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(c.resting) >= mostStuck {
		clear(c.resting)
	}
	c.resting[id] = c.options.Now().Add(time.Duration(resting * float64(halfLife)))
}

// rests reports whether a group is left alone.
func (c *Compactor) rests(id block.GroupID) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	until, is := c.resting[id]
	if is && !c.options.Now().Before(until) {
		delete(c.resting, id)
		return false
	}
	return is
}

// leaving is what leaves groups of hot keys for one scheme.
type leaving struct {
	batch
	class  *api.Class
	scheme string
}

// cooling is a group of hot keys of a class of which some have cooled.
type cooling struct {
	arrange.Candidate
	class *api.Class
}

// cool moves what has cooled out of groups where hot keys lie, back to the schemes that were asked for.
func (r *run) cool(ctx context.Context, groups []cooling) error {
	kept := map[block.GroupID]error{}
	windows := map[kind]*leaving{}
	back := func(of kind) error {
		next := windows[of]
		delete(windows, of)
		return r.back(ctx, next, kept)
	}
	for i := range groups {
		if r.Halted() || ctx.Err() != nil {
			return ctx.Err()
		}
		class := groups[i].class
		leave, err := r.leave(ctx, class, &groups[i].Candidate)
		if err != nil {
			r.failed(&groups[i].Candidate, err)
			continue
		}
		r.update(func(compaction *api.Compaction) { compaction.GroupsDone++ })
		for _, snapshot := range leave {
			of := kind{class.Name, homeOf(class, snapshot)}
			if windows[of] == nil {
				windows[of] = &leaving{class: class, scheme: of.scheme}
			}
			windows[of].add(snapshot)
			if len(windows[of].snapshots) >= windowObjects || windows[of].bytes >= WindowGroups*class.GroupBytes {
				if err := back(of); err != nil {
					return ignoreHalt(err)
				}
			}
		}
	}
	for _, of := range slices.SortedFunc(maps.Keys(windows), func(a, b kind) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.scheme, b.scheme))
	}) {
		if err := back(of); err != nil {
			return ignoreHalt(err)
		}
	}
	for i := range groups {
		if cause := kept[groups[i].ID]; cause != nil {
			r.setStuck(&groups[i].Candidate, cause)
			r.update(func(compaction *api.Compaction) {
				compaction.Failed++
				compaction.Error = cause.Error()
			})
		}
	}
	return nil
}

// leave returns what has cooled in a group of hot keys and was not put there on purpose. A group that nothing leaves is left alone for a
// while.
func (r *run) leave(ctx context.Context, class *api.Class, group *arrange.Candidate) (leave []*catalog.Snapshot, err error) {
	inside, err := r.Groups.Inside(ctx, group.ID)
	if errors.Is(err, catalog.ErrNoGroup) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	cooled := r.Heat.Cooled(class, group.ID, group.Extents)
	if cooled == nil { // it was read again
		return nil, nil
	}
	for _, snapshot := range inside.Snapshots {
		if homeOf(class, snapshot) != "" && cooled(snapshot.Object.Key) {
			leave = append(leave, snapshot)
		}
	}
	if len(leave) == 0 {
		r.letRest(group.ID, class.HalfLife)
	}
	return leave, nil
}

// back moves what leaves for one scheme there.
func (r *run) back(ctx context.Context, next *leaving, kept map[block.GroupID]error) error {
	scheme, err := stripe.ParseScheme(next.scheme)
	if err != nil {
		return err
	}
	for _, batch := range r.batches(next.class, next.snapshots) {
		if r.Halted() {
			return nil
		}
		moved, err := r.move(ctx, next.class, scheme, &batch, kept)
		if err != nil {
			return err
		}
		if moved {
			r.metrics.moveKeys(toCold, &batch)
		}
	}
	return nil
}

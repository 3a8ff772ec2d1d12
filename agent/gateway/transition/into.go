package transition

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/stripe"
)

// Bounds on one commit that changes nothing but classes.
const (
	reclassedObjects = 256
	reclassedGroups  = 64
)

// becomes is the class that a transition takes objects into, and the only one that it takes them out of; empty: any.
type becomes struct{ into, from string }

// checkInto refuses a request that takes objects into a class and says what only those of schemes can say.
func (j *Coordinator) checkInto(request *api.TransitionRequest) error {
	class, err := j.classes.For("", request.Into)
	switch {
	case err != nil:
		return err
	case request.Key64 != "" || request.Prefix64 != nil:
		return api.Refuse(api.ErrBadRequest, "which objects come into class %s its prefixes say; a key or prefix cannot be given beside", class.Name)
	case request.To != "" || request.From != "" || request.HeatAtLeast != nil || request.HeatBelow != nil || request.SettledSeconds > 0:
		return api.Refuse(api.ErrBadRequest, "objects come into class %s whatever their scheme and heat, and keep them; leave those out", class.Name)
	case request.Class == class.Name:
		return api.Refuse(api.ErrBadRequest, "the objects of class %s are in it; select another class, or none for all others", class.Name)
	case request.Class != "":
		_, err = j.classes.For("", request.Class)
	}
	return err
}

// target is the scheme that a transition takes objects to: the default of the class that it takes them into, for those that are copied.
func (j *Coordinator) target(t *api.Transition) (stripe.Scheme, error) {
	if t.Into == "" {
		return stripe.ParseScheme(t.To)
	}
	class, err := j.classes.For("", t.Into)
	if err != nil {
		return stripe.Scheme{}, err
	}
	return class.Default, nil
}

// comes reports whether an object, or an earlier version of one, comes into the class.
func (r *runner) comes(object *catalog.Object) bool {
	if object.Class == r.becomes.into || r.becomes.from != "" && object.Class != r.becomes.from {
		return false
	}
	key := object.Key
	if of, _, isEarlier := block.OfEarlierKey(key); isEarlier {
		key = of
	}
	name, found := r.coordinator.classes.Routes().Class(key)
	return found && name == r.becomes.into
}

// candidates walks the objects under the prefixes of the class and their earlier versions, each once, also where one of these begins
// with another.
func (r *runner) candidates(ctx context.Context) iter.Seq2[*catalog.Object, error] {
	return func(yield func(*catalog.Object, error) bool) {
		under, begun := "", false
		for _, prefix := range r.coordinator.classes.Routes().Prefixes(r.becomes.into) { // what begins with one follows it
			if begun && strings.HasPrefix(prefix, under) {
				continue
			}
			under, begun = prefix, true
			for object, err := range r.coordinator.catalog.AllObjects(ctx, prefix) {
				if !yield(object, err) || err != nil {
					return
				}
			}
		}
	}
}

// findInto lists the groups that hold something which comes into the class. Objects without bytes come into it on the way.
func (r *runner) findInto(ctx context.Context) ([]item, error) {
	var bare, earlier []string // keys of objects without bytes, and of earlier versions
	groups := map[block.GroupID]bool{}
	for object, err := range r.candidates(ctx) {
		if err != nil {
			return nil, err
		}
		for _, revision := range object.Earlier {
			earlier = append(earlier, block.EarlierKey(object.Key, revision))
		}
		if !r.comes(object) {
			continue
		}
		if len(object.Extents) == 0 {
			bare = append(bare, object.Key)
		}
		for _, extent := range object.Extents {
			groups[extent.Group] = true
		}
	}
	for _, key := range earlier {
		version, err := r.coordinator.catalog.Snapshot(ctx, key)
		if errors.Is(err, catalog.ErrNoObject) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, view := range version.Named() {
			groups[view.ID] = groups[view.ID] || r.comes(&version.Object)
		}
	}
	for part := range slices.Chunk(bare, reclassedObjects) {
		if err := r.reclassBare(ctx, part); err != nil {
			return nil, err
		}
	}
	return r.itemsOf(ctx, groups)
}

// itemsOf makes items of groups, in the order of their names.
func (r *runner) itemsOf(ctx context.Context, groups map[block.GroupID]bool) (items []item, err error) {
	for id, holds := range groups {
		if !holds {
			continue
		}
		view, err := r.coordinator.catalog.Group(ctx, id)
		if errors.Is(err, catalog.ErrNoGroup) {
			continue
		}
		if err != nil {
			return nil, err
		}
		items = append(items, item{group: id, bytes: bytesOf(view.LayoutVersion, view.Ladder, view.Mode, view.Columns, view.CellBytes)})
	}
	slices.SortFunc(items, byGroup)
	return items, nil
}

// reclassBare takes objects without bytes into the class.
func (r *runner) reclassBare(ctx context.Context, keys []string) error {
	var objects []*catalog.Snapshot
	for _, key := range keys {
		snapshot, err := r.coordinator.catalog.Snapshot(ctx, key)
		switch {
		case errors.Is(err, catalog.ErrNoObject):
		case err != nil:
			return err
		case r.comes(&snapshot.Object) && len(snapshot.Object.Extents) == 0:
			objects = append(objects, snapshot)
		}
	}
	return r.reclass(ctx, objects, nil)
}

// reclassGroup takes what comes into the class out of one group along: the group with it, if nothing in it stays, else by copies.
func (r *runner) reclassGroup(ctx context.Context, id block.GroupID) (*group.Cost, error) {
	g := r.coordinator
	view, err := g.catalog.Group(ctx, id)
	if errors.Is(err, catalog.ErrNoGroup) {
		return &group.Cost{Skipped: true}, nil
	}
	if err != nil {
		return nil, err
	}
	inside, err := g.groups.Inside(ctx, id)
	if errors.Is(err, catalog.ErrNoGroup) {
		return &group.Cost{Skipped: true}, nil
	}
	if err != nil {
		return nil, err
	}
	cost := &group.Cost{}
	if !view.Packed {
		large := inside.Large
		for _, snapshot := range inside.Snapshots {
			large = append(large, snapshot.Object.Key)
		}
		for _, key := range large {
			if err := r.reclassLarge(ctx, key); err != nil {
				return nil, err
			}
		}
		return cost, nil
	}
	var come []*catalog.Snapshot
	stays := !inside.All
	for _, snapshot := range inside.Snapshots {
		if r.comes(&snapshot.Object) {
			come = append(come, snapshot)
		} else if snapshot.Object.Class != r.becomes.into {
			stays = true
		}
	}
	if !stays {
		groups := []*catalog.GroupView{view}
		if view.Class == r.becomes.into {
			groups = nil
		}
		return cost, r.reclass(ctx, come, groups)
	}
	class, err := r.classOf(r.becomes.into)
	if err != nil {
		return nil, err
	}
	for _, part := range parts(come, class.GroupBytes) {
		if err := r.pay(ctx, part...); err != nil {
			return nil, err
		}
		if err := g.objects.MoveObjects(ctx, class, r.to, part); err != nil {
			return nil, err
		}
		cost.Count(part...)
	}
	return cost, nil
}

// reclassLarge takes an object and the groups that are its own into the class.
func (r *runner) reclassLarge(ctx context.Context, key string) error {
	defer r.copies.lock(key)()
	snapshot, err := r.coordinator.catalog.Snapshot(ctx, key)
	if errors.Is(err, catalog.ErrNoObject) {
		return nil
	}
	if err != nil {
		return err
	}
	var objects []*catalog.Snapshot
	if r.comes(&snapshot.Object) {
		objects = append(objects, snapshot)
	} else if snapshot.Object.Class != r.becomes.into {
		return nil
	}
	var groups []*catalog.GroupView
	for _, view := range snapshot.Named() {
		if view.Class != r.becomes.into {
			groups = append(groups, view)
		}
	}
	return r.reclass(ctx, objects, groups)
}

// reclass has objects and groups say that they are of the class. Each must be as it was read.
func (r *runner) reclass(ctx context.Context, objects []*catalog.Snapshot, groups []*catalog.GroupView) error {
	g := r.coordinator
	for len(objects)+len(groups) > 0 {
		some, of := objects[:min(len(objects), reclassedObjects)], groups[:min(len(groups), reclassedGroups)]
		objects, groups = objects[len(some):], groups[len(of):]
		var basis []catalog.Basis
		var change catalog.Change
		for _, snapshot := range some {
			basis = append(basis, snapshot)
			change.Move = append(change.Move, catalog.ObjectMove{Snapshot: snapshot, Extents: snapshot.Object.Extents, Class: r.becomes.into})
		}
		for _, view := range of {
			basis = append(basis, view)
			change.Groups = append(change.Groups, catalog.GroupChange{Was: view, Slots: view.Slots, Class: r.becomes.into, Seal: true})
		}
		attempt, err := g.catalog.Begin(ctx, catalog.KindMove, g.groups.Deadline(), func(block.Stamp) []catalog.BlockSet { return nil }, basis...)
		if err != nil {
			return fmt.Errorf("announcing that objects come into class %s: %w", r.becomes.into, err)
		}
		if err := g.groups.Commit(ctx, attempt, change); err != nil {
			return err
		}
	}
	return nil
}

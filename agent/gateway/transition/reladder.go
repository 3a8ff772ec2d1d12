package transition

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/gateway/object"
	"github.com/restripe/restripe/agent/stripe"
)

// errNoFit says that a group cannot take a scheme where its data is, so that its objects have to be written into new groups.
var errNoFit = errors.New("the scheme does not fit the group")

// ladderFor returns the class of a group whose own ladder does not have a scheme, if the ladder of the class has it.
func (j *Coordinator) ladderFor(group *catalog.Group, to stripe.Scheme) (*api.Class, error) {
	class, err := j.classes.For("", group.Class)
	if err != nil {
		return nil, err
	}
	if !class.Ladder.Contains(to) {
		return nil, notOnLadder(class, to)
	}
	return class, nil
}

func notOnLadder(class *api.Class, to stripe.Scheme) error {
	return api.Refuse(api.ErrBadRequest,
		"scheme %s is not on the ladder %s of class %s; choose one of its schemes, or put this one on the ladder in the class file",
		to, class.Ladder, class.Name)
}

// relaid returns a group as it will be once it has come under the ladder of its class with its data where it is, and its layout then.
// Slots that it did not have get nodes of their own.
func (j *Coordinator) relaid(of *catalog.Group, layout *stripe.Layout, to stripe.Scheme) (*catalog.Group, *stripe.Layout, error) {
	class, err := j.ladderFor(of, to)
	if err != nil {
		return nil, nil, err
	}
	home := group.FurtherHomes(j.agents, of, of.Columns+class.Ladder.MaxParity())
	room := len(home) - of.Columns
	if to.M > room {
		return nil, nil, api.Refuse(api.ErrTooFewNodes, "%s needs %d nodes for group %s of %d columns, and there are %d; add nodes",
			to, of.Columns+to.M, of.ID, of.Columns, len(home))
	}
	ladder := slices.DeleteFunc(slices.Clone(class.Ladder), func(scheme stripe.Scheme) bool { return scheme.M > room })
	next, err := layout.WithLadder(ladder, class.Mode, to)
	if err != nil {
		return nil, nil, fmt.Errorf("group %s: %w: %w", of.ID, errNoFit, err)
	}
	made := *of
	made.Ladder, made.Mode, made.LayoutVersion, made.Home = next.Ladder.String(), string(next.Mode), next.Version, home
	return &made, next, nil
}

// copies holds which large objects are being copied, so that of those who come to groups of one object at once one copies it.
type copies struct {
	mutex sync.Mutex
	keys  map[string]*turn
}

// turn is whose it is to copy one object.
type turn struct {
	sync.Mutex
	wanted int // by so many
}

func (c *copies) lock(key string) (unlock func()) {
	c.mutex.Lock()
	if c.keys == nil {
		c.keys = map[string]*turn{}
	}
	one := c.keys[key]
	if one == nil {
		one = new(turn)
		c.keys[key] = one
	}
	one.wanted++
	c.mutex.Unlock()
	one.Lock()
	return func() {
		one.Unlock()
		c.mutex.Lock()
		defer c.mutex.Unlock()
		if one.wanted--; one.wanted == 0 {
			delete(c.keys, key)
		}
	}
}

// copyGroup writes the objects of a group into new ones of the ladders of their classes. It is freed once nothing is left in it.
func (r *runner) copyGroup(ctx context.Context, id block.GroupID) (*group.Cost, error) {
	g := r.coordinator
	view, err := g.catalog.Group(ctx, id)
	if errors.Is(err, catalog.ErrNoGroup) {
		return &group.Cost{Skipped: true}, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := g.ladderFor(&view.Group, r.to); err != nil {
		return nil, err
	}
	if !r.selects(&view.Group) {
		return &group.Cost{Skipped: true}, nil
	}
	members, _, err := g.origins(ctx, view)
	if err != nil {
		return nil, err
	}
	cost, found := &group.Cost{}, 0
	for _, member := range append(members, view) {
		inside, err := g.groups.Inside(ctx, member.ID)
		if errors.Is(err, catalog.ErrNoGroup) {
			continue // freed meanwhile
		}
		if err != nil {
			return nil, err
		}
		found += len(inside.Snapshots) + len(inside.Large)
		if err := r.copyObjects(ctx, member.ID, inside, cost); err != nil {
			return nil, err
		}
	}
	view, err = g.catalog.Group(ctx, id)
	if errors.Is(err, catalog.ErrNoGroup) {
		return cost, nil
	}
	if err != nil {
		return nil, err
	}
	members, columns, err := g.origins(ctx, view)
	if err != nil {
		return nil, err
	}
	left := view.Live - columns
	for _, member := range members {
		left += member.Live
	}
	switch {
	case left == 0:
		return cost, nil
	case found == 0:
		return nil, fmt.Errorf("group %s holds %d ranges of objects that none of its blocks names", id, left)
	}
	return nil, fmt.Errorf("objects of group %s were written while they were copied: %w", id, api.ErrConflict)
}

// origins are the groups that were dissolved into a group and are not freed yet, and how many of its columns are of them.
func (j *Coordinator) origins(ctx context.Context, of *catalog.GroupView) (origins []*catalog.GroupView, columns int64, err error) {
	known := map[block.GroupID]*catalog.GroupView{}
	for i, column := range of.Brought {
		origin, read := known[column.Group]
		if column != (catalog.Column{}) && !read {
			origin, err = j.catalog.Group(ctx, column.Group)
			if err != nil && !errors.Is(err, catalog.ErrNoGroup) {
				return nil, 0, err
			}
			if known[column.Group] = origin; origin != nil {
				origins = append(origins, origin)
			}
		}
		if origin != nil && origin.IsDissolved() && origin.Lies[column.Column] == (catalog.Column{Group: of.ID, Column: of.Span() + i}) {
			columns++
		}
	}
	return origins, columns, nil
}

// copyObjects copies the objects that lie in a group.
func (r *runner) copyObjects(ctx context.Context, id block.GroupID, inside *catalog.Inside, cost *group.Cost) error {
	small, large := map[string][]*catalog.Snapshot{}, slices.Clone(inside.Large) // by class
	for _, snapshot := range inside.Snapshots {
		if snapshot.Object.Extents[0].Column == catalog.WholeGroup {
			large = append(large, snapshot.Object.Key)
		} else {
			small[snapshot.Object.Class] = append(small[snapshot.Object.Class], snapshot)
		}
	}
	for _, key := range large {
		if err := r.copyLarge(ctx, id, key, cost); err != nil {
			return err
		}
	}
	for name, snapshots := range small {
		class, err := r.classOf(name)
		if err != nil {
			return err
		}
		for _, part := range parts(snapshots, class.GroupBytes) {
			if err := r.pay(ctx, part...); err != nil {
				return err
			}
			if err := r.coordinator.objects.MoveUnchanged(ctx, class, r.to, part); err != nil {
				return err
			}
			cost.Count(part...)
		}
	}
	return nil
}

// copyLarge copies an object of groups of its own, unless it does not lie in this one any more.
func (r *runner) copyLarge(ctx context.Context, id block.GroupID, key string, cost *group.Cost) error {
	defer r.copies.lock(key)()
	snapshot, err := r.coordinator.catalog.Snapshot(ctx, key)
	if errors.Is(err, catalog.ErrNoObject) {
		return nil
	}
	if err != nil || snapshot.Groups[id] == nil {
		return err
	}
	class, err := r.classOf(snapshot.Object.Class)
	if err != nil {
		return err
	}
	if err := object.MoveLarge(ctx, r.coordinator.objects, class, r.to, snapshot, r.payFor); err != nil {
		return err
	}
	cost.Count(snapshot)
	return nil
}

// classOf returns a class into which objects can be copied.
func (r *runner) classOf(name string) (*api.Class, error) {
	class, err := r.coordinator.classes.For("", name)
	if err == nil && !class.Ladder.Contains(r.to) {
		err = notOnLadder(class, r.to)
	}
	return class, err
}

// pay waits until the copies of objects fit the budget of the transition.
func (r *runner) pay(ctx context.Context, snapshots ...*catalog.Snapshot) error {
	var bytes int64
	for _, snapshot := range snapshots {
		bytes += snapshot.Object.Size
	}
	return r.payFor(ctx, bytes)
}

// payFor is pay for so many bytes: what is read, sent and written of them.
func (r *runner) payFor(ctx context.Context, bytes int64) error {
	read, sent, written := copied(bytes, r.to)
	return r.pacer.Wait(ctx, r.Halting(), group.Load{Total: read + sent + written})
}

// copied returns what is read, sent and written of so many bytes that are copied through a gateway.
func copied(bytes int64, to stripe.Scheme) (read, sent, written int64) {
	written = bytes + bytes/int64(to.K)*int64(to.M)
	return bytes, bytes + written, written
}

// parts cuts small objects into as many as are moved in one attempt.
func parts(snapshots []*catalog.Snapshot, most int64) (parts [][]*catalog.Snapshot) {
	var bytes int64
	for i, first := 0, 0; i <= len(snapshots); i++ {
		if i < len(snapshots) && i-first < objectsPerMove && (i == first || bytes+snapshots[i].Object.Size <= most) {
			bytes += snapshots[i].Object.Size
			continue
		}
		if i > first {
			parts = append(parts, snapshots[first:i])
		}
		if i == len(snapshots) {
			break
		}
		first, bytes = i, snapshots[i].Object.Size
	}
	return parts
}

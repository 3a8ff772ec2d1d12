package object

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/stripe"
)

// Write is what becomes of one object among several.
type Write struct {
	Key     string
	Delete  bool
	Data    []byte         // nobody changes it any more
	Options api.PutOptions // but for Size and IfRevision
}

// Apply makes several changes, of one object each, at one instant, or none of them: it is ErrConflict if an object, one of these or
// another, has not the revision that it must have, the zero stamp for none. Small objects that are put together share groups with
// each other alone.
func (o *Objects) Apply(ctx context.Context, writes []Write, expected map[string]block.Stamp) (err error) {
	for try := range batchTries {
		if err = apply(ctx, o, writes, expected); !errors.Is(err, group.ErrNotWhole) || group.Pause(ctx, try) != nil {
			break
		}
	}
	return err
}

// groupsTogether bounds the groups that one transaction makes.
const groupsTogether = 256

// together is several changes under way: one attempt, whose groups are staged one after the other.
type together struct {
	objects *Objects
	attempt *catalog.Attempt
	change  catalog.Change
	kinds   []batchKey
	small   map[batchKey]map[string]entry // to be packed
	large   map[batchKey]map[string]entry // each in groups of its own
	over    []catalog.Basis
}

func apply(ctx context.Context, o *Objects, writes []Write, expected map[string]block.Stamp) (err error) {
	t := &together{
		objects: o, change: catalog.Change{IfRevision: expected}, small: map[batchKey]map[string]entry{}, large: map[batchKey]map[string]entry{},
	}
	for i := range writes {
		if err := t.take(&writes[i]); err != nil {
			return err
		}
	}
	t.attempt, err = o.catalog.Begin(ctx, catalog.KindPut, o.groups.Deadline(), func(block.Stamp) []catalog.BlockSet { return nil }, t.over...)
	if err != nil {
		return fmt.Errorf("announcing several changes: %w", err)
	}
	defer o.groups.KeepAlive(ctx, t.attempt)()
	if err := t.stage(ctx); err != nil {
		return o.groups.Abandon(ctx, t.attempt, err)
	}
	if err := o.commit(ctx, t.attempt, t.change); err != nil {
		return err
	}
	for i := range t.change.NewGroups {
		o.heat.Used(&t.change.NewGroups[i])
	}
	if len(t.change.NewGroups) == 0 {
		return o.witnessDelete(ctx)
	}
	return nil
}

// take notes what is to become of one object.
func (t *together) take(write *Write) error {
	o := t.objects
	if write.Delete {
		t.change.Delete = append(t.change.Delete, write.Key)
		return api.CheckKey(write.Key)
	}
	if err := checkPut(write.Key, &write.Options); err != nil {
		return err
	}
	class, scheme, err := schemeFor(o, write.Key, &write.Options)
	if err != nil {
		return err
	}
	if write.Options.Metadata, err = withDigests(&write.Options); err != nil {
		return err
	}
	t.over = append(t.over, catalog.Over(write.Key))
	kind, object := entryOf(o, write.Key, class, scheme, write.Data, &write.Options)
	into := t.small
	if int64(len(object.data)) >= class.PackBelow {
		kind.scheme, into = scheme, t.large
	}
	if t.small[kind] == nil {
		t.small[kind], t.large[kind] = map[string]entry{}, map[string]entry{}
		t.kinds = append(t.kinds, kind)
	}
	into[kind][write.Key] = object
	o.heat.Popularity.Wrote(class, write.Key)
	return nil
}

// stage stages all groups.
func (t *together) stage(ctx context.Context) error {
	for _, kind := range t.kinds {
		for _, part := range t.parts(kind) {
			if err := t.pack(ctx, kind, part); err != nil {
				return err
			}
		}
		for _, key := range slices.Sorted(maps.Keys(t.large[kind])) {
			if err := t.spread(ctx, kind, key, t.large[kind][key]); err != nil {
				return err
			}
		}
	}
	return nil
}

// parts deals small objects of one kind out to groups, of which none is larger than a batch is. Empty ones are put at once.
func (t *together) parts(kind batchKey) (parts []map[string]content) {
	var bytes int64
	var named int
	for _, key := range slices.Sorted(maps.Keys(t.small[kind])) {
		object := t.small[kind][key]
		if len(object.data) == 0 {
			t.put(kind, key, object, nil)
			continue
		}
		if len(parts) == 0 || bytes >= kind.class.GroupBytes || named >= batchNames || len(parts[len(parts)-1]) >= batchObjects {
			parts, bytes, named = append(parts, map[string]content{}), 0, 0
		}
		parts[len(parts)-1][key] = object.content
		bytes, named = bytes+int64(len(object.data)), named+names(key, object.metadata)
	}
	return parts
}

func (t *together) put(kind batchKey, key string, object entry, extents []catalog.Extent) {
	record := recordOf(kind, t.attempt, key, object, time.Now().UnixMilli())
	record.Extents = extents
	t.change.Put = append(t.change.Put, record)
}

// pack stages small objects in a group of their own.
func (t *together) pack(ctx context.Context, kind batchKey, contents map[string]content) error {
	var home []block.NodeID
	revision := func(*catalog.Attempt, string) block.Stamp { return t.attempt.Stamp() }
	announce := func(code *group.Code) (_ *catalog.Attempt, _ []block.NodeID, err error) {
		_, home, err = t.next(ctx, kind.class, code)
		return t.attempt, home, err
	}
	_, packed, err := t.objects.stagePacked(ctx, kind, t.index(), contents, revision, announce)
	if err != nil {
		return err
	}
	t.change.NewGroups = append(t.change.NewGroups, *packed.group)
	for key := range contents {
		t.put(kind, key, t.small[kind][key], []catalog.Extent{packed.extents[key]})
	}
	return nil
}

// spread stages an object that is not small in groups of its own.
func (t *together) spread(ctx context.Context, kind batchKey, key string, object entry) error {
	layout, err := stripe.NewLayout(kind.class.Ladder, 0, kind.class.Mode)
	if err != nil {
		return fmt.Errorf("class %s: %w", kind.class.Name, err)
	}
	var extents []catalog.Extent
	at, size := int64(0), int64(len(object.data))
	for part := range slices.Chunk(object.data, int(kind.class.GroupBytes)) {
		staged, err := t.fill(ctx, kind, layout, part, block.ManifestEntry{
			Key: []byte(key), Revision: t.attempt.Stamp(), Size: size, At: at, Column: catalog.WholeGroup, Length: int64(len(part)),
			Expires: object.expires, Metadata: object.metadata, Checksum: object.checksum, Keep: object.keep,
		})
		if err != nil {
			return err
		}
		t.change.NewGroups = append(t.change.NewGroups, *staged)
		extents = append(extents, catalog.Extent{Group: staged.ID, Column: catalog.WholeGroup, Length: int64(len(part))})
		at += int64(len(part))
	}
	t.put(kind, key, object, extents)
	return nil
}

// fill stages one group of bytes of an object.
func (t *together) fill(
	ctx context.Context, kind batchKey, layout *stripe.Layout, data []byte, entry block.ManifestEntry,
) (*catalog.Group, error) {
	groups := t.objects.groups
	d, err := groups.NewDraft(ctx, groups.Memory.Groups, kind.class, kind.scheme, group.CellBytesFor(layout.Cells(), int64(len(data))))
	if err != nil {
		return nil, err
	}
	defer groups.Release(d)
	d.Fill(0, data)
	groups.Name(d, []block.ManifestEntry{entry})
	id, home, err := t.next(ctx, kind.class, d.Code)
	if err != nil {
		return nil, err
	}
	d.ID = id
	return groups.Stage(ctx, t.attempt, d, home)
}

// index is that of the next group.
func (t *together) index() uint32 { return uint32(len(t.change.NewGroups)) }

// next chooses the nodes of the next group, and announces its blocks.
func (t *together) next(ctx context.Context, class *api.Class, code *group.Code) (id block.GroupID, home []block.NodeID, err error) {
	if t.index() >= groupsTogether {
		return id, nil, api.Refuse(api.ErrBadRequest,
			"what is put together takes more than %d groups of class %s; put less at a time", groupsTogether, class.Name)
	}
	agents := t.objects.agents
	id = block.GroupID{Stamp: t.attempt.Stamp(), Index: t.index()}
	if home, err = agents.Place(class, agents.Turns.Add(1), id.Index); err != nil {
		return id, nil, err
	}
	sets := []catalog.BlockSet{group.Announce(id, code, home)}
	return id, home, t.attempt.Extend(ctx, sets, t.objects.groups.Deadline())
}

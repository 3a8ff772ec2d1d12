package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// merging is why a catalog is set aside while it takes up what it lacks.
const merging = "what it lacks is being brought back into it, or that did not end: say `restripe catalog rebuild --into` again"

// Merged says what Merge brought into a catalog, or would.
type Merged struct {
	Objects  int      `json:"objects"`  // that were not there
	Newer    int      `json:"newer"`    // versions of objects that were there, or places they were moved to
	Groups   int      `json:"groups"`   // new, or under a later state
	Kept     []string `json:"kept"`     // keys of objects whose version in the catalog is the later one
	Missing  []string `json:"missing"`  // keys of objects that the catalog has and the stores have not: deleted since, or lost
	Attempts int      `json:"attempts"` // that had been under way and turned out to be committed
}

// Merge brings into the catalog in engine what contents, all that is in the stores, have and it lacks, as it was put back: what
// no session of it has drawn, and what was under way. Of two versions of an object the one with the greater revision stays; what
// the catalog itself has seen to be deleted or replaced is not brought back. Nothing in it is removed. It claims the catalog (see
// Claim): blocks from before are kept until Accept. With dryRun it only says what it would do; otherwise it tells progress, if that
// is not nil, of the records it has written.
//
// One that does not end leaves a catalog that Open refuses, and that is merged again. It fails with ErrBadChange for a catalog
// of another cluster, or none.
func Merge(ctx context.Context, engine kv.Engine, contents *Contents, dryRun bool, progress func(written, of int)) (*Merged, error) {
	m := &merger{Catalog: build(engine, "rebuild/into"), contents: contents, fill: filler{engine, string(Aside(merging)), "say it again"}}
	if err := m.merge(ctx, dryRun, progress); err != nil {
		return nil, fmt.Errorf("merging into the catalog: %w", err)
	}
	return m.result, nil
}

// merger is one merge.
type merger struct {
	*Catalog
	contents *Contents
	result   *Merged
	fill     filler

	drawn    *drawn
	floor    uint64
	was      *schema.Picture
	active   map[block.Stamp]bool     // attempts that are under way, as far as the catalog knows
	groups   map[block.GroupID]*Group // that are brought in, or replaced
	brought  []*Object
	attempts map[block.Stamp]bool // of the groups that are brought in
	version  int                  // of the schema
}

func (m *merger) merge(ctx context.Context, dryRun bool, progress func(written, of int)) error {
	version, err := m.check(ctx)
	if err != nil {
		return err
	}
	// What cannot be merged is refused before anybody's session ends.
	if _, err = m.choose(ctx); err != nil || dryRun {
		return err
	}
	if err := m.fence(ctx, version); err != nil {
		return err
	}
	writes, err := m.choose(ctx) // anew: sessions have gone on until now
	if err != nil {
		return err
	}
	above := codec.EncodeCount(max(m.floor, m.drawn.last(), m.contents.Next, m.clock()) + Ahead)
	last := []kv.Write{{Key: schema.KeyFloor, Value: above}, {Key: schema.KeyKept, Value: above}, {Key: schema.KeyAlarm, Kind: kv.Remove}}
	for _, group := range m.groups { // which it may have from a time after it was raised
		if len(group.Empty()) > 0 {
			m.version = SchemaVersion
		}
	}
	return m.fill.end(ctx, writes, last, m.version, progress)
}

// choose reads the catalog and returns the writes that bring in what it lacks.
func (m *merger) choose(ctx context.Context) (writes []kv.Write, err error) {
	m.result, m.brought = &Merged{Kept: []string{}, Missing: []string{}}, nil
	if m.drawn, err = m.auditor.drawn(ctx); err != nil {
		return nil, err
	}
	if m.floor, err = m.number(ctx, schema.KeyFloor); err != nil {
		return nil, err
	}
	if m.was, _, err = m.auditor.picture(ctx); err != nil {
		return nil, err
	}
	if len(m.was.Malformed) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, errors.Join(m.was.Malformed...))
	}
	m.active = map[block.Stamp]bool{}
	for _, intent := range m.was.Intents {
		m.active[intent.Stamp] = intent.State == IntentActive
	}
	m.chooseGroups()
	m.chooseObjects()
	if writes, err = m.writes(); err != nil {
		return nil, err
	}
	return m.members(ctx, writes)
}

// check returns the schema version as it is read, unless the catalog is none that can be merged into.
func (m *merger) check(ctx context.Context) ([]byte, error) {
	values, err := m.engine.Read(ctx, schema.KeySchema, schema.KeyCluster, schema.KeyVersion)
	if err != nil {
		return nil, err
	}
	m.version = schema.VersionOf(schema.InService(values[2]))
	switch version := string(values[0]); {
	case values[0] == nil:
		return nil, fmt.Errorf("%w: there is none: rebuild a new one, without --into", ErrBadChange)
	case version != m.fill.mark && version != strconv.Itoa(m.version):
		return nil, fmt.Errorf("%w: it has the schema version %q, not %d", ErrBadChange, version, m.version)
	}
	cluster, err := codec.Decode[Cluster](schema.KeyCluster, values[1])
	if err == nil && cluster != m.contents.Cluster {
		err = fmt.Errorf("%w: it is of cluster %s, and the stores of %s", ErrBadChange, cluster.ID, m.contents.Cluster.ID)
	}
	return values[0], err
}

// knows reports whether the catalog knows how an attempt ended: one of its sessions drew the stamp, and it is not under way.
func (m *merger) knows(stamp block.Stamp) bool { return m.drawn.has(stamp) && !m.active[stamp] }

// chooseGroups takes the groups whose blocks in the stores are of attempts that the catalog never knew.
func (m *merger) chooseGroups() {
	m.groups, m.attempts = map[block.GroupID]*Group{}, map[block.Stamp]bool{}
	for i := range m.contents.Groups {
		found := &m.contents.Groups[i]
		var newest block.Stamp
		for _, items := range found.Slots {
			for _, item := range items {
				isThere := item.Incarnation == m.contents.Incarnations[item.Node]
				if isThere && !m.knows(item.Stamp) {
					newest = slices.MaxFunc([]block.Stamp{newest, item.Stamp}, block.Stamp.Compare)
				}
			}
		}
		have := m.was.Groups[found.ID]
		if newest.IsZero() || have != nil && have.Generation.Compare(newest) > 0 {
			continue
		}
		m.result.Groups++
		m.groups[found.ID] = found
		for _, items := range found.Slots {
			for _, item := range items {
				m.attempts[item.Stamp] = true
			}
		}
	}
}

// chooseObjects takes the objects, and the versions of objects, that the catalog never knew.
func (m *merger) chooseObjects() {
	had := map[string]*Object{}
	for i := range m.was.Objects {
		had[m.was.Objects[i].Key] = &m.was.Objects[i]
	}
	sound := map[string]bool{}
	for i := range m.contents.Objects {
		found := &m.contents.Objects[i]
		have := had[found.Key]
		if block.IsEarlierKey(found.Key) { // those that the catalog knows of stay, and others are no more than what blocks are left of
			continue
		}
		if found.Earlier = nil; have != nil {
			found.Earlier = have.Earlier
		}
		sound[found.Key] = have != nil && found.Revision == have.Revision
		isMoved := sound[found.Key] && !slices.Equal(found.Extents, have.Extents)
		switch {
		case isMoved && slices.ContainsFunc(found.Extents, func(e Extent) bool { return !m.knows(e.Group.Stamp) }):
			m.result.Newer++
		case sound[found.Key] || m.knows(found.Revision):
			continue
		case have == nil:
			m.result.Objects++
		case have.Revision.Compare(found.Revision) > 0:
			m.result.Kept = append(m.result.Kept, found.Key)
			continue
		default:
			m.result.Newer++
		}
		sound[found.Key] = true
		m.brought = append(m.brought, found)
	}
	for key, object := range had {
		if !sound[key] && len(object.Extents) > 0 && !block.IsEarlierKey(key) && !slices.Contains(m.result.Kept, key) {
			m.result.Missing = append(m.result.Missing, key)
		}
	}
	slices.Sort(m.result.Missing)
}

// pieces are the changes of what pieces hold: what is brought in is in their place, and the rest is held until it is swept.
func (m *merger) pieces(after *schema.Picture) (writes []kv.Write) {
	inside := map[block.GroupID]bool{}
	for _, object := range m.brought {
		for _, extent := range object.Extents {
			inside[extent.Group] = true
			m.attempts[extent.Group.Stamp] = true
		}
	}
	for key, piece := range m.was.Pieces {
		left := slices.DeleteFunc(slices.Clone(piece.Extents), func(extent Extent) bool { return inside[extent.Group] })
		isChanged := len(left) < len(piece.Extents)
		piece.Extents = left
		for _, extent := range left {
			after.Count(extent)
		}
		if len(left) > 0 {
			after.Pieces[key] = piece
		}
		switch {
		case !isChanged:
			continue
		case len(left) > 0:
			writes = append(writes, kv.Write{Key: key, Value: codec.Encode(piece)})
		default:
			writes = append(writes, kv.Write{Key: key, Kind: kv.Remove})
		}
	}
	return writes
}

// writes are the records that are changed. They are checked to hold together with those that stay.
func (m *merger) writes() ([]kv.Write, error) {
	after := schema.NewPicture(func(stamp block.Stamp) bool {
		return m.drawn.has(stamp) || stamp.Sequence < max(m.floor, m.contents.Next)
	})
	after.Groups = maps.Clone(m.was.Groups)
	for key := range m.was.Expiries {
		if strings.HasPrefix(key, schema.PrefixDropped) {
			after.Expiries[key] = true
		}
	}
	maps.Copy(after.Groups, m.groups)
	objects := map[string]*Object{}
	for i := range m.was.Objects {
		objects[m.was.Objects[i].Key] = &m.was.Objects[i]
	}
	var expiries []kv.Write
	for _, object := range m.brought {
		expiries = append(expiries, schema.ExpiryWrites(objects[object.Key], object)...)
		objects[object.Key] = object
	}
	for id := range after.Groups {
		after.Lives[id] = 0
	}
	writes := append(m.pieces(after), expiries...)
	for _, object := range objects {
		after.Add(object)
	}
	after.CountColumns()
	set := func(key string, value []byte) { writes = append(writes, kv.Write{Key: key, Value: value}) }
	for id, group := range m.groups {
		set(schema.GroupKey(id), codec.Encode(*group))
	}
	for id, live := range after.Lives {
		after.Freeable[id] = live == 0
		was, counted := m.was.Lives[id]
		if counted && was == live && m.was.Bytes[id] == after.Bytes[id] && m.was.Freeable[id] == (live == 0) {
			continue
		}
		writes = append(writes, after.CountWrites(id)...)
		if live == 0 {
			set(schema.FreeableKey(id), []byte{})
		} else {
			writes = append(writes, kv.Write{Key: schema.FreeableKey(id), Kind: kv.Remove})
		}
	}
	for _, object := range m.brought {
		set(schema.ObjectKey(object.Key), codec.Encode(*object))
	}
	named := map[block.Address]bool{}
	for _, group := range m.groups {
		for address := range group.Addresses() {
			named[address] = true
		}
	}
	for _, intent := range m.was.Intents { // an attempt that was under way, and committed since
		if !m.attempts[intent.Stamp] {
			after.Intents = append(after.Intents, intent)
			continue
		}
		m.result.Attempts++
		writes = append(writes, kv.Write{Key: schema.IntentKey(intent.Stamp), Kind: kv.Remove})
	}
	for _, grave := range m.was.Graves {
		if !named[grave] {
			after.Graves = append(after.Graves, grave)
			continue
		}
		writes = append(writes, kv.Write{Key: schema.GraveKey(grave), Kind: kv.Remove})
	}
	if violations := after.Violations(); len(violations) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrBadChange, violations[0])
	}
	return writes, nil
}

// fence marks the catalog, so that no session begins, and then ends those that have.
func (m *merger) fence(ctx context.Context, version []byte) error {
	if err := m.fill.begin(ctx, version); err != nil {
		return err
	}
	var present []kv.Record
	err := m.auditor.each(ctx, schema.PrefixGateway, func(record kv.Record) error {
		present = append(present, record)
		return nil
	})
	if err != nil {
		return err
	}
	last, err := m.engine.Read(ctx, schema.KeyDisowned)
	if err != nil {
		return err
	}
	disowned, err := disown(last[0], present, m.contents.Starts)
	if err != nil {
		return err
	}
	writes := []kv.Write{disowned}
	for _, record := range present {
		writes = append(writes, kv.Write{Key: record.Key, Kind: kv.Remove})
	}
	return m.fill.write(ctx, writes)
}

// members adds the nodes that the catalog does not know, and the contents that stores have now.
func (m *merger) members(ctx context.Context, writes []kv.Write) ([]kv.Write, error) {
	for _, node := range m.contents.Nodes {
		values, err := m.engine.Read(ctx, schema.NodeKey(node.ID), schema.IncarnationKey(node.ID))
		if err != nil {
			return nil, err
		}
		if values[0] == nil {
			writes = append(writes, kv.Write{Key: schema.NodeKey(node.ID), Value: codec.Encode(node)})
		}
		now := []byte(m.contents.Incarnations[node.ID])
		if len(now) > 0 && !bytes.Equal(values[1], now) {
			writes = append(writes, kv.Write{Key: schema.IncarnationKey(node.ID), Value: now})
		}
	}
	return writes, nil
}

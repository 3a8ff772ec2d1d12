package schema

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
)

// Picture is all records that hold together, or do not: what an audit looks at.
type Picture struct {
	drawn     func(block.Stamp) bool // whether a stamp is one that was drawn
	Objects   []Object
	Groups    map[block.GroupID]*Group
	Lives     map[block.GroupID]int64
	Bytes     map[block.GroupID]int64
	Freeable  map[block.GroupID]bool
	Intents   []Intent
	Pieces    map[string]Piece // by the keys of their records
	Graves    []block.Address
	Expiries  map[string]bool // the keys of the records that say when objects expire
	Malformed []error
}

// NewPicture returns a picture with nothing in it.
func NewPicture(drawn func(block.Stamp) bool) *Picture {
	return &Picture{
		drawn: drawn, Groups: map[block.GroupID]*Group{}, Lives: map[block.GroupID]int64{}, Bytes: map[block.GroupID]int64{},
		Freeable: map[block.GroupID]bool{}, Pieces: map[string]Piece{}, Expiries: map[string]bool{},
	}
}

// Pictured are the prefixes of the records in a picture, in the order in which they are read.
var Pictured = []string{
	PrefixObject, PrefixGroup, PrefixLive, PrefixBytes, PrefixFreeable, PrefixIntent, PrefixPiece, PrefixGrave, PrefixExpiry,
}

// Take adds a record, of one of the prefixes in Pictured.
func (p *Picture) Take(record kv.Record) {
	var err error
	switch record.Key[:strings.Index(record.Key, "/")+1] {
	case PrefixObject:
		err = p.takeObject(record)
	case PrefixGroup:
		err = p.takeGroup(record)
	case PrefixLive:
		err = p.takeCount(record, PrefixLive, p.Lives)
	case PrefixBytes:
		err = p.takeCount(record, PrefixBytes, p.Bytes)
	case PrefixFreeable:
		err = p.takeFreeable(record)
	case PrefixIntent:
		err = p.takeIntent(record)
	case PrefixPiece:
		p.Pieces[record.Key], err = codec.Decode[Piece](record.Key, record.Value)
	case PrefixGrave:
		err = p.takeGrave(record)
	case PrefixExpiry:
		p.Expiries[record.Key] = true
	}
	if err != nil {
		p.Malformed = append(p.Malformed, err)
	}
}

func (p *Picture) takeObject(record kv.Record) error {
	object, err := codec.Decode[Object](record.Key, record.Value)
	if err == nil && ObjectKey(object.Key) != record.Key {
		err = fmt.Errorf("record %q holds object %q", record.Key, object.Key)
	}
	p.Objects = append(p.Objects, object)
	return err
}

func (p *Picture) takeGroup(record kv.Record) error {
	group, err := codec.Decode[Group](record.Key, record.Value)
	if err != nil {
		return err
	}
	if GroupKey(group.ID) != record.Key {
		return fmt.Errorf("record %q holds group %s", record.Key, group.ID)
	}
	p.Groups[group.ID] = &group
	return nil
}

func (p *Picture) takeCount(record kv.Record, prefix string, counts map[block.GroupID]int64) error {
	id, err := block.ParseGroupID(strings.TrimPrefix(record.Key, prefix))
	if err != nil {
		return err
	}
	counts[id], err = codec.DecodeCount(record.Key, record.Value)
	return err
}

func (p *Picture) takeFreeable(record kv.Record) error {
	id, err := block.ParseGroupID(strings.TrimPrefix(record.Key, PrefixFreeable))
	p.Freeable[id] = true
	return err
}

func (p *Picture) takeIntent(record kv.Record) error {
	intent, err := codec.Decode[Intent](record.Key, record.Value)
	if err == nil && (IntentKey(intent.Stamp) != record.Key || intent.State != IntentActive) {
		err = fmt.Errorf("record %q holds the intent of %s in state %s", record.Key, intent.Stamp, intent.State)
	}
	p.Intents = append(p.Intents, intent)
	return err
}

func (p *Picture) takeGrave(record kv.Record) error {
	address, err := AddressOfGrave(record.Key)
	p.Graves = append(p.Graves, address)
	return err
}

// Violations says what does not hold.
func (p *Picture) Violations() []error {
	violations := slices.Clone(p.Malformed)
	add := func(format string, arguments ...any) {
		violations = append(violations, fmt.Errorf(format, arguments...))
	}

	named := map[block.Address]bool{}
	for id, group := range p.Groups {
		if err := group.Check(); err != nil {
			add("%w", err)
		}
		for _, stamp := range []block.Stamp{id.Stamp, group.Generation, group.Epoch} {
			if !p.drawn(stamp) {
				add("group %s: stamp %s was never drawn", id, stamp)
			}
		}
		for address := range group.Addresses() {
			named[address] = true
		}
		if _, counted := p.Lives[id]; !counted {
			add("group %s has no live count", id)
		}
	}
	for _, address := range p.Graves {
		if named[address] {
			add("grave %s is a live block", address)
		}
	}
	for i := range p.Intents {
		for _, address := range p.Intents[i].Addresses() {
			if named[address] {
				add("active attempt %s announces the live block %s", p.Intents[i].Stamp, address)
			}
		}
		for at := range p.Intents[i].Pieces {
			if _, there := p.Pieces[PieceKey(p.Intents[i].Stamp.String(), at)]; !there {
				add("active attempt %s has lost its piece %d", p.Intents[i].Stamp, at)
			}
		}
	}
	return slices.Concat(violations, p.columnViolations(), p.extentViolations(), p.expiryViolations(), p.earlierViolations())
}

// Add adds an object, and what there is besides it.
func (p *Picture) Add(object *Object) {
	p.Objects = append(p.Objects, *object)
	for _, extent := range object.Extents {
		p.Count(extent)
	}
	if key := ExpiryKey(object); key != "" {
		p.Expiries[key] = true
	}
}

// expiryViolations says which objects would not be removed when they expire, and of what there is a record that expires and is not there.
func (p *Picture) expiryViolations() (violations []error) {
	left := maps.Clone(p.Expiries)
	for i := range p.Objects {
		key := ExpiryKey(&p.Objects[i])
		if key != "" && !p.Expiries[key] {
			violations = append(violations, fmt.Errorf("object %q expires, and there is no record %q", p.Objects[i].Key, key))
		}
		delete(left, key)
	}
	for key := range left {
		if strings.HasPrefix(key, PrefixDropped) { // what it has removed may be gone by itself
			continue
		}
		violations = append(violations, fmt.Errorf("record %q is of no object that expires then", key))
	}
	return violations
}

// earlierViolations says which earlier versions nobody would ever remove.
func (p *Picture) earlierViolations() (violations []error) {
	named := map[string]bool{}
	for i := range p.Objects {
		for _, revision := range p.Objects[i].Earlier {
			named[block.EarlierKey(p.Objects[i].Key, revision)] = true
		}
	}
	for i := range p.Objects {
		if key := p.Objects[i].Key; block.IsEarlierKey(key) && !named[key] && !p.Expiries[PrefixDropped+key] {
			violations = append(violations, fmt.Errorf("object %q is a version that its object does not name, and is not to be removed", key))
		}
	}
	return violations
}

// Count adds an extent that an object or a piece has to the counts of its group.
func (p *Picture) Count(extent Extent) {
	p.Lives[extent.Group]++
	if extent.Column != WholeGroup {
		p.Bytes[extent.Group] += extent.Length
	}
}

// lying counts the columns that lie in groups, of others.
func (p *Picture) lying() Lives {
	lives := Lives{}
	for _, group := range p.Groups {
		lives.Lie(group, 1)
	}
	return lives
}

// CountColumns adds the columns of groups that lie in others to the counts of these, after all groups are in the picture.
func (p *Picture) CountColumns() {
	for id, live := range p.lying() {
		p.Lives[id] += live.Extents
	}
}

// columnViolations says which columns lie where nothing is said to be brought.
func (p *Picture) columnViolations() (violations []error) {
	for id, group := range p.Groups {
		for column, lies := range group.Lies {
			in, of := p.Groups[lies.Group], Column{Group: id, Column: column}
			if lies == (Column{}) {
				continue
			}
			if in == nil || lies.Column < in.Span() || lies.Column >= in.Columns || in.Brought[lies.Column-in.Span()] != of {
				violations = append(violations, fmt.Errorf("column %d of group %s is said to lie in column %d of group %s, which does not say so",
					column, id, lies.Column, lies.Group))
			}
		}
	}
	return violations
}

// CountWrites writes the counts of a group, as they are in the picture.
func (p *Picture) CountWrites(id block.GroupID) []kv.Write {
	writes := []kv.Write{{Key: LiveKey(id), Kind: kv.Count, Add: p.Lives[id]}}
	if p.Groups[id].Packed {
		writes = append(writes, kv.Write{Key: BytesKey(id), Kind: kv.Count, Add: p.Bytes[id]})
	}
	return writes
}

// place is an extent and whose it is, an object's or a piece's.
type place struct {
	holder string
	extent Extent
}

func (p *Picture) extentViolations() (violations []error) {
	add := func(format string, arguments ...any) {
		violations = append(violations, fmt.Errorf(format, arguments...))
	}
	places := map[block.GroupID][]place{}
	lies := func(holder string, extents []Extent) {
		for _, extent := range extents {
			places[extent.Group] = append(places[extent.Group], place{holder, extent})
			group := p.Groups[extent.Group]
			if group == nil {
				add("%s lies in group %s, which does not exist", holder, extent.Group)
			} else if gathered, err := group.Gathered(p.Groups); err != nil {
				add("%s: %w", holder, err)
			} else if err := gathered.CheckExtents([]Extent{extent}); err != nil {
				add("%s: %w", holder, err)
			}
		}
	}
	for i := range p.Objects {
		object := &p.Objects[i]
		if err := CheckLengths(object.Key, object.Extents, object.Size); err != nil {
			add("%w", err)
		}
		if !p.drawn(object.Revision) {
			add("object %q: revision %s was never drawn", object.Key, object.Revision)
		}
		lies(fmt.Sprintf("object %q", object.Key), object.Extents)
	}
	for key, piece := range p.Pieces {
		lies(fmt.Sprintf("piece %q", key), piece.Extents)
	}
	lying := p.lying()
	for id, live := range p.Lives {
		if p.Groups[id] == nil {
			add("group %s does not exist and has the live count %d", id, live)
		}
		if count := int64(len(places[id])) + lying[id].Extents; live != count {
			add("group %s has the live count %d, and %d extents and columns of other groups", id, live, count)
		}
		if live == 0 && !p.Freeable[id] {
			add("group %s has the live count 0 and is not noted for freeing", id)
		}
	}
	for id, counted := range p.Bytes {
		bytes := int64(0)
		for _, inside := range places[id] {
			bytes += inside.extent.Length
		}
		if counted >= 0 && counted != bytes { // below 0 it is of a group that a release wrote which did not count
			add("group %s has %d live bytes by its count and %d by its extents", id, counted, bytes)
		}
	}
	for id, inside := range places {
		slices.SortFunc(inside, func(a, b place) int {
			return cmp.Or(cmp.Compare(a.extent.Column, b.extent.Column), cmp.Compare(a.extent.Offset, b.extent.Offset),
				cmp.Compare(a.holder, b.holder))
		})
		for i := 1; i < len(inside); i++ {
			before, after := inside[i-1], inside[i]
			if before.extent.Column == after.extent.Column && before.extent.Offset+before.extent.Length > after.extent.Offset {
				add("group %s: %s and %s overlap at byte %d", id, before.holder, after.holder, after.extent.Offset)
			}
			if inside[0].extent.Column == WholeGroup && after.extent.Column != WholeGroup {
				add("group %s: %s and %s lie in it by different orders", id, inside[0].holder, after.holder)
			}
		}
	}
	return violations
}

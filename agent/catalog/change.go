package catalog

import (
	"fmt"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// Change is what an attempt asks the catalog to do, in one transaction. A key may be named once in all of Put, Delete,
// Update and Move, a group once in NewGroups and Groups. Commit does not keep or change it.
//
// Every address it names is one of the attempt's own, announced, or one that the group record names already.
type Change struct {
	// Put stores objects, over whatever the key has, unless IfRevision says otherwise. Commit sets Revision.
	// Extents lie in NewGroups, or in open groups among Groups (append); their lengths add up to Size.
	Put []Object

	// Delete removes objects; one that does not exist is left out.
	Delete []string

	// IfRevision is the client's precondition: the revision an object must have; the zero stamp says that it must not exist. It may
	// be of keys that the change leaves as they are, but not of those in Update and Move.
	IfRevision map[string]block.Stamp

	// Update changes bytes of one object within its groups, which are among Groups. Commit sets Revision.
	Update *ObjectUpdate

	// Move gives objects other extents and leaves their revision alone. With LeaveOut those that are not as they were read are
	// left as they are, unless that is all of them.
	Move     []ObjectMove
	LeaveOut bool

	// Answers are what came of requests of clients that the change carries out, each of which it is refused for that was carried out
	// before (rule 51).
	Answers []Answer

	// Unsent are blocks that were announced and never sent to any node. Those that are not used need no graves.
	Unsent []block.Address

	// NewGroups are created; Commit sets Generation and Epoch. Their IDs carry the attempt's stamp.
	NewGroups []Group

	// Groups are changed; Commit sets Generation.
	Groups []GroupChange

	// RepairedSlots is for repairs and relocations alone: for the groups named, only these slots may differ from the
	// record, and only these are required to be on stores that have not lost their contents (rule 6b). Blocks of theirs
	// that stay may be of another incarnation than the record says: the one in which they were found (rule 30).
	RepairedSlots map[block.GroupID][]int
}

// Answer is what a client is told of a change that it asked for.
type Answer struct {
	Request RequestName
	Key     string // of the object that is changed
	Text    []byte
}

// ObjectUpdate says that bytes of an object change under it. The object record must be exactly as in Snapshot.
type ObjectUpdate struct {
	Snapshot *Snapshot
	Size     int64 // new size; a difference goes to the last extent
	Modified int64 // Unix milliseconds; 0 keeps what the record says
}

// ObjectMove says that the bytes of an object were copied, or that they stay and the object is of another class. The object record must
// be exactly as in Snapshot.
type ObjectMove struct {
	Snapshot *Snapshot
	Extents  []Extent
	Scheme   string // empty keeps what the record says
	Class    string // the same
}

// GroupChange changes a group, which must be exactly as in Was. Only the fields named here are changed (rule 6).
type GroupChange struct {
	Was      *GroupView
	Slots    []Slot
	Scheme   string         // empty keeps what the record says
	Layout   *GroupLayout   // by which its parities are from now on; nil keeps what the record says (transition)
	Class    string         // empty keeps what the record says (move)
	NewEpoch bool           // the parities are this attempt's
	Seal     bool           // no appends any more
	Home     []block.NodeID // nodes of the slots from now on; nil keeps what the record says (repair, relocation, transition, widen, narrow)
	Width    *GroupWidth    // its columns from now on; nil keeps what the record says (widen, narrow)
}

// GroupWidth is what the record of a group says of its columns; see Group. One that has Lies has no Slots, no Home, and takes no appends.
type GroupWidth struct {
	Columns int
	Brought []Column
	Lies    []Column
}

// GroupLayout is how the cells of a group fall into stripes, as far as its record says so beside its columns, which stay.
type GroupLayout struct {
	Ladder  string
	Mode    string
	Version int
}

// check refuses changes that contradict themselves.
func (change *Change) check(stamp block.Stamp) error {
	keys := map[string]bool{}
	key := func(key string) error {
		if key == "" || len(key) > kv.KeyLimit-len(schema.PrefixObject) {
			return fmt.Errorf("object key of %d bytes: %w", len(key), ErrBadChange)
		}
		if keys[key] {
			return fmt.Errorf("object %q is named twice: %w", key, ErrBadChange)
		}
		keys[key] = true
		return nil
	}
	for i := range change.Put {
		object := &change.Put[i]
		if err := key(object.Key); err != nil {
			return err
		}
		if len(object.Extents) > ExtentsLimit {
			return fmt.Errorf("object %q has %d extents, at most %d are allowed: %w", object.Key, len(object.Extents), ExtentsLimit, ErrBadChange)
		}
		if err := checkLengths(object, object.Extents); err != nil {
			return err
		}
	}
	for _, name := range change.Delete {
		if err := key(name); err != nil {
			return err
		}
	}
	for name := range change.IfRevision {
		if name == "" || len(name) > kv.KeyLimit-len(schema.PrefixObject) {
			return fmt.Errorf("object key of %d bytes has a revision to match: %w", len(name), ErrBadChange)
		}
	}
	if update := change.Update; update != nil {
		if err := key(update.Snapshot.Object.Key); err != nil {
			return err
		}
		if _, err := resize(update.Snapshot.Object, update.Size); err != nil {
			return err
		}
	}
	for _, move := range change.Move {
		object := &move.Snapshot.Object
		if err := key(object.Key); err != nil {
			return err
		}
		if err := checkLengths(object, move.Extents); err != nil {
			return err
		}
	}
	return change.checkGroups(stamp)
}

func (change *Change) checkGroups(stamp block.Stamp) error {
	groups := map[block.GroupID]bool{}
	once := func(id block.GroupID) error {
		if groups[id] {
			return fmt.Errorf("group %s is named twice: %w", id, ErrBadChange)
		}
		groups[id] = true
		return nil
	}
	for i := range change.NewGroups {
		group := &change.NewGroups[i]
		if err := once(group.ID); err != nil {
			return err
		}
		if group.ID.Stamp != stamp {
			return fmt.Errorf("new group %s is not named after attempt %s: %w", group.ID, stamp, ErrBadChange)
		}
	}
	for i := range change.Groups {
		if change.Groups[i].Was == nil {
			return fmt.Errorf("a changed group must come with the record it changes: %w", ErrBadChange)
		}
		if err := once(change.Groups[i].Was.ID); err != nil {
			return err
		}
	}
	for id := range change.RepairedSlots {
		if !groups[id] || id.Stamp == stamp {
			return fmt.Errorf("group %s has repaired slots and is not changed: %w", id, ErrBadChange)
		}
	}
	return nil
}

// checkLengths checks that extents are what an object of its size may have.
func checkLengths(object *Object, extents []Extent) error {
	if err := schema.CheckLengths(object.Key, extents, object.Size); err != nil {
		return fmt.Errorf("%w: %w", err, ErrBadChange)
	}
	return nil
}

// resize returns object with another size, its last extent made to fit.
func resize(object Object, size int64) (Object, error) {
	if size == object.Size {
		return object, nil
	}
	if len(object.Extents) == 0 {
		return object, fmt.Errorf("empty object %q cannot be updated to %d bytes in place: %w", object.Key, size, ErrBadChange)
	}
	extents := append([]Extent(nil), object.Extents...)
	extents[len(extents)-1].Length += size - object.Size
	object.Extents, object.Size = extents, size
	return object, checkLengths(&object, extents)
}

// apply returns the group as the change leaves it, at the given time.
func (change *GroupChange) apply(stamp block.Stamp, now time.Time) Group {
	group := change.Was.Group
	group.Generation = stamp
	group.Slots = change.Slots
	if change.Scheme != "" && change.Scheme != group.Scheme {
		group.Scheme, group.Settled = change.Scheme, now.UnixMilli()
	}
	if change.Class != "" {
		group.Class = change.Class
	}
	if layout := change.Layout; layout != nil {
		group.Ladder, group.Mode, group.LayoutVersion = layout.Ladder, layout.Mode, layout.Version
	}
	if change.NewEpoch {
		group.Epoch = stamp
	}
	if change.Seal {
		group.Open = false
	}
	if change.Home != nil {
		group.Home = change.Home
	}
	if width := change.Width; width != nil {
		group.Columns, group.Brought, group.Lies = width.Columns, width.Brought, width.Lies
	}
	if group.IsDissolved() {
		group.Slots, group.Home, group.Open = nil, nil, false
	}
	return group
}

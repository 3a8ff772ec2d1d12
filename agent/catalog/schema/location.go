package schema

import "github.com/restripe/restripe/agent/block"

// Location is where all bytes of an object lay when its record was written, in one block. Blocks never change and no address is used
// twice, so what is read there and has the object's checksum is the object, whatever became of its group since. Where nothing is there any
// more the record of the group says where it lies.
type Location struct {
	Node      block.NodeID `cbor:"1,keyasint"`
	CellBytes int          `cbor:"2,keyasint"`           // of the group
	Stamp     *block.Stamp `cbor:"3,keyasint,omitempty"` // of the block; nil: the object's revision
}

// Locate sets the object's Location by groups as they will be when its record is written. Where its group is not among them, its bytes
// stay where they are.
func (o *Object) Locate(groups map[block.GroupID]*Group) {
	if o.Checksum == 0 || len(o.Extents) != 1 || o.Extents[0].Column == WholeGroup {
		o.Location = nil
		return
	}
	extent := o.Extents[0]
	group := groups[extent.Group]
	if group == nil {
		return
	}
	o.Location = nil
	first, last := int(extent.Offset)/group.CellBytes, int(extent.Offset+extent.Length-1)/group.CellBytes
	if item, found := group.Find(extent.Column, first); found && last < item.First+item.Units {
		o.Location = &Location{Node: item.Node, CellBytes: group.CellBytes}
		if item.Stamp != o.Revision {
			o.Location.Stamp = &item.Stamp
		}
	}
}

// Address returns the address of the block that the object's Location, which it must have, is in.
func (o *Object) Address() block.Address {
	extent, stamp := o.Extents[0], o.Revision
	if o.Location.Stamp != nil {
		stamp = *o.Location.Stamp
	}
	return block.Address{Node: o.Location.Node, Group: extent.Group, Slot: extent.Column, Stamp: stamp}
}

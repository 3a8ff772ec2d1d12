package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/stripe"
)

// attempts are the records of the attempts under way.
func (w *world) attempts() (keys []string) {
	for after := "i/"; ; {
		page, err := w.engine.Scan(context.Background(), "i/", after, 1000)
		if err != nil {
			w.journal.violate("listing attempts: %v", err)
			return keys
		}
		for _, record := range page {
			keys, after = append(keys, record.Key), record.Key
		}
		if len(page) < 1000 {
			return keys
		}
	}
}

// groups are all group records.
func (w *world) groups() (views []catalog.GroupView) {
	for after := (block.GroupID{}); ; {
		page, err := w.records.ListGroups(context.Background(), after, 1000)
		if err != nil {
			w.journal.violate("listing groups: %v", err)
			return views
		}
		if len(page) == 0 {
			return views
		}
		views, after = append(views, page...), page[len(page)-1].ID
	}
}

func (w *world) agent(id block.NodeID) *agent {
	for _, a := range w.agents {
		if a.id == id {
			return a
		}
	}
	return nil
}

// incarnationKey is where a store keeps the identity of its contents.
const incarnationKey = "restripe/incarnation"

// isStored reports whether a block of a group is at rest as it was written.
func (w *world) isStored(group *catalog.Group, slot int, item catalog.Item) bool {
	a := w.agent(item.Node)
	if a == nil || a.disk.marker(incarnationKey) != string(item.Incarnation) {
		return false
	}
	_, sound := a.disk.read(group.Address(slot, item).Key())
	return sound
}

// forgetLosses strikes out nodes that have all their blocks again: every block that records name on them is sound, the
// catalog knows their present contents, and no attempt is left that began before the loss.
func (w *world) forgetLosses() {
	w.mutex.Lock()
	lost := maps.Clone(w.losses)
	w.mutex.Unlock()
	if len(lost) == 0 {
		return
	}
	active := w.attempts()
	incarnations, err := w.records.Incarnations(context.Background())
	if err != nil {
		w.journal.violate("reading incarnations: %v", err)
		return
	}
	for id, l := range lost {
		present := w.agent(id).disk.marker(incarnationKey)
		if present == "" || string(incarnations[id]) != present || slices.ContainsFunc(l.attempts, func(key string) bool { return slices.Contains(active, key) }) {
			delete(lost, id)
		}
	}
	for _, view := range w.groups() {
		for slot, items := range view.Slots {
			for _, item := range items {
				if lost[item.Node] != nil && !w.isStored(&view.Group, slot, item) {
					delete(lost, item.Node)
				}
			}
		}
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for id := range lost {
		delete(w.losses, id)
	}
}

// checkCommit looks at a group record right after it was written: its generation is new, every block it names is at rest
// unless an injected loss took it, and parity is what the scheme says of the data.
func (w *world) checkCommit(id block.GroupID) {
	view, err := w.records.Group(context.Background(), id)
	if err != nil {
		w.journal.violate("reading group %s after its commit: %v", id, err)
		return
	}
	w.mutex.Lock()
	w.commits++
	was, known := w.generated[id]
	w.generated[id] = [2]block.Stamp{view.Generation, view.Epoch}
	w.mutex.Unlock()
	w.journal.write(catalogName, "group %s is now %s of epoch %s, by %s", id, view.Scheme, view.Epoch, view.Generation)
	if known && (view.Generation == was[0] || view.Epoch.Sequence < was[1].Sequence) {
		w.journal.violate("group %s went from generation %s, epoch %s to generation %s, epoch %s", id, was[0], was[1], view.Generation, view.Epoch)
	}
	if err := w.checkGroup(&view.Group, w.hasLost); err != nil {
		w.journal.violate("a commit of group %s: %v", id, err)
	}
	if err := w.checkContents(view); err != nil {
		w.journal.violate("a commit of group %s: %v", id, err)
	}
}

// checkContents checks that a commit names no block of its own that the catalog knows to be lost, or to be on a node that
// nothing may be committed onto: it was stored in the contents that are registered.
func (w *world) checkContents(view *catalog.GroupView) error {
	incarnations, err := w.records.Incarnations(context.Background())
	if err != nil {
		return err
	}
	for slot, items := range view.Slots {
		for _, item := range items {
			if known := incarnations[item.Node]; item.Stamp == view.Generation && item.Incarnation != known {
				return fmt.Errorf("block %s was stored in contents %q, and %q is registered", view.Address(slot, item), item.Incarnation, known)
			}
		}
	}
	return nil
}

// checkGroup checks that every block of a group is at rest, except on nodes that are excused, and every parity equation
// of which all terms are there.
func (w *world) checkGroup(group *catalog.Group, excused func(block.NodeID) bool) error {
	units := make([][][]byte, len(group.Slots))
	for slot, items := range group.Slots {
		for _, item := range items {
			data, err := w.unitsOf(group, slot, item)
			if err != nil && !excused(item.Node) {
				return err
			}
			if err != nil {
				data = make([][]byte, item.Units)
			}
			units[slot] = append(units[slot], data...)
		}
	}
	ladder, err := stripe.ParseLadder(group.Ladder)
	if err != nil {
		return err
	}
	layout, err := stripe.NewLayout(ladder, group.Columns, stripe.Mode(group.Mode))
	if err != nil {
		return err
	}
	scheme, err := stripe.ParseScheme(group.Scheme)
	if err != nil {
		return err
	}
	partition, err := layout.Partition(scheme.K)
	if err != nil {
		return err
	}
	for p := range scheme.M {
		for s, cells := range partition.Stripes {
			if err := checkParity(layout, cells, units, p, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkParity checks one parity block by the definition of the code, with no kernel in between.
func checkParity(layout *stripe.Layout, cells []int32, units [][][]byte, p, s int) error {
	parity := units[layout.Columns+p][s]
	if parity == nil {
		return nil
	}
	want := make([]byte, len(parity))
	for _, cell := range cells {
		column, row := int(cell)%layout.Columns, int(cell)/layout.Columns
		data := units[column][row]
		if data == nil {
			return nil
		}
		coefficient := stripe.Coefficient(p, column)
		var times [256]byte
		for x := range times {
			times[x] = stripe.Multiply(coefficient, byte(x))
		}
		for i, x := range data {
			want[i] ^= times[x]
		}
	}
	if !bytes.Equal(parity, want) {
		return fmt.Errorf("parity row %d of stripe %d is not that of its data", p, s)
	}
	return nil
}

// unitsOf returns the full units of one item of a slot as they are at rest.
func (w *world) unitsOf(group *catalog.Group, slot int, item catalog.Item) ([][]byte, error) {
	address := group.Address(slot, item)
	a := w.agent(item.Node)
	if a == nil {
		return nil, fmt.Errorf("block %s is on no node there is", address)
	}
	if now := a.disk.marker(incarnationKey); now != string(item.Incarnation) {
		return nil, fmt.Errorf("block %s was stored in contents %q, and %s holds %q", address, item.Incarnation, a.id, now)
	}
	value, sound := a.disk.read(address.Key())
	if !sound {
		return nil, fmt.Errorf("block %s is not at rest as it was written", address)
	}
	header, err := block.DecodeHeader(value)
	if err != nil {
		return nil, fmt.Errorf("block %s: %w", address, err)
	}
	if header.Address() != address {
		return nil, fmt.Errorf("block %s says it is %s", address, header.Address())
	}
	head, err := block.HeadBytes(value)
	if err != nil {
		return nil, err
	}
	payload := value[head:]
	var units [][]byte
	for i := range header.Units {
		length := header.UnitBytes
		if header.Lengths != nil {
			length = header.Lengths[i]
		}
		if unit := header.FirstUnit + i; unit >= item.First && unit < item.First+item.Units {
			full := make([]byte, header.UnitBytes)
			copy(full, payload[:length])
			units = append(units, full)
		}
		payload = payload[length:]
	}
	if len(units) != item.Units {
		return nil, fmt.Errorf("block %s holds units %d+%d, its group needs %d+%d of it", address, header.FirstUnit, header.Units, item.First, item.Units)
	}
	return units, nil
}

// checkDelete looks at a block that an agent is about to delete: no record may name it.
func (w *world) checkDelete(node block.NodeID, key string) {
	address, err := block.ParseKey(node, key)
	if err != nil {
		w.journal.violate("%s deletes %q: %v", node, key, err)
		return
	}
	view, err := w.records.Group(context.Background(), address.Group)
	if errors.Is(err, catalog.ErrNoGroup) {
		return
	}
	if err != nil {
		w.journal.violate("reading group %s: %v", address.Group, err)
		return
	}
	if address.Slot >= len(view.Slots) {
		return
	}
	for _, item := range view.Slots[address.Slot] {
		if view.Address(address.Slot, item) == address {
			w.journal.violate("%s deletes the live block %s", node, address)
		}
	}
}

package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
	catalogmem "github.com/restripe/restripe/agent/catalog/mem"
	"github.com/restripe/restripe/agent/catalog/schema"
	"github.com/restripe/restripe/agent/stripe"
)

// ledger is the catalog as the checks read it: its engine, with nothing in between.
type ledger struct {
	journal *journal
	engine  *catalogmem.Engine
	records *catalog.Catalog // over engine
	astray  atomic.Bool      // agents have been attached by gateways of other catalogs
}

// attempts are the records of the attempts under way.
func (l *ledger) attempts() (keys []string) {
	for after := "i/"; ; {
		page, err := l.engine.Scan(context.Background(), "i/", after, 1000)
		if err != nil {
			l.journal.violate(Setup, "listing attempts: %v", err)
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
func (l *ledger) groups() (views []catalog.GroupView) {
	for after := (block.GroupID{}); ; {
		page, err := l.records.ListGroups(context.Background(), after, 1000)
		if err != nil {
			l.journal.violate(Setup, "listing groups: %v", err)
			return views
		}
		if len(page) == 0 {
			return views
		}
		views, after = append(views, page...), page[len(page)-1].ID
	}
}

// disks are those of all nodes.
type disks []*disk

// of returns the disk of a node, nil where there is none of that name.
func (d disks) of(id block.NodeID) *disk {
	for _, a := range d {
		if a.name == id {
			return a
		}
	}
	return nil
}

// Where a store keeps the identity of its contents, and whose it is.
const (
	incarnationKey = "restripe/incarnation"
	ownerKey       = "restripe/node"
)

// isStored reports whether a block of a group is at rest as it was written.
func (d disks) isStored(group *catalog.Group, slot int, item catalog.Item) bool {
	a := d.of(item.Node)
	if a == nil || a.marker(incarnationKey) != string(item.Incarnation) {
		return false
	}
	_, sound := a.read(group.Address(slot, item).Key())
	return sound
}

// checker carries out every update of the catalog and holds what it changes against the promises of the protocol.
type checker struct {
	journal *journal
	ledger  *ledger
	disks   disks
	losses  *losses

	mutex     sync.Mutex
	commits   int
	dissolved int                              // how often groups were
	returned  int                              // how often such got their columns back
	lies      map[block.GroupID]bool           // groups that are dissolved
	generated map[block.GroupID][2]block.Stamp // generation and epoch of every group
	parities  map[block.GroupID]int
}

// apply carries out an update of the catalog and looks at what it did before anybody else can.
func (c *checker) apply(checks []kv.Check, writes []kv.Write) ([]int, error) {
	failed, err := c.ledger.engine.Update(context.Background(), checks, writes)
	if err != nil || len(failed) > 0 {
		return failed, err
	}
	for _, write := range writes {
		if strings.HasPrefix(write.Key, schema.PrefixPiece) && write.Kind == kv.Remove {
			c.checkPiece(write.Key)
		}
		name, isGroup := strings.CutPrefix(write.Key, "g/")
		if !isGroup {
			continue
		}
		id, err := block.ParseGroupID(name)
		if err != nil {
			c.journal.violate(Setup, "record %q: %v", write.Key, err)
			continue
		}
		if write.Kind == kv.Remove {
			c.journal.write(catalogName, "group %s is freed", id)
			continue
		}
		c.checkCommit(id)
	}
	return nil, nil
}

// checkPiece looks at an attempt right after a piece of it was removed: it has ended.
func (c *checker) checkPiece(key string) {
	name, _, _ := strings.Cut(strings.TrimPrefix(key, schema.PrefixPiece), "/")
	intent, err := c.ledger.engine.Read(context.Background(), schema.PrefixIntent+name)
	if err != nil {
		c.journal.violate(Setup, "reading the attempt of piece %s: %v", key, err)
		return
	}
	if intent[0] != nil {
		c.journal.violate(Agreement, "piece %s is gone, and its put goes on", key)
	}
	c.journal.write(catalogName, "piece %s is gone", key)
}

// checkCommit looks at a group record right after it was written: its generation is new, every block it names is at rest
// unless an injected loss took it, and parity is what the scheme says of the data.
func (c *checker) checkCommit(id block.GroupID) {
	view, err := c.ledger.records.Group(context.Background(), id)
	if err != nil {
		c.journal.violate(Setup, "reading group %s after its commit: %v", id, err)
		return
	}
	c.mutex.Lock()
	c.commits++
	switch lies := view.IsDissolved(); {
	case lies && !c.lies[id]:
		c.dissolved++
	case !lies && c.lies[id]:
		c.returned++
	}
	c.lies[id] = view.IsDissolved()
	was, known := c.generated[id]
	c.generated[id] = [2]block.Stamp{view.Generation, view.Epoch}
	parities := len(view.Slots) - view.Columns
	isLowered := known && parities < c.parities[id]
	c.parities[id] = parities
	c.mutex.Unlock()
	c.journal.write(catalogName, "group %s is now %s of epoch %s, by %s", id, view.Scheme, view.Epoch, view.Generation)
	if known && (view.Generation == was[0] || view.Epoch.Sequence < was[1].Sequence) {
		c.journal.violate(NoStaleEpoch, "group %s went from generation %s, epoch %s to generation %s, epoch %s",
			id, was[0], was[1], view.Generation, view.Epoch)
	}
	if err := c.disks.checkGroup(&view.Group, c.losses.hasLost); errors.Is(err, errParity) {
		c.journal.violate(Parity, "a commit of group %s: %v", id, err)
	} else if err != nil {
		c.journal.violate(Whole, "a commit of group %s: %v", id, err)
	}
	if err := c.ledger.checkContents(view, isLowered); err != nil {
		c.journal.violate(Contents, "a commit of group %s: %v", id, err)
	}
}

// checkContents checks that a commit names no block of its own, or none at all where it gives parities up, that the catalog knows
// to be lost, or to be on a node that nothing may be committed onto: it was stored in the contents that are registered.
func (l *ledger) checkContents(view *catalog.GroupView, all bool) error {
	incarnations, err := l.records.Incarnations(context.Background())
	if err != nil {
		return err
	}
	for slot, items := range view.Slots {
		for _, item := range items {
			if known := incarnations[item.Node]; (all || item.Stamp == view.Generation) && item.Incarnation != known {
				return fmt.Errorf("block %s was stored in contents %q, and %q is registered", view.Address(slot, item), item.Incarnation, known)
			}
		}
	}
	return nil
}

// checkBelieved checks, after an agent has answered, that no block counts as whole which its store has lost by going back:
// blocks of the contents that are registered are believed without a look.
func (l *ledger) checkBelieved(d *disk) {
	incarnations, err := l.records.Incarnations(context.Background())
	if err != nil {
		l.journal.violate(Setup, "reading incarnations: %v", err)
		return
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for _, view := range l.groups() {
		for slot, items := range view.Slots {
			for _, item := range items {
				address := view.Address(slot, item)
				if item.Node == d.name && item.Incarnation == incarnations[d.name] && d.gone[address.Key()] {
					l.journal.violate(NoFalseWhole, "block %s counts as whole, and its store lost it when it went back", address)
				}
			}
		}
	}
}

// checkGroup checks that every block of a group is at rest, except on nodes that are excused, and every parity equation
// of which all terms are there. What a group has whose columns lie in others is checked with these.
func (d disks) checkGroup(group *catalog.Group, excused func(block.NodeID) bool) error {
	if group.IsDissolved() {
		return nil
	}
	units := make([][][]byte, len(group.Slots))
	for slot, items := range group.Slots {
		for _, item := range items {
			data, err := d.unitsOf(group, slot, item)
			if err != nil && !excused(item.Node) {
				return err
			}
			if err != nil {
				data = make([][]byte, item.Units)
			}
			units[slot] = append(units[slot], data...)
		}
	}
	layout, err := stripe.ParseLayout(group.LayoutVersion, group.Ladder, group.Mode, group.Columns)
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
	for _, column := range group.Empty() {
		for range layout.Rows {
			units[column] = append(units[column], make([]byte, group.CellBytes))
		}
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
		return fmt.Errorf("row %d of stripe %d: %w", p, s, errParity)
	}
	return nil
}

var errParity = errors.New("parity is not that of its data")

// unitsOf returns the full units of one item of a slot as they are at rest.
func (d disks) unitsOf(group *catalog.Group, slot int, item catalog.Item) ([][]byte, error) {
	address := group.Address(slot, item)
	a := d.of(item.Node)
	if a == nil {
		return nil, fmt.Errorf("block %s is on no node there is", address)
	}
	if now := a.marker(incarnationKey); now != string(item.Incarnation) {
		return nil, fmt.Errorf("block %s was stored in contents %q, and %s holds %q", address, item.Incarnation, a.name, now)
	}
	value, sound := a.read(address.Key())
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
func (l *ledger) checkDelete(node block.NodeID, key string) {
	address, err := block.ParseKey(node, key)
	if err != nil {
		l.journal.violate(NoLiveDelete, "%s deletes %q: %v", node, key, err)
		return
	}
	view, err := l.records.Group(context.Background(), address.Group)
	if errors.Is(err, catalog.ErrNoGroup) {
		return
	}
	if err != nil {
		l.journal.violate(Setup, "reading group %s: %v", address.Group, err)
		return
	}
	if address.Slot >= len(view.Slots) {
		return
	}
	for _, item := range view.Slots[address.Slot] {
		if view.Address(address.Slot, item) == address {
			l.journal.violate(NoLiveDelete, "%s deletes the live block %s", node, address)
		}
	}
}

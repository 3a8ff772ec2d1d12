package group

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/budget"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/trace"
	"github.com/restripe/restripe/agent/wire"
)

// cellAlignment is what cell sizes are a multiple of: one cache line, and a multiple of the fingerprint's vectors.
const cellAlignment = 64

// CellBytesFor returns the cell size of a group that holds bytes of user data in its cells, row-major.
func CellBytesFor(cells int, bytes int64) int {
	cell := (bytes + int64(cells) - 1) / int64(cells)
	return int(max(cellAlignment, (cell+cellAlignment-1)/cellAlignment*cellAlignment))
}

// Draft is a group being written: its cells in memory, column by column.
type Draft struct {
	class    *api.Class
	Code     *Code
	ID       block.GroupID
	cell     int
	Columns  [][]byte // one buffer of Rows*cell bytes per column
	Packed   bool
	Manifest []block.ManifestEntry
	free     func() // gives the reservation back
}

// NewDraft reserves memory of a budget for a group of the given cell size, parities included, and returns it zeroed.
func (g *Groups) NewDraft(ctx context.Context, memory budget.Budget, class *api.Class, scheme stripe.Scheme, cell int) (*Draft, error) {
	code, err := g.CodeFor(class, scheme)
	if err != nil {
		return nil, err
	}
	free, err := memory.Reserve(ctx, int64(cell)*int64(code.Layout.Cells()+scheme.M*code.Stripes()))
	if err != nil {
		return nil, err
	}
	d := &Draft{class: class, Code: code, cell: cell, free: free}
	g.allocate(d)
	return d, nil
}

// CodeFor returns the code of new groups of a class under a scheme.
func (g *Groups) CodeFor(class *api.Class, scheme stripe.Scheme) (*Code, error) {
	layout, err := stripe.NewLayout(class.Ladder, 0, class.Mode)
	if err != nil {
		return nil, fmt.Errorf("class %s: %w", class.Name, err)
	}
	code, err := g.codes.get(layout, scheme)
	if err != nil {
		return nil, fmt.Errorf("class %s: %w", class.Name, err)
	}
	return code, nil
}

func (g *Groups) allocate(d *Draft) {
	d.Columns = make([][]byte, d.Code.Layout.Columns)
	for x := range d.Columns {
		d.Columns[x] = g.Pool.Get(d.Code.Layout.Rows * d.cell)
		clear(d.Columns[x])
	}
}

// Release gives the memory of a draft back. The draft must not be used any more.
func (g *Groups) Release(d *Draft) {
	for _, column := range d.Columns {
		g.Pool.Put(column)
	}
	d.free()
}

// CellAt returns the bytes of a cell.
func (d *Draft) CellAt(cell int) []byte {
	column, row := cell%d.Code.Layout.Columns, cell/d.Code.Layout.Columns
	return d.Columns[column][row*d.cell : (row+1)*d.cell : (row+1)*d.cell]
}

// from returns the rest of the cell in which a byte of the group is, its bytes being those of its cells in row-major order.
func (d *Draft) from(at int64) []byte {
	return d.CellAt(int(at / int64(d.cell)))[at%int64(d.cell):]
}

// At returns one byte of the group.
func (d *Draft) At(at int64) byte { return d.from(at)[0] }

// Fill copies bytes to where they begin in the group, and returns how many there was room for.
func (d *Draft) Fill(at int64, bytes []byte) (n int) {
	for n < len(bytes) && at+int64(n) < int64(d.Code.Layout.Cells()*d.cell) {
		n += copy(d.from(at+int64(n)), bytes[n:])
	}
	return n
}

// Stage writes every slot of the draft to its node, verifies the parity equations by the fingerprints the nodes return,
// and returns the group record to commit. A node that fails is replaced by another one, announced first.
func (g *Groups) Stage(ctx context.Context, attempt *catalog.Attempt, d *Draft, home []block.NodeID) (staged *catalog.Group, err error) {
	ctx, span := trace.Within(ctx, "stage group")
	if span != nil {
		span.Text("restripe.group", d.ID.String()).Text("restripe.scheme", d.Code.Scheme.String())
	}
	defer func() { span.End(err) }()
	layout, scheme := d.Code.Layout, d.Code.Scheme
	stripes := d.Code.Stripes()
	payloads := append([][]byte{}, d.Columns...)
	if scheme.M > 0 {
		outputs := make([][]byte, 0, scheme.M*stripes)
		for range scheme.M {
			parity := g.Pool.Get(stripes * d.cell)
			defer g.Pool.Put(parity)
			payloads = append(payloads, parity)
			for s := range stripes {
				outputs = append(outputs, parity[s*d.cell:(s+1)*d.cell])
			}
		}
		inputs := make([][]byte, layout.Cells())
		for cell := range inputs {
			inputs[cell] = d.CellAt(cell)
		}
		d.Code.encoder.Apply(outputs, inputs)
	}
	manifest, err := block.EncodeManifest(d.Manifest)
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest: %w", err)
	}
	group := &catalog.Group{
		ID: d.ID, Class: d.class.Name, Ladder: d.class.Ladder.String(), Mode: string(layout.Mode), LayoutVersion: layout.Version,
		Columns: layout.Columns, Scheme: scheme.String(), CellBytes: d.cell, Packed: d.Packed,
		Home: append([]block.NodeID{}, home...), Slots: make([]catalog.Slot, d.Code.Slots()),
	}
	units := make([][]block.Fingerprint, d.Code.Slots())
	homes := &homes{group: group, refused: map[block.NodeID]bool{}}
	var workers errgroup.Group
	for slot := range payloads {
		if d.Code.Layout.IsEmpty(slot) {
			continue
		}
		header := headerFor(group, slot, attempt.Stamp(), 0, d.Code.Units(slot))
		if carriesManifest(slot, layout.Columns) {
			header.Manifest = manifest
		}
		payload := header.Pack(payloads[slot]) // padding is neither sent nor stored
		workers.Go(func() error {
			receipt, err := g.stageSlot(ctx, attempt, homes, header, payload)
			if err != nil {
				return fmt.Errorf("staging slot %d: %w", slot, err)
			}
			units[slot] = receipt.Fingerprints
			group.Slots[slot] = catalog.Slot{itemOf(receipt)}
			return nil
		})
	}
	if err := workers.Wait(); err != nil {
		return nil, fmt.Errorf("group %s: %w", d.ID, err)
	}
	d.Code.addZeros(units)
	if err := g.prove(d.Code, units); err != nil {
		return nil, fmt.Errorf("group %s: verifying what was staged: %w", d.ID, err)
	}
	return group, nil
}

// checkUnits makes sure that there is a fingerprint for every unit of every slot.
func (c *Code) checkUnits(units [][]block.Fingerprint) error {
	for slot := range units {
		if len(units[slot]) != c.Units(slot) {
			return fmt.Errorf("slot %d: fingerprints of %d units, want %d", slot, len(units[slot]), c.Units(slot))
		}
	}
	return nil
}

// homes is where the slots of a group go while they are staged side by side and look for substitutes.
type homes struct {
	mutex   sync.Mutex
	group   *catalog.Group
	refused map[block.NodeID]bool // nodes that did not take a block of the group: none is asked twice, or slots would go in circles
}

func (h *homes) of(slot int) block.NodeID {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.group.Home[slot]
}

// replace finds another node for a slot whose home has not taken it; false if there is none left to ask.
func (h *homes) replace(slot int, substitute func(taken map[block.NodeID]bool) (block.NodeID, bool)) (block.NodeID, bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.refused[h.group.Home[slot]] = true
	taken := maps.Clone(h.refused)
	for _, id := range h.group.Home {
		taken[id] = true
	}
	other, found := substitute(taken)
	if found {
		h.group.Home[slot] = other
	}
	return other, found
}

// stageSlot writes one slot, on its home node or, where that fails to answer or takes nothing, on a substitute.
func (g *Groups) stageSlot(ctx context.Context, attempt *catalog.Attempt, homes *homes, header block.Header, payload []byte) (*block.Receipt, error) {
	for {
		header.Node = homes.of(header.Slot)
		var receipt block.Receipt
		_, err := g.agents.Call(ctx, header.Node, wire.OpWrite, wire.WriteRequest{Header: header}, payload, &receipt)
		if err == nil {
			return &receipt, nil
		}
		if ctx.Err() != nil || !(member.Unanswered(err) || TakesNothing(err)) {
			return nil, err
		}
		other, found := homes.replace(header.Slot, g.agents.Substitute)
		if !found {
			return nil, fmt.Errorf("no other node is free to take the block, make room or bring nodes back: %w", err)
		}
		g.log.Warn("writing to another node", "group", header.Group, "slot", header.Slot, "failed", header.Node, "instead", other, "cause", err)
		set := catalog.BlockSet{Group: header.Group, Slots: []int{header.Slot}, Nodes: []block.NodeID{other}}
		if err := attempt.Extend(ctx, []catalog.BlockSet{set}, g.Deadline()); err != nil {
			return nil, fmt.Errorf("announcing a substitute: %w", err)
		}
	}
}

// headerFor describes the block an attempt writes into a slot: units [first, first+count).
func headerFor(group *catalog.Group, slot int, stamp block.Stamp, first, count int) block.Header {
	return block.Header{
		Group: group.ID, Slot: slot, Stamp: stamp, Class: group.Class, Ladder: group.Ladder, Mode: group.Mode,
		LayoutVersion: group.LayoutVersion, Columns: group.Columns, Scheme: group.Scheme,
		FirstUnit: first, Units: count, UnitBytes: group.CellBytes, Brought: group.Brought,
	}
}

// itemOf turns a receipt into the record of a whole block.
func itemOf(receipt *block.Receipt) catalog.Item {
	return catalog.Item{
		First: receipt.FirstUnit, Units: receipt.Units, Base: receipt.FirstUnit, Stamp: receipt.Address.Stamp,
		Node: receipt.Address.Node, Incarnation: receipt.Incarnation, Checksum: receipt.Checksum, Fingerprint: receipt.Fingerprint,
	}
}

// Announce lists the blocks of a new group: every slot of the present scheme on its home node, but for columns that stay empty.
func Announce(id block.GroupID, code *Code, home []block.NodeID) catalog.BlockSet {
	set := catalog.BlockSet{Group: id}
	for slot := range code.Slots() {
		if !code.Layout.IsEmpty(slot) {
			set.Slots, set.Nodes = append(set.Slots, slot), append(set.Nodes, home[slot])
		}
	}
	return set
}

// Name gives a draft its manifest. Columns in which that has nothing stay empty, where all gateways know of such.
func (g *Groups) Name(d *Draft, manifest []block.ManifestEntry) {
	d.Manifest, d.Code = manifest, g.Narrow(d.Code, manifest, d.cell)
}

// Narrow returns a code without the columns in which a manifest has nothing, where all gateways know of such.
func (g *Groups) Narrow(code *Code, manifest []block.ManifestEntry, cell int) *Code {
	if !g.catalog.IsUpgraded() {
		return code
	}
	var empty []int
	for column, filled := range block.FilledColumns(manifest, code.Layout.Columns, cell) {
		if !filled {
			empty = append(empty, column)
		}
	}
	return code.over(code.Layout.Without(empty))
}

// Shrink gives a draft that got fewer bytes than it was made for cells of the size it needs, within its reservation.
func (g *Groups) Shrink(d *Draft, bytes int64) {
	cell := CellBytesFor(d.Code.Layout.Cells(), bytes)
	if cell == d.cell {
		return
	}
	large := *d
	d.cell = cell
	g.allocate(d)
	for at := int64(0); at < bytes; {
		from := large.from(at)
		at += int64(d.Fill(at, from[:min(int64(len(from)), bytes-at)]))
	}
	for _, column := range large.Columns {
		g.Pool.Put(column)
	}
}

package node

import (
	"cmp"
	"context"
	"slices"

	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/wire"
)

// localCopy is a part of a new cell that comes from a stored unit.
type localCopy struct {
	wire.Copy
	block string // Address, as text
	cell  int    // index into program.cells
}

// compileCopies finds the input that each copy is a part of, and orders the copies by where they come from, so that each
// stored unit is read once.
func (p *program) compileCopies(blocks *blocks) error {
	cells := map[[2]int]int{}
	for i, input := range p.request.Program.Inputs {
		if input.Kind == stripe.SourceCopy {
			cells[[2]int{input.Slot, input.Unit}] = len(p.cells)
			p.cells = append(p.cells, i)
		}
	}
	covered := make([][]wire.Copy, len(p.cells))
	for i, part := range p.request.Copies {
		cell, found := cells[[2]int{part.Slot, part.Unit}]
		if !found || part.Offset < 0 || part.Length < 1 || part.Length > p.unitBytes || part.Offset > p.unitBytes-part.Length ||
			part.From < 0 || part.From > wire.MaxPayloadBytes-part.Length {
			return p.wrong("copy %d, %d bytes to %d of unit %d of slot %d, fits no input", i, part.Length, part.Offset, part.Unit, part.Slot)
		}
		if err := blocks.own(part.Address); err != nil {
			return err
		}
		p.copies = append(p.copies, localCopy{part, part.Address.String(), cell})
		covered[cell] = append(covered[cell], part)
	}
	for _, parts := range covered {
		slices.SortFunc(parts, func(a, b wire.Copy) int { return a.Offset - b.Offset })
		for i := 1; i < len(parts); i++ {
			if parts[i].Offset < parts[i-1].Offset+parts[i-1].Length {
				return p.wrong("two copies are to be at %d of unit %d of slot %d", parts[i].Offset, parts[i].Unit, parts[i].Slot)
			}
		}
	}
	slices.SortStableFunc(p.copies, func(a, b localCopy) int {
		return cmp.Or(cmp.Compare(a.block, b.block), cmp.Compare(a.Source, b.Source))
	})
	p.bytes += int64(len(p.cells)) * int64(p.unitBytes)
	return nil
}

// copyLocal puts new cells together. It fails where any part of them cannot be read, so that no cell is ever complete that lacks one.
func (d *dataflow) copyLocal() error {
	p := d.run.program
	if len(p.cells) == 0 {
		return nil
	}
	made := d.worker.pool.Get(len(p.cells) * p.unitBytes)
	defer d.worker.pool.Put(made)
	clear(made)
	ends := make([]int, len(p.cells)) // of what is in them; zeros follow
	for parts := p.copies; len(parts) > 0; {
		same := 1
		for same < len(parts) && parts[same].Address == parts[0].Address && parts[same].Source == parts[0].Source {
			same++
		}
		if err := d.copyUnit(d.ctx, parts[:same], made, ends); err != nil {
			return d.worker.identity.judge(d.ctx, d.under, err)
		}
		parts = parts[same:]
	}
	r := d.run
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for cell, input := range p.cells {
		r.counters.BlocksRead++
		r.learn(input, ends[cell])
		r.accumulate(input, 0, made[cell*p.unitBytes:][:ends[cell]])
		d.count(input, 0, p.pieces.count)
	}
	return nil
}

// copyUnit copies parts of one stored unit to where they are in the new cells, and notes how far these reach by it.
func (d *dataflow) copyUnit(ctx context.Context, parts []localCopy, made []byte, ends []int) error {
	reader, p := d.worker.reader, d.run.program
	found, err := reader.lookUp(ctx, parts[0].Address)
	if err != nil {
		return err
	}
	h, source := found.Header, parts[0].Source
	end := 0
	for _, part := range parts {
		end = max(end, part.From+part.Length)
	}
	if source < h.FirstUnit || source >= h.FirstUnit+h.Units || end > h.UnitBytes {
		return p.wrong("block %s holds units %d+%d of %d bytes, and bytes up to %d of unit %d are to be copied", parts[0].Address,
			h.FirstUnit, h.Units, h.UnitBytes, end, source)
	}
	var unit []byte // as far as it is stored; the rest is zeros
	if stored := found.Length(source); stored > 0 {
		read, done, err := reader.readShared(ctx, found, source)
		if err != nil {
			return err
		}
		defer done()
		unit = read[:stored]
	} else if _, err := reader.readStored(ctx, parts[0].Address); err != nil { // the header may come from the cache
		return err
	}
	var bytes int64
	for _, part := range parts {
		if part.From < len(unit) {
			at := part.cell*p.unitBytes + part.Offset
			copied := copy(made[at:at+part.Length], unit[part.From:])
			ends[part.cell] = max(ends[part.cell], part.Offset+copied)
		}
		bytes += int64(part.Length)
	}
	d.run.mutex.Lock()
	d.run.counters.BytesRead += bytes
	d.run.mutex.Unlock()
	return nil
}

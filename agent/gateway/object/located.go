package object

import (
	"context"
	"time"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/direct"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/wire"
)

// located returns where a whole small object lay when its record was written, and its group as far as readers need it; no group: that is
// not known, or it has to be looked up.
func (r *Reader) located(offset, length int64) (at direct.Place, group *catalog.Group) {
	object := &r.snapshot().Object
	if object.Location == nil || len(object.Extents) != 1 || offset != 0 || length != object.Size || length > quickBytes || r.first {
		return at, nil
	}
	// Whether a key is read more often than its scheme is for shows its group alone.
	if class := r.objects.classes.Named(object.Class); class == nil || class.HotKeys != nil {
		return at, nil
	}
	extent, cell := object.Extents[0], int64(object.Location.CellBytes)
	if r.snapshot().Groups[extent.Group] != nil || cell <= 0 || !r.objects.agents.Answers(object.Location.Node) {
		return at, nil
	}
	at = direct.Place{
		Address: object.Address(), Unit: int(extent.Offset / cell), Offset: int(extent.Offset % cell),
		Length: int(length), Checksum: object.Checksum,
	}
	return at, &catalog.Group{ID: extent.Group, Class: object.Class, Scheme: object.Scheme, CellBytes: int(cell), Packed: true}
}

// askKnown has the agent of a node read what its store has at a place, in units of so many bytes. One that is late it gives up where
// others may be asked in its place, for which their group has to be known.
func (r *Reader) askKnown(ctx context.Context, at direct.Place, cellBytes int) (data []byte, done bool) {
	request := wire.ReadRequest{Address: at.Address}
	for unit, offset, left := at.Unit, at.Offset, at.Length; left > 0; unit, offset = unit+1, 0 {
		n := min(cellBytes-offset, left)
		request.Ranges = append(request.Ranges, wire.Range{Unit: unit, Offset: offset, Length: n})
		left -= n
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hedge := &r.objects.hedge
	late := time.AfterFunc(hedge.Delay(time.Now(), at.Length), func() {
		if hedge.Take(time.Now(), at.Length, 1) {
			cancel()
		}
	})
	defer late.Stop()
	data, err := r.objects.agents.Call(ctx, at.Address.Node, wire.OpRead, request, nil, nil)
	if err != nil {
		return nil, false
	}
	if len(data) != at.Length || kernel.Checksum(data) != at.Checksum {
		wire.Recycle(data)
		return nil, false
	}
	return data, true
}

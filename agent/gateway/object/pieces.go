package object

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
)

// pieces are the groups of a put that are staged, in whatever order, and committed in the order in which the object has them. A put
// of few groups commits them with its object; one of more than an update of the catalog takes commits pieces before that.
type pieces struct {
	objects *Objects
	attempt *catalog.Attempt
	key     string
	moves   bool // what is read already: its groups are as hot as those that it lay in

	mutex     sync.Mutex           // of what follows, also while a piece is committed: they come one after the other
	staged    map[uint32]placed    // and not committed
	begin     uint32               // the first group that is not committed
	end       uint32               // the first group after it that is not staged
	share     float64              // of a piece that the groups between them take
	witnesses map[string]witnesses // of the groups that are committed, by the names of the nodes
	counted   bool                 // among those that have committed some
}

// placed is a group, and the bytes of the object in it.
type placed struct {
	group  *catalog.Group
	extent catalog.Extent
}

// witnesses are the nodes of a group, and how many of them need not have noticed a commit.
type witnesses struct {
	ids   []block.NodeID
	spare int
}

func witnessesOf(group *catalog.Group) witnesses {
	var ids []block.NodeID
	for slot, items := range group.Slots {
		home, stored := group.Place(slot)
		if !stored && home != "" { // of an empty column, which makes a group no less witnessed
			ids = append(ids, home)
		}
		for _, item := range items {
			ids = append(ids, item.Node)
		}
	}
	slices.Sort(ids)
	return witnesses{slices.Compact(ids), len(group.Slots) - group.Columns}
}

// add takes a group that was staged, and commits a piece once there are groups enough.
func (p *pieces) add(ctx context.Context, group *catalog.Group, extent catalog.Extent) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.staged[group.ID.Index] = placed{group, extent}
	for next, there := p.staged[p.end]; there; next, there = p.staged[p.end] {
		share := catalog.PieceShare(next.group)
		if p.objects.pieceGroups > 0 {
			share = 1 / float64(p.objects.pieceGroups)
		}
		if p.end > p.begin && p.share+share > 1 {
			if err := p.commit(ctx); err != nil {
				return err
			}
		}
		p.share += share
		p.end++
	}
	return nil
}

// ended notes that the put is not under way any more.
func (p *pieces) ended() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.counted {
		p.objects.Counters.InPieces.Add(-1)
	}
}

// take returns the groups from begin to end, which are no longer staged then. p.mutex is held.
func (p *pieces) take() (groups []catalog.Group, extents []catalog.Extent) {
	for ; p.begin < p.end; p.begin++ {
		groups, extents = append(groups, *p.staged[p.begin].group), append(extents, p.staged[p.begin].extent)
		delete(p.staged, p.begin)
	}
	p.share = 0
	return groups, extents
}

// commit commits a piece. p.mutex is held.
func (p *pieces) commit(ctx context.Context) error {
	groups, extents := p.take()
	if err := p.objects.groups.CommitPiece(ctx, p.attempt, p.key, groups, extents); err != nil {
		return err
	}
	if p.objects.Counters.Pieces.Add(1); !p.counted {
		p.counted = true
		p.objects.Counters.InPieces.Add(1)
	}
	for i := range groups {
		if !p.moves {
			p.objects.heat.Used(&groups[i])
		}
		seen := witnessesOf(&groups[i])
		p.witnesses[fmt.Sprint(seen)] = seen
	}
	return nil
}

// rest returns the groups that are to be committed with the object, once all are staged. Of a put that has committed pieces they
// become one too: what an update has room for is left to the extents of the object, and of one that is put over.
func (p *pieces) rest(ctx context.Context) ([]catalog.Group, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.begin > 0 {
		return nil, p.commit(ctx)
	}
	groups, _ := p.take()
	return groups, nil
}

// refuseMany refuses a put that would have more groups than an object can have.
func refuseMany(class *api.Class, groups int64) error {
	if groups <= catalog.ExtentsLimit {
		return nil
	}
	return api.Refuse(api.ErrBadRequest, "the object takes more than the %d groups that one can have; "+
		"put it into a class of larger groups (class %s has groupBytes %d, at most %d), or as several objects",
		catalog.ExtentsLimit, class.Name, class.GroupBytes, api.MaxGroupBytes)
}

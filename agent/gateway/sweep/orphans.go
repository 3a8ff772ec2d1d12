package sweep

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/wire"
)

const (
	// sweepPage is how many blocks one step of a search looks at.
	sweepPage = 1000

	// A search that finds more than so many orphans, or more than freeOrphans of them and a greater share of the store than
	// one in braked, deletes none: a crash leaves a few, and many are a sign that the records are not those of this store.
	mostOrphans = 1000
	freeOrphans = 100
	braked      = 20
)

// ErrBrake says that a search found too many orphans to believe it.
var ErrBrake = errors.New("too many orphans")

// sweepOrphans deletes the blocks of a store that nobody names, if they are few enough to believe that, or beyondBrake.
func (w *Sweeper) sweepOrphans(ctx context.Context, id block.NodeID, beyondBrake bool, result *api.SweepResult) error {
	found := api.Leftovers{At: w.options.Clock()}
	var unknown []block.Stamp   // of blocks that this catalog never drew
	var orphans []block.Address // no more than the brake lets pass, but for those of the last page
	err := w.eachPage(ctx, id, func(listed, unnamed, quarantined []block.Address) error {
		found.Blocks += len(listed)
		found.Orphans += len(unnamed)
		found.Quarantined += len(quarantined)
		for _, address := range quarantined {
			unknown = append(unknown, address.Stamp)
		}
		if beyondBrake {
			return w.deleteOrphans(ctx, id, unnamed, &found, result)
		}
		if len(orphans) <= mostOrphans {
			orphans = append(orphans, unnamed...)
		}
		return nil
	})
	if errors.Is(err, wire.ErrUnsupported) {
		result.NodesUnsearched++
		return nil
	}
	if err != nil {
		return err
	}
	result.Quarantined += found.Quarantined
	others := w.notOfCopies(ctx, unknown)
	if found.Copied = len(unknown) - len(others); len(others) > 0 {
		w.note(id, found)
		newest := slices.MaxFunc(others, block.Stamp.Compare)
		if err := w.alarm(ctx, catalog.Alarm{At: found.At.UnixMilli(), Node: id, Blocks: len(others), Stamp: newest}); err != nil {
			return err
		}
	}
	found.Withheld = !beyondBrake && (found.Orphans > mostOrphans || found.Orphans > freeOrphans && found.Orphans > found.Blocks/braked)
	if found.Withheld {
		result.OrphansWithheld += found.Orphans
		w.note(id, found)
		return fmt.Errorf("node %s: %w: the records name %d of the %d blocks on it not, so none of them is deleted: "+
			"if they may go, run restripe sweep --node %s --beyond-brake", id, ErrBrake, found.Orphans, found.Blocks, id)
	}
	err = w.deleteOrphans(ctx, id, orphans, &found, result)
	w.note(id, found)
	return err
}

// notOfCopies returns those of the stamps that no gateway has drawn whom nodes have expelled.
func (w *Sweeper) notOfCopies(ctx context.Context, unknown []block.Stamp) []block.Stamp {
	expelled := w.members.Expelled()
	isOfCopy := func(stamp block.Stamp) bool { return expelled[stamp.Mark()] }
	if !slices.ContainsFunc(unknown, func(stamp block.Stamp) bool { return !isOfCopy(stamp) }) {
		return nil
	}
	w.agents.Probe(ctx) // it may have begun a moment ago
	expelled = w.members.Expelled()
	return slices.DeleteFunc(unknown, isOfCopy)
}

// alarm takes note that the catalog is behind a node. It returns an ErrAlarm unless that was settled before.
func (w *Sweeper) alarm(ctx context.Context, alarm catalog.Alarm) error {
	alarm.Gateway = w.options.ID
	if err := w.catalog.RaiseAlarm(ctx, alarm); err != nil {
		return err
	}
	return w.checkAlarm(ctx)
}

// eachPage lists a store and only then asks the catalog which of the blocks nobody names (protocol, rule 12).
func (w *Sweeper) eachPage(ctx context.Context, id block.NodeID, visit func(listed, unnamed, quarantined []block.Address) error) error {
	for after, more := "", true; more; {
		var page wire.ListReply
		_, err := w.agents.Call(ctx, id, wire.OpList, wire.ListRequest{After: after, Limit: sweepPage}, nil, &page)
		if err != nil {
			return fmt.Errorf("listing the store of node %s: %w", id, err)
		}
		if len(page.Addresses) == 0 {
			return nil
		}
		unnamed, quarantined, err := w.catalog.Orphans(ctx, page.Addresses)
		if err != nil {
			return fmt.Errorf("judging the blocks of node %s: %w", id, err)
		}
		if err := visit(page.Addresses, unnamed, quarantined); err != nil {
			return err
		}
		after, more = page.Addresses[len(page.Addresses)-1].Key(), page.More
	}
	return nil
}

// deleteOrphans has a node delete those of the blocks whose headers do not say that they are another node's.
func (w *Sweeper) deleteOrphans(
	ctx context.Context, id block.NodeID, orphans []block.Address, found *api.Leftovers, result *api.SweepResult,
) error {
	for page := range slices.Chunk(orphans, sweepPage) {
		deletion, err := w.members.BeginDeletion(ctx)
		if err != nil {
			return fmt.Errorf("deleting leftovers on node %s: %w", id, err)
		}
		deleted, foreign, err := deletion.Delete(ctx, id, true, func(ctx context.Context) ([]block.Address, error) {
			unnamed, _, err := w.catalog.Orphans(ctx, page)
			return unnamed, err
		})
		if err != nil {
			return fmt.Errorf("deleting leftovers on node %s: %w", id, err)
		}
		found.Foreign += len(foreign)
		result.Foreign += len(foreign)
		result.OrphansDeleted += deleted
	}
	if found.Foreign > 0 {
		w.log.Error("blocks on this node say that they are another's: they are left alone", "node", id, "blocks", found.Foreign)
	}
	return nil
}

// note tells what was found to all who ask about the node.
func (w *Sweeper) note(id block.NodeID, found api.Leftovers) {
	w.agents.NoteLeftovers(id, found)
	withheld := 0
	if found.Withheld {
		withheld = found.Orphans
	}
	for kind, count := range map[string]int{
		"orphan": found.Orphans, "withheld": withheld, "foreign": found.Foreign, "quarantined": found.Quarantined, "copied": found.Copied,
	} {
		w.metrics.WithLabelValues(string(id), kind).Set(float64(count))
	}
}

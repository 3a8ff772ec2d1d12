package sweep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/job"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/wire"
)

// Options configure a Sweeper.
type Options struct {
	Clock       func() time.Time // by which attempts expire and graves fall due
	Retention   time.Duration    // how long settled attempts are remembered
	SweepEvery  time.Duration
	OrphanEvery time.Duration // how often stores are listed for leftovers; negative: only on request
}

// Sweeper sweeps the stores and the records of a cluster.
type Sweeper struct {
	catalog *catalog.Catalog
	agents  *member.Agents
	log     *slog.Logger
	options Options
}

// New returns a sweeper that does nothing by itself before its loops run.
func New(records *catalog.Catalog, agents *member.Agents, log *slog.Logger, options Options) *Sweeper {
	return &Sweeper{catalog: records, agents: agents, log: log, options: options}
}

// Loop empties the graveyard, frees dead groups and settles expired attempts for as long as ctx lives. Stores are listed for leftovers at longer intervals.
func (w *Sweeper) Loop(ctx context.Context) {
	listed := time.Now()
	job.Every(ctx, w.options.SweepEvery, func(ctx context.Context) {
		orphans := w.options.OrphanEvery > 0 && time.Since(listed) > w.options.OrphanEvery
		if orphans {
			listed = time.Now()
		}
		if _, err := w.Sweep(ctx, orphans); err != nil && ctx.Err() == nil {
			w.log.Warn("sweeping", "cause", err)
		}
	})
}

// sweepPage is how many records one step of a sweep looks at.
const sweepPage = 1000

// Sweep does one round: groups without live extents are freed, expired attempts settled, dead blocks deleted; with
// orphans every store that can list is searched for blocks that nobody names.
func (w *Sweeper) Sweep(ctx context.Context, orphans bool) (api.SweepResult, error) {
	var result api.SweepResult
	var errs []error // one step that fails does not keep the others from being done
	note := func(doing string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", doing, err))
		}
	}
	var err error
	result.GroupsFreed, err = w.catalog.FreeAll(ctx)
	note("freeing groups", err)
	expired, err := w.catalog.Expire(ctx, w.options.Clock(), w.options.Retention)
	note("settling expired attempts", err)
	result.IntentsSettled, result.IntentsForgotten = expired.Expired, expired.Forgotten
	note("emptying the graveyard", w.bury(ctx, &result))
	if !orphans {
		return result, errors.Join(errs...)
	}
	for _, target := range w.agents.All() {
		if reachable, _, _ := target.State(); reachable {
			errs = append(errs, w.sweepOrphans(ctx, target.Node.ID, &result))
		}
	}
	return result, errors.Join(errs...)
}

// bury deletes the blocks of the graveyard that are due and takes their rows out once the delete was acknowledged
// (protocol, rule 10). Nodes that do not answer keep theirs for a later round.
func (w *Sweeper) bury(ctx context.Context, result *api.SweepResult) error {
	for graves, err := range w.catalog.AllGraves(ctx, w.options.Clock(), "") {
		if err != nil {
			return fmt.Errorf("reading the graveyard: %w", err)
		}
		due := map[block.NodeID][]block.Address{}
		for _, grave := range graves {
			due[grave.Address.Node] = append(due[grave.Address.Node], grave.Address)
		}
		for id, addresses := range due {
			if w.agents.IsRemoved(id) { // should it become a member again, its store is swept before it takes blocks
				if err := w.catalog.Buried(ctx, addresses); err != nil {
					return fmt.Errorf("emptying the graveyard: %w", err)
				}
				continue
			}
			if !w.agents.Answers(id) {
				result.GravesLeft += len(addresses)
				continue
			}
			if _, err := w.agents.Call(ctx, id, wire.OpDelete, wire.DeleteRequest{Addresses: addresses}, nil, nil); err != nil {
				w.log.Debug("deleting dead blocks", "node", id, "cause", err)
				result.GravesLeft += len(addresses)
				continue
			}
			if err := w.catalog.Buried(ctx, addresses); err != nil {
				return fmt.Errorf("emptying the graveyard: %w", err)
			}
			result.BlocksDeleted += len(addresses)
		}
	}
	return nil
}

// sweepOrphans lists a store and only then asks the catalog which of the blocks anybody names (protocol, rule 12).
func (w *Sweeper) sweepOrphans(ctx context.Context, id block.NodeID, result *api.SweepResult) error {
	after := ""
	for {
		var listed wire.ListReply
		_, err := w.agents.Call(ctx, id, wire.OpList, wire.ListRequest{After: after, Limit: sweepPage}, nil, &listed)
		if errors.Is(err, wire.ErrUnsupported) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("listing the store of node %s: %w", id, err)
		}
		if len(listed.Addresses) == 0 {
			return nil
		}
		orphans, quarantined, err := w.catalog.Orphans(ctx, listed.Addresses)
		if err != nil {
			return fmt.Errorf("judging the blocks of node %s: %w", id, err)
		}
		for _, address := range quarantined {
			w.log.Error("a block has a stamp this catalog never drew; the catalog may be an old copy: the block is left alone", "block", address)
		}
		result.Quarantined += len(quarantined)
		if len(orphans) > 0 {
			if _, err := w.agents.Call(ctx, id, wire.OpDelete, wire.DeleteRequest{Addresses: orphans}, nil, nil); err != nil {
				return fmt.Errorf("deleting leftovers on node %s: %w", id, err)
			}
			result.OrphansDeleted += len(orphans)
		}
		if !listed.More {
			return nil
		}
		after = listed.Addresses[len(listed.Addresses)-1].Key()
	}
}

// MemberLoop takes nodes back that were given up, for as long as ctx lives.
func (w *Sweeper) MemberLoop(ctx context.Context) {
	said := "" // what stays the same is said once
	job.Every(ctx, time.Second, func(ctx context.Context) {
		err := w.TakeBack(ctx)
		switch {
		case err == nil:
			said = ""
		case ctx.Err() == nil && err.Error() != said:
			said = err.Error()
			w.log.Warn("taking a node back", "cause", err)
		}
	})
}

// TakeBack lets nodes take blocks again that answer and that nobody declares gone, once their stores hold nothing that
// died while they were away.
func (w *Sweeper) TakeBack(ctx context.Context) error {
	var errs []error
	for _, m := range w.agents.Members() {
		if !m.Trusted || !m.Node.Fenced || m.Node.State == catalog.NodeDown || m.Node.IsExcluded() {
			continue
		}
		if err := w.unfence(ctx, m.Node); err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", m.Node.ID, err))
		}
	}
	return errors.Join(errs...)
}

// unfence sweeps the store of a node and then opens it for new blocks, if nobody has changed its record since.
func (w *Sweeper) unfence(ctx context.Context, node catalog.Node) error {
	if err := w.buryOn(ctx, node.ID); err != nil {
		return err
	}
	var swept api.SweepResult
	if err := w.sweepOrphans(ctx, node.ID, &swept); err != nil {
		return err
	}
	open := node
	open.Out, open.Fenced, open.Since = "", false, time.Now().UnixMilli()
	changed, err := w.catalog.ChangeNode(ctx, node, open)
	if errors.Is(err, catalog.ErrStale) {
		return nil
	}
	if err != nil {
		return err
	}
	w.agents.Enter(changed)
	w.log.Info("a node is back: its store was swept and it takes blocks again", "node", node.ID, "deleted", swept.OrphansDeleted)
	return nil
}

// buryOn deletes the dead blocks of a node that was gone, without the grace that others have: it spares long reads, and
// those have gone on without this node.
func (w *Sweeper) buryOn(ctx context.Context, id block.NodeID) error {
	for graves, err := range w.catalog.AllGraves(ctx, catalog.Forever, string(id)+":") {
		if err != nil {
			return err
		}
		var dead []block.Address
		for _, grave := range graves {
			if grave.Address.Node == id {
				dead = append(dead, grave.Address)
			}
		}
		if len(dead) == 0 {
			return nil // the graves of the nodes after it in the order
		}
		if _, err := w.agents.Call(ctx, id, wire.OpDelete, wire.DeleteRequest{Addresses: dead}, nil, nil); err != nil {
			return fmt.Errorf("deleting dead blocks: %w", err)
		}
		if err := w.catalog.Buried(ctx, dead); err != nil {
			return err
		}
	}
	return nil
}

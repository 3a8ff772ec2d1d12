package sweep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/job"
	"github.com/restripe/restripe/agent/gateway/member"
)

// errRecord says that blocks were deleted and their graves were not.
var errRecord = errors.New("emptying the graveyard")

// Options configure a Sweeper.
type Options struct {
	ID          string           // of the gateway
	Clock       func() time.Time // by which attempts expire and graves fall due
	Retention   time.Duration    // how long settled attempts are remembered
	SweepEvery  time.Duration
	OrphanEvery time.Duration // how long after one search of the stores for leftovers the next begins; negative: only on request
	Died        func()        // is called when objects have died in groups in which others live
	Metrics     prometheus.Registerer
}

// Sweeper sweeps the stores and the records of a cluster.
type Sweeper struct {
	catalog *catalog.Catalog
	agents  *member.Agents
	members *member.Membership
	log     *slog.Logger
	options Options
	metrics *prometheus.GaugeVec
	behind  prometheus.Gauge
	expired prometheus.Counter
	looked  chan struct{} // closed once stores were listed for the first time, or failed to be
}

// New returns a sweeper that does nothing by itself before its loops run.
func New(records *catalog.Catalog, agents *member.Agents, members *member.Membership, log *slog.Logger, options Options) *Sweeper {
	w := &Sweeper{catalog: records, agents: agents, members: members, log: log, options: options, looked: make(chan struct{})}
	w.metrics = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "restripe_leftover_blocks",
		Help: "Blocks that no record names, as the last search of each node's store found them: orphans, withheld, foreign, " +
			"quarantined, copied.",
	}, []string{"node", "kind"})
	w.behind = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "restripe_catalog_behind",
		Help: "1 while the catalog is behind what its nodes hold, so that nothing is deleted before a person has decided.",
	})
	w.expired = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "restripe_objects_expired_total", Help: "Objects that this gateway has removed because their time had come.",
	})
	options.Metrics.MustRegister(w.metrics, w.behind, w.expired)
	return w
}

// Loop removes what has expired, empties the graveyard, frees dead groups and settles expired attempts for as long as ctx lives.
// Stores are listed once before anything is deleted: they show whether the catalog was put back since.
func (w *Sweeper) Loop(ctx context.Context) {
	if w.options.OrphanEvery > 0 {
		w.saying("sweeping", func(ctx context.Context) error {
			_, err := w.Sweep(ctx, api.SweepRequest{})
			return err
		})(ctx)
	}
	close(w.looked)
	job.Every(ctx, w.options.SweepEvery, w.saying("sweeping", func(ctx context.Context) error {
		_, err := w.SweepRecords(ctx)
		return err
	}))
}

// SearchLoop lists the stores for leftovers again and again, beside Loop, which does not wait for large stores.
func (w *Sweeper) SearchLoop(ctx context.Context) {
	select {
	case <-w.looked:
	case <-ctx.Done():
		return
	}
	search := w.saying("searching for leftovers", func(ctx context.Context) error {
		var result api.SweepResult
		return w.search(ctx, w.agents.All(), false, &result)
	})
	for w.options.OrphanEvery > 0 && job.Sleep(ctx, w.options.OrphanEvery) {
		search(ctx)
	}
}

// saying does something of which it is logged why it failed, once for as long as that stays the same.
func (w *Sweeper) saying(doing string, do func(ctx context.Context) error) func(ctx context.Context) {
	said := ""
	return func(ctx context.Context) {
		err := do(ctx)
		switch {
		case err == nil:
			said = ""
		case ctx.Err() == nil && err.Error() != said:
			said = err.Error()
			w.log.Warn(doing, "cause", err)
		}
	}
}

// Sweep does one round: every store that can list, or that of the node named, is searched for blocks that nobody names; then
// objects that have expired are removed, groups without live extents freed, expired attempts settled and dead blocks deleted.
func (w *Sweeper) Sweep(ctx context.Context, request api.SweepRequest) (result api.SweepResult, err error) {
	if request.BeyondBrake && request.Node == "" {
		return result, api.Refuse(api.ErrBadRequest, "which node is to be swept beyond the brake must be said: --node")
	}
	targets := w.agents.All()
	if request.Node != "" {
		target, err := w.agents.Get(request.Node)
		if err != nil {
			return result, err
		}
		if reachable, problem, _ := target.State(); !reachable {
			return result, api.Refuse(api.ErrUnavailable, "node %s does not answer: %v", request.Node, problem)
		}
		targets = []*member.Agent{target}
	}
	err = w.search(ctx, targets, request.BeyondBrake, &result)
	if errors.Is(err, catalog.ErrAlarm) {
		return result, err
	}
	return result, errors.Join(err, w.sweepRecords(ctx, &result))
}

// search lists the stores of nodes for leftovers, one after the other. One that fails does not keep the others from being
// searched; an ErrAlarm ends it.
func (w *Sweeper) search(ctx context.Context, targets []*member.Agent, beyondBrake bool, result *api.SweepResult) error {
	if err := w.checkAlarm(ctx); err != nil {
		return err
	}
	var errs []error
	for _, target := range targets {
		if reachable, _, _ := target.State(); !reachable {
			result.NodesUnsearched++
			continue
		}
		err := w.sweepOrphans(ctx, target.Node.ID, beyondBrake, result)
		if errors.Is(err, catalog.ErrAlarm) {
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// SweepRecords is Sweep without a look into the stores.
func (w *Sweeper) SweepRecords(ctx context.Context) (result api.SweepResult, err error) {
	err = w.sweepRecords(ctx, &result)
	return result, err
}

func (w *Sweeper) sweepRecords(ctx context.Context, result *api.SweepResult) error {
	if err := w.checkAlarm(ctx); err != nil {
		return err
	}
	var errs []error
	note := func(doing string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", doing, err))
		}
	}
	var err error
	result.ObjectsExpired, err = w.catalog.RemoveExpired(ctx)
	w.expired.Add(float64(result.ObjectsExpired))
	note("removing objects that have expired", err)
	var dead int
	result.GroupsFreed, dead, err = w.catalog.FreeAll(ctx)
	if dead > result.GroupsFreed {
		w.options.Died()
	}
	note("freeing groups", err)
	expired, err := w.catalog.Expire(ctx, w.options.Clock(), w.options.Retention)
	note("settling expired attempts", err)
	result.IntentsSettled, result.IntentsForgotten = expired.Expired, expired.Forgotten
	note("emptying the graveyard", w.bury(ctx, result))
	return errors.Join(errs...)
}

// checkAlarm returns an ErrAlarm while the catalog is behind.
func (w *Sweeper) checkAlarm(ctx context.Context) error {
	err := w.catalog.CheckAlarm(ctx)
	switch {
	case err == nil:
		w.behind.Set(0)
	case errors.Is(err, catalog.ErrAlarm):
		w.behind.Set(1)
	}
	return err
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
		if len(due) == 0 {
			continue
		}
		deletion, err := w.members.BeginDeletion(ctx)
		if err != nil {
			w.log.Debug("deleting dead blocks", "cause", err)
			result.GravesLeft += len(graves)
			continue
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
			deleted, err := w.deleteDead(ctx, deletion, id, addresses)
			if errors.Is(err, errRecord) {
				return err
			}
			if err != nil {
				w.log.Debug("deleting dead blocks", "node", id, "cause", err)
				result.GravesLeft += len(addresses)
				continue
			}
			result.BlocksDeleted += deleted
		}
	}
	return nil
}

// deleteDead deletes blocks of the graveyard and takes their rows out. An error that is errRecord is of the latter.
func (w *Sweeper) deleteDead(ctx context.Context, deletion *member.Deletion, id block.NodeID, graves []block.Address) (int, error) {
	deleted, _, err := deletion.Delete(ctx, id, false, func(ctx context.Context) (dead []block.Address, err error) {
		dead, err = w.catalog.InGraves(ctx, graves)
		graves = dead
		return dead, err
	})
	if err != nil {
		return 0, err
	}
	if err := w.catalog.Buried(ctx, graves); err != nil {
		return 0, fmt.Errorf("%w: %w", errRecord, err)
	}
	return deleted, nil
}

// MemberLoop takes nodes back that were given up, for as long as ctx lives.
func (w *Sweeper) MemberLoop(ctx context.Context) {
	job.Every(ctx, time.Second, w.saying("taking a node back", w.TakeBack))
}

// TakeBack lets nodes take blocks again that answer, most gateways too, and that nobody declares gone, once their stores hold
// nothing that died while they were away.
func (w *Sweeper) TakeBack(ctx context.Context) error {
	var errs []error
	for _, m := range w.agents.Members() {
		if !m.Trusted || !m.Node.Fenced || m.Node.State == catalog.NodeDown || m.Node.IsExcluded() || w.agents.IsUnheard(m.Node.ID) {
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
	if err := w.checkAlarm(ctx); err != nil {
		return err
	}
	if err := w.buryOn(ctx, node.ID); err != nil {
		return err
	}
	var swept api.SweepResult
	if err := w.sweepOrphans(ctx, node.ID, false, &swept); err != nil {
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
		deletion, err := w.members.BeginDeletion(ctx)
		if err != nil {
			return fmt.Errorf("deleting dead blocks: %w", err)
		}
		if _, err := w.deleteDead(ctx, deletion, id, dead); err != nil {
			return fmt.Errorf("deleting dead blocks: %w", err)
		}
	}
	return nil
}

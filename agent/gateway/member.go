package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

// The states of a node as NodeStatus shows them; draining and removed are as declared.
const (
	nodeUp      = "up"      // it answers and takes blocks
	nodeSuspect = "suspect" // it missed a few probes: reads avoid it, writes go elsewhere
	nodeDown    = "down"    // it has not answered for long, or somebody declared that it will not come back
	nodeOut     = "out"     // given up: its blocks are rebuilt elsewhere, and it takes none before its store was swept
)

// The patience of a cluster with nodes that do not answer, unless the catalog says otherwise.
const (
	defaultDownAfter = 30 * time.Second
	defaultOutAfter  = 10 * time.Minute
)

// patience is after which silence a node is down, and given up; out is negative where none is.
type patience struct {
	down, out time.Duration
}

func patienceOf(m catalog.Membership) patience {
	p := patience{down: time.Duration(m.DownAfter) * time.Millisecond, out: time.Duration(m.OutAfter) * time.Millisecond}
	setDefault(&p.down, defaultDownAfter)
	setDefault(&p.out, defaultOutAfter)
	return p
}

func (a *agents) patient() patience {
	a.mutex.RLock()
	defer a.mutex.RUnlock()
	return a.patience
}

func (a *agents) setPatience(p patience) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.patience = p
}

// memberState is the one word for a node: what is declared of it goes before what was found, and that before what this
// gateway thinks.
func memberState(node *catalog.Node, trusted bool, h healthState) string {
	switch {
	case node.IsExcluded(), node.State == catalog.NodeDown:
		return string(node.State)
	case node.Out != "", node.Fenced:
		return nodeOut
	case h == healthDown:
		return nodeDown
	case !trusted:
		return nodeSuspect
	}
	return string(node.State)
}

// member is one node as decisions about membership see it.
type member struct {
	node    catalog.Node
	trusted bool          // it answers
	down    bool          // it has missed all probes for long
	misses  int           // probes it has missed in a row
	silence time.Duration // for how long it has
	crowded bool          // its store is almost full
}

// crowdedPercent is how full a store is that is given nothing only for the sake of failure domains.
const crowdedPercent = 90

func isCrowded(info *store.Info) bool {
	return info.CapacityBytes > 0 && float64(info.UsedBytes)*100 >= float64(info.CapacityBytes)*crowdedPercent
}

// takesBlocks reports whether new blocks may go to the member now.
func (m *member) takesBlocks() bool { return m.trusted && m.node.TakesBlocks() }

// takesSpread reports whether blocks may be moved to the member only to lie more evenly in failure domains: spares are kept
// for losses.
func (m *member) takesSpread() bool { return m.takesBlocks() && !m.node.Spare && !m.crowded }

// isLeaving reports whether what lies on the member belongs elsewhere.
func (m *member) isLeaving() bool {
	return m.node.IsGone() || m.node.State == catalog.NodeDraining && !m.node.Drain.Paused
}

// givenUp returns the members that have been silent for too long. A gateway that hears less than half of the members is
// as likely cut off itself: it gives up none.
func givenUp(members []member, after time.Duration) (out []catalog.Node) {
	counted, heard := 0, 0
	for i := range members {
		m := &members[i]
		if m.node.IsGone() {
			continue
		}
		counted++
		if m.trusted {
			heard++
		} else if after >= 0 && m.down && m.misses >= missesToGiveUp && m.silence >= after {
			out = append(out, m.node)
		}
	}
	if 2*heard <= counted {
		return nil
	}
	return out
}

// members returns every node that was not removed.
func (a *agents) members() []member {
	var list []member
	for _, target := range a.all() {
		target.mutex.Lock()
		health := &target.health
		list = append(list, member{
			node: target.node, trusted: target.trusted(),
			down: health.state == healthDown, misses: health.misses, silence: health.silence(),
			crowded: isCrowded(&target.hello.Store),
		})
		target.mutex.Unlock()
	}
	return list
}

// giveUp declares members out that have been silent for too long. The record decides between gateways: whoever changes
// it first has declared, and a node that was changed meanwhile is looked at again.
func (a *agents) giveUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, greatestPatience) // a slow catalog must not keep probes waiting
	defer cancel()
	for _, node := range givenUp(a.members(), a.patient().out) {
		out := node
		out.Out, out.Since = a.gateway, time.Now().UnixMilli()
		changed, err := a.catalog.ChangeNode(ctx, node, out)
		if err != nil {
			if ctx.Err() == nil {
				a.log.Warn("giving up a node that does not answer", "node", node.ID, "cause", err)
			}
			continue
		}
		a.log.Warn("a node has not answered for long: it is out, and its blocks are rebuilt elsewhere", "node", node.ID)
		a.enter(changed)
	}
}

// membership is what a gateway remembers of moving blocks between its nodes.
type membership struct {
	counts slotCounts

	mutex  sync.Mutex // of what follows
	pacers map[block.NodeID]*pacer
	looked time.Time               // when every group was last looked at
	seen   map[block.NodeID]uint64 // versions of the members then
	idle   bool                    // nothing was found that is leaving
	roster uint64                  // what was known of the nodes then
	retry  time.Duration           // after which what is leaving is looked at again
	said   string                  // of blocks that could not be moved
}

// memberLoop takes nodes back that were given up, for as long as the gateway lives.
func (g *Gateway) memberLoop(ctx context.Context) {
	said := "" // what stays the same is said once
	every(ctx, time.Second, func(ctx context.Context) {
		err := g.takeBack(ctx)
		switch {
		case err == nil:
			said = ""
		case ctx.Err() == nil && err.Error() != said:
			said = err.Error()
			g.log.Warn("taking a node back", "cause", err)
		}
	})
}

// relocationLoop moves blocks to where they belong, for as long as the gateway lives.
func (g *Gateway) relocationLoop(ctx context.Context) {
	every(ctx, time.Second, func(ctx context.Context) {
		if !g.relocationDue(time.Now()) {
			return
		}
		result, err := g.relocate(ctx)
		if err != nil && ctx.Err() == nil {
			g.log.Warn("moving blocks to where they belong", "cause", err)
		}
		g.members.tell(g.log, &result)
	})
}

// tell warns of blocks that could not be moved, once for as long as nothing changes.
func (m *membership) tell(log *slog.Logger, result *api.RelocationResult) {
	slices.Sort(result.Failed)
	said := strings.Join(result.Failed, "\n")
	m.mutex.Lock()
	isNews := said != m.said
	m.said = said
	m.mutex.Unlock()
	if isNews && said != "" {
		log.Warn("blocks could not be moved to where they belong", "groups", result.GroupsFailed, "cause", result.Failed[0])
	}
}

// takeBack lets nodes take blocks again that answer and that nobody declares gone, once their stores hold nothing that
// died while they were away.
func (g *Gateway) takeBack(ctx context.Context) error {
	var errs []error
	for _, m := range g.agents.members() {
		if !m.trusted || !m.node.Fenced || m.node.State == catalog.NodeDown || m.node.IsExcluded() {
			continue
		}
		if err := g.unfence(ctx, m.node); err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", m.node.ID, err))
		}
	}
	return errors.Join(errs...)
}

// unfence sweeps the store of a node and then opens it for new blocks, if nobody has changed its record since.
func (g *Gateway) unfence(ctx context.Context, node catalog.Node) error {
	if err := g.buryOn(ctx, node.ID); err != nil {
		return err
	}
	var swept api.SweepResult
	if err := g.sweepOrphans(ctx, node.ID, &swept); err != nil {
		return err
	}
	open := node
	open.Out, open.Fenced, open.Since = "", false, time.Now().UnixMilli()
	changed, err := g.catalog.ChangeNode(ctx, node, open)
	if errors.Is(err, catalog.ErrStale) {
		return nil
	}
	if err != nil {
		return err
	}
	g.agents.enter(changed)
	g.log.Info("a node is back: its store was swept and it takes blocks again", "node", node.ID, "deleted", swept.OrphansDeleted)
	return nil
}

// buryOn deletes the dead blocks of a node that was gone, without the grace that others have: it spares long reads, and
// those have gone on without this node.
func (g *Gateway) buryOn(ctx context.Context, id block.NodeID) error {
	for graves, err := range g.catalog.AllGraves(ctx, catalog.Forever, string(id)+":") {
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
		if _, err := g.agents.call(ctx, id, wire.OpDelete, wire.DeleteRequest{Addresses: dead}, nil, nil); err != nil {
			return fmt.Errorf("deleting dead blocks: %w", err)
		}
		if err := g.catalog.Buried(ctx, dead); err != nil {
			return err
		}
	}
	return nil
}

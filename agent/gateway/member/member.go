package member

import (
	"cmp"
	"context"
	"time"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/store"
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
	return patience{down: cmp.Or(p.down, defaultDownAfter), out: cmp.Or(p.out, defaultOutAfter)}
}

func (a *Agents) patient() patience {
	a.mutex.RLock()
	defer a.mutex.RUnlock()
	return a.patience
}

func (a *Agents) setPatience(p patience) {
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

// Member is one node as decisions about membership see it.
type Member struct {
	Node    catalog.Node
	Trusted bool          // it answers
	down    bool          // it has missed all probes for long
	misses  int           // probes it has missed in a row
	silence time.Duration // for how long it has
	crowded bool          // its store is almost full

	used, capacity int64 // bytes of its store; 0: it does not know
}

// crowdedPercent is how full a store is that is given nothing only for the sake of failure domains.
const crowdedPercent = 90

func isCrowded(info *store.Info) bool {
	return info.CapacityBytes > 0 && float64(info.UsedBytes)*100 >= float64(info.CapacityBytes)*crowdedPercent
}

// takesBlocks reports whether new blocks may go to the member now.
func (m *Member) takesBlocks() bool { return m.Trusted && m.Node.TakesBlocks() }

// TakesSpread reports whether blocks may be moved to the member only to lie more evenly in failure domains: spares are kept
// for losses.
func (m *Member) TakesSpread() bool { return m.takesBlocks() && !m.Node.Spare && !m.crowded }

// IsLeaving reports whether what lies on the member belongs elsewhere.
func (m *Member) IsLeaving() bool {
	return m.Node.IsGone() || m.Node.State == catalog.NodeDraining && !m.Node.Drain.Paused
}

// givenUp returns the members that have been silent for too long. A gateway that hears less than half of the members is
// as likely cut off itself: it gives up none.
func givenUp(members []Member, after time.Duration) (out []catalog.Node) {
	counted, heard := 0, 0
	for i := range members {
		m := &members[i]
		if m.Node.IsGone() {
			continue
		}
		counted++
		if m.Trusted {
			heard++
		} else if after >= 0 && m.down && m.misses >= missesToGiveUp && m.silence >= after {
			out = append(out, m.Node)
		}
	}
	if 2*heard <= counted {
		return nil
	}
	return out
}

// Members returns every node that was not removed.
func (a *Agents) Members() []Member {
	var list []Member
	for _, target := range a.All() {
		target.mutex.Lock()
		health := &target.Health
		list = append(list, Member{
			Node: target.Node, Trusted: target.trusted(),
			down: health.State == healthDown, misses: health.misses, silence: health.silence(),
			crowded: isCrowded(&target.Hello.Store),
			used:    target.Hello.Store.UsedBytes, capacity: target.Hello.Store.CapacityBytes,
		})
		target.mutex.Unlock()
	}
	return list
}

// giveUp declares members out that have been silent for too long and that most gateways do not hear. The record decides
// between gateways: whoever changes it first has declared, and a node that was changed meanwhile is looked at again.
func (a *Agents) giveUp(ctx context.Context) {
	list := givenUp(a.Members(), a.patient().out)
	if len(list) > 0 && hear(ctx, a) != nil { // what the others say now
		return
	}
	for _, node := range list {
		if a.views.stays(node.ID) || !a.IsUnheard(node.ID) {
			continue
		}
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
		a.Enter(changed)
	}
}

package sim

import (
	"context"
	"time"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
)

// deed is something that people do to a cluster.
type deed struct {
	name string
	do   func(ctx context.Context, o *operator, g *gateway.Gateway, d *dice) error
}

var deeds = []deed{
	{"transition of a class", transitClass}, {"transition of a class", transitClass}, {"transition of a class", transitClass},
	{"transition of a class", transitClass}, {"transition of a class", transitClass}, {"transition of a class", transitClass},
	{"move of an object", moveObject}, {"move of an object", moveObject},
	{"repair", func(ctx context.Context, _ *operator, g *gateway.Gateway, d *dice) error {
		_, err := g.Repair(ctx, true, d.chance(0.7))
		return err
	}},
	{"scrub", func(ctx context.Context, o *operator, g *gateway.Gateway, d *dice) error {
		depth := pick(d, []api.ScrubDepth{api.ScrubAudit, api.ScrubShallow})
		_, err := g.StartScrub(ctx, api.ScrubRequest{Depth: depth, BytesPerSecond: o.plan.rate})
		return err
	}},
	{"pause, resume or cancel of a job", haltJob},
	{"pause or resume of repair", func(ctx context.Context, _ *operator, g *gateway.Gateway, d *dice) error {
		if d.chance(0.3) {
			_, err := g.PauseRepair(ctx)
			return err
		}
		_, err := g.ResumeRepair(ctx)
		return err
	}},
	{"sweep", func(ctx context.Context, _ *operator, g *gateway.Gateway, _ *dice) error {
		_, err := g.Sweep(ctx, api.SweepRequest{})
		return err
	}},
	{"drain", func(ctx context.Context, o *operator, g *gateway.Gateway, d *dice) error {
		_, err := g.DrainNode(ctx, pick(d, o.cluster.agents).id, api.DrainRequest{})
		return err
	}},
	{"down", func(ctx context.Context, o *operator, g *gateway.Gateway, d *dice) error {
		_, err := g.DownNode(ctx, pick(d, o.cluster.agents).id)
		return err
	}},
	{"up", func(ctx context.Context, o *operator, g *gateway.Gateway, d *dice) error {
		_, err := g.UpNode(ctx, pick(d, o.cluster.agents).id)
		return err
	}},
	{"removal", func(ctx context.Context, o *operator, g *gateway.Gateway, d *dice) error {
		_, err := g.RemoveNode(ctx, pick(d, o.cluster.agents).id)
		return err
	}},
	{"relocation", func(ctx context.Context, _ *operator, g *gateway.Gateway, _ *dice) error {
		_, err := g.Relocate(ctx)
		return err
	}},
}

func transitClass(ctx context.Context, o *operator, g *gateway.Gateway, d *dice) error {
	if o.plan.another != nil && (o.plan.isWide || d.chance(0.3)) {
		return changeLadder(ctx, o, g, d)
	}
	request := api.TransitionRequest{To: pick(d, o.plan.schemes()).String(), BytesPerSecond: o.plan.rate}
	request.Class = pick(d, o.plan.classes).Name
	_, err := g.StartTransition(ctx, request)
	return err
}

// changeLadder gives a class the other one of the two ladders, or the same, and takes what is there along.
func changeLadder(ctx context.Context, o *operator, g *gateway.Gateway, d *dice) error {
	class := pick(d, o.plan.classes)
	if o.plan.isWide {
		class = o.plan.classes[1] // in which objects are alike
	}
	class.Ladder = o.plan.ladder
	if o.plan.isWide && !o.isWider || !o.plan.isWide && d.chance(0.6) {
		class.Ladder = o.plan.another
	}
	o.isWider = !o.isWider
	class.Default = pick(d, class.Ladder)
	if _, err := g.PutClass(ctx, class.Spec()); err != nil {
		return err
	}
	request := api.TransitionRequest{To: class.Default.String(), BytesPerSecond: o.plan.rate}
	request.Class = class.Name
	_, err := g.StartTransition(ctx, request)
	return err
}

// haltJob stops a transition, or the scrub, for a while or for good, or has it go on.
func haltJob(ctx context.Context, _ *operator, g *gateway.Gateway, d *dice) error {
	var err error
	if d.chance(0.3) {
		if d.chance(0.5) {
			_, err = g.PauseScrub(ctx)
		} else {
			_, err = g.ResumeScrub(ctx)
		}
		return err
	}
	all, err := g.Transitions(ctx)
	if err != nil || len(all) == 0 {
		return err
	}
	switch id := pick(d, all).ID; d.below(3) {
	case 0:
		_, err = g.PauseTransition(ctx, id)
	case 1:
		_, err = g.ResumeTransition(ctx, id, nil)
	default:
		_, err = g.CancelTransition(ctx, id)
	}
	return err
}

func moveObject(ctx context.Context, o *operator, g *gateway.Gateway, d *dice) error {
	request := api.TransitionRequest{To: pick(d, o.plan.schemes()).String()}
	request.Key64 = api.EncodeKey(pick(d, o.plan.keys).key)
	_, err := g.StartTransition(ctx, request)
	return err
}

// operator does to the cluster what people do.
type operator struct {
	plan    *plan
	isWider bool // the class whose groups become wider and narrower was to be wide last
	journal *journal
	ledger  *ledger
	cluster *cluster
}

// operate does what people do to a cluster until ctx ends.
func (o *operator) operate(ctx context.Context, d *dice) {
	hasty := o.plan.outAfter == 0
	for wait(ctx, d.between(0, o.plan.deedGap)) == nil {
		g, p := pick(d, o.cluster.servers).serving()
		if g == nil {
			continue
		}
		chosen := pick(d, deeds)
		if !hasty {
			chosen = deed{"patience", func(ctx context.Context, o *operator, g *gateway.Gateway, _ *dice) error {
				_, err := g.SetPatience(ctx, api.Patience{DownAfterSeconds: o.plan.outAfter.Seconds() / 2, OutAfterSeconds: o.plan.outAfter.Seconds()})
				hasty = err == nil
				return err
			}}
		}
		err := through(p, func(ctx context.Context) error { return chosen.do(ctx, o, g, d) })
		o.journal.write(p.name, "%s: %v", chosen.name, err)
	}
}

// welcome declares every node up again.
func (o *operator) welcome(p *process, g *gateway.Gateway) {
	err := through(p, func(ctx context.Context) error {
		nodes, err := o.ledger.records.Nodes(ctx)
		if err != nil {
			return err
		}
		for _, node := range nodes {
			if node.State == catalog.NodeUp {
				continue
			}
			if _, err := g.UpNode(ctx, node.ID); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		o.journal.write(p.name, "declaring the nodes up: %v", err)
	}
}

// mend has repair go on, looks at every block of every group, as a scrub does, and has blocks deleted of which a sweep found too
// many to do so by itself; everything else the gateways do.
func (o *operator) mend(d *dice) {
	g, p := pick(d, o.cluster.servers).serving()
	if g == nil {
		return
	}
	o.welcome(p, g)
	o.sweepBeyondBrake(p, g)
	err := through(p, func(ctx context.Context) error {
		if _, err := g.ResumeRepair(ctx); err != nil {
			return err
		}
		result, err := g.Repair(ctx, true, true)
		if len(result.Failed) > 0 {
			o.journal.write(p.name, "repairs that failed: %v", result.Failed)
		}
		return err
	})
	if err != nil {
		o.journal.write(p.name, "repairing: %v", err)
	}
}

func (o *operator) sweepBeyondBrake(p *process, g *gateway.Gateway) {
	err := through(p, func(ctx context.Context) error {
		list, err := g.Nodes(ctx)
		if err != nil {
			return err
		}
		for i := range list.Nodes {
			node := &list.Nodes[i]
			if node.Leftovers == nil || !node.Leftovers.Withheld {
				continue
			}
			result, err := g.Sweep(ctx, api.SweepRequest{Node: node.ID, BeyondBrake: true})
			o.journal.write(p.name, "sweeping %s beyond the brake: %+v, %v", node.ID, result, err)
		}
		return nil
	})
	if err != nil {
		o.journal.write(p.name, "asking what is left over: %v", err)
	}
}

// deepest is the longest that people let pass between two deeds in a long run.
const deepest = 3 * time.Second

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
	do   func(ctx context.Context, w *world, g *gateway.Gateway, d *dice) error
}

var deeds = []deed{
	{"transition of a class", transitClass}, {"transition of a class", transitClass}, {"move of an object", moveObject},
	{"repair", func(ctx context.Context, _ *world, g *gateway.Gateway, d *dice) error {
		_, err := g.Repair(ctx, true, d.chance(0.7))
		return err
	}},
	{"scrub", func(ctx context.Context, _ *world, g *gateway.Gateway, _ *dice) error {
		_, err := g.StartScrub(ctx, api.ScrubRequest{Depth: api.ScrubAudit})
		return err
	}},
	{"sweep", func(ctx context.Context, _ *world, g *gateway.Gateway, _ *dice) error {
		_, err := g.Sweep(ctx, true)
		return err
	}},
	{"drain", func(ctx context.Context, w *world, g *gateway.Gateway, d *dice) error {
		_, err := g.DrainNode(ctx, pick(d, w.agents).id, api.DrainRequest{})
		return err
	}},
	{"down", func(ctx context.Context, w *world, g *gateway.Gateway, d *dice) error {
		_, err := g.DownNode(ctx, pick(d, w.agents).id)
		return err
	}},
	{"up", func(ctx context.Context, w *world, g *gateway.Gateway, d *dice) error {
		_, err := g.UpNode(ctx, pick(d, w.agents).id)
		return err
	}},
	{"removal", func(ctx context.Context, w *world, g *gateway.Gateway, d *dice) error {
		return g.RemoveNode(ctx, pick(d, w.agents).id)
	}},
	{"relocation", func(ctx context.Context, _ *world, g *gateway.Gateway, _ *dice) error {
		_, err := g.Relocate(ctx)
		return err
	}},
}

func transitClass(ctx context.Context, w *world, g *gateway.Gateway, d *dice) error {
	request := api.TransitionRequest{To: pick(d, w.plan.ladder).String()}
	request.Class = pick(d, w.plan.classes).Name
	_, err := g.StartTransition(ctx, request)
	return err
}

func moveObject(ctx context.Context, w *world, g *gateway.Gateway, d *dice) error {
	request := api.TransitionRequest{To: pick(d, w.plan.ladder).String()}
	request.Key64 = api.EncodeKey(pick(d, w.plan.keys).key)
	_, err := g.StartTransition(ctx, request)
	return err
}

// operate does what people do to a cluster until ctx ends.
func (w *world) operate(ctx context.Context, d *dice) {
	hasty := w.plan.outAfter == 0
	for wait(ctx, d.between(0, w.plan.deedGap)) == nil {
		g, p := pick(d, w.servers).serving()
		if g == nil {
			continue
		}
		chosen := pick(d, deeds)
		if !hasty {
			chosen = deed{"patience", func(ctx context.Context, w *world, g *gateway.Gateway, _ *dice) error {
				_, err := g.SetPatience(ctx, api.Patience{DownAfterSeconds: w.plan.outAfter.Seconds() / 2, OutAfterSeconds: w.plan.outAfter.Seconds()})
				hasty = err == nil
				return err
			}}
		}
		err := w.through(p, func(ctx context.Context) error { return chosen.do(ctx, w, g, d) })
		w.journal.write(p.name, "%s: %v", chosen.name, err)
	}
}

// welcome declares every node up again.
func (w *world) welcome(p *process, g *gateway.Gateway) {
	err := w.through(p, func(ctx context.Context) error {
		nodes, err := w.records.Nodes(ctx)
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
		w.journal.write(p.name, "declaring the nodes up: %v", err)
	}
}

// deepest is the longest that people let pass between two deeds in a long run.
const deepest = 3 * time.Second

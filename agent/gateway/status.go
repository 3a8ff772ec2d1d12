package gateway

import (
	"context"
	"fmt"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
)

// Status sums up the cluster. It reads every object and group record, so it is for clusters of up to some hundred
// thousand objects.
func (g *Gateway) Status(ctx context.Context) (Status, error) {
	status := Status{Cluster: g.catalog.Cluster().ID, Gateway: g.options.ID, CanLose: -1}
	for _, target := range g.agents.all() {
		reachable, problem, hello := target.state()
		node := NodeStatus{
			ID: target.node.ID, Address: target.node.Address, Domain: domain(target.node), State: string(target.node.State),
			Store: hello.Store.Location, UsedBytes: hello.Store.UsedBytes, CapacityBytes: hello.Store.CapacityBytes, Warnings: hello.Store.Warnings,
		}
		if !reachable {
			node.State = "unreachable"
			if problem != nil {
				node.Warnings = append(node.Warnings, problem.Error())
			}
		}
		status.Nodes = append(status.Nodes, node)
	}
	classes := map[string]*ClassStatus{}
	classOf := func(name string) *ClassStatus {
		if classes[name] == nil {
			classes[name] = &ClassStatus{Name: name, ByScheme: map[string]int64{}}
			status.Classes = append(status.Classes, ClassStatus{Name: name})
		}
		return classes[name]
	}
	for i := range g.options.Classes {
		classOf(g.options.Classes[i].Name).Ladder = g.options.Classes[i].Ladder.String()
	}
	if err := g.eachObject(ctx, "", func(object *catalog.Object) error {
		status.Objects++
		class := classOf(object.Class)
		class.Objects++
		class.Bytes += object.Size
		return nil
	}); err != nil {
		return Status{}, err
	}
	incarnations, err := g.catalog.Incarnations(ctx)
	if err != nil {
		return Status{}, fmt.Errorf("reading incarnations: %w", err)
	}
	if err := g.eachGroup(ctx, block.GroupID{}, func(view *catalog.GroupView) error {
		code, err := g.codeOf(&view.Group)
		if err != nil {
			return err
		}
		status.Groups++
		class := classOf(view.Group.Class)
		class.ByScheme[view.Group.Scheme]++
		class.Stored += int64(view.Group.CellBytes) * int64(code.layout.Cells()+code.scheme.M*code.stripes())
		lost := 0
		for _, slot := range view.Group.Slots {
			for _, item := range slot {
				if item.Incarnation != incarnations[item.Node] || !g.answers(item.Node) {
					lost++
					break
				}
			}
		}
		if lost > 0 {
			status.NotWhole++
		}
		if spare := code.scheme.M - lost; status.CanLose < 0 || spare < status.CanLose {
			status.CanLose = max(spare, 0)
		}
		return nil
	}); err != nil {
		return Status{}, err
	}
	for i := range status.Classes {
		status.Classes[i] = *classes[status.Classes[i].Name]
	}
	if status.Active, status.Graves, err = g.unfinished(ctx); err != nil {
		return Status{}, err
	}
	transitions, err := g.Transitions(ctx)
	if err != nil {
		return Status{}, err
	}
	status.Transitions = []Transition{}
	for _, transition := range transitions {
		if !transition.State.Final() {
			status.Transitions = append(status.Transitions, transition)
		}
	}
	return status, nil
}

// unfinished counts active attempts and dead blocks not yet deleted.
func (g *Gateway) unfinished(ctx context.Context) (active, graves int64, err error) {
	for after := (block.Stamp{}); ; {
		intents, err := g.catalog.Intents(ctx, after, sweepPage)
		if err != nil {
			return 0, 0, fmt.Errorf("listing attempts: %w", err)
		}
		active += int64(len(intents))
		if len(intents) < sweepPage {
			break
		}
		after = intents[len(intents)-1].Stamp
	}
	for after := ""; ; {
		page, err := g.catalog.Graves(ctx, farFuture, after, sweepPage)
		if err != nil {
			return 0, 0, fmt.Errorf("listing dead blocks: %w", err)
		}
		graves += int64(len(page))
		if len(page) < sweepPage {
			return active, graves, nil
		}
		after = page[len(page)-1].Address.String()
	}
}

// farFuture is later than any grace.
var farFuture = time.UnixMilli(1 << 53)

package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
)

// readyPatience is how long the catalog may take to answer for a gateway to be ready.
const readyPatience = 2 * time.Second

// Ready reports why requests for objects cannot be answered now: the catalog does not answer or is not this gateway's any more, or
// no node answers. It is nil if they can.
func (g *Gateway) Ready(ctx context.Context) error {
	if err := g.catalog.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	if _, err := g.catalog.Alarm(ctx); err != nil {
		return api.Refuse(api.ErrUnavailable, "the catalog does not answer: %w", err)
	}
	members := g.agents.All()
	for _, target := range members {
		if g.agents.Answers(target.Node.ID) {
			return nil
		}
	}
	return api.Refuse(api.ErrUnavailable, "none of %d nodes answers", len(members))
}

// Status sums up the cluster. It reads every object and group record, so it is for clusters of up to some hundred
// thousand objects.
func (g *Gateway) Status(ctx context.Context) (api.Status, error) {
	status := api.Status{Cluster: g.catalog.Cluster().ID, Gateway: g.options.ID, CanLose: -1, Nodes: g.agents.NodeStatus()}
	classes := map[string]*api.ClassStatus{}
	classOf := func(name string) *api.ClassStatus {
		if classes[name] == nil {
			classes[name] = &api.ClassStatus{Name: name, ByScheme: map[string]int64{}}
			status.Classes = append(status.Classes, api.ClassStatus{Name: name})
		}
		return classes[name]
	}
	for _, class := range g.Registry.All() {
		classOf(class.Name).Ladder = class.Ladder.String()
	}
	for object, err := range g.catalog.AllObjects(ctx, "") {
		if err != nil {
			return api.Status{}, err
		}
		status.Objects++
		class := classOf(object.Class)
		class.Objects++
		class.Bytes += object.Size
	}
	incarnations, err := g.catalog.Incarnations(ctx)
	if err != nil {
		return api.Status{}, fmt.Errorf("reading incarnations: %w", err)
	}
	for view, err := range g.catalog.AllGroups(ctx, block.GroupID{}) {
		if err != nil {
			return api.Status{}, err
		}
		code, err := g.groups.CodeOf(&view.Group)
		if err != nil {
			return api.Status{}, err
		}
		status.Groups++
		class := classOf(view.Group.Class)
		class.ByScheme[view.Group.Scheme]++
		class.Stored += int64(view.Group.CellBytes) * int64(code.Layout.Cells()+code.Scheme.M*code.Stripes())
		lost := 0
		for _, slot := range view.Group.Slots {
			for _, item := range slot {
				if item.Incarnation != incarnations[item.Node] || !g.agents.Answers(item.Node) {
					lost++
					break
				}
			}
		}
		if lost == 0 && g.groups.Reported.Has(view.ID) {
			lost = 1 // a read, a scrub or a repair that failed found what no record shows
		}
		if lost > 0 {
			status.NotWhole++
			class.NotWhole++
		}
		if spare := code.Scheme.M - lost; status.CanLose < 0 || spare < status.CanLose {
			status.CanLose = max(spare, 0)
		}
	}
	for i := range status.Classes {
		status.Classes[i] = *classes[status.Classes[i].Name]
	}
	if status.Active, status.Graves, err = g.unfinished(ctx); err != nil {
		return api.Status{}, err
	}
	if status.Transitions, err = g.unended(ctx); err != nil {
		return api.Status{}, err
	}
	if scrub, err := g.Scrub(ctx); err == nil { // else the doctor says why it cannot be told
		status.BlocksSeen = scrub.Seen
	}
	status.CatalogBehind, err = g.behind(ctx)
	return status, err
}

// behind says how the catalog was found to be behind its nodes; empty where it was not.
func (g *Gateway) behind(ctx context.Context) (string, error) {
	err := g.catalog.CheckAlarm(ctx)
	if errors.Is(err, catalog.ErrAlarm) {
		return err.Error(), nil
	}
	return "", err
}

// StatusBrief is Status without a look at any object or group: what is counted of them is of the last heat report.
// NotWhole, CanLose and what is unfinished are not looked at.
func (g *Gateway) StatusBrief(ctx context.Context) (status api.Status, err error) {
	status = api.Status{Cluster: g.catalog.Cluster().ID, Gateway: g.options.ID, CanLose: -1, Nodes: g.agents.NodeStatus(), Classes: []api.ClassStatus{}}
	ladders := map[string]string{}
	for _, class := range g.Registry.All() {
		ladders[class.Name] = class.Ladder.String()
	}
	for _, class := range g.Heat().Classes {
		entry := api.ClassStatus{Name: class.Class, Ladder: ladders[class.Class], Objects: class.Objects, Bytes: class.Bytes, ByScheme: map[string]int64{}}
		for _, rung := range class.Rungs {
			if rung.Groups > 0 {
				entry.ByScheme[rung.Scheme] = rung.Groups
			}
			entry.Stored += rung.StoredBytes
			status.Groups += rung.Groups
		}
		status.Objects += class.Objects
		status.Classes = append(status.Classes, entry)
	}
	if status.Transitions, err = g.unended(ctx); err != nil {
		return status, err
	}
	status.CatalogBehind, err = g.behind(ctx)
	return status, err
}

// unended returns the transitions that have not ended.
func (g *Gateway) unended(ctx context.Context) ([]api.Transition, error) {
	transitions, err := g.Transitions(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(transitions, func(t api.Transition) bool { return t.State.Final() }), nil
}

// unfinished counts active attempts and dead blocks not yet deleted.
func (g *Gateway) unfinished(ctx context.Context) (active, graves int64, err error) {
	for _, err := range g.catalog.AllIntents(ctx) {
		if err != nil {
			return 0, 0, fmt.Errorf("listing attempts: %w", err)
		}
		active++
	}
	for page, err := range g.catalog.AllGraves(ctx, catalog.Forever, "") {
		if err != nil {
			return 0, 0, fmt.Errorf("listing dead blocks: %w", err)
		}
		graves += int64(len(page))
	}
	return active, graves, nil
}

// Load returns what clients asked of this gateway in the last seconds.
func (g *Gateway) Load() api.Load { return g.load.Sum(time.Now()) }

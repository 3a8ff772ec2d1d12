package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/member"
)

// readyPatience is how long the catalog may take to answer for a gateway to be ready.
const readyPatience = 2 * time.Second

// Ready reports why requests for objects cannot be answered now: the catalog does not answer or is not this gateway's any more, or
// no node answers. It is nil if they can.
func (g *Gateway) Ready(ctx context.Context) error {
	if err := g.catalog.Err(); err != nil {
		return err
	}
	if err := g.CatalogAnswers(ctx); err != nil {
		return err
	}
	members := g.agents.All()
	for _, target := range members {
		if g.agents.Answers(target.Node.ID) {
			return nil
		}
	}
	return api.Refuse(api.ErrUnavailable, "none of %d nodes answers", len(members))
}

// CatalogAnswers asks the catalog something, and reports why it has no answer.
func (g *Gateway) CatalogAnswers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	if _, err := g.catalog.Alarm(ctx); err != nil {
		return api.Refuse(api.ErrUnavailable, "the catalog does not answer: %w", err)
	}
	return nil
}

// objectCount is how many objects there are of a class, and how much is in them; and of earlier versions of objects.
type objectCount struct{ objects, bytes, earlier, kept int64 }

// countObjects walks over all objects.
func (g *Gateway) countObjects(ctx context.Context, rest func(records int) error) (map[string]objectCount, error) {
	counts := map[string]objectCount{}
	for objects, err := range g.catalog.ObjectSummaries(ctx) {
		if err != nil {
			return nil, err
		}
		for i := range objects {
			count := counts[objects[i].Class]
			if block.IsEarlierKey(objects[i].Key) {
				count.earlier, count.kept = count.earlier+1, count.kept+objects[i].Size
			} else {
				count.objects, count.bytes = count.objects+1, count.bytes+objects[i].Size
			}
			counts[objects[i].Class] = count
		}
		if err := rest(len(objects)); err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// CountObjects returns how many objects there are, or were when they were counted last, where that takes long. Whoever wants to know
// recently also takes what was counted a moment before.
func (g *Gateway) CountObjects(ctx context.Context, recently bool) (objects int64, err error) {
	found, err := g.objectCounts.Ask(ctx, recently)
	for _, count := range found.Value {
		objects += count.objects
	}
	return objects, err
}

// statusOfNodes is a status in which nothing is counted yet.
func (g *Gateway) statusOfNodes() api.Status {
	return api.Status{
		Cluster: g.catalog.Cluster().ID, Gateway: g.options.ID, Release: g.options.Release, CanLose: -1, Nodes: g.agents.NodeStatus(),
	}
}

// Status sums up the cluster. What it counts is as of now or, where that takes long, as of the last time that it was counted;
// what nodes lose meanwhile is reckoned with.
func (g *Gateway) Status(ctx context.Context) (api.Status, error) {
	status := g.statusOfNodes()
	objects, err := g.objectCounts.Ask(ctx, false)
	if err != nil {
		return api.Status{}, err
	}
	groups, err := g.Membership.Survey(ctx)
	if err != nil {
		return api.Status{}, err
	}
	if objects.Old || groups.Old {
		at := groups.Began.UTC()
		if objects.Began.Before(groups.Began) {
			at = objects.Began.UTC()
		}
		status.CountedAt = &at
	}
	classes := map[string]*api.ClassStatus{}
	classOf := func(name string) *api.ClassStatus {
		if classes[name] == nil {
			classes[name] = &api.ClassStatus{Name: name, ByScheme: map[string]int64{}}
		}
		return classes[name]
	}
	for _, class := range g.Registry.All() {
		classOf(class.Name).Ladder = class.Ladder.String()
	}
	for name, count := range objects.Value {
		class := classOf(name)
		class.Objects, class.Bytes, class.Earlier, class.Kept = count.objects, count.bytes, count.earlier, count.kept
		status.Objects, status.Earlier = status.Objects+count.objects, status.Earlier+count.earlier
	}
	for shape, count := range groups.Value.Shapes {
		if err := g.addGroups(&status, classOf(shape.Class), shape, count); err != nil {
			return api.Status{}, err
		}
	}
	for _, class := range classes {
		status.Classes = append(status.Classes, *class)
	}
	slices.SortFunc(status.Classes, func(a, b api.ClassStatus) int { return cmp.Compare(a.Name, b.Name) })
	if status.Active, status.Graves, err = g.unfinished(ctx); err != nil {
		return api.Status{}, err
	}
	if status.Balance, err = g.balanceUnderWay(ctx); err != nil {
		return status, err
	}
	if status.Transitions, err = g.unended(ctx); err != nil {
		return api.Status{}, err
	}
	if scrub, err := g.Scrub(ctx); err == nil { // else the doctor says why it cannot be told
		status.BlocksSeen = scrub.Seen
	}
	g.addDead(ctx, &status)
	status.CatalogBehind, err = g.behind(ctx)
	return status, err
}

// addGroups adds the groups of one shape to a status and to that of their class.
func (g *Gateway) addGroups(status *api.Status, class *api.ClassStatus, shape member.Shape, count *member.ShapeCount) error {
	code, err := g.groups.CodeOf(&catalog.Group{
		Class: shape.Class, Scheme: shape.Scheme, Ladder: shape.Ladder, Mode: shape.Mode,
		Columns: shape.Columns, LayoutVersion: shape.LayoutVersion,
	})
	if err != nil {
		return err
	}
	status.Groups += count.Groups
	status.NotWhole += count.NotWhole
	class.NotWhole += count.NotWhole
	class.ByScheme[shape.Scheme] += count.Groups
	class.Stored += count.CellBytes * int64(code.Layout.Cells()+code.Scheme.M*code.Stripes())
	if spare := max(0, code.Scheme.M-count.MostLost); status.CanLose < 0 || spare < status.CanLose {
		status.CanLose = spare
	}
	return nil
}

// addDead says how much is dead of each class, as of the last look of the compaction; nothing where that cannot be told, which the
// doctor says why.
func (g *Gateway) addDead(ctx context.Context, status *api.Status) {
	compaction, err := g.Compaction(ctx)
	if err != nil || compaction.Looked == nil {
		return
	}
	dead := map[string]int64{}
	for i := range compaction.Classes {
		dead[compaction.Classes[i].Name] = compaction.Classes[i].Dead
	}
	for i := range status.Classes {
		bytes := dead[status.Classes[i].Name]
		status.Classes[i].Dead = &bytes
	}
}

// behind says how the catalog was found to be behind its nodes; empty where it was not.
func (g *Gateway) behind(ctx context.Context) (string, error) {
	err := g.catalog.CheckAlarm(ctx)
	if errors.Is(err, catalog.ErrAlarm) {
		return err.Error(), nil
	}
	return "", err
}

// countLoop counts once, so that whoever asks for a status first waits for less.
func (g *Gateway) countLoop(ctx context.Context) {
	if _, err := g.Status(ctx); err != nil && ctx.Err() == nil {
		g.log.Warn("counting what is stored", "cause", err)
	}
}

// counting tells how far the first counts are; nil once both are known.
func (g *Gateway) counting() *api.Counting {
	began, groups, groupsLeft := g.Membership.Counting()
	since, objects, objectsLeft := g.objectCounts.First()
	if !groupsLeft && !objectsLeft {
		return nil
	}
	if !groupsLeft || objectsLeft && since.Before(began) {
		began = since
	}
	return &api.Counting{Since: began.UTC(), Groups: groups, Objects: objects}
}

// StatusBrief is Status without a look at any object or group: what is counted of them is of the last heat report.
// NotWhole, CanLose and what is unfinished are not looked at.
func (g *Gateway) StatusBrief(ctx context.Context) (status api.Status, err error) {
	status = g.statusOfNodes()
	status.Classes, status.Counting = []api.ClassStatus{}, g.counting()
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
	if status.Balance, err = g.balanceUnderWay(ctx); err != nil {
		return status, err
	}
	if status.Transitions, err = g.unended(ctx); err != nil {
		return status, err
	}
	status.CatalogBehind, err = g.behind(ctx)
	return status, err
}

// balanceUnderWay returns the balance that has not ended; nil: there is none.
func (g *Gateway) balanceUnderWay(ctx context.Context) (*api.Balance, error) {
	balance, err := g.Balance(ctx)
	if err != nil || !balance.IsUnderWay() {
		return nil, err
	}
	return &balance, nil
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

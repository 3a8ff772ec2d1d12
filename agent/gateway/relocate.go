package gateway

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
)

// What is moved because of failure domains alone is moved at this rate at most, and every group is looked at so often
// though nothing is known to have changed.
const (
	spreadBytesPerSecond  = 32 << 20
	relocationEvery       = 10 * time.Minute
	relocationRetry       = 10 * time.Second
	relocationConcurrency = 2
)

// misplaced is a slot of a group that belongs elsewhere.
type misplaced struct {
	slot    int
	from    block.NodeID
	stored  bool // it has blocks; else only the place for blocks to come is changed
	leaving bool // its node is to be emptied; else its failure domain holds more of the group than it must
}

// misplacements returns the slots of a group that can be moved now: those on nodes that are leaving and, where there are
// none, one whose move makes the group lie in its failure domains more evenly. Blocks on a node that does not answer are
// for repair to rebuild.
func misplacements(group *catalog.Group, members map[block.NodeID]*member) []misplaced {
	var list []misplaced
	placed := make([]block.NodeID, len(group.Home))
	used := map[string]int{}
	for slot := range group.Home {
		id, stored := group.Place(slot)
		placed[slot] = id
		m := members[id]
		switch {
		case m == nil || m.isLeaving():
			if !stored || m != nil && m.trusted {
				list = append(list, misplaced{slot: slot, from: id, stored: stored, leaving: true})
			}
		default:
			used[domain(m.node)]++
		}
	}
	if len(list) > 0 {
		return list
	}
	free := map[string]bool{}
	for id, m := range members {
		if m.takesSpread() && !slices.Contains(placed, id) {
			free[domain(m.node)] = true
		}
	}
	least := -1
	for name := range free {
		if least < 0 || used[name] < least {
			least = used[name]
		}
	}
	if least < 0 {
		return nil
	}
	best, most := -1, least+1 // a move must leave the domain it goes to with fewer slots than the one it leaves had
	for slot := len(placed) - 1; slot >= 0; slot-- {
		m := members[placed[slot]]
		if m == nil || m.isLeaving() || !m.trusted {
			continue
		}
		if count := used[domain(m.node)]; count > most {
			best, most = slot, count
		}
	}
	if best < 0 {
		return nil
	}
	_, stored := group.Place(best)
	return []misplaced{{slot: best, from: placed[best], stored: stored}}
}

// memberMap returns the members by id.
func (g *Gateway) memberMap() map[block.NodeID]*member {
	members := map[block.NodeID]*member{}
	for _, m := range g.agents.members() {
		members[m.node.ID] = &m
	}
	return members
}

// relocationDue reports whether every group should be looked at: a node is leaving, or the members have changed, or it
// is long ago.
func (g *Gateway) relocationDue(now time.Time) bool {
	versions := map[block.NodeID]uint64{}
	leaving := false
	for id, m := range g.memberMap() {
		versions[id] = m.node.Version
		leaving = leaving || m.isLeaving()
	}
	if g.lookAgain.Swap(false) {
		g.members.forget()
	}
	return g.members.due(versions, g.agents.roster(), leaving, now)
}

// due is relocationDue by the versions of the members' records, what is known of the nodes, and whether one is leaving.
// As long as nothing that is leaving can be moved and the nodes stay as they are, it is looked at ever more rarely.
func (m *relocations) due(versions map[block.NodeID]uint64, roster uint64, leaving bool, now time.Time) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	changed := !maps.Equal(versions, m.seen)
	if changed || roster != m.roster {
		m.retry = relocationRetry
	}
	since := now.Sub(m.looked)
	m.roster = roster
	if !changed && since < relocationEvery && (!leaving || m.idle || since < m.retry) {
		return false
	}
	m.seen, m.looked = versions, now
	return true
}

// note takes note of a look at every group: whether nothing is left that is leaving or lost, and whether something moved.
func (m *relocations) note(idle, moved bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.idle = idle
	if moved {
		m.retry = relocationRetry
	} else {
		m.retry = min(2*m.retry, relocationEvery)
	}
}

// Relocate moves blocks to where they belong, once: off nodes that are leaving, and into failure domains that hold less
// of their group. Groups that could not be worked on are left to the next call.
func (g *Gateway) Relocate(ctx context.Context) (api.RelocationResult, error) {
	if err := g.takeBack(ctx); err != nil {
		return api.RelocationResult{}, err
	}
	return g.relocate(ctx)
}

func (g *Gateway) relocate(ctx context.Context) (api.RelocationResult, error) {
	var result api.RelocationResult
	var leaving, uneven []block.GroupID
	members, roster := g.memberMap(), g.agents.roster()
	lost := false
	for view, err := range g.catalog.AllGroups(ctx, block.GroupID{}) {
		if err != nil {
			return result, err
		}
		result.GroupsChecked++
		list := misplacements(&view.Group, members)
		switch {
		case len(list) > 0 && list[0].leaving:
			leaving = append(leaving, view.ID)
		case len(list) > 0:
			uneven = append(uneven, view.ID)
		}
		for slot := range view.Slots {
			id, _ := view.Place(slot)
			m := members[id]
			isLost := m == nil || m.node.IsGone() && !m.trusted
			lost = lost || isLost && !g.repairs.failures.has(view.ID, roster)
		}
	}
	if lost {
		g.agents.lost.Store(true) // on a node that was given up: for repair, at once
		knock(g.repairs.records)
	}
	var mutex sync.Mutex
	for _, ids := range [][]block.GroupID{g.fromOwnPlace(leaving), g.fromOwnPlace(uneven)} {
		var workers errgroup.Group
		workers.SetLimit(relocationConcurrency)
		for _, id := range ids {
			if ctx.Err() != nil {
				break
			}
			workers.Go(func() error {
				done, err := g.relocateInsisting(ctx, id)
				mutex.Lock()
				defer mutex.Unlock()
				if err != nil {
					if result.GroupsFailed++; len(result.Failed) < keptProblems {
						result.Failed = append(result.Failed, fmt.Sprintf("group %s: %v", id, err))
					}
					if goneBlock(err) || errors.Is(err, errNotWhole) {
						g.reported.add(id) // to be rebuilt, on another node
					}
					return nil
				}
				result.SlotsMoved += done.slots
				result.PlacesChanged += done.places
				result.BytesSent += done.bytes
				return nil
			})
		}
		_ = workers.Wait() // workers note their errors in the result
	}
	if result.SlotsMoved+result.PlacesChanged > 0 {
		g.slots.forget()
	}
	g.members.note(!lost && len(leaving) == 0, result.SlotsMoved+result.PlacesChanged > 0)
	return result, ctx.Err()
}

// fromOwnPlace begins a list at a place that this gateway's name decides, so that several gateways do not all work on
// the same group.
func (g *Gateway) fromOwnPlace(ids []block.GroupID) []block.GroupID {
	if len(ids) == 0 {
		return nil
	}
	hash := fnv.New32a()
	hash.Write([]byte(g.options.ID))
	first := int(hash.Sum32()) % len(ids)
	return append(append([]block.GroupID{}, ids[first:]...), ids[:first]...)
}

// relocated is what was done for one group.
type relocated struct {
	slots, places int
	bytes         int64
}

func (g *Gateway) relocateInsisting(ctx context.Context, id block.GroupID) (done relocated, err error) {
	err = insist(ctx, func(full map[block.NodeID]bool) (err error) {
		done, err = g.relocateGroup(ctx, id, full)
		return err
	})
	return done, err
}

// relocateGroup copies the slots of a group that belong elsewhere to other nodes and commits that as a repair is
// (protocol, rule 6: relocation of slot x): only these slots change, and the group must be as it was read. Nodes that are
// full get none.
func (g *Gateway) relocateGroup(ctx context.Context, id block.GroupID, full map[block.NodeID]bool) (relocated, error) {
	view, err := g.catalog.Group(ctx, id)
	if errors.Is(err, catalog.ErrNoGroup) {
		return relocated{}, nil
	}
	if err != nil {
		return relocated{}, err
	}
	members := g.memberMap()
	list := misplacements(&view.Group, members)
	if len(list) == 0 {
		return relocated{}, nil
	}
	return g.relocateSlots(ctx, view, list, full, func(ctx context.Context, _ *catalog.Group, r *run) (bool, error) {
		return g.admitRelocation(ctx, r, list, members)
	})
}

// relocateSlots copies slots of a group, as it was read, to nodes that are not full, once that is admitted.
func (g *Gateway) relocateSlots(ctx context.Context, view *catalog.GroupView, list []misplaced, full map[block.NodeID]bool, admit admission) (relocated, error) {
	group, members := &view.Group, g.memberMap()
	home, err := g.newHomes(group, list, members, full)
	if err != nil {
		return relocated{}, err
	}
	slots := []int{}
	for _, m := range list {
		if m.stored {
			slots = append(slots, m.slot)
		}
	}
	done := relocated{places: len(list) - len(slots)}
	if len(slots) == 0 {
		return done, g.commitHomes(ctx, view, home)
	}
	r, err := g.planRelocation(group, slots, home, members)
	if err != nil {
		return relocated{}, err
	}
	if admitted, err := admit(ctx, group, r); err != nil || !admitted {
		return relocated{}, err
	}
	attempt, err := g.catalog.Begin(ctx, catalog.KindRelocation, g.deadline(), func(block.Stamp) []catalog.BlockSet {
		return []catalog.BlockSet{r.blocks()}
	}, view)
	if err != nil {
		return relocated{}, fmt.Errorf("announcing the relocation of group %s: %w", group.ID, err)
	}
	result, err := g.carryOut(ctx, attempt, r)
	if err != nil {
		return relocated{}, g.abandon(ctx, attempt, err)
	}
	done.slots, done.bytes = len(slots), result.counters.BytesSent
	return done, g.commitSlots(ctx, attempt, view, result.slots, home, slots)
}

// planRelocation binds the plan that copies slots to their new homes. Slots whose nodes do not answer now take no part
// in the proof of the result.
func (g *Gateway) planRelocation(group *catalog.Group, slots []int, home []block.NodeID, members map[block.NodeID]*member) (*run, error) {
	code, err := g.codeOf(group)
	if err != nil {
		return nil, err
	}
	plan, err := stripe.NewRelocationPlan(code.layout, code.scheme, slots)
	if err != nil {
		return nil, fmt.Errorf("planning the relocation of group %s: %w", group.ID, err)
	}
	r, err := g.newRun(group, plan)
	if err != nil {
		return nil, err
	}
	r.lost, r.away = map[int]bool{}, map[int]bool{}
	moving := map[int]bool{}
	for _, slot := range slots {
		moving[slot] = true
		r.nodes[plan.Destination(slot)] = home[slot]
	}
	for slot := range group.Slots {
		node, _ := group.Place(slot)
		if m := members[node]; !moving[slot] && (m == nil || !m.trusted) {
			r.away[slot] = true
		}
	}
	if away := slices.Collect(maps.Keys(r.away)); !code.layout.Survives(code.scheme, away) {
		return nil, api.Refuse(api.ErrUnavailable, "slots %v of group %s do not answer, which are more than its stripes survive under %s: bring their nodes back", away, group.ID, code.scheme)
	}
	return r, nil
}

// makeWay has the slots of a group that lie, or are to lie, on a node without room moved to other nodes. Where none is free
// the error says which node is full and what to do.
func (g *Gateway) makeWay(ctx context.Context, id block.GroupID, full *noRoomError, admit admission) error {
	refused := map[block.NodeID]bool{full.node: true}
	for {
		view, err := g.catalog.Group(ctx, id)
		if err != nil {
			return err
		}
		var list []misplaced
		for slot := range view.Home {
			if node, stored := view.Place(slot); node == full.node {
				list = append(list, misplaced{slot: slot, from: node, stored: stored, leaving: true})
			}
		}
		if len(list) == 0 {
			return nil // moved meanwhile
		}
		_, err = g.relocateSlots(ctx, view, list, refused, admit)
		var other *noRoomError
		switch {
		case errors.As(err, &other) && !refused[other.node]:
			refused[other.node] = true
		case errors.Is(err, api.ErrTooFewNodes):
			return fmt.Errorf("node %s takes no new blocks; make room on it, or add a node that has room: %w; %w", full.node, full, err)
		default:
			return err
		}
	}
}

// newHomes chooses other nodes, which are not full, for slots that belong elsewhere and returns the homes that the group
// will have.
func (g *Gateway) newHomes(group *catalog.Group, list []misplaced, members map[block.NodeID]*member, full map[block.NodeID]bool) ([]block.NodeID, error) {
	home := make([]block.NodeID, len(group.Home))
	taken := map[block.NodeID]bool{}
	maps.Copy(taken, full)
	used := map[string]int{}
	moves := func(slot int) bool {
		return slices.ContainsFunc(list, func(m misplaced) bool { return m.slot == slot })
	}
	for slot := range home {
		home[slot], _ = group.Place(slot)
		taken[home[slot]] = true
		if m := members[home[slot]]; m != nil && !m.isLeaving() && !moves(slot) {
			used[domain(m.node)]++
		}
	}
	for _, m := range list {
		candidates, _ := g.agents.candidates(taken)
		if !m.leaving {
			candidates = slices.DeleteFunc(candidates, func(c candidate) bool {
				found := members[c.node.ID]
				return found == nil || !found.takesSpread()
			})
		}
		other, found := chooseSubstitute(candidates, used)
		if !found {
			return nil, api.Refuse(api.ErrTooFewNodes, "slot %d lies on node %s and no other node is free to take it; add a node or bring one back", m.slot, m.from)
		}
		g.agents.choose(other)
		taken[other] = true
		used[g.agents.domainOf(other)]++
		home[m.slot] = other
	}
	return home, nil
}

// admitRelocation waits until a plan fits the limits of what it moves and tells whether it is still wanted then.
func (g *Gateway) admitRelocation(ctx context.Context, r *run, list []misplaced, members map[block.NodeID]*member) (bool, error) {
	waited := map[block.NodeID]bool{}
	for _, misplaced := range list {
		from, rate := block.NodeID(""), int64(spreadBytesPerSecond) // one pacer for all that is moved because of domains
		if misplaced.leaving {
			from, rate = misplaced.from, 0
			if m := members[from]; m != nil {
				rate = m.node.Drain.BytesPerSecond
			}
		}
		if waited[from] || !misplaced.stored {
			continue
		}
		waited[from] = true
		if err := g.members.pacer(from, rate, g.agents.domainOf).wait(ctx, nil, r.load()); err != nil {
			return false, err
		}
	}
	now := g.memberMap()
	for _, misplaced := range list {
		if m := now[misplaced.from]; misplaced.leaving && m != nil && !m.isLeaving() {
			return false, nil // somebody wants it to stay meanwhile
		}
	}
	return true, nil
}

// pacer returns the pacer of what leaves a node, at its present rate.
func (m *relocations) pacer(id block.NodeID, rate int64, domainOf func(block.NodeID) string) *pacer {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.pacers == nil {
		m.pacers = map[block.NodeID]*pacer{}
	}
	p := m.pacers[id]
	if p == nil {
		p = newPacer(rates{total: rate}, domainOf)
		m.pacers[id] = p
	}
	p.set(rates{total: rate}, time.Now())
	return p
}

// commitHomes changes where blocks to come will lie.
func (g *Gateway) commitHomes(ctx context.Context, view *catalog.GroupView, home []block.NodeID) error {
	attempt, err := g.catalog.Begin(ctx, catalog.KindRelocation, g.deadline(), func(block.Stamp) []catalog.BlockSet { return nil }, view)
	if err != nil {
		return fmt.Errorf("announcing other places for group %s: %w", view.ID, err)
	}
	return g.commitSlots(ctx, attempt, view, view.Slots, home, []int{})
}

func (g *Gateway) commitSlots(ctx context.Context, attempt *catalog.Attempt, view *catalog.GroupView, slots []catalog.Slot, home []block.NodeID, changed []int) error {
	return g.commit(ctx, attempt, catalog.Change{
		Groups:        []catalog.GroupChange{{Was: view, Slots: slots, Scheme: view.Scheme, Home: home}},
		RepairedSlots: map[block.GroupID][]int{view.ID: changed},
	})
}

// relocations is what a gateway remembers of moving blocks between its nodes.
type relocations struct {
	mutex  sync.Mutex // of what follows
	pacers map[block.NodeID]*pacer
	looked time.Time               // when every group was last looked at
	seen   map[block.NodeID]uint64 // versions of the members then
	idle   bool                    // nothing was found that is leaving
	roster uint64                  // what was known of the nodes then
	retry  time.Duration           // after which what is leaving is looked at again
	said   string                  // of blocks that could not be moved
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
func (m *relocations) tell(log *slog.Logger, result *api.RelocationResult) {
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

// forget has the next look at the members take them for changed.
func (m *relocations) forget() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.seen = nil
}

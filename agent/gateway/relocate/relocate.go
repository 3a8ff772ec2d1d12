package relocate

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
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/gateway/job"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/gateway/repair"
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

// Relocator moves blocks to where they belong.
type Relocator struct {
	catalog *catalog.Catalog
	agents  *member.Agents
	members *member.Membership
	groups  *group.Groups
	repairs *repair.Repairs
	log     *slog.Logger
	id      string // of the gateway

	mutex  sync.Mutex // of what follows
	pacers map[block.NodeID]*group.Pacer
	looked time.Time               // when every group was last looked at
	seen   map[block.NodeID]uint64 // versions of the members then
	idle   bool                    // nothing was found that is leaving
	roster uint64                  // what was known of the nodes then
	retry  time.Duration           // after which what is leaving is looked at again
	said   string                  // of blocks that could not be moved
}

// New returns a relocator for the gateway of that name. It does nothing by itself before Loop runs.
func New(records *catalog.Catalog, agents *member.Agents, members *member.Membership, groups *group.Groups, repairs *repair.Repairs, log *slog.Logger, id string) *Relocator {
	return &Relocator{catalog: records, agents: agents, members: members, groups: groups, repairs: repairs, log: log, id: id}
}

// Loop moves blocks to where they belong, for as long as the gateway lives.
func (rl *Relocator) Loop(ctx context.Context) {
	job.Every(ctx, time.Second, func(ctx context.Context) {
		if !rl.relocationDue(time.Now()) {
			return
		}
		result, err := rl.Relocate(ctx)
		if err != nil && ctx.Err() == nil {
			rl.log.Warn("moving blocks to where they belong", "cause", err)
		}
		rl.tell(&result)
	})
}

// tell warns of blocks that could not be moved, once for as long as nothing changes.
func (rl *Relocator) tell(result *api.RelocationResult) {
	slices.Sort(result.Failed)
	said := strings.Join(result.Failed, "\n")
	rl.mutex.Lock()
	isNews := said != rl.said
	rl.said = said
	rl.mutex.Unlock()
	if isNews && said != "" {
		rl.log.Warn("blocks could not be moved to where they belong", "groups", result.GroupsFailed, "cause", result.Failed[0])
	}
}

// forget has the next look at the members take them for changed.
func (rl *Relocator) forget() {
	rl.mutex.Lock()
	defer rl.mutex.Unlock()
	rl.seen = nil
}

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
func misplacements(group *catalog.Group, members map[block.NodeID]*member.Member) []misplaced {
	var list []misplaced
	placed := make([]block.NodeID, len(group.Home))
	used := map[string]int{}
	for slot := range group.Home {
		id, stored := group.Place(slot)
		placed[slot] = id
		m := members[id]
		switch {
		case m == nil || m.IsLeaving():
			if !stored || m != nil && m.Trusted {
				list = append(list, misplaced{slot: slot, from: id, stored: stored, leaving: true})
			}
		default:
			used[member.Domain(m.Node)]++
		}
	}
	if len(list) > 0 {
		return list
	}
	free := map[string]bool{}
	for id, m := range members {
		if m.TakesSpread() && !slices.Contains(placed, id) {
			free[member.Domain(m.Node)] = true
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
		if m == nil || m.IsLeaving() || !m.Trusted {
			continue
		}
		if count := used[member.Domain(m.Node)]; count > most {
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
func (rl *Relocator) memberMap() map[block.NodeID]*member.Member {
	members := map[block.NodeID]*member.Member{}
	for _, m := range rl.agents.Members() {
		members[m.Node.ID] = &m
	}
	return members
}

// relocationDue reports whether every group should be looked at: a node is leaving, or the members have changed, or it
// is long ago.
func (rl *Relocator) relocationDue(now time.Time) bool {
	versions := map[block.NodeID]uint64{}
	leaving := false
	for id, m := range rl.memberMap() {
		versions[id] = m.Node.Version
		leaving = leaving || m.IsLeaving()
	}
	if rl.members.TakeLookAgain() {
		rl.forget()
	}
	return rl.due(versions, rl.agents.Roster(), leaving, now)
}

// due is relocationDue by the versions of the members' records, what is known of the nodes, and whether one is leaving.
// As long as nothing that is leaving can be moved and the nodes stay as they are, it is looked at ever more rarely.
func (rl *Relocator) due(versions map[block.NodeID]uint64, roster uint64, leaving bool, now time.Time) bool {
	rl.mutex.Lock()
	defer rl.mutex.Unlock()
	changed := !maps.Equal(versions, rl.seen)
	if changed || roster != rl.roster {
		rl.retry = relocationRetry
	}
	since := now.Sub(rl.looked)
	rl.roster = roster
	if !changed && since < relocationEvery && (!leaving || rl.idle || since < rl.retry) {
		return false
	}
	rl.seen, rl.looked = versions, now
	return true
}

// note takes note of a look at every group: whether nothing is left that is leaving or lost, and whether something moved.
func (rl *Relocator) note(idle, moved bool) {
	rl.mutex.Lock()
	defer rl.mutex.Unlock()
	rl.idle = idle
	if moved {
		rl.retry = relocationRetry
	} else {
		rl.retry = min(2*rl.retry, relocationEvery)
	}
}

// Relocate moves blocks to where they belong, once: off nodes that are leaving, and into failure domains that hold less
// of their group. Groups that could not be worked on are left to the next call.
func (rl *Relocator) Relocate(ctx context.Context) (api.RelocationResult, error) {
	var result api.RelocationResult
	var leaving, uneven []block.GroupID
	members, roster := rl.memberMap(), rl.agents.Roster()
	lost := false
	for view, err := range rl.catalog.AllGroups(ctx, block.GroupID{}) {
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
			id, stored := view.Place(slot)
			m := members[id]
			isLost := stored && (m == nil || m.Node.IsGone() && !m.Trusted)
			lost = lost || isLost && !rl.repairs.HasFailed(view.ID, roster)
		}
	}
	if lost {
		rl.repairs.LookAtRecords() // on a node that was given up
	}
	var mutex sync.Mutex
	for _, ids := range [][]block.GroupID{rl.fromOwnPlace(leaving), rl.fromOwnPlace(uneven)} {
		var workers errgroup.Group
		workers.SetLimit(relocationConcurrency)
		for _, id := range ids {
			if ctx.Err() != nil {
				break
			}
			workers.Go(func() error {
				done, err := rl.relocateRetrying(ctx, id)
				mutex.Lock()
				defer mutex.Unlock()
				if err != nil {
					if result.GroupsFailed++; len(result.Failed) < repair.KeptProblems {
						result.Failed = append(result.Failed, fmt.Sprintf("group %s: %v", id, err))
					}
					rl.report(id, err)
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
		rl.members.ForgetCounts()
	}
	rl.note(!lost && len(leaving) == 0, result.SlotsMoved+result.PlacesChanged > 0)
	return result, ctx.Err()
}

// report has a group rebuilt, on other nodes, that was found to miss blocks.
func (rl *Relocator) report(id block.GroupID, err error) {
	if member.GoneBlock(err) || errors.Is(err, group.ErrNotWhole) {
		rl.groups.Reported.Add(id)
	}
}

// fromOwnPlace begins a list at a place that this gateway's name decides, so that several gateways do not all work on
// the same group.
func (rl *Relocator) fromOwnPlace(ids []block.GroupID) []block.GroupID {
	if len(ids) == 0 {
		return nil
	}
	hash := fnv.New32a()
	hash.Write([]byte(rl.id))
	first := int(hash.Sum32()) % len(ids)
	return append(append([]block.GroupID{}, ids[first:]...), ids[:first]...)
}

// outcome is what was done for one group.
type outcome struct {
	slots, places int
	bytes         int64
}

func (rl *Relocator) relocateRetrying(ctx context.Context, id block.GroupID) (done outcome, err error) {
	err = group.RetryRaces(ctx, func(full map[block.NodeID]bool) (err error) {
		done, err = rl.relocateGroup(ctx, id, full)
		return err
	})
	return done, err
}

// relocateGroup copies the slots of a group that belong elsewhere to other nodes and commits that as a repair is
// (protocol, rule 6: relocation of slot x): only these slots change, and the group must be as it was read. Nodes that are
// full get none.
func (rl *Relocator) relocateGroup(ctx context.Context, id block.GroupID, full map[block.NodeID]bool) (outcome, error) {
	view, err := rl.catalog.Group(ctx, id)
	if errors.Is(err, catalog.ErrNoGroup) {
		return outcome{}, nil
	}
	if err != nil {
		return outcome{}, err
	}
	members := rl.memberMap()
	list := misplacements(&view.Group, members)
	if len(list) == 0 {
		return outcome{}, nil
	}
	return rl.relocateSlots(ctx, view, list, full, func(ctx context.Context, _ *catalog.Group, r *group.Execution) (bool, error) {
		return rl.admitRelocation(ctx, r, list, members)
	})
}

// relocateSlots copies slots of a group, as it was read, to nodes that are not full, once that is admitted.
func (rl *Relocator) relocateSlots(ctx context.Context, view *catalog.GroupView, list []misplaced, full map[block.NodeID]bool, admit group.Admission) (outcome, error) {
	members := rl.memberMap()
	home, err := rl.newHomes(&view.Group, list, members, full)
	if err != nil {
		return outcome{}, err
	}
	return rl.copySlots(ctx, view, list, home, members, admit)
}

// copySlots copies slots of a group, as it was read, to their new homes, once that is admitted.
func (rl *Relocator) copySlots(
	ctx context.Context, view *catalog.GroupView, list []misplaced, home []block.NodeID, members map[block.NodeID]*member.Member,
	admit group.Admission,
) (outcome, error) {
	group := &view.Group
	slots := []int{}
	for _, m := range list {
		if m.stored {
			slots = append(slots, m.slot)
		}
	}
	done := outcome{places: len(list) - len(slots)}
	if len(slots) == 0 {
		return done, rl.commitHomes(ctx, view, home)
	}
	r, err := rl.planRelocation(group, slots, home, members)
	if err != nil {
		return outcome{}, err
	}
	if admitted, err := admit(ctx, group, r); err != nil || !admitted {
		return outcome{}, err
	}
	attempt, err := rl.catalog.Begin(ctx, catalog.KindRelocation, rl.groups.Deadline(), func(block.Stamp) []catalog.BlockSet {
		return []catalog.BlockSet{r.Blocks()}
	}, view)
	if err != nil {
		return outcome{}, fmt.Errorf("announcing the relocation of group %s: %w", group.ID, err)
	}
	result, err := rl.groups.Execute(ctx, attempt, r)
	if err != nil {
		return outcome{}, rl.groups.Abandon(ctx, attempt, err)
	}
	done.slots, done.bytes = len(slots), result.Counters.BytesSent
	return done, rl.commitSlots(ctx, attempt, view, result.Slots, home, slots)
}

// planRelocation binds the plan that copies slots to their new homes. Slots whose nodes do not answer now take no part
// in the proof of the result.
func (rl *Relocator) planRelocation(group *catalog.Group, slots []int, home []block.NodeID, members map[block.NodeID]*member.Member) (*group.Execution, error) {
	code, err := rl.groups.CodeOf(group)
	if err != nil {
		return nil, err
	}
	plan, err := stripe.NewRelocationPlan(code.Layout, code.Scheme, slots)
	if err != nil {
		return nil, fmt.Errorf("planning the relocation of group %s: %w", group.ID, err)
	}
	r, err := rl.groups.NewExecution(group, plan)
	if err != nil {
		return nil, err
	}
	r.Lost, r.Away = map[int]bool{}, map[int]bool{}
	moving := map[int]bool{}
	for _, slot := range slots {
		moving[slot] = true
		r.Nodes[plan.Destination(slot)] = home[slot]
	}
	for slot := range group.Slots {
		node, stored := group.Place(slot)
		if m := members[node]; stored && !moving[slot] && (m == nil || !m.Trusted) {
			r.Away[slot] = true
		}
	}
	if away := slices.Collect(maps.Keys(r.Away)); !code.Layout.Survives(code.Scheme, away) {
		return nil, api.Refuse(api.ErrUnavailable, "slots %v of group %s do not answer, which are more than its stripes survive under %s: bring their nodes back", away, group.ID, code.Scheme)
	}
	return r, nil
}

// MakeWay has the slots of a group that lie, or are to lie, on a node without room moved to other nodes. Where none is free
// the error says which node is full and what to do.
func (rl *Relocator) MakeWay(ctx context.Context, id block.GroupID, full *group.NoRoomError, admit group.Admission) error {
	refused := map[block.NodeID]bool{full.Node: true}
	for {
		view, err := rl.catalog.Group(ctx, id)
		if err != nil {
			return err
		}
		var list []misplaced
		for slot := range view.Home {
			if node, stored := view.Place(slot); node == full.Node {
				list = append(list, misplaced{slot: slot, from: node, stored: stored, leaving: true})
			}
		}
		if len(list) == 0 {
			return nil // moved meanwhile
		}
		_, err = rl.relocateSlots(ctx, view, list, refused, admit)
		var other *group.NoRoomError
		switch {
		case errors.As(err, &other) && !refused[other.Node]:
			refused[other.Node] = true
		case errors.Is(err, api.ErrTooFewNodes):
			return fmt.Errorf("node %s takes no new blocks; make room on it, or add a node that has room: %w; %w", full.Node, full, err)
		default:
			return err
		}
	}
}

// newHomes chooses other nodes, which are not full, for slots that belong elsewhere and returns the homes that the group
// will have.
func (rl *Relocator) newHomes(group *catalog.Group, list []misplaced, members map[block.NodeID]*member.Member, full map[block.NodeID]bool) ([]block.NodeID, error) {
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
		if m := members[home[slot]]; m != nil && !m.IsLeaving() && !moves(slot) {
			used[member.Domain(m.Node)]++
		}
	}
	for _, m := range list {
		candidates, _ := rl.agents.Candidates(taken)
		if !m.leaving {
			candidates = slices.DeleteFunc(candidates, func(c member.Candidate) bool {
				found := members[c.Node.ID]
				return found == nil || !found.TakesSpread()
			})
		}
		other, found := member.ChooseSubstitute(candidates, used)
		if !found {
			return nil, api.Refuse(api.ErrTooFewNodes, "slot %d lies on node %s and no other node is free to take it; add a node or bring one back", m.slot, m.from)
		}
		rl.agents.Choose(other)
		taken[other] = true
		used[rl.agents.DomainOf(other)]++
		home[m.slot] = other
	}
	return home, nil
}

// admitRelocation waits until a plan fits the limits of what it moves and tells whether it is still wanted then.
func (rl *Relocator) admitRelocation(ctx context.Context, r *group.Execution, list []misplaced, members map[block.NodeID]*member.Member) (bool, error) {
	waited := map[block.NodeID]bool{}
	for _, misplaced := range list {
		from, rate := block.NodeID(""), int64(spreadBytesPerSecond) // one pacer for all that is moved because of domains
		if misplaced.leaving {
			from, rate = misplaced.from, 0
			if m := members[from]; m != nil {
				rate = m.Node.Drain.BytesPerSecond
			}
		}
		if waited[from] || !misplaced.stored {
			continue
		}
		waited[from] = true
		if err := rl.pacer(from, rate, rl.agents.DomainOf).Wait(ctx, nil, r.Load()); err != nil {
			return false, err
		}
	}
	now := rl.memberMap()
	for _, misplaced := range list {
		if m := now[misplaced.from]; misplaced.leaving && m != nil && !m.IsLeaving() {
			return false, nil // somebody wants it to stay meanwhile
		}
	}
	return true, nil
}

// pacer returns the pacer of what leaves a node, at its present rate.
func (rl *Relocator) pacer(id block.NodeID, rate int64, domainOf func(block.NodeID) string) *group.Pacer {
	rl.mutex.Lock()
	defer rl.mutex.Unlock()
	if rl.pacers == nil {
		rl.pacers = map[block.NodeID]*group.Pacer{}
	}
	p := rl.pacers[id]
	if p == nil {
		p = group.NewPacer(group.Rates{Total: rate}, domainOf)
		rl.pacers[id] = p
	}
	p.Set(group.Rates{Total: rate}, time.Now())
	return p
}

// commitHomes changes where blocks to come will lie.
func (rl *Relocator) commitHomes(ctx context.Context, view *catalog.GroupView, home []block.NodeID) error {
	attempt, err := rl.catalog.Begin(ctx, catalog.KindRelocation, rl.groups.Deadline(), func(block.Stamp) []catalog.BlockSet { return nil }, view)
	if err != nil {
		return fmt.Errorf("announcing other places for group %s: %w", view.ID, err)
	}
	return rl.commitSlots(ctx, attempt, view, view.Slots, home, []int{})
}

func (rl *Relocator) commitSlots(ctx context.Context, attempt *catalog.Attempt, view *catalog.GroupView, slots []catalog.Slot, home []block.NodeID, changed []int) error {
	return rl.groups.Commit(ctx, attempt, catalog.Change{
		Groups:        []catalog.GroupChange{{Was: view, Slots: slots, Scheme: view.Scheme, Home: home, Seal: true}},
		RepairedSlots: map[block.GroupID][]int{view.ID: changed},
	})
}

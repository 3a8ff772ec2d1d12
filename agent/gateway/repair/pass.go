package repair

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/gateway/job"
	"github.com/restripe/restripe/agent/stripe"
)

// repairConcurrency is how many groups one pass works on side by side.
const repairConcurrency = 4

// damage is a group that a pass looks at, and what is known of it before.
type damage struct {
	id    block.GroupID
	met   bool   // it was reported
	deep  bool   // by a read: a header may be whole where the cells are not
	known bool   // that it has lost something
	spare int    // how many further losses it survives
	bytes int64  // of the slots known to be lost
	place uint64 // among those that are as urgent
}

// Repair rebuilds what is lost in the groups in which a read met a missing block and in those with slots on contents or
// nodes that are gone and, with all, in every other group there is when it starts. Groups that fail are looked at again
// by the next pass.
func (rs *Repairs) Repair(ctx context.Context, all, deep bool) (api.RepairResult, error) {
	return rs.repair(ctx, all, Rebuild{Deep: deep, Admit: rs.supervisor.pay(nil)})
}

// RepairAs is Repair of every group, in the way the request says.
func (rs *Repairs) RepairAs(ctx context.Context, request api.RepairRequest) (api.RepairResult, error) {
	options := Rebuild{
		Deep: request.Deep, shape: stripe.RepairShape(request.Shape), whole: request.Whole, proxy: block.NodeID(request.Proxy),
		Admit: rs.supervisor.pay(nil),
	}
	if options.shape != "" && !slices.Contains(stripe.RepairShapes(), options.shape) {
		return api.RepairResult{}, api.Refuse(api.ErrBadRequest, "there is no shape %q of a repair; use one of %v", options.shape, stripe.RepairShapes())
	}
	return rs.repair(ctx, true, options)
}

func (rs *Repairs) repair(ctx context.Context, all bool, options Rebuild) (api.RepairResult, error) {
	scope := lookAtRecords
	if all {
		scope = lookAtAll
	}
	list, err := rs.damaged(ctx, rs.groups.Reported.Take(true), scope)
	if err != nil {
		return api.RepairResult{}, err
	}
	return rs.repairPass(ctx, list, options, nil)
}

// scope says which groups a pass looks at beside those that were reported.
type scope int

const (
	lookAtReported scope = iota // no others
	lookAtRecords               // those that the records show to have lost something
	lookAtAll
)

// damaged lists the reported groups and those of the scope. All are listed before any is worked on: groups that are
// written meanwhile are whole, and would never end. Reported groups stay reported where listing fails.
func (rs *Repairs) damaged(ctx context.Context, reported map[block.GroupID]bool, scope scope) (list []damage, err error) {
	defer func() {
		if err != nil {
			for id, deep := range reported {
				rs.groups.Reported.Keep(id, deep)
			}
		}
	}()
	incarnations, err := rs.catalog.Incarnations(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading incarnations: %w", err)
	}
	views := rs.catalog.AllGroups(ctx, block.GroupID{})
	if scope == lookAtReported {
		views = rs.groupsNamed(ctx, reported)
	}
	for view, err := range views {
		if err != nil {
			return nil, err
		}
		d, err := rs.damageOf(view, incarnations)
		if err != nil {
			return nil, err
		}
		deep, met := reported[view.ID]
		if d.met, d.deep = met, deep; met && !d.known {
			d.known, d.spare = true, d.spare-1
		}
		if scope == lookAtAll || d.known {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b damage) int { return a.before(&b) })
	return list, nil
}

// groupsNamed walks the groups of these names that there are.
func (rs *Repairs) groupsNamed(ctx context.Context, ids map[block.GroupID]bool) iter.Seq2[*catalog.GroupView, error] {
	return func(yield func(*catalog.GroupView, error) bool) {
		for id := range ids {
			view, err := rs.catalog.Group(ctx, id)
			if errors.Is(err, catalog.ErrNoGroup) {
				continue
			}
			if err != nil {
				yield(nil, fmt.Errorf("reading group %s: %w", id, err))
				return
			}
			if !yield(view, nil) {
				return
			}
		}
	}
}

// before orders damage: what is known to be lost first, and what survives least of that. Gateways that repair side by side
// begin at different groups, by place.
func (d *damage) before(other *damage) int {
	switch {
	case d.known != other.known && d.known:
		return -1
	case d.known != other.known:
		return 1
	case d.known && d.spare != other.spare:
		return cmp.Compare(d.spare, other.spare)
	case d.place != other.place:
		return cmp.Compare(d.place, other.place)
	}
	return cmp.Compare(d.id.String(), other.id.String())
}

func placeOf(id block.GroupID, gateway string) uint64 {
	hash := fnv.New64a()
	fmt.Fprint(hash, gateway, " ", id) // a hash never fails
	return hash.Sum64()
}

// damageOf judges a group by the records, without asking its nodes.
func (rs *Repairs) damageOf(view *catalog.GroupView, incarnations map[block.NodeID]block.Incarnation) (damage, error) {
	d := damage{id: view.ID, place: placeOf(view.ID, rs.options.ID)}
	code, err := rs.groups.CodeOf(&view.Group)
	if err != nil {
		return d, err
	}
	lost, away := rs.recordedLoss(&view.Group, incarnations)
	d.known, d.spare = len(lost) > 0, code.Scheme.M-len(lost)-len(away)
	for _, slot := range lost {
		d.bytes += int64(code.Units(slot)) * int64(view.CellBytes)
	}
	return d, nil
}

// repairPass works on the groups of the list in order until halt is closed.
func (rs *Repairs) repairPass(ctx context.Context, list []damage, options Rebuild, halt <-chan struct{}) (api.RepairResult, error) {
	pass := rs.supervisor.begin(list)
	defer rs.supervisor.end(pass)
	options.beside = min(repairConcurrency, max(1, pass.known))
	var workers errgroup.Group
	workers.SetLimit(repairConcurrency)
	for i := range list {
		d := &list[i]
		if job.IsClosed(halt) || ctx.Err() != nil {
			rs.putBack(d)
			continue
		}
		workers.Go(func() error {
			options := options
			options.Deep = options.Deep || d.deep
			done, err := rs.RebuildRetrying(ctx, d.id, options)
			switch {
			case errors.Is(err, group.ErrHalted):
				rs.putBack(d)
				return nil
			case err != nil:
				rs.groups.Reported.Keep(d.id, d.deep)
			}
			rs.supervisor.note(pass, d, &done, err)
			return nil
		})
	}
	_ = workers.Wait() // workers note their errors in the pass
	return pass.outcome(), ctx.Err()
}

// putBack has a group that was reported, and was not begun, reported again. The others are found by the next look at the
// records.
func (rs *Repairs) putBack(d *damage) {
	switch {
	case d.deep:
		rs.groups.Reported.Add(d.id)
	case d.met:
		rs.groups.Reported.Keep(d.id, false)
	}
}

// repairPassing is a pass under way, or one that has ended.
type repairPassing struct {
	known int // groups known to have lost something
	began time.Time

	mutex    sync.Mutex // of what follows
	progress api.RepairPass
	result   api.RepairResult
}

// KeptProblems is how many failures of a pass are told one by one.
const KeptProblems = 100

func newPassing(list []damage, now time.Time) *repairPassing {
	p := &repairPassing{began: now, progress: api.RepairPass{Started: now.UTC(), GroupsTotal: len(list), BySpare: map[int]int64{}}}
	for i := range list {
		if list[i].known {
			p.known++
			p.progress.BytesTotal += list[i].bytes
			p.progress.BySpare[max(0, list[i].spare)]++
		}
	}
	return p
}

// note counts a group that was worked on.
func (p *repairPassing) note(d *damage, done *Outcome, err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.progress.GroupsChecked++
	p.result.GroupsChecked++
	p.progress.BytesTotal += max(0, done.bytes-d.bytes) // more was lost than the records show
	switch {
	case err != nil:
		p.progress.GroupsFailed++
		p.progress.Problem = fmt.Sprintf("group %s: %v", d.id, err)
		if len(p.result.Failed) < KeptProblems {
			p.result.Failed = append(p.result.Failed, p.progress.Problem)
		}
	case done.slots > 0:
		p.progress.GroupsRepaired++
		p.progress.SlotsRebuilt += done.slots
		p.result.GroupsRepaired++
		p.result.SlotsRebuilt += done.slots
		p.result.BytesRebuilt += done.bytes
		p.result.Predicted.Add(done.predicted)
		p.result.Measured.Add(done.measured)
	}
	if err == nil {
		p.progress.BytesDone += max(d.bytes, done.bytes)
	}
}

func (p *repairPassing) end(now time.Time) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	ended := now.UTC()
	p.progress.Finished = &ended
	p.progress.ElapsedSeconds = now.Sub(p.began).Seconds()
	p.result.ElapsedSeconds = p.progress.ElapsedSeconds
}

func (p *repairPassing) outcome() api.RepairResult {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.result.ElapsedSeconds = time.Since(p.began).Seconds()
	return p.result
}

// at returns the progress as of now.
func (p *repairPassing) at(now time.Time) api.RepairPass {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	progress := p.progress
	progress.BySpare = map[int]int64{}
	for spare, groups := range p.progress.BySpare {
		progress.BySpare[spare] = groups
	}
	if progress.Finished != nil {
		return progress
	}
	progress.ElapsedSeconds = now.Sub(p.began).Seconds()
	progress.ETASeconds = -1
	switch {
	case progress.BytesDone > 0:
		progress.ETASeconds = progress.ElapsedSeconds * float64(max(0, progress.BytesTotal-progress.BytesDone)) / float64(progress.BytesDone)
	case progress.GroupsChecked > 0 && progress.BytesTotal == 0:
		progress.ETASeconds = progress.ElapsedSeconds * float64(progress.GroupsTotal-progress.GroupsChecked) / float64(progress.GroupsChecked)
	}
	return progress
}

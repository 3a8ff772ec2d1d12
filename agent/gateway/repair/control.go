package repair

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/gateway/job"
	"github.com/restripe/restripe/agent/gateway/member"
)

// defaultRepairNode is how many bytes a second the repair of lost blocks by one gateway reads, sends, receives and writes at
// any one node unless somebody declares another limit: an eighth of what a link of 1 Gb/s carries.
const defaultRepairNode = 16 << 20

// supervisor is the repair of what was lost at this gateway. What somebody declares of it is in the catalog; everything else
// is found anew by a gateway that starts.
type supervisor struct {
	repairs *Repairs
	pacer   *group.Pacer

	failures failures

	reported, records job.Wake // the loop of that name has something to do at once

	reading *semaphore.Weighted // one at a time reads or changes what is declared, and applies it

	mutex   sync.Mutex // of what follows
	control catalog.RepairControl
	halt    chan struct{} // closed: the passes of the loop end
	running []*repairPassing
	latest  *repairPassing // that has ended
	flights map[block.GroupID]*flight
	total   api.RepairStatus // its counts
	waiting int              // groups that wait because repair is deferred, at the last look at the records
	said    string           // of groups that could not be repaired
	seen    string           // nodes and contents as of the last look at the records whose pass went to its end
}

func newSupervisor(repairs *Repairs) *supervisor {
	r := &supervisor{
		repairs: repairs, reported: repairs.groups.Reported.Wake, records: job.NewWake(), halt: make(chan struct{}),
		flights: map[block.GroupID]*flight{}, reading: semaphore.NewWeighted(1),
		pacer: group.NewPacer(repairRates(catalog.RepairControl{}), repairs.agents.DomainOf),
	}
	for _, counter := range []struct {
		name, help string
		count      func(*api.RepairStatus) int64
	}{
		{"restripe_repaired_slots_total", "Slots of groups that were rebuilt.", func(s *api.RepairStatus) int64 { return s.SlotsRebuilt }},
		{"restripe_repaired_bytes_total", "Bytes of slots that were rebuilt.", func(s *api.RepairStatus) int64 { return s.BytesRebuilt }},
		{"restripe_repair_sent_bytes_total", "Bytes that repairs sent between nodes.", func(s *api.RepairStatus) int64 { return s.Measured.BytesSent }},
	} {
		repairs.options.Metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: counter.name, Help: counter.help}, func() float64 {
			r.mutex.Lock()
			defer r.mutex.Unlock()
			return float64(counter.count(&r.total))
		}))
	}
	return r
}

func repairRates(control catalog.RepairControl) group.Rates {
	if !control.Set {
		return group.Rates{Node: defaultRepairNode}
	}
	return group.Rates{Total: control.BytesPerSecond, Node: control.NodeBytesPerSecond, Domain: control.DomainBytesPerSecond}
}

// Grant is what a repair waits for that nobody waits for: that its plan fits the budget, or that halt is closed. It is
// paid once.
type Grant struct {
	pacer *group.Pacer
	halt  <-chan struct{}
	paid  bool
}

func (r *supervisor) pay(halt <-chan struct{}) *Grant { return &Grant{pacer: r.pacer, halt: halt} }

func (p *Grant) wait(ctx context.Context, l group.Load) error {
	if p.paid {
		return nil
	}
	if err := p.pacer.Wait(ctx, p.halt, l); err != nil {
		return err
	}
	p.paid = true
	return nil
}

// errRepaired says that somebody else worked on the group meanwhile.
var errRepaired = api.Refuse(api.ErrConflict, "somebody else repaired or changed the group meanwhile")

// flight is the repair of a group that is under way at this gateway.
type flight struct {
	landed   chan struct{}
	overtake context.CancelFunc // ends its wait for the budget
}

// enter makes the caller the only one at this gateway who repairs the group, until leave; it waits for whoever does now.
// Who pays nothing, as somebody waits for the repair, overtakes who waits for the budget: waiting ends then.
func (r *supervisor) enter(ctx context.Context, id block.GroupID, pays *Grant) (waiting context.Context, leave func(), err error) {
	var halt <-chan struct{}
	if pays != nil {
		halt = pays.halt
	}
	for {
		r.mutex.Lock()
		ahead := r.flights[id]
		if ahead == nil {
			break
		}
		r.mutex.Unlock()
		if pays == nil {
			ahead.overtake()
		}
		select {
		case <-ahead.landed:
		case <-halt:
			return nil, nil, group.ErrHalted
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	waiting, overtake := context.WithCancel(ctx)
	led := &flight{landed: make(chan struct{}), overtake: overtake}
	r.flights[id] = led
	r.mutex.Unlock()
	return waiting, func() {
		r.mutex.Lock()
		delete(r.flights, id)
		r.mutex.Unlock()
		overtake()
		close(led.landed)
	}, nil
}

func (r *supervisor) begin(list []damage) *repairPassing {
	pass := newPassing(list, time.Now())
	if len(list) == 0 {
		return pass // nothing to show
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.running = append(r.running, pass)
	return pass
}

func (r *supervisor) end(pass *repairPassing) {
	pass.end(time.Now())
	if pass.progress.GroupsTotal == 0 {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.running = slices.DeleteFunc(r.running, func(p *repairPassing) bool { return p == pass })
	r.latest = pass
}

func (r *supervisor) note(pass *repairPassing, d *damage, done *Outcome, err error) {
	pass.note(d, done, err)
	r.count(done)
}

// count adds what was rebuilt to the totals.
func (r *supervisor) count(done *Outcome) {
	if done.slots == 0 {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.total.GroupsRepaired++
	r.total.SlotsRebuilt += int64(done.slots)
	r.total.BytesRebuilt += done.bytes
	r.total.Measured.Add(done.measured)
}

// apply takes over what is declared.
func (r *supervisor) apply(control catalog.RepairControl) {
	r.mutex.Lock()
	was := r.control
	r.control = control
	switch {
	case control.Paused && !was.Paused:
		close(r.halt)
	case !control.Paused && was.Paused:
		r.halt = make(chan struct{})
	}
	r.mutex.Unlock()
	if repairRates(control) != repairRates(was) {
		r.pacer.Set(repairRates(control), time.Now())
	}
}

// Paused reports whether repair is paused and, where it is not, returns what is closed once it is.
func (r *supervisor) paused() (paused bool, halt <-chan struct{}) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.control.Paused, r.halt
}

// deferred reports whether only groups that survive no further loss are rebuilt now.
func (r *supervisor) deferred() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.isDeferred()
}

func (r *supervisor) isDeferred() bool {
	return r.control.DeferredUntil > r.repairs.options.Clock().UnixMilli()
}

// urgent returns the groups of a list made from the records that are rebuilt even while repair is deferred.
func (r *supervisor) urgent(list []damage) []damage {
	if r.deferred() {
		list = slices.DeleteFunc(list, func(d damage) bool { return d.spare > 0 })
	}
	return list
}

// refresh reads what is declared.
func (r *supervisor) refresh(ctx context.Context) error {
	if err := r.reading.Acquire(ctx, 1); err != nil {
		return err
	}
	defer r.reading.Release(1)
	control, err := r.repairs.catalog.RepairControl(ctx)
	if err != nil {
		return err
	}
	r.apply(control)
	return nil
}

// controlLoop takes over what is declared, and wakes the loops when that has changed.
func (r *supervisor) controlLoop(ctx context.Context) {
	job.Watched(ctx, r.repairs.catalog.Watch(ctx, catalog.SubjectRepair), job.Slowly, func(ctx context.Context) error {
		was, err := r.declared(), r.refresh(ctx)
		if err != nil && ctx.Err() == nil {
			r.repairs.log.Warn("taking over what is declared of repair", "cause", err)
		}
		if r.declared() != was {
			r.reported.Notify()
			r.records.Notify()
		}
		return err
	})
}

func (r *supervisor) declared() catalog.RepairControl {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.control
}

// mayBegin reads what is declared right before something is rebuilt, and reports whether repair is not paused.
func (r *supervisor) mayBegin(ctx context.Context) (bool, error) {
	if err := r.refresh(ctx); err != nil {
		return false, err
	}
	paused, _ := r.paused()
	return !paused, nil
}

// retryTurns is after how many turns groups are tried again whose repair failed, as far as they are due.
const retryTurns = 4

// ReportedLoop rebuilds what reads met, soon and whatever else is being rebuilt, for as long as the gateway lives.
func (r *supervisor) reportedLoop(ctx context.Context) {
	var tried time.Time // when groups were last taken whose repair had failed
	r.loop(ctx, r.reported, func(halt <-chan struct{}) error {
		if r.repairs.groups.Reported.Count() == 0 {
			return nil
		}
		if may, err := r.mayBegin(ctx); err != nil || !may {
			return err
		}
		again := time.Since(tried) >= retryTurns*r.repairs.options.SweepEvery
		if again {
			tried = time.Now()
		}
		ids := r.repairs.groups.Reported.Take(false)
		if again {
			maps.Copy(ids, r.takeDue(tried))
		}
		if len(ids) == 0 {
			return nil
		}
		list, err := r.repairs.damaged(ctx, ids, lookAtReported)
		if err != nil {
			return err
		}
		return r.pass(ctx, list, halt)
	})
}

// takeDue takes the reported groups that may be tried again now.
func (r *supervisor) takeDue(now time.Time) map[block.GroupID]bool {
	g := r.repairs
	ids, roster := g.groups.Reported.Take(true), g.agents.Roster()
	for id, deep := range ids {
		if !r.failures.due(id, roster, now) {
			g.groups.Reported.Keep(id, deep)
			delete(ids, id)
		}
	}
	return ids
}

// RecordsLoop rebuilds what was lost with the contents of a store or with a node, for as long as the gateway lives.
func (r *supervisor) recordsLoop(ctx context.Context) {
	r.loop(ctx, r.records, func(halt <-chan struct{}) error {
		seen := r.stateDigest()
		r.mutex.Lock()
		look := r.repairs.agents.Lost.Swap(false) || r.seen != seen // suspect slots are the repair queue (protocol, rule 17)
		r.mutex.Unlock()
		if !look {
			return nil
		}
		if may, err := r.mayBegin(ctx); err != nil || !may {
			r.repairs.agents.Lost.Store(true) // it is looked at once it may be
			return err
		}
		seen = r.stateDigest() // whether repair is deferred was read
		list, err := r.repairs.damaged(ctx, nil, lookAtRecords)
		if err != nil {
			r.again()
			return err
		}
		found := len(list)
		list = r.urgent(list)
		r.mutex.Lock()
		r.waiting = found - len(list)
		r.mutex.Unlock()
		stop, end := r.watch(ctx, seen, halt)
		err = r.pass(ctx, list, stop)
		end()
		if err != nil || job.IsClosed(stop) { // what failed is reported; what was not begun is found anew
			r.again()
			return err
		}
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.seen = seen
		return nil
	})
}

// again has the records of every group looked at soon.
func (r *supervisor) again() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.seen = ""
	r.records.Notify()
}

// loop has turns at intervals and when it is woken, but while repair is paused.
func (r *supervisor) loop(ctx context.Context, wake <-chan struct{}, turn func(halt <-chan struct{}) error) {
	ticker := time.NewTicker(r.repairs.options.SweepEvery)
	defer ticker.Stop()
	for {
		var err error
		paused, halt := r.paused()
		if !paused {
			err = turn(halt)
		}
		woken := wake
		if err != nil && ctx.Err() == nil {
			r.repairs.log.Warn("repairing what is lost", "cause", err)
			woken = nil // the next turn in its time
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-woken:
		}
	}
}

// pass is a pass of a loop.
func (r *supervisor) pass(ctx context.Context, list []damage, halt <-chan struct{}) error {
	result, err := r.repairs.repairPass(ctx, list, Rebuild{Admit: r.pay(halt)}, halt)
	r.tell(result.Failed)
	return err
}

// tell warns of groups that could not be repaired, once for as long as nothing changes.
func (r *supervisor) tell(failed []string) {
	slices.Sort(failed)
	said := strings.Join(failed, "\n")
	r.mutex.Lock()
	isNews := said != r.said
	if len(failed) > 0 {
		r.said = said
	}
	r.mutex.Unlock()
	if isNews && len(failed) > 0 {
		r.repairs.log.Warn("groups could not be repaired", "atLeast", len(failed), "cause", failed[0])
	}
}

// watch closes stop once halt is closed, here or by a pause declared elsewhere, or once nodes or their contents are no
// longer as they were seen: then other groups may be nearer to loss than those whose turn it is. end ends the watch.
func (r *supervisor) watch(ctx context.Context, seen string, halt <-chan struct{}) (stop <-chan struct{}, end func()) {
	stopping, ended, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		ticker := time.NewTicker(r.repairs.options.SweepEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ctx.Done():
				return
			case <-halt:
				close(stopping)
				return
			case <-ticker.C:
			}
			if err := r.refresh(ctx); err != nil {
				continue // the pass has errors of its own to tell
			}
			if r.stateDigest() != seen {
				close(stopping)
				return
			}
		}
	}()
	return stopping, func() {
		close(ended)
		<-left
	}
}

// stateDigest is what the records say of nodes and their contents, and whether repair is deferred: while it stays, no look at the
// records alone finds anything to do.
func (r *supervisor) stateDigest() string {
	incarnations := member.Registered(r.repairs.agents)
	text := fmt.Sprintf("deferred %t\n", r.deferred())
	for _, target := range r.repairs.agents.All() {
		id := target.Node.ID
		text += fmt.Sprintf("%s %s %t\n", id, incarnations[id], r.repairs.agents.IsGone(id))
	}
	return text
}

// RepairStatus returns how repair stands.
func (rs *Repairs) RepairStatus(ctx context.Context) (api.RepairStatus, error) {
	if err := rs.supervisor.refresh(ctx); err != nil {
		return api.RepairStatus{}, err
	}
	return rs.supervisor.status(), nil
}

func (r *supervisor) status() api.RepairStatus {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	status := r.total
	limits := repairRates(r.control)
	status.BytesPerSecond, status.NodeBytesPerSecond, status.DomainBytesPerSecond = limits.Total, limits.Node, limits.Domain
	status.Reported = r.repairs.groups.Reported.Count()
	deferred := r.isDeferred()
	if deferred {
		until := time.UnixMilli(r.control.DeferredUntil).UTC()
		status.DeferredUntil, status.DeferredBy, status.Waiting = &until, r.control.DeferredBy, r.waiting
	}
	shown := r.latest
	for _, pass := range r.running {
		if shown == r.latest || pass.progress.GroupsTotal > shown.progress.GroupsTotal {
			shown = pass
		}
	}
	if shown != nil {
		pass := shown.at(time.Now())
		status.Pass = &pass
	}
	switch {
	case r.control.Paused:
		status.State = api.RepairPaused
	case len(r.running) > 0:
		status.State = api.RepairRunning
	case deferred:
		status.State = api.RepairDeferred
	default:
		status.State = api.RepairIdle
	}
	return status
}

// PauseRepair has every gateway finish the groups it rebuilds now and begin no others, until ResumeRepair. Reads and
// transitions that need a group whole still have it rebuilt.
func (rs *Repairs) PauseRepair(ctx context.Context) (api.RepairStatus, error) {
	return rs.declareRepair(ctx, func(control catalog.RepairControl) catalog.RepairControl {
		control.Paused = true
		return control
	})
}

// ResumeRepair ends a pause, and a deferral.
func (rs *Repairs) ResumeRepair(ctx context.Context) (api.RepairStatus, error) {
	return rs.declareRepair(ctx, func(control catalog.RepairControl) catalog.RepairControl {
		control.Paused, control.DeferredUntil, control.DeferredBy = false, 0, ""
		return control
	})
}

// longestDeferral keeps a slip of the pen from ending repair for good.
const longestDeferral = 366 * 24 * time.Hour

// DeferRepair has groups wait until the time of the request that lost something with a node or a store and survive a further
// loss. Those in which a block was met missing or wrong are rebuilt nevertheless, as only a look at their nodes tells how near to
// loss they are, and those that somebody asks for. It takes the place of an earlier request.
func (rs *Repairs) DeferRepair(ctx context.Context, request api.DeferRequest) (api.RepairStatus, error) {
	now := rs.options.Clock()
	switch {
	case request.Until.After(now.Add(longestDeferral)):
		return api.RepairStatus{}, api.Refuse(api.ErrBadRequest, "repair cannot be deferred until %s: a year from now at most; pause it if it is to rest until somebody resumes it",
			request.Until.UTC().Format(time.RFC3339))
	case len(request.By) > 300:
		return api.RepairStatus{}, api.Refuse(api.ErrBadRequest, "who defers repair is said in at most 300 bytes, not %d", len(request.By))
	}
	return rs.declareRepair(ctx, func(control catalog.RepairControl) catalog.RepairControl {
		control.DeferredUntil, control.DeferredBy = 0, ""
		if request.Until.After(now) {
			control.DeferredUntil, control.DeferredBy = request.Until.UnixMilli(), request.By
		}
		return control
	})
}

// ThrottleRepair changes the limits that the request names. Gateways go by them within seconds.
func (rs *Repairs) ThrottleRepair(ctx context.Context, request api.ThrottleRequest) (api.RepairStatus, error) {
	if err := request.Check(); err != nil {
		return api.RepairStatus{}, err
	}
	return rs.declareRepair(ctx, func(control catalog.RepairControl) catalog.RepairControl {
		limits := repairRates(control).Changed(request)
		control.Set, control.BytesPerSecond = true, limits.Total
		control.NodeBytesPerSecond, control.DomainBytesPerSecond = limits.Node, limits.Domain
		return control
	})
}

func (rs *Repairs) declareRepair(ctx context.Context, change func(catalog.RepairControl) catalog.RepairControl) (api.RepairStatus, error) {
	if err := rs.supervisor.reading.Acquire(ctx, 1); err != nil { // a catalog that does not answer may be read for long
		return api.RepairStatus{}, fmt.Errorf("waiting until what is declared of repair was read: %w", err)
	}
	control, err := rs.catalog.ChangeRepairControl(ctx, change)
	if err == nil {
		rs.supervisor.apply(control)
	}
	rs.supervisor.reading.Release(1)
	if err != nil {
		return api.RepairStatus{}, err
	}
	rs.supervisor.reported.Notify()
	rs.supervisor.records.Notify()
	return rs.supervisor.status(), nil
}

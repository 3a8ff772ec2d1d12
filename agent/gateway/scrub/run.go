package scrub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/gateway/job"
	"github.com/restripe/restripe/agent/gateway/repair"
	"github.com/restripe/restripe/agent/parity"
)

// scrubRun is one cycle being carried out here.
type scrubRun struct {
	scrubber *Scrubber
	pacer    *group.Pacer
	*job.Run

	mutex  sync.Mutex // of what follows
	record catalog.Job
	body   scrubBody
	taken  bool // the record is somebody else's now
}

// newRun is the run of the cycle in the record, which can be steered from now on.
func (s *Scrubber) newRun(record catalog.Job, body scrubBody) *scrubRun {
	r := &scrubRun{
		scrubber: s, pacer: group.NewPacer(group.Rates{Total: body.Scrub.BytesPerSecond}, s.agents.DomainOf),
		Run: job.NewRun(body.Scrub.ElapsedSeconds), record: record, body: body,
	}
	s.mutex.Lock()
	s.running = r
	s.mutex.Unlock()
	return r
}

// run carries out the cycle until it ends or is stopped.
func (r *scrubRun) run(ctx context.Context) error {
	s := r.scrubber
	defer func() {
		s.mutex.Lock()
		s.running = nil
		s.mutex.Unlock()
		r.End()
	}()
	err := r.Saving(ctx, scrubSave, func(ctx context.Context) {
		if err := r.save(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("saving the progress of a scrub", "cause", err)
		}
	}, r.work)
	r.mutex.Lock()
	scrub := &r.body.Scrub
	scrub.ElapsedSeconds = r.Elapsed()
	if err == nil && !r.Halted() && ctx.Err() == nil {
		now := time.Now().UTC()
		scrub.State, scrub.Finished, scrub.ETASeconds = api.ScrubDone, &now, 0
		began := scrub.Started
		if scrub.GroupsIncomplete == 0 {
			scrub.Seen = &began
		}
		if scrub.Depth == api.ScrubAudit {
			scrub.Audited = &began
		}
		scrub.GroupsTotal, scrub.BytesTotal = scrub.GroupsDone, scrub.BytesDone // without groups that were freed meanwhile
	} else if err != nil && ctx.Err() == nil {
		scrub.Error = err.Error() // the next look at the record goes on
	}
	r.mutex.Unlock()
	return r.saveBy(context.WithoutCancel(ctx), s.catalog.TellScrub)
}

// progress is the scrub as of now.
func (r *scrubRun) progress() api.Scrub {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	scrub := r.body.Scrub
	if scrub.State != api.ScrubRunning {
		return scrub
	}
	scrub.ElapsedSeconds = r.Elapsed()
	if scrub.BytesDone > 0 {
		scrub.ETASeconds = job.ETA(scrub.BytesDone, scrub.BytesTotal, scrub.ElapsedSeconds)
	} else if scrub.BytesPerSecond > 0 {
		scrub.ETASeconds = float64(scrub.BytesTotal) / float64(scrub.BytesPerSecond)
	}
	return scrub
}

// save writes the record. Where somebody else has changed it, the run ends.
func (r *scrubRun) save(ctx context.Context) error {
	return r.saveBy(ctx, r.scrubber.catalog.SaveScrub)
}

func (r *scrubRun) saveBy(ctx context.Context, save func(context.Context, *catalog.Job) error) error {
	now := r.progress()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.taken {
		return nil
	}
	body := r.body
	body.Scrub = now
	job := r.record
	err := saveScrub(ctx, save, &job, &body)
	if err == nil {
		r.record = job
		return nil
	}
	if errors.Is(err, catalog.ErrStale) {
		r.taken = true
		r.Halt()
		return nil
	}
	return err
}

// work looks at every group after the cursor, page by page. Groups that are made meanwhile were verified when they were.
func (r *scrubRun) work(ctx context.Context) error {
	groups, bytes, last, err := r.scrubber.scrubTotal(ctx)
	if err != nil {
		return err
	}
	r.mutex.Lock()
	cursor := r.body.Cursor
	r.body.Scrub.GroupsTotal, r.body.Scrub.BytesTotal = groups, bytes
	r.mutex.Unlock()
	for page, err := range r.scrubber.catalog.GroupSummaries(ctx, cursor) {
		younger := slices.IndexFunc(page, func(group catalog.GroupSummary) bool { return group.ID.String() > last.String() })
		if younger >= 0 {
			page = page[:younger]
		}
		if err == nil {
			err = r.lookAt(ctx, page)
		}
		switch {
		case errors.Is(err, group.ErrHalted), ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case younger >= 0:
			return nil // the others were made after the walk began
		}
	}
	return nil
}

// lookAt looks at groups in order, some side by side.
func (r *scrubRun) lookAt(ctx context.Context, groups []catalog.GroupSummary) error {
	for chunk := range slices.Chunk(groups, scrubWorkers) {
		var workers errgroup.Group
		seen := make([]look, len(chunk))
		for i := range chunk {
			workers.Go(func() (err error) {
				seen[i], err = r.look(ctx, &chunk[i])
				return err
			})
		}
		if err := workers.Wait(); err != nil {
			return err
		}
		r.count(seen, chunk[len(chunk)-1].ID)
	}
	return nil
}

// look is what the look at one group came to.
type look struct {
	bytes, network int64
	incomplete     bool
	problem        error // why it could not be looked at
}

// count adds up groups that are done, and notes that every group up to the last of them is: what was stopped in the middle
// is looked at again, and counts once.
func (r *scrubRun) count(seen []look, last block.GroupID) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	scrub := &r.body.Scrub
	for _, one := range seen {
		scrub.GroupsDone++
		scrub.BytesDone += one.bytes
		scrub.NetworkBytes += one.network
		if one.incomplete {
			scrub.GroupsIncomplete++
		}
		if one.problem != nil {
			scrub.Error = one.problem.Error()
		}
	}
	r.body.Cursor = last
}

// shallowBytes is what a look at the headers of a group is counted as, for each of its slots.
const shallowBytes = 8 << 10

// look audits one group, repairs what is wrong with it and audits it again. Its error is that the run ends; a group that
// cannot be looked at does not keep the others from being.
func (r *scrubRun) look(ctx context.Context, summary *catalog.GroupSummary) (look, error) {
	r.mutex.Lock()
	deep := r.body.Scrub.Depth == api.ScrubAudit
	r.mutex.Unlock()
	seen := look{bytes: scrubBytes(summary)}
	demand := seen.bytes
	if !deep {
		demand = int64(summary.Columns) * shallowBytes
	}
	if err := r.pacer.Wait(ctx, r.Halting(), group.Load{Total: demand}); err != nil {
		return seen, err
	}
	if r.Halted() {
		return seen, group.ErrHalted
	}
	s := r.scrubber
	audit, err := r.audit(ctx, summary.ID, deep)
	if ctx.Err() != nil {
		return seen, ctx.Err()
	}
	if err != nil {
		seen.incomplete, seen.problem = true, err
		return seen, nil
	}
	if audit == nil {
		return seen, nil
	}
	if len(audit.flaws) > 0 {
		findings := s.findingsOf(ctx, audit)
		if err := r.mend(ctx, audit, deep, findings); err != nil {
			return seen, err
		}
		for i := range findings {
			if err := r.note(ctx, &findings[i]); err != nil {
				return seen, err
			}
		}
	}
	seen.network, seen.incomplete = audit.network, len(audit.away) > 0 || audit.restless
	if deep {
		s.metrics.read.Add(float64(seen.bytes))
	}
	s.metrics.network.Add(float64(seen.network))
	return seen, nil
}

// scrubTries is how often a group is looked at before it is left for the next cycle.
const scrubTries = 5

// audit looks at a group, insisting where the catalog does not answer.
func (r *scrubRun) audit(ctx context.Context, id block.GroupID, deep bool) (*groupAudit, error) {
	for try := 0; ; try++ {
		audit, err := r.scrubber.auditGroup(ctx, id, deep)
		if err == nil || try == scrubTries-1 || group.Pause(ctx, 6+try) != nil {
			return audit, err
		}
	}
}

// note keeps a finding.
func (r *scrubRun) note(ctx context.Context, finding *api.ScrubFinding) error {
	r.mutex.Lock()
	finding.Cycle = r.body.Scrub.Cycle
	r.body.Scrub.Findings++
	if finding.Repaired {
		r.body.Scrub.Repaired++
	}
	r.mutex.Unlock()
	r.scrubber.metrics.findings.WithLabelValues(finding.Kind).Inc()
	r.scrubber.log.Warn("scrub: a group is not as it should be", "group", finding.Group, "slot", finding.Slot, "kind", finding.Kind, "finding", finding.Text, "outcome", finding.Outcome)
	encoded, err := json.Marshal(finding)
	if err != nil {
		return fmt.Errorf("encoding a finding: %w", err)
	}
	return r.scrubber.catalog.AddFinding(ctx, encoded, keptFindings)
}

// mend repairs what an audit found and says in the findings what came of it. Its error is that the run ends before it
// knows.
func (r *scrubRun) mend(ctx context.Context, audit *groupAudit, deep bool, findings []api.ScrubFinding) error {
	s := r.scrubber
	conclude := func(repaired bool, format string, arguments ...any) {
		for i := range findings {
			findings[i].Repaired = repaired
			if findings[i].Outcome == "" || repaired {
				findings[i].Outcome = fmt.Sprintf(format, arguments...)
			}
		}
	}
	told := false
	for i := range findings {
		if findings[i].Slot >= 0 {
			told = true
		} else {
			findings[i].Outcome = "nothing: compare the objects with what they should be and put them anew; that gives them a new group"
		}
	}
	if !told {
		return nil
	}
	err := r.repair(ctx, audit, deep)
	switch {
	case errors.Is(err, group.ErrHalted) && r.Halted():
		return err
	case errors.Is(err, group.ErrHalted):
		s.groups.Reported.Add(audit.group.ID)
		conclude(false, "repair is paused: %s", pausedOutcome(audit))
		return nil
	case err != nil:
		conclude(false, "could not be repaired: %v", err)
		return nil
	}
	after, err := s.auditGroup(ctx, audit.group.ID, deep)
	switch {
	case err != nil:
		conclude(false, "repaired, and could not be looked at again: %v", err)
	case after == nil || after.restless:
		conclude(true, "the group was freed or written anew meanwhile")
	case len(after.flaws) > 0:
		conclude(false, "repaired, and still not right: %s", after.flaws[0].text)
	default:
		conclude(true, "rebuilt from the other blocks and verified again")
	}
	return nil
}

// pausedOutcome says when a group is rebuilt that is not while repair is paused. Only a scrub knows of blocks that match
// their checksums and are wrong.
func pausedOutcome(audit *groupAudit) string {
	if len(audit.condemned()) > 0 {
		return "the first scrub after `restripe repair resume` rebuilds the group; start one then"
	}
	return "the group is rebuilt after `restripe repair resume`"
}

// repair rebuilds what an audit found, within the limits of repair. It gives up with group.ErrHalted once the run is to end, or
// repair is paused.
func (r *scrubRun) repair(ctx context.Context, audit *groupAudit, deep bool) error {
	s := r.scrubber
	paused, pausing, err := s.repairs.Paused(ctx)
	if err != nil {
		return err
	}
	if paused {
		return group.ErrHalted
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	halt := make(chan struct{})
	go func() {
		select {
		case <-r.Halting():
		case <-pausing:
		case <-ctx.Done():
			return
		}
		close(halt)
	}()
	_, err = s.repairs.RebuildRetrying(ctx, audit.group.ID, repair.Rebuild{
		Deep: deep, Condemned: audit.condemned(), Judged: audit.group.Generation, Admit: s.repairs.Grant(halt),
	})
	return err
}

// findingNames is how many objects a finding names.
const findingNames = 20

// findingsOf describes the flaws of a group, with the objects whose bytes they concern.
func (s *Scrubber) findingsOf(ctx context.Context, audit *groupAudit) []api.ScrubFinding {
	entries, unread := s.groupManifest(ctx, audit.group)
	now := time.Now().UTC()
	findings := make([]api.ScrubFinding, 0, len(audit.flaws))
	for _, flaw := range audit.flaws {
		finding := api.ScrubFinding{Found: now, Kind: flaw.kind, Group: audit.group.ID, Slot: flaw.slot, Unit: flaw.unit, Node: flaw.node, Text: flaw.text, Objects: []string{}}
		places := flaw.units
		if flaw.kind == api.FindingDamaged && flaw.unit >= 0 {
			places = places[max(0, slices.IndexFunc(places, func(p parity.Place) bool { return p.Unit == flaw.unit })):]
		}
		keys, err := s.objectsAt(ctx, audit.group, entries, places)
		if err = errors.Join(unread, err); err != nil {
			finding.Text += fmt.Sprintf("; not all objects could be named: %v", err)
		}
		for _, key := range keys {
			if len(finding.Objects) < findingNames {
				finding.Objects = append(finding.Objects, key)
			} else {
				finding.More++
			}
		}
		findings = append(findings, finding)
	}
	return findings
}

// objectsAt returns the keys, printable, of the objects that have bytes at places of a group, and why it could not tell of
// others whether they have.
func (s *Scrubber) objectsAt(ctx context.Context, group *catalog.Group, entries []block.ManifestEntry, places []parity.Place) (keys []string, problem error) {
	for i := range entries {
		entry := &entries[i]
		if !slices.ContainsFunc(places, func(place parity.Place) bool { return covers(group, entry, place) }) {
			continue
		}
		snapshot, err := s.catalog.Snapshot(ctx, string(entry.Key))
		switch {
		case errors.Is(err, catalog.ErrNoObject):
			continue // deleted since the manifest was written
		case err != nil:
			problem = errors.Join(problem, err)
			continue
		case snapshot.Groups[group.ID] == nil:
			continue // written anew since
		}
		if name := api.PrintableKey(snapshot.Object.Key); !slices.Contains(keys, name) {
			keys = append(keys, name)
		}
	}
	slices.Sort(keys)
	return keys, problem
}

// covers reports whether an entry has bytes in the cell at place; parity blocks hold no object's bytes.
func covers(group *catalog.Group, entry *block.ManifestEntry, place parity.Place) bool {
	if place.Slot >= group.Columns {
		return false
	}
	begin := int64(place.Unit) * int64(group.CellBytes)
	if entry.Column == catalog.WholeGroup {
		begin = (int64(place.Unit)*int64(group.Columns) + int64(place.Slot)) * int64(group.CellBytes)
	} else if entry.Column != place.Slot {
		return false
	}
	return entry.Offset < begin+int64(group.CellBytes) && begin < entry.Offset+entry.Length
}

// groupManifest reads the manifest of a group as its blocks have it.
func (s *Scrubber) groupManifest(ctx context.Context, group *catalog.Group) ([]block.ManifestEntry, error) {
	first, last := group.Columns, len(group.Slots)-1
	if last < first {
		first, last = 0, 0 // without parities, column 0 carries it
	}
	var problem error
	for slot := first; slot <= last; slot++ {
		entries, err := s.groups.SlotManifest(ctx, group, slot)
		if err == nil {
			return entries, nil
		}
		problem = errors.Join(problem, err)
	}
	return nil, problem
}

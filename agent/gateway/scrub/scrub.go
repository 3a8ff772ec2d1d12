package scrub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/gateway/job"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/gateway/repair"
	"github.com/restripe/restripe/agent/stripe"
)

// The numbers of a scrub that goes on by itself.
const (
	DefaultEvery = 7 * 24 * time.Hour // from the beginning of one cycle to that of the next
	scrubSpread  = 6 * 24 * time.Hour // what the reading of one cycle is spread over, so that it ends before the next
	scrubLeast   = 1 << 20            // bytes per second it reads at least
	scrubSettle  = 10 * time.Minute   // from the start of a gateway to the first cycle of a cluster that had none
	scrubTick    = 5 * time.Second    // how often a gateway looks whether there is something to do
	scrubSave    = 10 * time.Second   // how often progress is saved
	scrubLease   = 2 * time.Minute    // without progress saved, another gateway takes a cycle over
	scrubApart   = time.Minute        // from the beginning of one cycle to that of one that a store has brought about
	scrubWorkers = 4                  // groups looked at side by side
	keptFindings = 200
)

// Scrubber carries out this gateway's share of the cluster's scrub, which is all of it or nothing: the record in the
// catalog names one gateway. Two that both believe it is them waste reads and harm nothing.
type Scrubber struct {
	catalog *catalog.Catalog
	agents  *member.Agents
	groups  *group.Groups
	repairs *repair.Repairs
	log     *slog.Logger
	options Options
	began   time.Time
	wake    job.Wake // look at the record now
	metrics scrubMetrics

	mutex   sync.Mutex
	running *scrubRun
	version uint64    // of the record, as last seen
	since   time.Time // when that was first seen

	steering sync.Mutex // no cycle begins here while somebody steers here, who has stopped the one before
	seen     lastSeen   // of Loop alone

	evicted map[block.NodeID]int64 // by the stores, as last seen
	dropped bool                   // a store has dropped blocks since the last cycle began
}

// Options configure a Scrubber.
type Options struct {
	ID      string        // of the gateway
	Start   string        // of this start of it
	Every   time.Duration // from one scrub of all groups to the next; negative: only on request
	Metrics prometheus.Registerer
}

// New returns a scrubber that does nothing by itself before Loop runs.
func New(records *catalog.Catalog, agents *member.Agents, groups *group.Groups, repairs *repair.Repairs, log *slog.Logger, options Options) *Scrubber {
	return &Scrubber{
		catalog: records, agents: agents, groups: groups, repairs: repairs, log: log, options: options,
		began: time.Now(), wake: job.NewWake(), metrics: newScrubMetrics(options.Metrics),
	}
}

// scrubBody is what a gateway keeps in the record.
type scrubBody struct {
	Scrub  api.Scrub     `json:"scrub"`
	Cursor block.GroupID `json:"cursor"` // every group up to it is done
}

// lastSeen is the record as it was read last.
type lastSeen struct {
	job  *catalog.Job // nil: it is to be read
	body scrubBody
	at   time.Time
}

// Loop carries out what the record says, for as long as the gateway lives.
func (s *Scrubber) Loop(ctx context.Context) {
	tick := scrubTick
	if every := s.options.Every; every > 0 {
		tick = min(tick, every)
	}
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	tokens := s.catalog.Watch(ctx, catalog.SubjectScrub)
	for {
		if err := s.step(ctx, tokens); err != nil && ctx.Err() == nil {
			s.log.Warn("scrubbing", "cause", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
			s.seen.job = nil
		case _, open := <-tokens:
			s.seen.job = nil
			if !open {
				tokens = nil // the engine was closed, which reading tells
			}
		case <-ticker.C:
			if s.seen.body.Scrub.State == api.ScrubRunning || time.Since(s.seen.at) >= job.SafetyPeriod {
				s.seen.job = nil
			}
		}
	}
}

// step looks at the record, which is read where it may have changed, and carries out a cycle if it is this gateway's to do.
func (s *Scrubber) step(ctx context.Context, tokens <-chan struct{}) error {
	r, err := s.begin(ctx)
	if err != nil || r == nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-watching.Done():
				return
			case _, open := <-tokens:
				if !open {
					return
				}
				r.Look()
			}
		}
	})
	err = r.run(ctx)
	stop()
	watch.Wait()
	return err
}

// begin decides whether to carry out a cycle and, if so, says that in the record and returns its run.
func (s *Scrubber) begin(ctx context.Context) (*scrubRun, error) {
	if s.seen.job == nil {
		job, body, err := s.scrubRecord(ctx)
		if err != nil {
			return nil, err
		}
		s.seen = lastSeen{job: job, body: body, at: time.Now()}
	}
	job, body := s.seen.job, s.seen.body
	s.noteEvictions()
	switch s.decide(job, &body.Scrub, time.Now()) {
	case scrubBegin:
		pace, err := s.pace(ctx)
		if err != nil {
			return nil, err
		}
		body = scrubBody{Scrub: newScrub(&body.Scrub, api.ScrubAudit, pace, time.Now())}
		body.Scrub.Background = true
	case scrubLook:
		s.log.Warn("a store has dropped values by itself: all blocks are looked for")
		body = scrubBody{Scrub: newScrub(&body.Scrub, api.ScrubShallow, 0, time.Now())}
		body.Scrub.Background = true
	case scrubTake:
	default:
		return nil, nil
	}
	s.seen.job = nil // it changes
	s.steering.Lock()
	defer s.steering.Unlock()
	body.Scrub.Owner = s.owner()
	if err := saveScrub(ctx, s.catalog.TellScrub, job, &body); err != nil {
		if errors.Is(err, catalog.ErrStale) {
			return nil, nil // another gateway was faster
		}
		return nil, err
	}
	return s.newRun(*job, body), nil
}

// scrubMove is what a gateway does about the scrub.
type scrubMove int

const (
	scrubRest  scrubMove = iota
	scrubBegin           // a cycle by itself
	scrubLook            // one that only looks for the blocks, as a store has dropped some
	scrubTake            // go on with the one in the record
)

// noteEvictions remembers whether a store has dropped values since it was last asked.
func (s *Scrubber) noteEvictions() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.evicted == nil {
		s.evicted = map[block.NodeID]int64{}
	}
	for _, target := range s.agents.All() {
		reachable, _, hello := target.State()
		if !reachable {
			continue
		}
		was, known := s.evicted[target.Node.ID]
		s.dropped = s.dropped || known && hello.Store.Evicted > was
		s.evicted[target.Node.ID] = hello.Store.Evicted
	}
}

// decide is pure but for the memory of when the record was last seen to change.
func (s *Scrubber) decide(job *catalog.Job, scrub *api.Scrub, now time.Time) scrubMove {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if job.Version != s.version || s.since.IsZero() {
		s.version, s.since = job.Version, now
	}
	every := s.options.Every
	switch scrub.State {
	case api.ScrubNever, api.ScrubDone:
		switch {
		case every <= 0:
		case scrub.Audited == nil && now.Sub(s.began) > min(scrubSettle, every), scrub.Audited != nil && now.Sub(*scrub.Audited) > every:
			s.dropped = false
			return scrubBegin
		case s.dropped && now.Sub(scrub.Started) > min(scrubApart, every):
			s.dropped = false
			return scrubLook
		}
	case api.ScrubRunning:
		ours := scrub.Owner == s.owner()
		earlier := catalog.Owner(s.options.ID, "") // of this gateway, which has one start at a time
		if ours || len(scrub.Owner) > len(earlier) && scrub.Owner[:len(earlier)] == earlier || now.Sub(s.since) > scrubLease {
			return scrubTake
		}
	}
	return scrubRest
}

// pace is the rate at which a cycle takes about the time it is spread over.
func (s *Scrubber) pace(ctx context.Context) (int64, error) {
	_, bytes, _, err := s.scrubTotal(ctx)
	return max(scrubLeast, bytes/int64(scrubSpread/time.Second)), err
}

// scrubTotal counts the groups there are and what an audit of them reads, and names the last.
func (s *Scrubber) scrubTotal(ctx context.Context) (groups, bytes int64, last block.GroupID, err error) {
	for page, err := range s.catalog.GroupSummaries(ctx, block.GroupID{}) {
		if err != nil {
			return 0, 0, last, err
		}
		for i := range page {
			groups++
			bytes += scrubBytes(&page[i])
			last = page[i].ID
		}
	}
	return groups, bytes, last, nil
}

// scrubBytes is what an audit of a group reads, 0 where its record cannot be understood, which the audit will say.
func scrubBytes(group *catalog.GroupSummary) int64 {
	layout, err := stripe.ParseLayout(group.LayoutVersion, group.Ladder, group.Mode, group.Columns)
	if err != nil {
		return 0
	}
	scheme, err := stripe.ParseScheme(group.Scheme)
	if err != nil {
		return 0
	}
	return int64(layout.Blocks(scheme)) * int64(group.CellBytes)
}

// newScrub is the cycle after the last one.
func newScrub(last *api.Scrub, depth api.ScrubDepth, bytesPerSecond int64, now time.Time) api.Scrub {
	return api.Scrub{
		Cycle: last.Cycle + 1, State: api.ScrubRunning, Depth: depth, BytesPerSecond: bytesPerSecond, Started: now.UTC(), ETASeconds: -1,
		Seen: last.Seen, Audited: last.Audited,
	}
}

func (s *Scrubber) owner() string { return catalog.Owner(s.options.ID, s.options.Start) }

// scrubRecord reads the record; without one, the scrub was never.
func (s *Scrubber) scrubRecord(ctx context.Context) (*catalog.Job, scrubBody, error) {
	job, err := s.catalog.Scrub(ctx)
	if errors.Is(err, catalog.ErrNoJob) {
		return &catalog.Job{}, scrubBody{Scrub: api.Scrub{State: api.ScrubNever, ETASeconds: -1}}, nil
	}
	if err != nil {
		return nil, scrubBody{}, fmt.Errorf("reading the scrub: %w", err)
	}
	var body scrubBody
	if err := json.Unmarshal(job.Body, &body); err != nil {
		return nil, scrubBody{}, fmt.Errorf("reading the scrub: %w", err)
	}
	return job, body, nil
}

// saveScrub saves the record by one of the ways that the catalog has.
func saveScrub(ctx context.Context, save func(context.Context, *catalog.Job) error, job *catalog.Job, body *scrubBody) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encoding the scrub: %w", err)
	}
	job.Body, job.Owner = encoded, body.Scrub.Owner
	if err := save(ctx, job); err != nil {
		return fmt.Errorf("saving the scrub: %w", err)
	}
	return nil
}

// Scrub returns the scrub of the cluster as it is now.
func (s *Scrubber) Scrub(ctx context.Context) (api.Scrub, error) {
	_, body, err := s.scrubRecord(ctx)
	if err != nil {
		return api.Scrub{}, err
	}
	if r := s.current(); r != nil && body.Scrub.State == api.ScrubRunning && body.Scrub.Owner == s.owner() {
		return r.progress(), nil
	}
	return body.Scrub, nil
}

func (s *Scrubber) current() *scrubRun {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.running
}

// StartScrub begins a cycle over all groups now, in place of one that is under way.
func (s *Scrubber) StartScrub(ctx context.Context, request api.ScrubRequest) (api.Scrub, error) {
	depth := cmp.Or(request.Depth, api.ScrubAudit)
	if depth != api.ScrubAudit && depth != api.ScrubShallow {
		return api.Scrub{}, api.Refuse(api.ErrBadRequest, "no depth of a scrub is called %q; use %s or %s", depth, api.ScrubAudit, api.ScrubShallow)
	}
	if request.BytesPerSecond < 0 {
		return api.Scrub{}, api.Refuse(api.ErrBadRequest, "a rate of %d bytes per second; give a positive one, or 0 for no limit", request.BytesPerSecond)
	}
	return s.steerScrub(ctx, func(body *scrubBody) error {
		*body = scrubBody{Scrub: newScrub(&body.Scrub, depth, request.BytesPerSecond, time.Now())}
		body.Scrub.Owner = s.owner()
		return nil
	})
}

// PauseScrub stops the scrub until it is resumed; none begins by itself meanwhile. Groups under way are finished.
func (s *Scrubber) PauseScrub(ctx context.Context) (api.Scrub, error) {
	return s.steerScrub(ctx, func(body *scrubBody) error {
		body.Scrub.State = api.ScrubPaused
		return nil
	})
}

// ResumeScrub goes on where the scrub was paused.
func (s *Scrubber) ResumeScrub(ctx context.Context) (api.Scrub, error) {
	return s.steerScrub(ctx, func(body *scrubBody) error {
		if body.Scrub.State != api.ScrubPaused {
			return nil
		}
		body.Scrub.State, body.Scrub.Owner = api.ScrubRunning, s.owner()
		switch { // it may have been paused while there was nothing to do
		case body.Scrub.Cycle == 0:
			body.Scrub.State = api.ScrubNever
		case body.Scrub.Finished != nil:
			body.Scrub.State = api.ScrubDone
		}
		return nil
	})
}

// steerScrub changes the record, after what this gateway has under way has stopped and saved.
func (s *Scrubber) steerScrub(ctx context.Context, change func(*scrubBody) error) (api.Scrub, error) {
	s.steering.Lock()
	defer s.steering.Unlock()
	for {
		if r := s.current(); r != nil {
			r.Halt()
			if err := r.Ended(ctx); err != nil {
				return api.Scrub{}, err
			}
		}
		job, body, err := s.scrubRecord(ctx)
		if err != nil {
			return api.Scrub{}, err
		}
		if err := change(&body); err != nil {
			return api.Scrub{}, err
		}
		err = saveScrub(ctx, s.catalog.TellScrub, job, &body)
		if errors.Is(err, catalog.ErrStale) && ctx.Err() == nil {
			continue
		}
		s.wake.Notify()
		return body.Scrub, err
	}
}

// ScrubFindings returns what scrubs found, newest first.
func (s *Scrubber) ScrubFindings(ctx context.Context) ([]api.ScrubFinding, error) {
	raw, err := s.catalog.Findings(ctx)
	if err != nil {
		return nil, err
	}
	findings := make([]api.ScrubFinding, len(raw))
	for i := range raw {
		if err := json.Unmarshal(raw[i], &findings[i]); err != nil {
			return nil, fmt.Errorf("reading a finding: %w", err)
		}
	}
	return findings, nil
}

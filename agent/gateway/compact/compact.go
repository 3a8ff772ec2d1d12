package compact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/class"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/gateway/job"
	"github.com/restripe/restripe/agent/gateway/load"
	"github.com/restripe/restripe/agent/gateway/object"
	"github.com/restripe/restripe/agent/gateway/temperature"
)

// Options configure a Compactor.
type Options struct {
	ID      string           // of the gateway
	Start   string           // of this start of it
	Every   time.Duration    // from one look at all groups to the next where nothing died; negative: this gateway carries out none
	Settled time.Duration    // for how long a group must have been there to be chosen; negative: not at all
	Gather  time.Duration    // for how long hot keys are gathered that are moved together; negative: this gateway moves none
	Clock   func() time.Time // by which groups settled
	Now     func() time.Time // the clock of temperature
	Metrics prometheus.Registerer
}

// Parts are what a Compactor works with.
type Parts struct {
	Catalog *catalog.Catalog
	Groups  *group.Groups
	Objects *object.Objects
	Classes *class.Registry
	Heat    *temperature.Thermometer
	Load    *load.Window // of this gateway's clients
	Logger  *slog.Logger
}

// Defaults of options, and how a compaction goes about.
const (
	DefaultEvery   = 10 * time.Minute
	DefaultSettled = 30 * time.Second

	lease = time.Minute      // after which a record that does not change is of a gateway that is gone
	saved = 2 * time.Second  // between saves of the progress
	again = 30 * time.Second // after which a group is tried again that could not be read or written
)

// Compactor carries out the compaction of a cluster.
type Compactor struct {
	Parts
	options Options
	wake    job.Wake    // something has died
	steered job.Wake    // the record is another one
	died    atomic.Bool // since the last look of this gateway
	byDeath atomic.Bool // the last look was taken because of that
	metrics *metrics
	waiting waiting

	mutex   sync.Mutex // of what follows
	running *run
	version uint64    // of the record, as seen last
	since   time.Time // when that was seen first
	stuck   map[block.GroupID]stuck
	resting map[block.GroupID]time.Time // groups of hot keys that nothing left, until when they are not looked into
}

// stuck is a group that is left alone while it has as many extents as here.
type stuck struct {
	extents int64
	cause   error     // why it could not be emptied; nil: that was not worth it
	until   time.Time // it is tried again after that, as it is, if there is a cause
}

// New returns a compactor that does nothing by itself before Loop runs.
func New(parts Parts, options Options) *Compactor {
	if options.Every == 0 {
		options.Every = DefaultEvery
	}
	if options.Settled == 0 {
		options.Settled = DefaultSettled
	}
	if options.Gather == 0 {
		options.Gather = DefaultGather
	}
	return &Compactor{
		Parts: parts, options: options, wake: job.NewWake(), steered: job.NewWake(), metrics: newMetrics(options.Metrics),
		stuck: map[block.GroupID]stuck{}, resting: map[block.GroupID]time.Time{},
		waiting: waiting{wake: job.NewWake(), keys: map[string]map[string]bool{}, paused: map[string]time.Time{}},
	}
}

// Died says that small objects were deleted or written over, or written alone, so that looking is worth it.
func (c *Compactor) Died() {
	c.died.Store(true)
	c.wake.Notify()
}

// Loop carries out what the record says, for as long as the gateway lives.
func (c *Compactor) Loop(ctx context.Context) {
	if c.options.Every < 0 {
		return
	}
	for ctx.Err() == nil {
		if err := c.step(ctx); err != nil && ctx.Err() == nil {
			c.Logger.Warn("compacting", "cause", err)
		}
		c.rest(ctx)
	}
}

// rest waits until somebody has steered the compaction, something has died and the last look is a while ago, or it is time.
func (c *Compactor) rest(ctx context.Context) {
	apart, long := time.NewTimer(c.apart()), time.NewTimer(min(c.options.Every, lease))
	defer apart.Stop()
	defer long.Stop()
	var died job.Wake // nobody hears of it before that
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.steered:
			return
		case <-long.C:
			return
		case <-died:
			return
		case <-apart.C:
			died = c.wake
		}
	}
}

// apart is how long one look comes after another, however much dies: in that time half of what had not settled has.
func (c *Compactor) apart() time.Duration {
	if c.options.Settled < 0 {
		return c.options.Every
	}
	return min(c.options.Settled/2, c.options.Every)
}

// step looks at the record and carries out a pass if it is this gateway's to do.
func (c *Compactor) step(ctx context.Context) error {
	record, compaction, err := c.record(ctx)
	if err != nil {
		return err
	}
	c.metrics.show(compaction.Classes) // also of what another gateway, or this one before it was started anew, has looked at
	switch c.decide(record, &compaction, time.Now()) {
	case nothing:
		return nil
	case begin:
		compaction = c.next(&compaction, api.CompactionRequest{})
		compaction.Background = true
	case take:
	}
	compaction.Owner = c.owner()
	if err := c.save(ctx, record, &compaction); err != nil {
		if errors.Is(err, catalog.ErrStale) {
			return nil // another gateway was faster
		}
		return err
	}
	return c.run(ctx, *record, compaction)
}

// doing is what a gateway does about the compaction.
type doing int

const (
	nothing doing = iota
	begin         // a pass by itself
	take          // go on with the one in the record
)

// decide is pure but for the memory of when the record was last seen to change.
func (c *Compactor) decide(record *catalog.Job, compaction *api.Compaction, now time.Time) doing {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if record.Version != c.version || c.since.IsZero() {
		c.version, c.since = record.Version, now
	}
	switch compaction.State {
	case api.CompactionIdle:
		died := c.died.Swap(false)
		c.byDeath.Store(died)
		if died || compaction.Looked == nil || now.Sub(*compaction.Looked) >= c.options.Every {
			return begin
		}
	case api.CompactionRunning:
		// One start of a gateway lives at a time: what is of an earlier one is this one's to go on with.
		if strings.HasPrefix(compaction.Owner, catalog.Owner(c.options.ID, "")) || now.Sub(c.since) > lease {
			return take
		}
	}
	return nothing
}

func (c *Compactor) owner() string { return catalog.Owner(c.options.ID, c.options.Start) }

// next is the pass after the last one.
func (c *Compactor) next(last *api.Compaction, request api.CompactionRequest) api.Compaction {
	return api.Compaction{
		Pass: last.Pass + 1, State: api.CompactionRunning, Everything: request.Everything, BytesPerSecond: request.BytesPerSecond,
		Owner: c.owner(), Started: time.Now().UTC(), ETASeconds: -1, Looked: last.Looked, Classes: last.Classes,
	}
}

// record reads the record; without one there was no compaction yet.
func (c *Compactor) record(ctx context.Context) (*catalog.Job, api.Compaction, error) {
	compaction := api.Compaction{State: api.CompactionIdle, ETASeconds: -1, Classes: []api.CompactionClass{}}
	record, err := c.Catalog.Compaction(ctx)
	if errors.Is(err, catalog.ErrNoJob) {
		return &catalog.Job{}, compaction, nil
	}
	if err == nil {
		err = json.Unmarshal(record.Body, &compaction)
	}
	if err != nil {
		return nil, compaction, fmt.Errorf("reading the compaction: %w", err)
	}
	return record, compaction, nil
}

func (c *Compactor) save(ctx context.Context, record *catalog.Job, compaction *api.Compaction) error {
	encoded, err := json.Marshal(compaction)
	if err != nil {
		return fmt.Errorf("encoding the compaction: %w", err)
	}
	record.Body, record.Owner = encoded, compaction.Owner
	if err := c.Catalog.SaveCompaction(ctx, record); err != nil {
		return fmt.Errorf("saving the compaction: %w", err)
	}
	return nil
}

// Compaction returns the compaction of the cluster as it is now.
func (c *Compactor) Compaction(ctx context.Context) (api.Compaction, error) {
	_, compaction, err := c.record(ctx)
	if err != nil {
		return compaction, err
	}
	if r := c.current(); r != nil && compaction.State == api.CompactionRunning && compaction.Owner == c.owner() {
		return r.progress(), nil
	}
	return compaction, nil
}

func (c *Compactor) current() *run {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.running
}

// StartCompaction begins a pass now, in place of one that is under way.
func (c *Compactor) StartCompaction(ctx context.Context, request api.CompactionRequest) (api.Compaction, error) {
	if request.BytesPerSecond < 0 {
		return api.Compaction{}, api.Refuse(api.ErrBadRequest, "a rate of %d bytes per second; give a positive one, or 0 for no limit",
			request.BytesPerSecond)
	}
	return c.steer(ctx, func(compaction *api.Compaction) {
		c.forgetStuck()
		*compaction = c.next(compaction, request)
	})
}

// PauseCompaction stops the compaction until it is resumed; no pass begins by itself meanwhile. What is being moved is moved.
func (c *Compactor) PauseCompaction(ctx context.Context) (api.Compaction, error) {
	return c.steer(ctx, func(compaction *api.Compaction) { compaction.State = api.CompactionPaused })
}

// ResumeCompaction goes on where the compaction was paused.
func (c *Compactor) ResumeCompaction(ctx context.Context) (api.Compaction, error) {
	return c.steer(ctx, func(compaction *api.Compaction) {
		switch {
		case compaction.State != api.CompactionPaused:
		case compaction.Pass == 0 || compaction.Finished != nil:
			compaction.State = api.CompactionIdle
		default:
			compaction.State, compaction.Owner = api.CompactionRunning, c.owner()
		}
	})
}

// steer changes the record, after what this gateway has under way has stopped and saved.
func (c *Compactor) steer(ctx context.Context, change func(*api.Compaction)) (api.Compaction, error) {
	for {
		if r := c.current(); r != nil {
			r.Halt()
			if err := r.Ended(ctx); err != nil {
				return api.Compaction{}, err
			}
		}
		record, compaction, err := c.record(ctx)
		if err != nil {
			return compaction, err
		}
		change(&compaction)
		err = c.save(ctx, record, &compaction)
		if errors.Is(err, catalog.ErrStale) && ctx.Err() == nil {
			continue
		}
		c.steered.Notify()
		return compaction, err
	}
}

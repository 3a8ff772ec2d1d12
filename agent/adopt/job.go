package adopt

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
)

// Options say how a job runs.
type Options struct {
	Parallel       int   // objects under way at once; default 8
	BytesPerSecond int64 // read from the source; 0: unlimited. Verification reads the same bytes from the target
	Overwrite      bool  // replace objects of the target that the job did not write
	Trim           bool  // delete at the source what is verified; the source must be a Trimmer

	Patience Patience // default DefaultPatience
}

// Patience says how a job meets errors that may pass.
type Patience struct {
	Tries     int           // of one object
	Changes   int           // of one object that changes while it is carried
	FirstWait time.Duration // before the second try; it doubles
	InARow    int           // objects that fail one after another before the job ends, at least 1
}

// DefaultPatience is patient for about half a minute with each object.
var DefaultPatience = Patience{Tries: 6, Changes: 5, FirstWait: time.Second, InARow: 32}

// defaultParallel keeps a handful of OSDs busy.
const defaultParallel = 8

// Job carries objects from a source to a target.
type Job struct {
	source  Source
	target  Target
	journal *Journal
	options Options
	limit   *rate.Limiter
	tally   tally
	inARow  atomic.Int64
}

// NewJob returns a job. It does not begin.
func NewJob(source Source, target Target, journal *Journal, options Options) (*Job, error) {
	if options.Parallel == 0 {
		options.Parallel = defaultParallel
	}
	if options.Patience == (Patience{}) {
		options.Patience = DefaultPatience
	}
	if _, can := source.(Trimmer); options.Trim && !can {
		return nil, errors.New("objects of this source cannot be deleted only if they are unchanged: run without trimming")
	}
	return &Job{source: source, target: target, journal: journal, options: options, limit: newLimit(options.BytesPerSecond)}, nil
}

// Run carries all objects of the source and returns what became of them. The report is valid with an error, too. The
// error is ctx's where the job was interrupted; it wraps ErrStop where it could not go on. Objects that were refused or
// failed are no error: see Report.Complete. Run may be called once.
func (j *Job) Run(ctx context.Context) (Report, error) {
	j.tally.begin(time.Now())
	names := make(chan string, 2*j.options.Parallel)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(names)
		return j.source.List(ctx, func(name string) error {
			select {
			case names <- name:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	for range j.options.Parallel {
		group.Go(func() error {
			for name := range names {
				if err := j.object(ctx, name); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := group.Wait()
	return j.tally.report(), err
}

// Progress returns how far the job is.
func (j *Job) Progress() Progress { return j.tally.progress(time.Now()) }

// object carries one object, in as many tries as patience allows. Its error ends the job.
func (j *Job) object(ctx context.Context, name string) error {
	c := &carriage{job: j, name: name}
	wait := j.options.Patience.FirstWait
	for tries, changes := 1, 0; ; {
		outcome, err := c.try(ctx)
		var refused *RefusalError
		switch {
		case err == nil:
			j.inARow.Store(0)
			j.tally.count(outcome, c.carried)
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrStop):
			return fmt.Errorf("%q: %w", name, err)
		case errors.As(err, &refused):
			j.tally.problem(outcomeRefused, name, refused.Reason)
			return nil
		case errors.Is(err, ErrGone):
			j.tally.count(outcomeGone, 0)
			return nil
		case errors.Is(err, ErrChanged):
			if changes++; changes >= j.options.Patience.Changes {
				j.tally.problem(outcomeFailed, name, fmt.Sprintf("it changed during each of %d tries: run the same again when it is quiet", changes))
				return nil
			}
			continue
		}
		if tries++; tries > j.options.Patience.Tries {
			return j.failed(name, err)
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
		wait *= 2
	}
}

// failed gives an object up, and the job where one object after another fails. Of objects under way at once the one that
// reaches the limit says so; others that fail before the job has ended have nothing to add.
func (j *Job) failed(name string, err error) error {
	j.tally.problem(outcomeFailed, name, err.Error())
	if row := j.inARow.Add(1); row == int64(j.options.Patience.InARow) {
		return fmt.Errorf("%w: %d objects failed one after another, the last of them %q: %w", ErrStop, row, name, err)
	}
	return nil
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

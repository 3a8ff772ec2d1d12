package job

import (
	"context"
	"sync"
	"time"
)

// Run is one run of a durable job at this gateway. The job's record in the catalog outlives it: it is saved while the work
// goes on, and whoever takes the job up again goes on from there. A Run may be halted, after which it begins nothing more,
// and it is over once its last save was done.
type Run struct {
	halt    chan struct{} // closed: begin nothing more
	halting sync.Once
	done    chan struct{} // closed when the last save was done
	look    Wake          // save, and so look at the record, now
	began   time.Time
	earlier float64 // seconds of earlier runs
}

// NewRun begins a run of a job that has taken so many seconds before.
func NewRun(earlier float64) *Run {
	return &Run{halt: make(chan struct{}), done: make(chan struct{}), look: NewWake(), began: time.Now(), earlier: earlier}
}

// Halt has the run begin nothing more. It may be called any number of times.
func (r *Run) Halt() { r.halting.Do(func() { close(r.halt) }) }

// Halting is closed once the run is halted.
func (r *Run) Halting() <-chan struct{} { return r.halt }

// Halted reports whether the run is halted.
func (r *Run) Halted() bool { return IsClosed(r.halt) }

// End says that the last save was done. It is called once.
func (r *Run) End() { close(r.done) }

// Ended waits for End.
func (r *Run) Ended(ctx context.Context) error {
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Look has the record saved now, by which it is seen whether somebody changed it.
func (r *Run) Look() { r.look.Notify() }

// Elapsed is how many seconds the job has taken, in this run and before.
func (r *Run) Elapsed() float64 { return r.earlier + time.Since(r.began).Seconds() }

// Saving does work and saves beside it, at once, after every period, and after Look. It returns what work returned, when no save is
// under way any more.
func (r *Run) Saving(ctx context.Context, period time.Duration, save func(context.Context), work func(context.Context) error) error {
	saving, stop := context.WithCancel(ctx)
	var saver sync.WaitGroup
	saver.Go(func() {
		ticker := time.NewTicker(period)
		defer ticker.Stop()
		for {
			save(saving)
			select {
			case <-saving.Done():
				return
			case <-ticker.C:
			case <-r.look:
			}
		}
	})
	err := work(ctx)
	stop()
	saver.Wait()
	return err
}

// ETA is how many seconds what is left will take at the rate so far: -1 while that is not known.
func ETA(done, total int64, elapsed float64) float64 {
	if done <= 0 {
		return -1
	}
	return max(0, float64(total-done)/float64(done)*elapsed)
}

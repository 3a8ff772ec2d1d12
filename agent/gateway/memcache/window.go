package memcache

import (
	"context"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/gateway/values"
)

// windowJobs is how many jobs of one connection are under way, or wait for the replies before theirs.
const windowJobs = 64

// call is one command of a client, of one job or, where it has several keys, of many. It belongs to whoever writes.
type call struct {
	name    command
	began   time.Time
	outcome outcome
	failed  bool // the reply has ended with an error: what is left of it is not written
}

// job is a part of a command that may take time, and what is to be sent for it.
type job struct {
	call *call
	key  string // it comes after the jobs before it on that key; empty: after none
	last bool   // of its call

	// do works, and fills in what follows.
	do func(ctx context.Context, j *job)

	got values.Got // of its key, with others, for do

	line, data, tail []byte
	value            *values.Value // that data is of, where the store's memory holds it
	held             func()        // gives back the memory that holds data otherwise
	outcome          outcome
	failed           bool // what is sent ends the reply of the whole call

	// again does the work anew when it is the job's turn, if there was no memory to keep what it came to until then: it was dropped.
	again   func(ctx context.Context, j *job)
	dropped bool

	after <-chan struct{} // closed when the job before it on its key is done; nil: there is none
	done  chan struct{}   // closed when the job is
}

// release gives memory back.
func (j *job) release() {
	j.value.Release()
	if j.held != nil {
		j.held()
	}
	j.value, j.held, j.data = nil, nil, nil
}

// window is the jobs of one connection that are worked on side by side, and written in their order.
type window struct {
	mutex   sync.Mutex
	changed sync.Cond // a job has gone, or writing has ended
	jobs    []*job
	writing bool
	keys    map[string]chan struct{} // the last job of each key
}

// isIdle reports whether all jobs are done and written.
func (w *window) isIdle() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return !w.writing
}

// drain waits until all jobs are done and written.
func (w *window) drain() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for w.writing {
		w.changed.Wait()
	}
	w.keys = nil
}

// order has a job come after the one before it on its key. It belongs to the goroutine that reads.
func (w *window) order(j *job) {
	j.done = make(chan struct{})
	if j.key == "" {
		return
	}
	if len(w.keys) >= 2*windowJobs {
		for key, done := range w.keys {
			select {
			case <-done:
				delete(w.keys, key)
			default:
			}
		}
	}
	if w.keys == nil {
		w.keys = map[string]chan struct{}{}
	}
	if before, has := w.keys[j.key]; has {
		j.after = before
	}
	w.keys[j.key] = j.done
}

// add takes a job in, when there is room. It returns whether nobody writes yet.
func (w *window) add(j *job) (first bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for len(w.jobs) >= windowJobs {
		w.changed.Wait()
	}
	w.jobs = append(w.jobs, j)
	first = !w.writing
	w.writing = true
	return first
}

// next returns the job whose turn it is, nil where there is none.
func (w *window) next() *job {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if len(w.jobs) == 0 {
		return nil
	}
	return w.jobs[0]
}

// gone takes the job out whose turn it was.
func (w *window) gone() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.jobs[0] = nil
	w.jobs = w.jobs[1:]
	w.changed.Signal()
}

// end ends the writing if there is nothing more to write.
func (w *window) end() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if len(w.jobs) > 0 {
		return false
	}
	w.jobs, w.writing = nil, false
	w.changed.Broadcast()
	return true
}

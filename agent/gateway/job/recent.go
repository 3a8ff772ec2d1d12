package job

import (
	"context"
	"sync"
	"time"
)

// Recent is what a walk over many records finds, shared by those who ask. As long as walks are short, everybody is told what
// holds now. A long one goes on in the background for a part of the time, however many ask and whether or not they wait for it;
// meanwhile they are told what the one before found, and when.
type Recent[T any] struct {
	background *Background
	walk       Walk[T]

	mutex   sync.Mutex // of what follows
	found   Found[T]   // by the last walk; zero: there was none
	changes int        // how often something changed that matters to those who share
	known   int        // of these, before the walk that found began
	seen    int64      // records, by the first walk
	under   *recentWalk
}

// Walk looks at many records. Between its pages it calls rest with how many there were, and ends with its error.
type Walk[T any] func(ctx context.Context, rest func(records int) error) (T, error)

// Found is what a walk found. What changed after it began may or may not be in it.
type Found[T any] struct {
	Value        T
	Began, Ended time.Time
	Old          bool // it may hold no more, and is told all the same, as to walk again would take long
}

// recentWalk is a walk under way.
type recentWalk struct {
	began   time.Time
	changes int // that it knows of
	ended   chan struct{}
	err     error // once it has ended
}

const (
	// shortWalk is how long whoever asks waits for a walk if an earlier one can be told of.
	shortWalk = 500 * time.Millisecond
	// A short walk serves those who share for so many times as long as it took, and no longer than this.
	sharedTimes  = 10
	sharedAtMost = 5 * time.Second
	// walkShare is the part of the time that a walk works which is not the first and not short.
	walkShare = 0.1
)

// NewRecent returns one that knows nothing.
func NewRecent[T any](background *Background, walk Walk[T]) *Recent[T] {
	return &Recent[T]{background: background, walk: walk}
}

// Forget has the next one who asks told of a walk that begins from now on, if walks are short.
func (r *Recent[T]) Forget() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.changes++
}

// Ask returns what a walk found that began after the call or, if it was a long one, what the last one found. Whoever shares
// also takes what was found a moment before. It waits for as long as nothing was found yet.
func (r *Recent[T]) Ask(ctx context.Context, shares bool) (Found[T], error) {
	asked := time.Now()
	impatient := time.NewTimer(shortWalk)
	defer impatient.Stop()
	for waited := false; ; {
		found, under := r.look(asked, shares, waited)
		if under == nil {
			return found, nil
		}
		select {
		case <-under.ended:
			if under.err != nil {
				return Found[T]{}, under.err
			}
		case <-impatient.C:
			waited = true
		case <-ctx.Done():
			return Found[T]{}, ctx.Err()
		}
	}
}

// First tells of the first walk: how many records it has looked at and, while it is under way, when it began.
func (r *Recent[T]) First() (began time.Time, seen int64, isUnderWay bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.under == nil || !r.found.Ended.IsZero() {
		return time.Time{}, r.seen, false
	}
	return r.under.began, r.seen, true
}

// look returns what serves somebody who asked at that time or, where nothing does, the walk to wait for.
func (r *Recent[T]) look(asked time.Time, shares, waited bool) (Found[T], *recentWalk) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	now, known := time.Now(), !r.found.Ended.IsZero()
	took := r.found.Ended.Sub(r.found.Began)
	long := took > shortWalk
	if known && !r.found.Began.Before(asked) {
		return r.told(long), nil
	}
	if known && (long || shares && r.known == r.changes) {
		pause := took
		if !long {
			pause = min(sharedTimes*took, sharedAtMost)
		}
		if now.Before(r.found.Ended.Add(pause)) {
			return r.told(long), nil
		}
	}
	if r.under == nil {
		r.begin(now, known)
	}
	if known && (long || waited) {
		return r.told(true), nil
	}
	return Found[T]{}, r.under
}

// told is what was found, as it is told.
func (r *Recent[T]) told(old bool) Found[T] {
	found := r.found
	found.Old = old
	return found
}

// begin begins a walk.
func (r *Recent[T]) begin(now time.Time, known bool) {
	under := &recentWalk{began: now, changes: r.changes, ended: make(chan struct{})}
	r.under = under
	r.background.Go(func(ctx context.Context) {
		worked := now
		value, err := r.walk(ctx, func(records int) error {
			r.mutex.Lock()
			if !known {
				r.seen += int64(records)
			}
			r.mutex.Unlock()
			if since := time.Since(worked); known && time.Since(under.began) > shortWalk {
				Rest(ctx, since, walkShare)
			}
			worked = time.Now()
			return ctx.Err()
		})
		r.mutex.Lock()
		defer r.mutex.Unlock()
		if under.err = err; err == nil {
			r.found, r.known = Found[T]{Value: value, Began: under.began, Ended: time.Now()}, under.changes
		}
		r.under = nil
		close(under.ended)
	})
}

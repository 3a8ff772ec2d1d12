package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/restripe/restripe/agent/catalog/kv"
)

// What one transaction has at most, unless one update alone has more; and what one update may have.
const (
	batchRequests = 128
	batchBytes    = 4 << 20
	updateRecords = 16 * kv.UpdateRecords
	updateBytes   = 8 * kv.UpdateBytes
)

// answerLimit is how long a server may take to answer an update: one that hangs is left, and nothing is known then.
const answerLimit = time.Minute

var (
	errDoubted = errors.New("the server warned that it may not have told its standbys")
	errNumber  = errors.New("the record to increment is not a counter")
)

// request is one Update on its way, which has one write of a key at most.
type request struct {
	ctx    context.Context
	checks []kv.Check
	writes []kv.Write
	size   int
	done   chan struct{} // closed once failed and err are set

	failed []int
	err    error
}

func (r *request) settle(failed []int, err error) {
	r.failed, r.err = failed, err
	close(r.done)
}

// Update implements kv.Engine. An Update that was taken up is carried out even if ctx ends, which is not waited for.
func (e *Engine) Update(ctx context.Context, checks []kv.Check, writes []kv.Write) ([]int, error) {
	r := &request{ctx: ctx, checks: slices.Clone(checks), done: make(chan struct{})}
	for i := range r.checks { // the slices belong to the caller, who may be gone before they are used
		r.checks[i].Value = bytes.Clone(checks[i].Value)
		r.size += len(checks[i].Key) + len(checks[i].Value)
	}
	r.fold(writes)
	err := ctx.Err()
	if len(checks)+len(writes) > updateRecords || r.size > updateBytes {
		err = fmt.Errorf("%w: it has %d records and %d bytes, of %d and %d",
			kv.ErrTooLarge, len(checks)+len(writes), r.size, updateRecords, updateBytes)
	}
	if e.isClosed() {
		return nil, kv.ErrClosed
	}
	if err == nil {
		e.enqueue(r)
		select {
		case <-r.done:
			err = r.err
		case <-ctx.Done():
			err = fmt.Errorf("it may take effect yet: %w", ctx.Err())
		}
	}
	switch {
	case errors.Is(err, kv.ErrClosed):
		return nil, kv.ErrClosed
	case err != nil:
		return nil, fmt.Errorf("updating the catalog %s: %w", e.target.location, err)
	}
	return r.failed, nil
}

// fold takes writes over: the last one of a key, which tells if one of them does, and increments as their sum.
func (r *request) fold(writes []kv.Write) {
	at := make(map[string]int, len(writes))
	for _, write := range writes {
		write.Value = append([]byte{}, write.Value...)
		r.size += len(write.Key) + len(write.Value)
		i, again := at[write.Key]
		if !again {
			at[write.Key] = len(r.writes)
			r.writes = append(r.writes, write)
			continue
		}
		before := r.writes[i]
		if write.Kind == kv.Increment {
			write.Add += before.Add
		}
		write.Notify = write.Notify || before.Notify
		r.writes[i] = write
	}
}

// enqueue has a writer take up an update.
func (e *Engine) enqueue(r *request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.isClosed() {
		r.settle(nil, kv.ErrClosed)
		return
	}
	e.queue = append(e.queue, r)
	if e.writing < writers {
		e.writing++
		e.work.Go(e.write)
	}
}

// write makes updates until none waits.
func (e *Engine) write() {
	for {
		e.mu.Lock()
		batch := e.next()
		if len(batch) == 0 {
			e.writing--
			e.mu.Unlock()
			return
		}
		e.mu.Unlock()
		e.make(batch)
	}
}

// next takes updates that exclude none of one another from the queue, the oldest first. One that has to wait for another is not
// overtaken by a later one that it excludes. The caller holds mu.
func (e *Engine) next() (batch []*request) {
	uses := map[string]use{}
	var left []*request
	size := 0
	for i, r := range e.queue {
		if r.ctx.Err() != nil {
			r.settle(nil, r.ctx.Err())
			continue
		}
		if len(batch) == batchRequests || len(batch) > 0 && size+r.size > batchBytes {
			left = append(left, e.queue[i:]...)
			break
		}
		if r.join(uses) {
			batch, size = append(batch, r), size+r.size
		} else {
			left = append(left, r)
		}
	}
	e.queue = left
	return batch
}

// use is what updates do with a key.
type use uint8

const (
	checked use = 1 << iota
	incremented
	written
)

// join adds what an update does to uses, and reports whether it goes along with what was there.
func (r *request) join(uses map[string]use) bool {
	own := make(map[string]use, len(r.checks)+len(r.writes))
	for _, check := range r.checks {
		own[check.Key] |= checked
	}
	for _, write := range r.writes {
		if write.Kind == kv.Increment {
			own[write.Key] |= incremented
		} else {
			own[write.Key] |= written
		}
	}
	fits := true
	for key, use := range own {
		together := uses[key] | use
		fits = fits && (uses[key] == 0 || together == checked || together == incremented)
	}
	for key, use := range own {
		uses[key] |= use
	}
	return fits
}

// make makes a batch in one transaction, and settles it. What the server refuses is not done: it is asked again where another
// transaction was in the way, and each update by itself where one of several may be the reason.
func (e *Engine) make(batch []*request) {
	for attempt := 0; ; attempt++ {
		failed, broken, err := e.apply(batch)
		if err == nil {
			for i, r := range batch {
				if broken[i] {
					r.settle(nil, errNumber)
				} else {
					r.settle(failed[i], nil)
				}
			}
			return
		}
		answer := refused(err)
		switch {
		case answer != nil && inTheWay(answer.Code) != "":
			e.retries[inTheWay(answer.Code)].Add(1)
			if batch = e.patient(batch, attempt); len(batch) == 0 {
				return
			}
		case answer != nil && len(batch) > 1:
			for _, r := range batch {
				e.make([]*request{r})
			}
			return
		case pgconn.SafeToRetry(err) && attempt == 0 && !e.isClosed():
			e.retries[kv.RetryConnection].Add(1)
		default:
			for _, r := range batch {
				r.settle(nil, e.orClosed(err))
			}
			return
		}
	}
}

// inTheWay says why to ask again after a refusal that is because of what others do at the same time; empty for another one.
func inTheWay(code string) string {
	switch code {
	case "40001":
		return kv.RetrySerialization
	case "40P01", "55P03": // a deadlock, a lock that was not to be had
		return kv.RetryLock
	}
	return ""
}

// patient waits before the next attempt, and returns those of the batch that somebody waits for.
func (e *Engine) patient(batch []*request, attempt int) []*request {
	pause := time.Millisecond << min(attempt, 7)
	select {
	case <-time.After(pause/2 + rand.N(pause)):
	case <-e.life.Done():
	}
	var left []*request
	for _, r := range batch {
		switch {
		case e.isClosed():
			r.settle(nil, kv.ErrClosed)
		case r.ctx.Err() != nil:
			r.settle(nil, r.ctx.Err())
		default:
			left = append(left, r)
		}
	}
	return left
}

// apply calls the function that makes a batch. It answers which checks of each update failed, and which increment what is no counter.
func (e *Engine) apply(batch []*request) (failed [][]int, broken []bool, err error) {
	c, err := e.updates.take(e.life)
	if err != nil {
		return nil, nil, err
	}
	a, keys, owners, firsts := call(batch)
	limit := time.AfterFunc(answerLimit, func() { _ = c.wire.Close() }) // whoever waits for the answer is told
	slow, at := time.AfterFunc(suspectAfter, e.servers.suspect), time.Now()
	// A call that was begun is not cancelled: nothing would be known of it.
	rows, err := c.query(context.Background(), in(e.target.schema, applying), a)
	limit.Stop()
	slow.Stop()
	if err == nil && c.doubted {
		err = errDoubted
	}
	if err == nil && len(keys) > 0 { // which were locked
		e.servers.prove(c.origin, at)
	}
	e.updates.give(c, err != nil && refused(err) == nil || unfit(err))
	if err != nil {
		return nil, nil, err
	}
	failed, broken = make([][]int, len(batch)), make([]bool, len(batch))
	for _, i := range integers(rows[0][0]) {
		owner := owners[i]
		failed[owner] = append(failed[owner], i-firsts[owner])
	}
	for _, owner := range integers(rows[0][1]) {
		broken[owner] = true
	}
	return failed, broken, nil
}

const applying = "select failed, broken from $schema.apply($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"

// call returns what makes a batch; its keys; the update that each check is of; and the first check of each update.
func call(batch []*request) (a *arguments, keys []string, owners []int32, firsts []int) {
	exclusive := map[string]bool{}
	for _, r := range batch { // an update that writes what another one checks is not in the batch
		for _, check := range r.checks {
			exclusive[check.Key] = false
		}
		for _, write := range r.writes {
			exclusive[write.Key] = true
		}
	}
	keys = make([]string, 0, len(exclusive))
	for key := range exclusive {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	leads, digests, tails := make([][]byte, len(keys)), make([][]byte, len(keys)), make([][]byte, len(keys))
	locks, index := make([]bool, len(keys)), make(map[string]int32, len(keys))
	for i, key := range keys {
		leads[i], digests[i], tails[i] = split(key)
		locks[i], index[key] = exclusive[key], int32(i+1)
	}
	var checkKeys, writeOwners, writeKeys, kinds []int32
	var checkValues, values [][]byte
	var counts []*int64
	var tells []bool
	for owner, r := range batch {
		firsts = append(firsts, len(owners))
		for _, check := range r.checks {
			owners, checkKeys, checkValues = append(owners, int32(owner)), append(checkKeys, index[check.Key]), append(checkValues, check.Value)
		}
		for i := range r.writes {
			write := &r.writes[i]
			value, count := write.Value, (*int64)(nil)
			if write.Kind == kv.Count || write.Kind == kv.Increment {
				value, count = nil, &write.Add
			}
			writeOwners, writeKeys, kinds = append(writeOwners, int32(owner)), append(writeKeys, index[write.Key]), append(kinds, int32(write.Kind))
			values, counts, tells = append(values, value), append(counts, count), append(tells, write.Notify)
		}
	}
	a = &arguments{}
	a.byteas(leads)
	a.byteas(digests)
	a.byteas(tails)
	a.bools(locks)
	a.ints(owners)
	a.ints(checkKeys)
	a.byteas(checkValues)
	a.ints(writeOwners)
	a.ints(writeKeys)
	a.ints(kinds)
	a.byteas(values)
	a.counts(counts)
	a.bools(tells)
	return a, keys, owners, firsts
}

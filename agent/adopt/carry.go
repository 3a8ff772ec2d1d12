package adopt

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"sync"

	"golang.org/x/time/rate"
)

// carriage is the carrying of one object. What one try learned, the next ones know.
type carriage struct {
	job     *Job
	name    string
	written string // the tag of the version that an earlier try of this carriage left at the target
	carried int64  // bytes
}

// try carries the object once.
func (c *carriage) try(ctx context.Context) (outcome, error) {
	known, err := c.job.journal.Look(ctx, c.name)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrStop, err)
	}
	expected := Expectation{Any: c.job.options.Overwrite, Version: c.written}
	if known != nil {
		now, err := c.job.source.Stat(ctx, c.name)
		if err != nil {
			return 0, err
		}
		if now.Same(known.Source) {
			return c.again(ctx, known)
		}
		if c.written == "" {
			expected.Version = known.Target
		}
	}
	entry, err := c.copy(ctx, expected)
	if err != nil {
		return 0, err
	}
	if err := c.verify(ctx, entry); err != nil {
		return 0, err
	}
	if err := c.job.journal.Record(ctx, c.name, *entry); err != nil {
		return 0, err
	}
	c.carried = entry.Source.Size
	return c.trim(ctx, entry, outcomeCarried)
}

// again finishes an object that an earlier run verified and that has not changed since.
func (c *carriage) again(ctx context.Context, known *Entry) (outcome, error) {
	if !c.job.options.Trim {
		return outcomeSkipped, nil
	}
	// Much may have happened to the target since it was verified, and this is the last moment to notice.
	if err := c.verify(ctx, known); err != nil {
		if errors.Is(err, errElsewhere) {
			return 0, refusal("it was verified by an earlier run and its copy was changed or deleted since: the source's object is not deleted; delete one of them yourself")
		}
		return 0, err
	}
	return c.trim(ctx, known, outcomeSkipped)
}

// trim deletes the verified version at the source, where that is asked for.
func (c *carriage) trim(ctx context.Context, entry *Entry, done outcome) (outcome, error) {
	if !c.job.options.Trim {
		return done, nil
	}
	if err := c.job.source.(Trimmer).Trim(ctx, c.name, entry.Source); err != nil && !errors.Is(err, ErrGone) {
		return 0, err
	}
	trimmed := *entry
	trimmed.Trimmed = true
	if err := c.job.journal.Record(ctx, c.name, trimmed); err != nil {
		return 0, err
	}
	c.job.tally.trimmed.Add(1)
	return done, nil
}

// copy streams the object into the target, or finds that its bytes are there already.
func (c *carriage) copy(ctx context.Context, expected Expectation) (_ *Entry, err error) {
	content, err := c.job.source.Open(ctx, c.name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	size := content.Version().Size
	body := &meteredBody{ctx: ctx, from: content, size: size, limit: c.job.limit, tally: &c.job.tally, sum: sha256.New()}
	body.whole = func(checksum []byte) error { return c.job.journal.Attempt(ctx, c.name, checksum) }
	if size == 0 {
		if err := body.whole(body.sum.Sum(nil)); err != nil {
			return nil, err
		}
	}
	version, err := c.job.target.Put(ctx, c.name, body, size, expected)
	switch failed := body.end(); {
	case failed != nil: // whatever the target made of it
		return nil, failed
	case errors.Is(err, ErrConflict):
		return c.compare(ctx, expected)
	case err != nil:
		return nil, err
	}
	c.written = version.Tag
	if body.count != size {
		return nil, fmt.Errorf("%w: %d bytes came of %d", ErrChanged, body.count, size)
	}
	return &Entry{Source: content.Version(), Target: version.Tag, Checksum: body.sum.Sum(nil)}, nil
}

// compare decides about an object that is at the target already. One with the same bytes, or with those of an attempt, was
// left by a try whose end nobody saw; any other is somebody else's.
func (c *carriage) compare(ctx context.Context, expected Expectation) (*Entry, error) {
	content, err := c.job.source.Open(ctx, c.name)
	if err != nil {
		return nil, err
	}
	want, err := checksum(content)
	if err != nil {
		return nil, err
	}
	there, err := c.job.target.Open(ctx, c.name)
	if errors.Is(err, ErrGone) {
		if expected.Version == "" {
			return nil, fmt.Errorf("%w, at the target", ErrChanged)
		}
		return nil, refusal("its copy of an earlier run was deleted at the target and the source's object changed since: delete one of them, or say --overwrite")
	}
	if err != nil {
		return nil, err
	}
	sum, err := checksum(there)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(sum, want) {
		ours, err := c.job.journal.Attempted(ctx, c.name, sum)
		if err != nil {
			return nil, err
		}
		if ours {
			c.written = there.Version().Tag
			return nil, errElsewhere
		}
		return nil, refusal("the target has another object of this name: delete or rename one of them, or say --overwrite")
	}
	c.written = there.Version().Tag
	return &Entry{Source: content.Version(), Target: c.written, Checksum: sum}, nil
}

// verify reads the object back from the target, and sees that the source's has not changed.
func (c *carriage) verify(ctx context.Context, entry *Entry) error {
	there, err := c.job.target.Open(ctx, c.name)
	if err != nil {
		if errors.Is(err, ErrGone) {
			err = errElsewhere
		}
		return fmt.Errorf("verifying: %w", err)
	}
	if tag := there.Version().Tag; tag != entry.Target {
		return errors.Join(fmt.Errorf("verifying: %w: it is version %s and was %s", errElsewhere, tag, entry.Target), there.Close())
	}
	sum, err := checksum(there)
	if err != nil {
		return fmt.Errorf("verifying: %w", err)
	}
	if !bytes.Equal(sum, entry.Checksum) {
		return fmt.Errorf("verifying: the target returns other bytes than were stored: SHA-256 %x, want %x", sum, entry.Checksum)
	}
	now, err := c.job.source.Stat(ctx, c.name)
	if err != nil {
		return err
	}
	if !now.Same(entry.Source) {
		return fmt.Errorf("verifying: %w", ErrChanged)
	}
	return nil
}

// errElsewhere says that somebody else changed or deleted the copy at the target.
var errElsewhere = fmt.Errorf("%w, at the target", ErrChanged)

// checksum reads content to its end and closes it.
func checksum(content Content) (sum []byte, err error) {
	defer func() { err = errors.Join(err, content.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(h, content); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}

// meteredBody passes bytes on at the rate that the job is held to, counts and sums them up. It outlives what it reads
// from: a transport that was answered early may still read from it on another goroutine.
type meteredBody struct {
	ctx   context.Context
	limit *rate.Limiter
	tally *tally

	mutex  sync.Mutex
	from   io.Reader                   // nil after end
	size   int64                       // bytes that are to come
	whole  func(checksum []byte) error // called before the last byte is passed on: nothing is stored without it
	sum    hash.Hash
	count  int64
	failed error // of from
}

// end lets go of what is read from, and returns the error that reading ended with, if it was one.
func (b *meteredBody) end() error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.from = nil
	return b.failed
}

// Read reads what there is, waiting until it is paid for.
func (b *meteredBody) Read(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.from == nil {
		return 0, os.ErrClosed
	}
	if b.failed != nil {
		return 0, b.failed
	}
	if most := b.limit.Burst(); b.limit.Limit() != rate.Inf && len(p) > most {
		p = p[:most]
	}
	n, err := b.from.Read(p)
	b.count += int64(n)
	b.tally.bytes.Add(int64(n))
	if _, failed := b.sum.Write(p[:n]); failed != nil {
		err = failed
	}
	if n > 0 && b.count == b.size && (err == nil || errors.Is(err, io.EOF)) {
		if failed := b.whole(b.sum.Sum(nil)); failed != nil {
			n, err = 0, failed
		}
	}
	if err == nil && b.limit.Limit() != rate.Inf {
		err = b.limit.WaitN(b.ctx, n)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.failed = err
	}
	return n, err
}

// A limit lets a tenth of a second's worth through at once, or leastBurst.
const leastBurst = 64 << 10

func newLimit(bytesPerSecond int64) *rate.Limiter {
	if bytesPerSecond <= 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(bytesPerSecond), int(max(leastBurst, bytesPerSecond/10)))
}

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/restripe/restripe/agent/gateway/client"
)

// demoReader reads objects and compares them with the files they were made of.
type demoReader struct {
	client       *client.Client
	files        *tree
	verified     atomic.Int64 // objects compared, but for those that everything compares
	bytes        atomic.Int64
	finalObjects atomic.Int64 // objects compared by everything
}

// errWrongBytes says that an object does not read as it was written.
var errWrongBytes = errors.New("what was read is not what was written")

// reading is reading that goes on in the background until it is stopped or finds something wrong.
type reading struct {
	cancel context.CancelFunc
	failed chan error // holds the first error
	ended  sync.WaitGroup
}

func (r *demoReader) begin(ctx context.Context, readers int, read func(ctx context.Context, reader int) error) *reading {
	ctx, cancel := context.WithCancel(ctx)
	g := &reading{cancel: cancel, failed: make(chan error, 1)}
	for i := range readers {
		g.ended.Go(func() {
			for ctx.Err() == nil {
				if err := read(ctx, i); err != nil && ctx.Err() == nil {
					select {
					case g.failed <- err:
					default: // another one came first
					}
					return
				}
			}
		})
	}
	return g
}

// failure returns what went wrong, nil while nothing has.
func (g *reading) failure() error {
	select {
	case err := <-g.failed:
		g.failed <- err
		return err
	default:
		return nil
	}
}

// stop ends the reading and returns what went wrong, if anything did.
func (g *reading) stop() error {
	g.cancel()
	g.ended.Wait()
	return g.failure()
}

// What is popular is read by so many readers, so often altogether.
const (
	popularReaders        = 8
	popularReadsPerSecond = 300
)

// crowd reads files again and again, each one far from the one before, so that all their groups are used evenly.
func (r *demoReader) crowd(ctx context.Context, files []treeFile) *reading {
	pace := rate.NewLimiter(popularReadsPerSecond, popularReaders)
	stride := strideOver(len(files))
	var next atomic.Int64
	return r.begin(ctx, popularReaders, func(ctx context.Context, _ int) error {
		if err := pace.Wait(ctx); err != nil {
			return err
		}
		return r.verify(ctx, files[int(next.Add(1)-1)*stride%len(files)])
	})
}

// strideOver returns a step that leads far away and, taken count times, everywhere.
func strideOver(count int) int {
	for stride := count*5/13 + 1; ; stride++ {
		a, b := count, stride
		for b != 0 {
			a, b = b, a%b
		}
		if a == 1 {
			return stride
		}
	}
}

// verify compares one object and counts it.
func (r *demoReader) verify(ctx context.Context, file treeFile) error {
	if err := r.compare(ctx, file); err != nil {
		return err
	}
	r.verified.Add(1)
	r.bytes.Add(file.size)
	return nil
}

// mostPopular bounds the bytes that are popular, so that they are read often enough to be hot.
const mostPopular = 12 << 20

// popular returns a tenth of the files, as they lie side by side, from a place in the tree on: a fraction of its files.
func (t *tree) popular(numerator, denominator int) tree {
	var p tree
	limit := min(t.bytes/10, mostPopular)
	for _, file := range t.files[len(t.files)*numerator/denominator:] {
		if len(p.files) > 0 && p.bytes+file.size > limit {
			break
		}
		p.files = append(p.files, file)
		p.bytes += file.size
	}
	return p
}

// everything compares every object once.
func (r *demoReader) everything(ctx context.Context, jobs int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(jobs)
	for _, file := range r.files.files {
		group.Go(func() error {
			if err := r.compare(ctx, file); err != nil {
				return err
			}
			r.finalObjects.Add(1)
			return nil
		})
	}
	return group.Wait()
}

// compare reads one object and its file side by side.
func (r *demoReader) compare(ctx context.Context, file treeFile) (err error) {
	content, err := r.client.Get(ctx, file.key, client.Range{})
	if err != nil {
		return fmt.Errorf("reading %q: %w", file.key, err)
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	original, err := os.Open(file.path)
	if err != nil {
		return fmt.Errorf("comparing %q: %w", file.key, err)
	}
	defer func() { err = errors.Join(err, original.Close()) }()
	at, err := firstDifference(content, original)
	if err != nil {
		return fmt.Errorf("comparing %q: %w", file.key, err)
	}
	if at >= 0 {
		return fmt.Errorf("%w: %q at byte %d", errWrongBytes, file.key, at)
	}
	return nil
}

// compareBytes is how much is compared at a time.
const compareBytes = 256 << 10

// firstDifference returns the offset of the first byte in which two streams differ, or -1. One ending early differs.
func firstDifference(a, b io.Reader) (int64, error) {
	bufferA, bufferB := make([]byte, compareBytes), make([]byte, compareBytes)
	for at := int64(0); ; {
		n, err := fill(a, bufferA)
		if err != nil {
			return at, err
		}
		k, err := fill(b, bufferB)
		if err != nil {
			return at, err
		}
		if n != k || !bytes.Equal(bufferA[:n], bufferB[:k]) {
			i := 0
			for i < min(n, k) && bufferA[i] == bufferB[i] {
				i++
			}
			return at + int64(i), nil
		}
		at += int64(n)
		if n < compareBytes {
			return -1, nil
		}
	}
}

// fill reads until buffer is full or the stream ends. Unlike io.ReadFull it passes on the error of a stream that was
// broken off.
func fill(stream io.Reader, buffer []byte) (int, error) {
	for n := 0; ; {
		k, err := stream.Read(buffer[n:])
		n += k
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return n, nil
		}
		if err != nil || n == len(buffer) {
			return n, err
		}
	}
}

package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/tui/tree"
)

// reader reads objects and compares them with the files they were made of.
type reader struct {
	client       *client.Client
	files        *tree.Tree
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

func (r *reader) begin(ctx context.Context, readers int, read func(ctx context.Context, reader int) error) *reading {
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
func (r *reader) crowd(ctx context.Context, files []tree.File) *reading {
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
func (r *reader) verify(ctx context.Context, file tree.File) error {
	if err := r.compare(ctx, file); err != nil {
		return err
	}
	r.verified.Add(1)
	r.bytes.Add(file.Size)
	return nil
}

// mostPopular bounds the bytes that are popular, so that they are read often enough to be hot.
const mostPopular = 12 << 20

// popular returns a tenth of the files, as they lie side by side, from a place in the tree on: a fraction of its files.
func popular(t *tree.Tree, numerator, denominator int) tree.Tree {
	var p tree.Tree
	limit := min(t.Bytes/10, mostPopular)
	for _, file := range t.Files[len(t.Files)*numerator/denominator:] {
		if len(p.Files) > 0 && p.Bytes+file.Size > limit {
			break
		}
		p.Files = append(p.Files, file)
		p.Bytes += file.Size
	}
	return p
}

// everything compares every object once.
func (r *reader) everything(ctx context.Context, jobs int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(jobs)
	for _, file := range r.files.Files {
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
func (r *reader) compare(ctx context.Context, file tree.File) (err error) {
	content, err := r.client.Get(ctx, file.Key, client.Range{})
	if err != nil {
		return fmt.Errorf("reading %q: %w", file.Key, err)
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	original, err := os.Open(file.Path)
	if err != nil {
		return fmt.Errorf("comparing %q: %w", file.Key, err)
	}
	defer func() { err = errors.Join(err, original.Close()) }()
	at, err := tree.FirstDifference(content, original)
	if err != nil {
		return fmt.Errorf("comparing %q: %w", file.Key, err)
	}
	if at >= 0 {
		return fmt.Errorf("%w: %q at byte %d", errWrongBytes, file.Key, at)
	}
	return nil
}

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/gateway/client"
)

// demoReader reads objects at random and compares them with the files they were made of, until it is stopped.
type demoReader struct {
	client       *client.Client
	files        *tree
	verified     atomic.Int64 // objects compared while the steps went on
	bytes        atomic.Int64
	finalObjects atomic.Int64 // objects compared by everything

	cancel context.CancelFunc
	once   sync.Once
	ended  chan struct{}
	mutex  sync.Mutex
	err    error
}

// errWrongBytes says that an object does not read as it was written.
var errWrongBytes = errors.New("what was read is not what was written")

func startReader(ctx context.Context, c *client.Client, files *tree) *demoReader {
	ctx, cancel := context.WithCancel(ctx)
	r := &demoReader{client: c, files: files, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		for ctx.Err() == nil {
			file := files.files[rand.IntN(len(files.files))]
			err := r.compare(ctx, file)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				r.mutex.Lock()
				r.err = err
				r.mutex.Unlock()
				return
			}
			r.verified.Add(1)
			r.bytes.Add(file.size)
		}
	}()
	return r
}

// failure returns why the reader ended, nil while it reads.
func (r *demoReader) failure() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.err
}

// stop ends the reading and returns what went wrong, if anything did.
func (r *demoReader) stop() error {
	r.once.Do(r.cancel)
	<-r.ended
	return r.failure()
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

//go:build linux && ceph

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/ceph/go-ceph/rados"
	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/gateway/client"
)

// corpus is objects held in memory, the same in every run.
type corpus [][]byte

func newCorpus(objects, objectBytes int) corpus {
	c := make(corpus, objects)
	for i := range c {
		var seed [32]byte
		binary.LittleEndian.PutUint64(seed[:], uint64(i)+1)
		c[i] = make([]byte, objectBytes)
		// It never fails, by its documentation; bytes that are not random would do, too.
		_, _ = rand.NewChaCha8(seed).Read(c[i])
	}
	return c
}

// atOnce is how many objects are carried at a time, whoever carries them.
const atOnce = 8

// each calls work for every object, some at a time.
func (c corpus) each(ctx context.Context, work func(ctx context.Context, name string, data []byte) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, data := range c {
		group.Go(func() error { return work(ctx, fmt.Sprintf("%04d", i), data) })
	}
	return group.Wait()
}

// errDifferent is the end of a bench: nothing measured on wrong bytes counts.
var errDifferent = errors.New("the bytes read are not those written")

// fill writes every object into a pool.
func (c corpus) fill(ctx context.Context, pool *rados.IOContext) error {
	return c.each(ctx, func(_ context.Context, name string, data []byte) error { return pool.WriteFull(name, data) })
}

// copy reads every object of a pool and writes it into another, as `rados cppool` does, but some at a time.
func (c corpus) copy(ctx context.Context, from, to *rados.IOContext) error {
	return c.each(ctx, func(_ context.Context, name string, want []byte) error {
		buffer := make([]byte, len(want))
		n, err := from.Read(name, buffer, 0)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		return to.WriteFull(name, buffer[:n])
	})
}

// check compares every object of a pool.
func (c corpus) check(ctx context.Context, pool *rados.IOContext) error {
	return c.each(ctx, func(_ context.Context, name string, want []byte) error {
		buffer := make([]byte, len(want)+1)
		n, err := pool.Read(name, buffer, 0)
		if err == nil && !bytes.Equal(buffer[:n], want) {
			err = errDifferent
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		return nil
	})
}

// put stores every object under a prefix.
func (c corpus) put(ctx context.Context, gateway *client.Client, prefix string) error {
	return c.each(ctx, func(ctx context.Context, name string, data []byte) error {
		_, err := gateway.Put(ctx, prefix+name, bytes.NewReader(data), client.PutOptions{Size: int64(len(data)), SizeKnown: true})
		return err
	})
}

// verify compares every object under a prefix.
func (c corpus) verify(ctx context.Context, gateway *client.Client, prefix string) error {
	return c.each(ctx, func(ctx context.Context, name string, want []byte) (err error) {
		content, err := gateway.Get(ctx, prefix+name, client.Range{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, content.Close()) }()
		got, err := io.ReadAll(content)
		if err == nil && !bytes.Equal(got, want) {
			err = fmt.Errorf("%s%s: %w", prefix, name, errDifferent)
		}
		return err
	})
}

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/gateway/client"
)

// corpusSeed makes the bytes of every run the same.
const corpusSeed = 0x5e57819e

// bytesOf returns the endless stream of the bytes of object i.
func bytesOf(i int) io.Reader {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], corpusSeed)
	binary.LittleEndian.PutUint64(seed[8:], uint64(i))
	return rand.NewChaCha8(seed)
}

// corpus is objects held in memory.
type corpus [][]byte

func newCorpus(objects int, objectBytes int64) (corpus, error) {
	c := make(corpus, objects)
	for i := range c {
		c[i] = make([]byte, objectBytes)
		if _, err := io.ReadFull(bytesOf(i), c[i]); err != nil {
			return nil, fmt.Errorf("making the bytes of object %d: %w", i, err)
		}
	}
	return c, nil
}

// keyOf names object i under a prefix.
func keyOf(prefix string, i int) string { return fmt.Sprintf("%s%04d", prefix, i) }

// transfersAtOnce is how many objects are loaded or verified at a time.
const transfersAtOnce = 4

// put stores every object under the prefix.
func (c corpus) put(ctx context.Context, gateway *client.Client, prefix string) error {
	workers, ctx := errgroup.WithContext(ctx)
	workers.SetLimit(transfersAtOnce)
	for i, data := range c {
		workers.Go(func() error {
			_, err := gateway.Put(ctx, keyOf(prefix, i), bytes.NewReader(data), client.PutOptions{Size: int64(len(data)), SizeKnown: true})
			if err != nil {
				return fmt.Errorf("putting %s: %w", keyOf(prefix, i), err)
			}
			return nil
		})
	}
	return workers.Wait()
}

// verify reads every object under the prefix and compares it byte for byte.
func (c corpus) verify(ctx context.Context, gateway *client.Client, prefix string) error {
	workers, ctx := errgroup.WithContext(ctx)
	workers.SetLimit(transfersAtOnce)
	for i, data := range c {
		workers.Go(func() (err error) {
			key := keyOf(prefix, i)
			content, err := gateway.Get(ctx, key, client.Range{})
			if err != nil {
				return fmt.Errorf("reading %s: %w", key, err)
			}
			defer func() { err = errors.Join(err, content.Close()) }()
			if err := sameBytes(content, bytes.NewReader(data), int64(len(data))); err != nil {
				return fmt.Errorf("reading %s: %w", key, err)
			}
			return nil
		})
	}
	return workers.Wait()
}

// errDifferent is the end of a bench: nothing measured on wrong bytes counts.
var errDifferent = errors.New("the bytes read are not those written")

// sameBytes reads got to its end and compares it with the first length bytes of want.
func sameBytes(got, want io.Reader, length int64) error {
	const step = 256 << 10
	left, right := make([]byte, step), make([]byte, step)
	for at := int64(0); at < length; {
		n := min(step, length-at)
		if _, err := io.ReadFull(got, left[:n]); err != nil {
			return fmt.Errorf("at byte %d of %d: %w", at, length, err)
		}
		if _, err := io.ReadFull(want, right[:n]); err != nil {
			return fmt.Errorf("making byte %d: %w", at, err)
		}
		if !bytes.Equal(left[:n], right[:n]) {
			return fmt.Errorf("%w: between byte %d and %d", errDifferent, at, at+n)
		}
		at += n
	}
	if n, err := got.Read(left[:1]); n != 0 || err != io.EOF {
		return fmt.Errorf("%w: more than %d bytes came", errDifferent, length)
	}
	return nil
}

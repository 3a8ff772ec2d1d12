package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/operator/words"
)

// treeFile is one file of a directory tree and the key it is stored under.
type treeFile struct {
	path string
	key  string
	size int64
}

// tree is what a directory holds.
type tree struct {
	files   []treeFile
	bytes   int64
	skipped int // links, devices and the like
}

// readTree finds the regular files under root. A key is prefix followed by the path below root, with slashes. Links
// are not followed.
func readTree(root, prefix string) (tree, error) {
	var t tree
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return nil
		}
		if !entry.Type().IsRegular() {
			t.skipped++
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		t.files = append(t.files, treeFile{path: path, key: prefix + filepath.ToSlash(below), size: info.Size()})
		t.bytes += info.Size()
		return nil
	})
	if err != nil {
		return t, fmt.Errorf("reading the directory %s: %w", root, err)
	}
	return t, nil
}

// progress counts what a job of many objects has done; its fields only grow.
type progress struct {
	objects, bytes atomic.Int64
}

// put stores every file of the tree, jobs at a time, and stops at the first that fails.
func (t *tree) put(ctx context.Context, c *client.Client, options client.PutOptions, jobs int, done *progress) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(jobs)
	for _, file := range t.files {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			if err := putFile(ctx, c, file.path, file.key, options); err != nil {
				return err
			}
			done.objects.Add(1)
			done.bytes.Add(file.size)
			return nil
		})
	}
	return group.Wait()
}

// putFile stores one file.
func putFile(ctx context.Context, c *client.Client, path, key string, options client.PutOptions) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("reading: %w", err)
	}
	if info.Mode().IsRegular() {
		options.Size, options.SizeKnown = info.Size(), true
	}
	if _, err := c.Put(ctx, key, file, options); err != nil {
		return putError(path, key, options, err)
	}
	return nil
}

// line shows how far a job over the tree is, with an estimate.
func (t *tree) line(done *progress, elapsed time.Duration) string {
	bytes, objects := done.bytes.Load(), done.objects.Load()
	left := "unknown"
	if bytes > 0 {
		left = words.Left(elapsed.Seconds() * float64(t.bytes-bytes) / float64(bytes))
	}
	rate := int64(0)
	if elapsed > 0 {
		rate = int64(float64(bytes) / elapsed.Seconds())
	}
	return fmt.Sprintf("%s %5s  %s of %s  %s of %s objects  %s/s  %s left", barText(bytes, t.bytes), words.Share(bytes, t.bytes),
		words.Bytes(bytes), words.Bytes(t.bytes), words.Number(objects), words.Number(int64(len(t.files))), words.Bytes(rate), left)
}

// watch shows line at every tick until stop is called.
func (m *meter) watch(line func() string) (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(redrawEvery)
		defer ticker.Stop()
		for {
			select {
			case now := <-ticker.C:
				m.show(now, line)
			case <-quit:
				m.clear()
				return
			}
		}
	}()
	return func() { close(quit); <-ended }
}

// Package tree stores the files of a directory tree as objects.
package tree

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

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/tui/progress"
)

// File is one file of a directory tree and the key it is stored under.
type File struct {
	Path string
	Key  string
	Size int64
}

// Tree is what a directory holds.
type Tree struct {
	Files   []File
	Bytes   int64
	Skipped int // links, devices and the like
}

// Read finds the regular files under root. A key is prefix followed by the path below root, with slashes. Links
// are not followed.
func Read(root, prefix string) (Tree, error) {
	var t Tree
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return nil
		}
		if !entry.Type().IsRegular() {
			t.Skipped++
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
		t.Files = append(t.Files, File{Path: path, Key: prefix + filepath.ToSlash(below), Size: info.Size()})
		t.Bytes += info.Size()
		return nil
	})
	if err != nil {
		return t, fmt.Errorf("reading the directory %s: %w", root, err)
	}
	return t, nil
}

// Done counts what a job of many objects has done; its counts only grow.
type Done struct{ Objects, Bytes atomic.Int64 }

// Put stores every file of the tree, jobs at a time, and stops at the first that fails.
func (t *Tree) Put(ctx context.Context, c *client.Client, options client.PutOptions, jobs int, done *Done) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(jobs)
	for _, file := range t.Files {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			if err := PutFile(ctx, c, file.Path, file.Key, options); err != nil {
				return err
			}
			done.Objects.Add(1)
			done.Bytes.Add(file.Size)
			return nil
		})
	}
	return group.Wait()
}

// PutFile stores one file.
func PutFile(ctx context.Context, c *client.Client, path, key string, options client.PutOptions) (err error) {
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
		return PutError(path, key, options, err)
	}
	return nil
}

// Line shows how far a job over the tree is, with an estimate.
func (t *Tree) Line(done *Done, elapsed time.Duration) string {
	bytes, objects := done.Bytes.Load(), done.Objects.Load()
	left := "unknown"
	if bytes > 0 {
		left = words.Left(elapsed.Seconds() * float64(t.Bytes-bytes) / float64(bytes))
	}
	rate := int64(0)
	if elapsed > 0 {
		rate = int64(float64(bytes) / elapsed.Seconds())
	}
	return fmt.Sprintf("%s %5s  %s of %s  %s of %s objects  %s/s  %s left", progress.Bar(bytes, t.Bytes), words.Share(bytes, t.Bytes),
		words.Bytes(bytes), words.Bytes(t.Bytes), words.Number(objects), words.Number(int64(len(t.Files))), words.Bytes(rate), left)
}

// KeyShown bounds how much of a key an error repeats, in bytes.
const KeyShown = 200

// PutError says which of the caller's conditions a refused put did not meet, and how to see what is there.
func PutError(source, key string, options client.PutOptions, err error) error {
	if len(key) > KeyShown {
		key = key[:KeyShown] + "..."
	}
	if errors.Is(err, api.ErrConflict) {
		switch {
		case options.IfAbsent:
			return fmt.Errorf("storing %s as %q: there is an object of this key already, and --if-absent was given; nothing was changed: %w", source, key, err)
		case options.IfRevision != nil:
			return fmt.Errorf("storing %s as %q: the object is not at revision %s; nothing was changed, `restripe stat KEY` shows the present one: %w", source, key, options.IfRevision, err)
		}
	}
	return fmt.Errorf("storing %s as %q: %w", source, key, err)
}

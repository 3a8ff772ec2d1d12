package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// source is content on its way that remembers whether it was the one to fail.
type source struct {
	content io.Reader
	err     error
}

// Read reads on.
func (s *source) Read(into []byte) (int, error) {
	n, err := s.content.Read(into)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// save writes the content of an object to a file, or to standard output for -, and names the side that fails.
func (s *session) save(ctx context.Context, key string, content io.Reader, path string) error {
	from, name := &source{content: content}, path
	var err error
	if path == "-" {
		name = "standard output"
		_, err = io.Copy(s.Out, from)
	} else {
		err = writeFile(ctx, path, from)
	}
	switch {
	case err == nil:
		return nil
	case from.err != nil:
		return fmt.Errorf("reading %q: %w", key, err)
	}
	return fmt.Errorf("writing %s: %w", name, err)
}

// writeFile writes to the file that a path names: whole or not at all where it is a regular one or there is none, else as the
// bytes come.
func writeFile(ctx context.Context, path string, content io.Reader) error {
	switch info, err := os.Stat(path); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err == nil && info.IsDir():
		return errors.New("it is a directory")
	case err == nil && !info.Mode().IsRegular():
		return writeInto(ctx, path, content)
	}
	path, err := linked(path)
	if err != nil {
		return err
	}
	return writeWhole(path, content)
}

// writeInto writes to a device or a pipe. Opening a pipe waits for whoever reads it.
func writeInto(ctx context.Context, path string, content io.Reader) (err error) {
	var file *os.File
	opened := make(chan error, 1)
	go func() {
		var err error
		file, err = os.OpenFile(path, os.O_WRONLY, 0)
		opened <- err
	}()
	select {
	case err := <-opened:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

// mostLinks is how many links a path may lead through, as in the kernel.
const mostLinks = 40

// linked follows the links at the end of a path to the file that they name, which need not be there.
func linked(path string) (string, error) {
	for range mostLinks {
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return path, nil // what is wrong with it shows where it is written
		}
		target, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(target) {
			// Not cleaned: .. behind a link to a directory is not where the link is.
			folder, _ := filepath.Split(path)
			target = folder + target
		}
		path = target
	}
	return "", fmt.Errorf("it leads through more than %d links", mostLinks)
}

// writeWhole writes content beside path and renames it into place once it is complete.
func writeWhole(path string, content io.Reader) error {
	folder, _ := filepath.Split(path)
	if folder == "" {
		folder = "."
	}
	staged, err := os.CreateTemp(folder, ".restripe-get-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(staged, content)
	if err == nil {
		err = staged.Chmod(0o644)
	}
	if err = errors.Join(err, staged.Close()); err == nil {
		err = os.Rename(staged.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(staged.Name()))
	}
	return nil
}

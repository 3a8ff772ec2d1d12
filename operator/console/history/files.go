package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// files are the samples on disk: lines of JSON, in files that follow each other.
type files struct {
	directory string
	options   Options
	names     []string // oldest first
	number    int      // of the last one
	current   *os.File
	size      int64
}

// line is one sample of one class.
type line struct {
	Class
	Sample
}

const (
	filePrefix = "history-"
	fileSuffix = ".jsonl"
)

// openFiles reads what is there, a sample after the other.
func openFiles(directory string, options Options, visit func(Class, Sample)) (*files, error) {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, fmt.Errorf("opening the history: %w", err)
	}
	f := &files{directory: directory, options: options}
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, fmt.Errorf("opening the history: %w", err)
	}
	for _, entry := range entries {
		if name := entry.Name(); strings.HasPrefix(name, filePrefix) && strings.HasSuffix(name, fileSuffix) {
			f.names = append(f.names, name)
			if _, err := fmt.Sscanf(name, filePrefix+"%d"+fileSuffix, &f.number); err != nil {
				return nil, fmt.Errorf("opening the history: %s is no file of it: %w; move it away", filepath.Join(directory, name), err)
			}
		}
	}
	for _, name := range f.names {
		if err := read(filepath.Join(directory, name), visit); err != nil {
			return nil, fmt.Errorf("opening the history: %w", err)
		}
	}
	return f, nil
}

// read visits the samples of a file. A line that is none was torn by a crash.
func read(path string, visit func(Class, Sample)) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	lines := bufio.NewReader(file)
	for {
		text, err := lines.ReadBytes('\n')
		var one line
		if err == nil && json.Unmarshal(text, &one) == nil && !one.At.IsZero() {
			visit(one.Class, one.Sample)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// add writes samples, to a new file where the last is full. Every program begins a file of its own, so that nothing
// follows a torn line.
func (f *files) add(samples map[Class]Sample) error {
	var text []byte
	for class, sample := range samples {
		one, err := json.Marshal(line{class, sample})
		if err != nil {
			return fmt.Errorf("encoding a sample of the history: %w", err)
		}
		text = append(append(text, one...), '\n')
	}
	if err := f.write(text); err != nil {
		return fmt.Errorf("writing the history: %w", errors.Join(err, f.close()))
	}
	return nil
}

func (f *files) write(text []byte) error {
	if f.current != nil && f.size+int64(len(text)) > f.options.FileBytes {
		if err := f.close(); err != nil {
			return err
		}
	}
	if f.current == nil {
		if err := f.next(); err != nil {
			return err
		}
	}
	n, err := f.current.Write(text)
	f.size += int64(n)
	return err
}

// next begins a file and removes those beyond the bound.
func (f *files) next() (err error) {
	name := fmt.Sprintf("%s%08d%s", filePrefix, f.number+1, fileSuffix)
	if f.current, err = os.OpenFile(filepath.Join(f.directory, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	f.number++
	f.size = 0
	f.names = append(f.names, name)
	for len(f.names) > f.options.Files {
		if err := os.Remove(filepath.Join(f.directory, f.names[0])); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		f.names = slices.Delete(f.names, 0, 1)
	}
	return nil
}

func (f *files) close() error {
	if f.current == nil {
		return nil
	}
	err := f.current.Close()
	f.current = nil
	return err
}

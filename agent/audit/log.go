package audit

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/flock"
)

// Options change how a log is kept.
type Options struct {
	FileBytes int64            // a file that would grow beyond is followed by another; default 16 MiB
	Now       func() time.Time // default time.Now
}

// defaultFileBytes is where the next file begins.
const defaultFileBytes = 16 << 20

const (
	headName = "head"
	lockName = "lock"
)

// Log is an open log. Its methods are safe for concurrent use.
type Log struct {
	directory string
	options   Options

	mutex   sync.Mutex // of what follows
	lock    *os.File
	files   []segment // oldest first
	current *os.File  // the last of files, open for writing; nil before the first record and after an error
	head    Head
	damage  error // why nothing is appended
	closed  bool
}

// segment is one file, as far as it is known to be whole.
type segment struct {
	path  string
	first int64 // its first record
	size  int64
}

// Open opens the log in a directory, which is made if it is not there, and reads all of it. A record that a crash left
// half written, and that nobody was told of, is taken off. A damaged log opens too, to be read; Begin refuses.
func Open(directory string, options Options) (*Log, error) {
	options.FileBytes = cmp.Or(options.FileBytes, defaultFileBytes)
	if options.Now == nil {
		options.Now = time.Now
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(directory, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	if err := flock.Take(lock); err != nil {
		if errors.Is(err, flock.ErrHeld) {
			err = fmt.Errorf("%w in %s; stop it, or choose another directory", ErrInUse, directory)
		}
		return nil, errors.Join(err, lock.Close())
	}
	l := &Log{directory: directory, options: options, lock: lock}
	if err := l.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the audit log in %s: %w", directory, err), flock.Release(lock))
	}
	return l, nil
}

// load reads the log as it is on disk.
func (l *Log) load() error {
	read, err := inspect(l.directory)
	if err != nil {
		return err
	}
	l.files, l.damage = read.files, nil
	switch {
	case read.problem != "":
		l.head, l.damage = read.end, fmt.Errorf("%w: %s; move %s away to begin a new one", ErrDamaged, read.problem, l.directory)
		return nil
	case read.torn:
		last := l.files[len(l.files)-1]
		if err := shorten(last.path, last.size); err != nil {
			return fmt.Errorf("taking off a record that a crash left half written: %w", err)
		}
	}
	l.head = read.end
	return l.writeHead()
}

// Begin records that an action is about to happen and returns its number once the record is on disk. An error means that
// nothing was recorded for certain, and that the action must not happen.
func (l *Log) Begin(entry Entry) (sequence int64, err error) {
	return l.append(record{Entry: entry})
}

// End records how the action of that number ended.
func (l *Log) End(sequence int64, outcome Outcome) error {
	_, err := l.append(record{Ends: sequence, Outcome: outcome})
	return err
}

// Close ends the use of the directory. Actions that have begun and not ended stay so.
func (l *Log) Close() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	return errors.Join(l.release(), flock.Release(l.lock))
}

func (l *Log) append(r record) (sequence int64, err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.closed {
		return 0, ErrClosed
	}
	if l.damage != nil {
		return 0, l.damage
	}
	r.Sequence, r.Time, r.Previous = l.head.Sequence+1, l.options.Now().UTC(), l.head.Hash
	line, hash, err := encode(&r)
	if err != nil {
		return 0, err
	}
	if err := l.write(line, r.Sequence); err != nil {
		return 0, fmt.Errorf("writing the audit log in %s: %w", l.directory, err)
	}
	l.head = Head{Sequence: r.Sequence, Hash: hash}
	if err := l.writeHead(); err != nil {
		return 0, fmt.Errorf("writing the head of the audit log in %s: %w", l.directory, err)
	}
	return r.Sequence, nil
}

// write puts a line at the end of the log and on disk. After an error the log is as it was before, or damaged.
func (l *Log) write(line []byte, sequence int64) error {
	if err := l.prepare(int64(len(line)), sequence); err != nil {
		return errors.Join(err, l.release())
	}
	last := &l.files[len(l.files)-1]
	_, err := l.current.WriteAt(line, last.size)
	if err == nil {
		err = l.current.Sync()
	}
	if err == nil {
		last.size += int64(len(line))
		return nil
	}
	// A part of the line may have reached the disk.
	err = errors.Join(err, l.release())
	if cut := shorten(last.path, last.size); cut != nil {
		l.damage = fmt.Errorf("%w: a record could not be written, nor taken off again (%w); restart when the disk is well", ErrDamaged, cut)
	}
	return err
}

// prepare opens the file that the next line goes to, a new one where the last is full.
func (l *Log) prepare(length, sequence int64) (err error) {
	if n := len(l.files); n == 0 || l.files[n-1].size > 0 && l.files[n-1].size+length > l.options.FileBytes {
		if err := l.release(); err != nil {
			return err
		}
		path := filepath.Join(l.directory, fileName(sequence))
		if l.current, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
			return err
		}
		l.files = append(l.files, segment{path: path, first: sequence})
		return syncDirectory(l.directory)
	}
	if l.current == nil {
		l.current, err = os.OpenFile(l.files[len(l.files)-1].path, os.O_RDWR, 0o600)
	}
	return err
}

// release closes the file that is written to.
func (l *Log) release() error {
	if l.current == nil {
		return nil
	}
	err := l.current.Close()
	l.current = nil
	return err
}

// Damage returns why nothing can be appended, or nil.
func (l *Log) Damage() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.damage
}

func syncDirectory(path string) error {
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}

// shorten cuts a file to the size it should have, and puts that on disk.
func shorten(path string, size int64) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	err = file.Truncate(size)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

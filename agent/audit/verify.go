package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Report is what Verify found.
type Report struct {
	Problem string // what is wrong, and where; empty: every record is there and as it was written
	First   int64  // the oldest record
	Records int64
	Head    Head
}

const (
	filePrefix = "audit-"
	fileSuffix = ".jsonl"
)

func fileName(first int64) string { return fmt.Sprintf("%s%012d%s", filePrefix, first, fileSuffix) }

// reading is what is in a directory.
type reading struct {
	files   []segment
	first   int64
	records int64
	end     Head
	headed  bool   // there is a head, if only one that cannot be read
	torn    bool   // the last file ends in a part of a line that nobody was told of
	problem string // the first thing that is wrong
}

// Verify reads the whole log. earlier, where its sequence is not 0, is a head that an earlier Verify returned: its record
// must still be there, with that hash.
func (l *Log) Verify(earlier Head) (Report, error) {
	l.mutex.Lock() // nothing is appended meanwhile
	defer l.mutex.Unlock()
	read, err := inspect(l.directory, earlier)
	if err != nil {
		return Report{}, fmt.Errorf("verifying the audit log in %s: %w", l.directory, err)
	}
	return Report{Problem: read.problem, First: read.first, Records: read.records, Head: read.end}, nil
}

// inspect reads every record and checks that each follows the one before, and that the heads are among them.
func inspect(directory string, heads ...Head) (*reading, error) {
	r := &reading{}
	// The head first: nothing that it names is missing then, though somebody else may write on.
	head, found, broken := readHead(directory)
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if first := firstOf(entry.Name()); first != 0 {
			r.files = append(r.files, segment{path: filepath.Join(directory, entry.Name()), first: first})
		}
	}
	switch {
	case broken != nil:
		r.problem = broken.Error()
	case found:
		heads = append(heads, head)
	case len(r.files) > 0:
		r.problem = "the file " + headName + " is missing, so records may have been cut off"
	}
	r.headed = found || broken != nil
	if err := r.read(heads); err != nil {
		return nil, err
	}
	// A part of a line is what a crash leaves; with records missing it is what is left of them.
	r.torn = r.torn && r.problem == ""
	return r, nil
}

// read reads the files, and looks for the heads in them.
func (r *reading) read(heads []Head) error {
	heads = slices.DeleteFunc(heads, func(h Head) bool { return h.Sequence == 0 })
	for i := range r.files {
		if err := r.file(i, heads); err != nil {
			return err
		}
	}
	for _, h := range heads {
		switch {
		case h.Sequence > r.end.Sequence:
			r.complain("records after %d are missing: record %d was written once", r.end.Sequence, h.Sequence)
		case r.first > h.Sequence:
			r.complain("record %d, which is to be compared, is older than all that are left", h.Sequence)
		}
	}
	return nil
}

// firstOf returns the first record of the file of a name; 0: the name is no such file's.
func firstOf(name string) int64 {
	number, is := strings.CutPrefix(strings.TrimSuffix(name, fileSuffix), filePrefix)
	first, err := strconv.ParseInt(number, 10, 64)
	if !is || err != nil || !strings.HasSuffix(name, fileSuffix) {
		return 0
	}
	return first
}

// VerifyPath reads a log that is not open here: that of a directory, while somebody may write it, or one file of it, which may lie
// anywhere. It changes nothing. earlier is as for Log.Verify. ErrNone says that there is no log.
func VerifyPath(path string, earlier Head) (Report, error) {
	read, err := inspectPath(path, earlier)
	if err != nil {
		return Report{}, fmt.Errorf("verifying the audit log in %s: %w", path, err)
	}
	return Report{Problem: read.problem, First: read.first, Records: read.records, Head: read.end}, nil
}

func inspectPath(path string, earlier Head) (*reading, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		read, err := inspect(path, earlier)
		if err == nil && len(read.files) == 0 && !read.headed {
			return nil, ErrNone
		}
		return read, err
	}
	r := &reading{files: []segment{{path: path, first: firstOf(filepath.Base(path))}}}
	if err := r.read([]Head{earlier}); err != nil {
		return nil, err
	}
	if r.torn {
		r.complain("%s ends in the middle of record %d", filepath.Base(path), r.end.Sequence+1)
	}
	if r.problem == "" && r.records == 0 {
		return nil, ErrNone
	}
	return r, nil
}

func (r *reading) complain(format string, values ...any) {
	if r.problem == "" {
		r.problem = fmt.Sprintf(format, values...)
	}
}

// file reads the file of an index.
func (r *reading) file(index int, heads []Head) (err error) {
	s := &r.files[index]
	file, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	name := filepath.Base(s.path)
	lines := bufio.NewReaderSize(file, 1<<16)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		if errors.Is(err, io.EOF) {
			if r.torn = index == len(r.files)-1; !r.torn {
				r.complain("%s ends in the middle of record %d", name, r.end.Sequence+1)
			}
			return nil
		}
		if err != nil {
			return err
		}
		if !r.take(line[:len(line)-1], fmt.Sprintf("%s, line %d", name, number), number == 1, s.first, heads) {
			return nil
		}
		s.size += int64(len(line))
	}
}

// take checks a line and goes on to it; false: the rest of the file is of no use.
func (r *reading) take(line []byte, place string, opens bool, first int64, heads []Head) bool {
	one, hash, err := decodeLine(line)
	if err != nil {
		r.complain("%s: record %d %v", place, r.end.Sequence+1, err)
		return false
	}
	switch {
	case opens && first != 0 && one.Sequence != first:
		r.complain("%s: is record %d, and the file says %d", place, one.Sequence, first)
	case r.records == 0:
		r.first = one.Sequence // those before may have been moved away
		if one.Sequence == 1 && one.Previous != "" {
			r.complain("%s: the first record has one before it", place)
		}
	case one.Sequence != r.end.Sequence+1:
		r.complain("%s: record %d follows record %d", place, one.Sequence, r.end.Sequence)
	case one.Previous != r.end.Hash:
		r.complain("%s: record %d does not follow the one before it: that was another", place, one.Sequence)
	}
	r.records++
	r.end = Head{Sequence: one.Sequence, Hash: hash}
	for _, head := range heads {
		if head.Sequence == one.Sequence && head.Hash != hash {
			r.complain("%s: record %d is another than was written once", place, one.Sequence)
		}
	}
	return true
}

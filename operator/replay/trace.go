package replay

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrTrace says that a trace cannot be read.
var ErrTrace = errors.New("the trace cannot be read")

// Access is one request, at a time since the first one.
type Access struct {
	At    time.Duration
	Group int
}

// Trace is requests in order of time, and the groups they are for.
type Trace struct {
	Name     string
	Accesses []Access
	Bytes    []int64 // of each group
}

// Numbering gives groups their numbers, in the order they are first seen.
type Numbering[Name comparable] map[Name]int

// Of returns the number of a group, which is entered into the trace when it is seen for the first time.
func (n Numbering[Name]) Of(t *Trace, name Name, bytes int64) int {
	number, known := n[name]
	if !known {
		number = len(n)
		n[name] = number
		t.Bytes = append(t.Bytes, bytes)
	}
	return number
}

// Parse reads a trace of requests by time.
type Parse func(name string, r io.Reader, over time.Duration) (*Trace, error)

// Formats are the formats of traces by name.
func Formats() map[string]Parse {
	return map[string]Parse{"csv": ParseCSV, "objects": ParseObjects, "disk": ParseDisk}
}

// ParseObjects reads lines of sequence number, object and size, with a space between them. The requests are spread evenly over a
// time, which is a week where none is given.
func ParseObjects(name string, r io.Reader, over time.Duration) (*Trace, error) {
	t, groups := &Trace{Name: name}, Numbering[string]{}
	err := fields(r, " ", 3, func(values []string) error {
		size, err := strconv.ParseInt(values[2], 10, 64)
		if err != nil || size < 0 {
			return fmt.Errorf("%q is no size in bytes", values[2])
		}
		t.Accesses = append(t.Accesses, Access{Group: groups.Of(t, values[1], max(1, size))})
		return nil
	})
	for i := range t.Accesses {
		t.Accesses[i].At = time.Duration(float64(i) / float64(len(t.Accesses)) * float64(cmp.Or(over, 7*24*time.Hour)))
	}
	return t, err
}

// extentBytes is how much of a disk is one group.
const extentBytes = 4 << 20

// ParseDisk reads lines of version, seconds, operation, bytes and block of 512 bytes, with commas between them, after one line of
// names. The time between the first and the last is stretched over a time, if one is given.
func ParseDisk(name string, r io.Reader, over time.Duration) (*Trace, error) {
	t, groups := &Trace{Name: name}, Numbering[int64]{}
	var times []float64
	first := true
	err := fields(r, ",", 5, func(values []string) error {
		if first {
			first = false
			return nil
		}
		seconds, err := strconv.ParseFloat(values[1], 64)
		if err != nil {
			return fmt.Errorf("%q is no time in seconds", values[1])
		}
		size, block := int64(0), int64(0)
		if _, err := fmt.Sscan(values[3]+" "+values[4], &size, &block); err != nil || size < 0 || block < 0 {
			return fmt.Errorf("%q and %q are no size in bytes and number of a block", values[3], values[4])
		}
		for extent := block * 512 / extentBytes; extent*extentBytes < block*512+size; extent++ {
			t.Accesses = append(t.Accesses, Access{Group: groups.Of(t, extent, extentBytes)})
			times = append(times, seconds)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, t.stretch(times, over)
}

// ParseCSV reads lines of time, object and bytes, after one line of names. A time is a number of seconds, or a moment as RFC 3339
// has it. It is stretched as that of a disk is.
func ParseCSV(name string, r io.Reader, over time.Duration) (*Trace, error) {
	t, groups := &Trace{Name: name}, Numbering[string]{}
	lines := csv.NewReader(r)
	lines.FieldsPerRecord, lines.ReuseRecord, lines.TrimLeadingSpace = 3, true, true
	var times []float64
	for first := true; ; first = false {
		values, err := lines.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w; want lines of time, object and bytes", ErrTrace, err)
		}
		if first {
			continue
		}
		line, _ := lines.FieldPos(0)
		seconds, err := strconv.ParseFloat(values[0], 64)
		if err != nil {
			moment, wrong := time.Parse(time.RFC3339, values[0])
			if wrong != nil {
				return nil, fmt.Errorf("%w: line %d: %q is no time: give seconds, or a moment such as 2026-01-31T12:00:00Z", ErrTrace, line,
					values[0])
			}
			seconds = float64(moment.UnixMilli()) / 1000
		}
		size, err := strconv.ParseInt(values[2], 10, 64)
		if err != nil || size < 0 {
			return nil, fmt.Errorf("%w: line %d: %q is no size in bytes", ErrTrace, line, values[2])
		}
		t.Accesses = append(t.Accesses, Access{Group: groups.Of(t, strings.Clone(values[1]), max(1, size))})
		times = append(times, seconds)
	}
	return t, t.stretch(times, over)
}

// longestTrace is how long a trace may be, so that a time in other units than seconds is not taken for centuries.
const longestTrace = 10 * 366 * 24 * time.Hour

// stretch gives accesses their times, counted from the first, and sorts them. Where a time is given they are stretched over it.
func (t *Trace) stretch(times []float64, over time.Duration) error {
	if len(times) == 0 {
		return nil
	}
	first, last := slices.Min(times), slices.Max(times)
	scale := float64(time.Second)
	if length := max(1, last-first+1); over > 0 { // the last second counts
		scale = float64(over) / length
	} else if !(length <= longestTrace.Seconds()) {
		return fmt.Errorf("%w: it is of %.0f years; times are in seconds", ErrTrace, length/365/24/3600)
	}
	for i, at := range times {
		t.Accesses[i].At = time.Duration((at - first) * scale)
	}
	slices.SortStableFunc(t.Accesses, func(a, b Access) int { return cmp.Compare(a.At, b.At) })
	return nil
}

func fields(r io.Reader, separator string, count int, each func(values []string) error) error {
	scanner := bufio.NewScanner(r)
	for line := 1; scanner.Scan(); line++ {
		values := strings.Split(strings.TrimSpace(scanner.Text()), separator)
		if len(values) != count {
			return fmt.Errorf("%w: line %d: %d fields, want %d", ErrTrace, line, len(values), count)
		}
		if err := each(values); err != nil {
			return fmt.Errorf("%w: line %d: %w", ErrTrace, line, err)
		}
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrTrace, err)
	}
	return nil
}

// Read reads a trace that has requests.
func Read(name string, r io.Reader, parse Parse, over time.Duration) (*Trace, error) {
	t, err := parse(name, r, over)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(t.Accesses) == 0 {
		return nil, fmt.Errorf("%s: %w: no requests in it", name, ErrTrace)
	}
	return t, nil
}

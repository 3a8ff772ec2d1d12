package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// access is one request, at a time since the first one.
type access struct {
	at    time.Duration
	group int
}

// trace is requests in order of time, and the groups they are for.
type trace struct {
	name     string
	accesses []access
	bytes    []int64 // of each group
}

// extentBytes is how much of a disk is one group.
const extentBytes = 4 << 20

// numbering gives groups their numbers, in the order they are first seen.
type numbering map[int64]int

func (n numbering) of(t *trace, id, bytes int64) int {
	number, known := n[id]
	if !known {
		number = len(n)
		n[id] = number
		t.bytes = append(t.bytes, bytes)
	}
	return number
}

// parseWeb reads lines of sequence number, object and size. The requests are spread evenly over days.
func parseWeb(name string, r io.Reader, days float64) (*trace, error) {
	t, groups := &trace{name: name}, numbering{}
	err := fields(r, " ", 3, func(line int, values []string) error {
		id, size := int64(0), int64(0)
		if _, err := fmt.Sscan(values[1]+" "+values[2], &id, &size); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		t.accesses = append(t.accesses, access{group: groups.of(t, id, max(1, size))})
		return nil
	})
	for i := range t.accesses {
		t.accesses[i].at = time.Duration(float64(i) / float64(len(t.accesses)) * days * 24 * float64(time.Hour))
	}
	return t, err
}

// parseDisk reads lines of version, seconds, operation, bytes and block of 512 bytes, after one line of names. The time
// between the first and the last is stretched over days.
func parseDisk(name string, r io.Reader, days float64) (*trace, error) {
	t, groups := &trace{name: name}, numbering{}
	var times []float64
	err := fields(r, ",", 5, func(line int, values []string) error {
		if line == 1 {
			return nil
		}
		seconds, err := strconv.ParseFloat(values[1], 64)
		if err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		size, block := int64(0), int64(0)
		if _, err := fmt.Sscan(values[3]+" "+values[4], &size, &block); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		for extent := block * 512 / extentBytes; extent*extentBytes < block*512+size; extent++ {
			t.accesses = append(t.accesses, access{group: groups.of(t, extent, extentBytes)})
			times = append(times, seconds)
		}
		return nil
	})
	if len(times) > 0 {
		first, length := times[0], max(1, times[len(times)-1]-times[0]+1) // the last second counts
		for i := range times {
			t.accesses[i].at = time.Duration((times[i] - first) / length * days * 24 * float64(time.Hour))
		}
	}
	return t, err
}

func fields(r io.Reader, separator string, count int, each func(line int, values []string) error) error {
	scanner := bufio.NewScanner(r)
	for line := 1; scanner.Scan(); line++ {
		values := strings.Split(strings.TrimSpace(scanner.Text()), separator)
		if len(values) != count {
			return fmt.Errorf("line %d: %d fields, want %d", line, len(values), count)
		}
		if err := each(line, values); err != nil {
			return err
		}
	}
	return scanner.Err()
}

// sources are the traces by file name.
var sources = []struct {
	file  string
	name  string
	parse func(name string, r io.Reader, days float64) (*trace, error)
}{
	{"adaptsize-request.trace", "web objects", parseWeb},
	{"cloudphysics-io.csv", "virtual disk", parseDisk},
}

// readTraces reads the traces of a folder, plain or compressed by xz.
func readTraces(folder string, days float64) ([]*trace, error) {
	var traces []*trace
	for _, source := range sources {
		text, err := openTrace(filepath.Join(folder, source.file))
		if err != nil {
			return nil, err
		}
		t, err := source.parse(source.name, strings.NewReader(text), days)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", source.file, err)
		}
		if len(t.accesses) == 0 {
			return nil, fmt.Errorf("%s: no requests in it", source.file)
		}
		traces = append(traces, t)
	}
	return traces, nil
}

func openTrace(path string) (string, error) {
	text, err := os.ReadFile(path)
	if !errors.Is(err, os.ErrNotExist) {
		return string(text), err
	}
	if _, err := os.Stat(path + ".xz"); err != nil {
		return "", fmt.Errorf("neither %s nor %s.xz is there: %w", path, path, err)
	}
	text, err = exec.Command("xz", "-dc", path+".xz").Output()
	if err != nil {
		return "", fmt.Errorf("unpacking %s.xz with xz: %w", path, err)
	}
	return string(text), nil
}

package history

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"
)

// Class names a class at a backend.
type Class struct {
	Backend string `json:"backend"`
	Class   string `json:"class"`
}

// Sample is a class at a moment.
type Sample struct {
	At      time.Time `json:"at"`
	Bytes   int64     `json:"bytes"`       // as users see them
	Stored  int64     `json:"storedBytes"` // redundancy included
	Saved   int64     `json:"savedBytes"`  // against keeping all on the first rung
	Rungs   []Rung    `json:"rungs,omitempty"`
	Buckets []Bucket  `json:"buckets,omitempty"` // coldest first; empty ones are left out
}

// Rung is what lies under a scheme.
type Rung struct {
	Scheme string `json:"scheme"`
	Bytes  int64  `json:"bytes"`
	Stored int64  `json:"storedBytes"`
}

// Bucket is what is used at least AtLeast times a day, and less than the next bucket says.
type Bucket struct {
	AtLeast float64 `json:"atLeast"`
	Bytes   int64   `json:"bytes"`
}

// Series is the samples of a class, oldest first.
type Series struct {
	Class
	Samples []Sample
}

// Options bound a history.
type Options struct {
	Samples   int   // kept in memory, of all classes together; default 200,000
	FileBytes int64 // of one file; default 8 MiB
	Files     int   // default 8
}

const (
	defaultSamples   = 200_000
	defaultFileBytes = 8 << 20
	defaultFiles     = 8
)

// History is the samples of all classes. Its methods are safe for concurrent use.
type History struct {
	options Options

	mutex sync.Mutex // of what follows
	kept  map[Class][]Sample
	count int
	files *files // nil: in memory alone
	err   error  // of the last write to disk
}

// Open returns the history of a directory, which is made if it is not there; an empty directory keeps it in memory alone.
func Open(directory string, options Options) (*History, error) {
	options.Samples = cmp.Or(options.Samples, defaultSamples)
	options.FileBytes = cmp.Or(options.FileBytes, defaultFileBytes)
	options.Files = cmp.Or(options.Files, defaultFiles)
	h := &History{options: options, kept: map[Class][]Sample{}}
	if directory == "" {
		return h, nil
	}
	opened, err := openFiles(directory, options, h.keep)
	if err != nil {
		return nil, err
	}
	h.files = opened
	return h, nil
}

// Limit returns how many samples are kept.
func (h *History) Limit() int { return h.options.Samples }

// Add adds the samples of a moment. What cannot be written to disk is kept in memory nevertheless; Problem says so.
func (h *History) Add(samples map[Class]Sample) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for class, sample := range samples {
		h.keep(class, sample)
	}
	if h.files != nil {
		h.err = h.files.add(samples)
	}
}

// keep adds a sample, and drops the oldest beyond the bound. One that is not younger than the last is dropped itself:
// a clock that jumped back writes no second past.
func (h *History) keep(class Class, sample Sample) {
	series := h.kept[class]
	if n := len(series); n > 0 && !sample.At.After(series[n-1].At) {
		return
	}
	h.kept[class] = append(series, sample)
	for h.count++; h.count > h.options.Samples; h.count-- {
		h.dropOldest()
	}
}

func (h *History) dropOldest() {
	var oldest Class
	var at time.Time
	for class, series := range h.kept {
		if at.IsZero() || series[0].At.Before(at) {
			oldest, at = class, series[0].At
		}
	}
	if series := h.kept[oldest][1:]; len(series) > 0 {
		h.kept[oldest] = series
	} else {
		delete(h.kept, oldest)
	}
}

// Query says which samples; empty fields say nothing.
type Query struct {
	Class
	Since, Until time.Time // Until is exclusive
	Samples      int       // of each class at most, evenly spread, the last one always among them; 0: all
}

// Find returns the samples that match, by backend and class.
func (h *History) Find(q Query) []Series {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	var found []Series
	for class, series := range h.kept {
		if q.Backend != "" && q.Backend != class.Backend || q.Class.Class != "" && q.Class.Class != class.Class {
			continue
		}
		from, to := 0, len(series)
		if !q.Since.IsZero() {
			from, _ = slices.BinarySearchFunc(series, q.Since, compareTime)
		}
		if !q.Until.IsZero() {
			to, _ = slices.BinarySearchFunc(series, q.Until, compareTime)
		}
		if from < to {
			found = append(found, Series{class, spread(series[from:to], q.Samples)})
		}
	}
	slices.SortFunc(found, func(a, b Series) int {
		return cmp.Or(cmp.Compare(a.Backend, b.Backend), cmp.Compare(a.Class.Class, b.Class.Class))
	})
	return found
}

func compareTime(s Sample, at time.Time) int { return s.At.Compare(at) }

// spread returns at most so many of the samples.
func spread(samples []Sample, most int) []Sample {
	n := len(samples)
	if most <= 0 || n <= most {
		return slices.Clone(samples)
	}
	chosen := make([]Sample, most)
	for i := range chosen {
		chosen[i] = samples[(i+1)*n/most-1]
	}
	return chosen
}

// Oldest returns when the oldest sample was taken; zero: there is none.
func (h *History) Oldest() (oldest time.Time) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, series := range h.kept {
		if oldest.IsZero() || series[0].At.Before(oldest) {
			oldest = series[0].At
		}
	}
	return oldest
}

// Problem returns why samples are not kept on disk, or nil.
func (h *History) Problem() error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.err
}

// Close closes the files.
func (h *History) Close() error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.files == nil {
		return nil
	}
	opened := h.files
	h.files, h.err = nil, errors.New("the history was closed")
	return opened.close()
}

package adopt

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// outcome is what became of an object.
type outcome int

const (
	outcomeCarried outcome = iota + 1
	outcomeSkipped         // an earlier run verified it, and it has not changed since
	outcomeGone            // it was deleted at the source before it could be carried
	outcomeRefused
	outcomeFailed
)

// Report is what became of the objects of a job.
type Report struct {
	Carried        int64     `json:"carried"`      // and verified
	CarriedBytes   int64     `json:"carriedBytes"` //
	Skipped        int64     `json:"skipped"`      // verified by an earlier run and unchanged since
	Trimmed        int64     `json:"trimmed"`      // deleted at the source after verification
	Gone           int64     `json:"gone"`         // deleted at the source by others meanwhile
	Refused        int64     `json:"refused"`
	Failed         int64     `json:"failed"`
	Problems       []Problem `json:"problems,omitempty"` // the first of those refused and failed, ordered by name
	ElapsedSeconds float64   `json:"elapsedSeconds"`
}

// Problem is an object that was not carried.
type Problem struct {
	Name   string `json:"name"`
	Failed bool   `json:"failed"` // and not refused: running the same again may carry it
	Reason string `json:"reason"`
}

// Complete reports whether every object is at the target.
func (r Report) Complete() bool { return r.Refused == 0 && r.Failed == 0 }

// Progress is how far a job is. Totals are 0 where they are not known.
type Progress struct {
	Objects     int64   // done with, in whatever way
	Bytes       int64   // read of the source in this run
	Total       int64   // objects
	TotalBytes  int64   //
	LeftSeconds float64 // estimated; -1 unknown
}

// problemsKept bounds the memory that problems take.
const problemsKept = 1000

// tally counts outcomes. It is safe for concurrent use.
type tally struct {
	began             time.Time
	bytes, trimmed    atomic.Int64
	total, totalBytes atomic.Int64
	carriedBytes      atomic.Int64
	mutex             sync.Mutex
	counts            [outcomeFailed + 1]int64
	problems          []Problem
}

func (t *tally) begin(now time.Time) { t.began = now }

func (t *tally) count(o outcome, bytes int64) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.counts[o]++
	if o == outcomeCarried {
		t.carriedBytes.Add(bytes)
	}
}

func (t *tally) problem(o outcome, name, reason string) {
	t.count(o, 0)
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if len(t.problems) < problemsKept {
		t.problems = append(t.problems, Problem{Name: name, Failed: o == outcomeFailed, Reason: reason})
	}
}

func (t *tally) report() Report {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	problems := slices.Clone(t.problems)
	slices.SortFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Name, b.Name) })
	return Report{
		Carried: t.counts[outcomeCarried], CarriedBytes: t.carriedBytes.Load(), Skipped: t.counts[outcomeSkipped], Trimmed: t.trimmed.Load(),
		Gone: t.counts[outcomeGone], Refused: t.counts[outcomeRefused], Failed: t.counts[outcomeFailed], Problems: problems,
		ElapsedSeconds: time.Since(t.began).Seconds(),
	}
}

func (t *tally) progress(now time.Time) Progress {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	var done int64
	for _, n := range t.counts {
		done += n
	}
	p := Progress{Objects: done, Bytes: t.bytes.Load(), Total: t.total.Load(), TotalBytes: t.totalBytes.Load(), LeftSeconds: -1}
	// What was skipped says nothing about the pace.
	if worked := done - t.counts[outcomeSkipped]; worked > 0 && p.Total > 0 {
		p.LeftSeconds = now.Sub(t.began).Seconds() * float64(max(0, p.Total-done)) / float64(worked)
	}
	return p
}

// Expect tells the job how much there is, for estimates.
func (j *Job) Expect(objects, bytes int64) {
	j.tally.total.Store(objects)
	j.tally.totalBytes.Store(bytes)
}

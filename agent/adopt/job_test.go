package adopt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// quick is patience for tests: faults pass at once.
var quick = Patience{Tries: 3, Changes: 3, FirstWait: time.Microsecond, InARow: 4}

// trial is two ends and the path of a journal between them.
type trial struct {
	t            *testing.T
	source       *memory
	target       *memory
	journal      string
	options      Options
	interruption context.Context
}

func newTrial(t *testing.T, objects map[string]string) *trial {
	return &trial{
		t: t, source: newMemory(objects), target: newMemory(nil), journal: filepath.Join(t.TempDir(), "journal.db"),
		options: Options{Parallel: 2, Patience: quick}, interruption: t.Context(),
	}
}

// run runs a job from a fresh start, as a new process would.
func (r *trial) run() (Report, error) {
	r.t.Helper()
	journal, err := OpenJournal(r.t.Context(), r.journal, "a test")
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() {
		if err := journal.Close(); err != nil {
			r.t.Fatal(err)
		}
	}()
	job, err := NewJob(r.source, r.target, journal, r.options)
	if err != nil {
		r.t.Fatal(err)
	}
	return job.Run(r.interruption)
}

// must runs a job that comes to its end.
func (r *trial) must() Report {
	r.t.Helper()
	report, err := r.run()
	if err != nil {
		r.t.Fatal(err)
	}
	return report
}

// counts are the numbers of a report.
type counts struct{ Carried, Skipped, Trimmed, Gone, Refused, Failed int64 }

func (r *trial) expect(report Report, want counts) {
	r.t.Helper()
	got := counts{report.Carried, report.Skipped, report.Trimmed, report.Gone, report.Refused, report.Failed}
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Fatalf("the report (-want +got):\n%s%v", diff, report.Problems)
	}
}

func (r *trial) expectTarget(want map[string]string) {
	r.t.Helper()
	if diff := cmp.Diff(want, r.target.contents()); diff != "" {
		r.t.Fatalf("the target holds (-want +got):\n%s", diff)
	}
}

var three = map[string]string{"a": "first", "b": "second", "empty": ""}

func TestJobCarriesOnceAndAgainWhatChanged(t *testing.T) {
	r := newTrial(t, three)
	report := r.must()
	r.expect(report, counts{Carried: 3})
	if want := int64(len("first") + len("second")); report.CarriedBytes != want {
		t.Errorf("%d bytes were carried, want %d", report.CarriedBytes, want)
	}
	r.expectTarget(three)
	r.expect(r.must(), counts{Skipped: 3})
	r.source.set("b", "second, rewritten")
	r.source.set("c", "new")
	r.expect(r.must(), counts{Carried: 2, Skipped: 2})
	r.expectTarget(r.source.contents())
	if r.target.puts != 5 {
		t.Errorf("%d objects were put, want 5", r.target.puts)
	}
}

func TestJobNoticesChangesOnTheWay(t *testing.T) {
	for name, when := range map[string]func(r *trial, change func()){
		"before it is read":    func(r *trial, change func()) { r.source.onOpen = func(string) error { change(); return nil } },
		"while it is read":     func(r *trial, change func()) { r.source.onRead = func(string) { change() } },
		"while it is verified": func(r *trial, change func()) { r.target.onRead = func(string) { change() } },
		"before it is deleted": func(r *trial, change func()) { r.source.onTrim = func(string) { change() } },
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			r := newTrial(t, map[string]string{"a": "first"})
			r.options.Trim, r.options.Parallel = true, 1
			changed := false
			when(r, func() {
				if !changed {
					changed = true
					r.source.set("a", "second")
				}
			})
			r.expect(r.must(), counts{Carried: 1, Trimmed: 1})
			r.expectTarget(map[string]string{"a": "second"})
			if left := r.source.contents(); len(left) > 0 {
				t.Errorf("the source still holds %v", left)
			}
		})
	}
}

func TestJobGivesUpOnAnObjectThatNeverRests(t *testing.T) {
	r := newTrial(t, map[string]string{"a": "x", "b": "rests"})
	n := 0
	r.options.Parallel = 1
	r.source.onRead = func(name string) {
		if name == "a" {
			n++
			r.source.set("a", fmt.Sprint(n))
		}
	}
	report := r.must()
	r.expect(report, counts{Carried: 1, Failed: 1})
	if !strings.Contains(report.Problems[0].Reason, "changed during each of 3 tries") {
		t.Errorf("the reason is %q", report.Problems[0].Reason)
	}
}

func TestJobTrustsOnlyWhatItReadBack(t *testing.T) {
	r := newTrial(t, three)
	r.options.Trim = true
	r.target.onPut = func(name string, data []byte) ([]byte, bool) {
		if name == "a" {
			return []byte("fIrst"), false
		}
		return data, false
	}
	report := r.must()
	r.expect(report, counts{Carried: 2, Trimmed: 2, Failed: 1})
	if !strings.Contains(report.Problems[0].Reason, "other bytes than were stored") {
		t.Errorf("the reason is %q", report.Problems[0].Reason)
	}
	if diff := cmp.Diff(map[string]string{"a": "first"}, r.source.contents()); diff != "" {
		t.Errorf("the source holds (-want +got):\n%s", diff)
	}
}

func TestJobLeavesOthersObjectsAlone(t *testing.T) {
	r := newTrial(t, three)
	r.target.set("a", "somebody else's")
	r.target.set("b", "second")
	report := r.must()
	r.expect(report, counts{Carried: 2, Refused: 1})
	if report.Complete() {
		t.Error("the report is complete with an object refused")
	}
	r.expectTarget(map[string]string{"a": "somebody else's", "b": "second", "empty": ""})
	r.options.Overwrite = true
	r.expect(r.must(), counts{Carried: 1, Skipped: 2})
	r.expectTarget(three)

	// The copy was changed at the target, and the source's object, too: neither may win silently.
	r.options.Overwrite = false
	r.target.set("b", "changed there")
	r.source.set("b", "changed here")
	r.expect(r.must(), counts{Skipped: 2, Refused: 1})
	// Deleted there and changed here.
	r.target.remove("b")
	r.expect(r.must(), counts{Skipped: 2, Refused: 1})
}

func TestJobDeletesOnlyWhatTheTargetStillHas(t *testing.T) {
	r := newTrial(t, three)
	r.must()
	r.target.remove("a")
	r.target.set("b", "changed there")
	r.options.Trim = true
	r.expect(r.must(), counts{Skipped: 1, Trimmed: 1, Refused: 2})
	if diff := cmp.Diff(map[string]string{"a": "first", "b": "second"}, r.source.contents()); diff != "" {
		t.Errorf("the source holds (-want +got):\n%s", diff)
	}
}

func TestJobStopsWhereItCannotGoOn(t *testing.T) {
	objects := map[string]string{}
	for i := range 50 {
		objects[fmt.Sprint(i)] = "x"
	}
	r := newTrial(t, objects)
	r.target.onPut = func(string, []byte) ([]byte, bool) { return nil, true }
	if _, err := r.run(); !errors.Is(err, ErrStop) || !strings.Contains(err.Error(), "4 objects failed one after another") {
		t.Fatalf("the error is %v", err)
	}
	r.target.onPut = nil
	r.source.onOpen = func(string) error { return fmt.Errorf("%w: full", ErrStop) }
	if report, err := r.run(); !errors.Is(err, ErrStop) || report.Carried > 0 {
		t.Fatalf("the error is %v after %d objects", err, report.Carried)
	}
	r.source.onOpen = nil
	r.expect(r.must(), counts{Carried: 50})
}

func TestJobRefusesToTrimWhatCannotBe(t *testing.T) {
	source := struct{ Source }{newMemory(nil)}
	if _, err := NewJob(source, newMemory(nil), nil, Options{Trim: true}); err == nil {
		t.Error("a source that cannot delete is to be trimmed")
	}
}

// TestJobOverFaults interrupts jobs at random places, breaks connections so that nobody knows whether a put took effect,
// and writes to the source meanwhile. However that goes, nothing is ever lost, and in the end everything is at the target.
func TestJobOverFaults(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 1))
			objects := map[string]string{}
			for i := range 12 {
				objects[fmt.Sprint("o", i)] = fmt.Sprint("content ", i)
			}
			r := newTrial(t, objects)
			r.options.Parallel, r.options.Trim = 1, seed%2 == 0
			latest := maps.Clone(objects)
			for round := range 40 {
				ctx, interrupt := context.WithCancel(t.Context())
				r.interruption = ctx
				roll := func(name string) {
					switch dice.IntN(12) {
					case 0:
						interrupt()
					case 1:
						latest[name] = fmt.Sprint("rewritten in round ", round, " ", dice.IntN(1000))
						r.source.set(name, latest[name])
					}
				}
				r.source.onOpen = func(name string) error {
					roll(name)
					if dice.IntN(10) == 0 {
						return errMemory
					}
					return nil
				}
				r.target.onRead, r.source.onTrim = roll, roll
				r.target.onPut = func(_ string, data []byte) ([]byte, bool) {
					switch dice.IntN(10) {
					case 0:
						return nil, true // it did not take effect
					case 1:
						return data, true // it did
					}
					return data, false
				}
				_, err := r.run()
				interrupt()
				if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, ErrStop) {
					t.Fatal(err)
				}
				for name, want := range latest {
					if r.source.contents()[name] != want && r.target.contents()[name] != want {
						t.Fatalf("round %d: %s is lost: want %q, the source has %q and the target %q", round, name, want,
							r.source.contents()[name], r.target.contents()[name])
					}
				}
			}
			r.interruption, r.source.onOpen, r.source.onTrim, r.target.onRead, r.target.onPut = t.Context(), nil, nil, nil, nil
			if report := r.must(); !report.Complete() {
				t.Fatalf("at last: %+v", report)
			}
			r.expectTarget(latest)
		})
	}
}

package decorate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/decorate"
	"github.com/restripe/restripe/agent/store/mem"
	"github.com/restripe/restripe/agent/store/storetest"
)

// wrapper is what all decorators are.
type wrapper interface {
	Wrap(inner store.Store) store.Store
}

func decorators() map[string]wrapper {
	return map[string]wrapper{
		"limit": decorate.NewLimit(1 << 40),
		"retry": &decorate.Retry{Attempts: 3},
		"meter": &decorate.Meter{},
		"fault": &decorate.Fault{},
		"dry":   &decorate.Dry{},
	}
}

func TestHarmlessDecoratorsConform(t *testing.T) {
	storetest.Run(t, func(testing.TB) store.Store {
		s := store.Store(mem.New(0))
		for _, name := range []string{"fault", "meter", "limit", "retry"} {
			s = decorators()[name].Wrap(s)
		}
		return s
	}, storetest.Options{})
}

// unlisted is a store that cannot list.
type unlisted struct{ store.Store }

func TestTheCapabilityToListIsThatOfTheStoreInside(t *testing.T) {
	for name, decorator := range decorators() {
		if _, lists := decorator.Wrap(mem.New(0)).(store.Lister); !lists {
			t.Errorf("%s around a store that lists does not list", name)
		}
		if _, lists := decorator.Wrap(unlisted{mem.New(0)}).(store.Lister); lists {
			t.Errorf("%s around a store that does not list lists", name)
		}
	}
}

func TestLimitLetsThroughItsRateAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := decorate.NewLimit(1 << 20)
		s := limit.Wrap(mem.New(0))
		started := time.Now()
		for i := range 21 {
			key := fmt.Sprint(i)
			if err := s.Create(t.Context(), key, make([]byte, 512<<10)); err != nil {
				t.Fatal(err)
			}
		}
		// The first value starts at once, each other after the 512 KiB before it: ten seconds.
		if elapsed := time.Since(started); elapsed < 9800*time.Millisecond || elapsed > 10*time.Second {
			t.Errorf("21 values of half a second each took %v, want about 10s", elapsed)
		}
		limit.Set(0)
		started = time.Now()
		if _, err := s.ReadAt(t.Context(), "1", make([]byte, 512<<10), 0); err != nil || time.Since(started) != 0 {
			t.Errorf("without a limit a read takes %v, error %v", time.Since(started), err)
		}
	})
}

func TestLimitEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := decorate.NewLimit(1 << 20).Wrap(mem.New(0))
		if err := s.Create(t.Context(), "a", make([]byte, 8<<20)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Create(ctx, "b", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("creating under a debt of 8 seconds with one second of time: %v", err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		go cancel()
		if _, err := s.ReadAt(ctx, "a", make([]byte, 1), 0); !errors.Is(err, context.Canceled) {
			t.Errorf("reading under a debt while being cancelled: %v", err)
		}
	})
}

func TestRetryRepeatsWhatIsUnknownAndNothingElse(t *testing.T) {
	down := fmt.Errorf("test: %w", store.ErrDown)
	unknown := errors.New("test: something odd")
	for _, c := range []struct {
		name     string
		failures []error // of the attempts, in order; then success
		want     error
		attempts int
	}{
		{"success", nil, nil, 1},
		{"down once", []error{down}, nil, 2},
		{"unknown twice", []error{unknown, unknown}, nil, 3},
		{"down for good", []error{down, down, down, down}, store.ErrDown, 3},
		{"full", []error{store.ErrFull}, store.ErrFull, 1},
		{"corrupt after down", []error{down, store.ErrCorrupt}, store.ErrCorrupt, 2},
		{"not found", []error{store.ErrNotFound}, store.ErrNotFound, 1},
		{"refused", []error{store.ErrAuth}, store.ErrAuth, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fault := &decorate.Fault{Rule: func(call decorate.Call) decorate.Effect {
					if call.Number < len(c.failures) {
						return decorate.Effect{Refuse: c.failures[call.Number]}
					}
					return decorate.Effect{}
				}}
				meter := &decorate.Meter{}
				retry := &decorate.Retry{Attempts: 3, Delay: decorate.Backoff(time.Second, time.Minute)}
				inner := mem.New(0)
				if err := inner.Create(t.Context(), "k", []byte("value")); err != nil {
					t.Fatal(err)
				}
				s := retry.Wrap(meter.Wrap(fault.Wrap(inner)))
				started := time.Now()
				_, readErr := s.ReadAt(t.Context(), "k", make([]byte, 5), 0)
				if waited, want := time.Since(started), time.Duration(1<<(c.attempts-1)-1)*time.Second; waited != want {
					t.Errorf("waited %v between %d attempts, want %v", waited, c.attempts, want)
				}
				_, infoErr := s.Info(t.Context())
				errs := map[decorate.Operation]error{
					decorate.ReadAt: readErr,
					decorate.Info:   infoErr,
					decorate.Create: s.Create(t.Context(), "new", nil),
					decorate.Delete: s.Delete(t.Context(), "k"),
					decorate.List:   s.(store.Lister).List(t.Context(), "", func(string, int64) error { return nil }),
				}
				for operation, err := range errs {
					if !errors.Is(err, c.want) {
						t.Errorf("%s: error %v, want %v", operation, err, c.want)
					}
					if calls := meter.Counts()[operation].Calls; calls != int64(c.attempts) {
						t.Errorf("%s: %d attempts, want %d", operation, calls, c.attempts)
					}
				}
			})
		})
	}
}

func TestRetryFindsItsOwnCreationWhoseAcknowledgementWasLost(t *testing.T) {
	fault := &decorate.Fault{Rule: func(call decorate.Call) decorate.Effect {
		if call.Operation == decorate.Create && call.Number == 0 {
			return decorate.Effect{Lose: store.ErrDown}
		}
		return decorate.Effect{}
	}}
	var reports []string
	retry := &decorate.Retry{Attempts: 2, Report: func(operation decorate.Operation, key string, attempt int, err error) {
		reports = append(reports, fmt.Sprint(operation, key, attempt, errors.Is(err, store.ErrDown)))
	}}
	s := retry.Wrap(fault.Wrap(mem.New(0)))
	if err := s.Create(t.Context(), "k", []byte("v")); !errors.Is(err, store.ErrExists) {
		t.Errorf("creating with a lost acknowledgement: %v, want %v", err, store.ErrExists)
	}
	if want := []string{"createk1 true"}; !slices.Equal(reports, want) {
		t.Errorf("reports %q, want %q", reports, want)
	}
}

func TestRetryNeverShowsAKeyTwiceInAListing(t *testing.T) {
	inner := mem.New(0)
	for i := range 3 {
		if err := inner.Create(t.Context(), fmt.Sprint(i), nil); err != nil {
			t.Fatal(err)
		}
	}
	s := (&decorate.Retry{Attempts: 5}).Wrap(inner)
	shown := 0
	err := s.(store.Lister).List(t.Context(), "", func(string, int64) error {
		if shown++; shown == 2 {
			return store.ErrDown
		}
		return nil
	})
	if !errors.Is(err, store.ErrDown) || shown != 2 {
		t.Errorf("a listing that fails at its second key shows %d keys, error %v", shown, err)
	}
}

func TestRetryRepeatsAPage(t *testing.T) {
	fault := &decorate.Fault{Rule: func(call decorate.Call) decorate.Effect {
		if call.Operation == decorate.List && call.Number == 0 {
			return decorate.Effect{Lose: store.ErrDown}
		}
		return decorate.Effect{}
	}}
	inner := mem.New(0)
	for i := range 3 {
		if err := inner.Create(t.Context(), fmt.Sprint(i), nil); err != nil {
			t.Fatal(err)
		}
	}
	meter := &decorate.Meter{}
	s := (&decorate.Retry{Attempts: 2}).Wrap(meter.Wrap(fault.Wrap(inner)))
	keys, more, err := s.(store.Lister).Page(t.Context(), "", "0", 1)
	if err != nil || !more || !slices.Equal(keys, []string{"1"}) {
		t.Errorf("a page whose first answer is lost: %q, %v, %v", keys, more, err)
	}
	if count := meter.Counts()[decorate.List]; count.Calls != 2 || count.Errors != 1 {
		t.Errorf("the page took %d calls, of which %d failed; want 2 and 1", count.Calls, count.Errors)
	}
}

func TestMeterCountsCallsErrorsBytesAndLatencies(t *testing.T) {
	now := time.Unix(0, 0)
	meter := &decorate.Meter{Now: func() time.Time { now = now.Add(3 * time.Millisecond); return now }}
	s := meter.Wrap(mem.New(0))
	if err := s.Create(t.Context(), "k", make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), "k", make([]byte, 10)); !errors.Is(err, store.ErrExists) {
		t.Fatal(err)
	}
	if _, err := s.ReadAt(t.Context(), "k", make([]byte, 100), 4); err != nil {
		t.Fatal(err)
	}
	counts := meter.Counts()
	created, read := counts[decorate.Create], counts[decorate.ReadAt]
	if created.Calls != 2 || created.Errors != 1 || created.Bytes != 10 || created.Total != 6*time.Millisecond {
		t.Errorf("creations: %+v", created)
	}
	if read.Calls != 1 || read.Errors != 0 || read.Bytes != 6 {
		t.Errorf("reads: %+v", read)
	}
	for i, calls := range created.Latencies {
		within := decorate.BucketLimit(i) > 3*time.Millisecond && (i == 0 || decorate.BucketLimit(i-1) <= 3*time.Millisecond)
		if within != (calls == 2) {
			t.Errorf("latency bucket below %v has %d calls of 3ms", decorate.BucketLimit(i), calls)
		}
	}
}

func TestFaultsTearLoseAndHold(t *testing.T) {
	inner := mem.New(0)
	gate := make(chan struct{})
	effects := map[string]decorate.Effect{
		"torn": {Torn: true},
		"lost": {Lose: store.ErrDown},
		"held": {Gate: gate},
		"full": decorate.FullDisk(decorate.Call{Operation: decorate.Create}),
	}
	fault := &decorate.Fault{Rule: func(call decorate.Call) decorate.Effect {
		if call.Number > 0 || call.Operation != decorate.Create {
			return decorate.Effect{}
		}
		return effects[call.Key]
	}}
	s := fault.Wrap(inner)
	value := []byte("0123456789")
	if err := s.Create(t.Context(), "torn", value); !errors.Is(err, decorate.ErrInjected) || store.Definite(err) {
		t.Errorf("a torn creation: %v", err)
	}
	p := make([]byte, 20)
	if count, err := s.ReadAt(t.Context(), "torn", p, 0); err != nil || string(p[:count]) != "01234" {
		t.Errorf("after a torn creation there is %q, %v", p[:count], err)
	}
	if err := s.Create(t.Context(), "lost", value); !errors.Is(err, store.ErrDown) {
		t.Errorf("a creation without acknowledgement: %v", err)
	}
	if count, err := s.ReadAt(t.Context(), "lost", p, 0); err != nil || count != len(value) {
		t.Errorf("after a creation without acknowledgement there are %d bytes, %v", count, err)
	}
	if err := s.Create(t.Context(), "full", value); !errors.Is(err, store.ErrFull) {
		t.Errorf("creating on a full disk: %v", err)
	}
	done := make(chan error)
	go func() { done <- s.Create(t.Context(), "held", value) }()
	select {
	case err := <-done:
		t.Errorf("a held creation ends with %v before its gate opens", err)
	default:
	}
	close(gate)
	if err := <-done; err != nil {
		t.Errorf("a held creation: %v", err)
	}
}

func TestSeededFaultsDependOnTheCallAloneAndComeAsOftenAsAsked(t *testing.T) {
	rule := decorate.Seeded(7, decorate.Odds{Refuse: 0.1, Lose: 0.2, Torn: 0.3})
	var refused, lost, torn int
	const calls = 20_000
	for i := range calls {
		call := decorate.Call{Operation: decorate.Create, Key: fmt.Sprint(i % 100), Number: i / 100}
		effect := rule(call)
		again := rule(call)
		if (effect.Refuse == nil) != (again.Refuse == nil) || (effect.Lose == nil) != (again.Lose == nil) || effect.Torn != again.Torn {
			t.Fatalf("call %+v: once %+v, once %+v", call, effect, again)
		}
		switch {
		case effect.Refuse != nil:
			refused++
		case effect.Lose != nil:
			lost++
		case effect.Torn:
			torn++
		}
	}
	for name, c := range map[string]struct{ got, want int }{"refused": {refused, calls / 10}, "lost": {lost, calls / 5}, "torn": {torn, calls * 3 / 10}} {
		if c.got < c.want*9/10 || c.got > c.want*11/10 {
			t.Errorf("%s: %d of %d calls, want about %d", name, c.got, calls, c.want)
		}
	}
}

func TestDryWritesNothingAndRecordsWhatWouldBe(t *testing.T) {
	inner := mem.New(0)
	if err := inner.Create(t.Context(), "old", []byte("value")); err != nil {
		t.Fatal(err)
	}
	dry := &decorate.Dry{}
	s := dry.Wrap(inner)
	p := make([]byte, 5)
	for _, step := range []struct {
		doing string
		err   error
		want  error
	}{
		{"creating what is there", s.Create(t.Context(), "old", nil), store.ErrExists},
		{"creating", s.Create(t.Context(), "new", make([]byte, 7)), nil},
		{"creating again", s.Create(t.Context(), "new", make([]byte, 7)), store.ErrExists},
		{"deleting what is there", s.Delete(t.Context(), "old"), nil},
		{"creating after deleting", s.Create(t.Context(), "old", make([]byte, 3)), nil},
		{"deleting what was recorded", s.Delete(t.Context(), "new"), nil},
		{"creating no key", s.Create(t.Context(), "", nil), store.ErrKey},
	} {
		if !errors.Is(step.err, step.want) {
			t.Errorf("%s: %v, want %v", step.doing, step.err, step.want)
		}
	}
	if _, err := s.ReadAt(t.Context(), "new", p, 0); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("reading what was deleted: %v", err)
	}
	want := []decorate.Record{{decorate.Create, "new", 7}, {decorate.Delete, "old", 0}, {decorate.Create, "old", 3}, {decorate.Delete, "new", 0}}
	if got := dry.Records(); !slices.Equal(got, want) {
		t.Errorf("records %v, want %v", got, want)
	}
	if count, err := inner.ReadAt(t.Context(), "old", p, 0); err != nil || string(p[:count]) != "value" {
		t.Errorf("the store inside now has %q, %v", p[:count], err)
	}
	if _, err := inner.ReadAt(t.Context(), "new", p, 0); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the store inside has a value that was only recorded: %v", err)
	}
}

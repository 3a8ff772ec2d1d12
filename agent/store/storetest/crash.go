package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/restripe/restripe/agent/store"
)

// testCrash kills the server in the middle of creations, and looks at what is left.
func testCrash(t *testing.T, crashing Crashing, options Options) {
	s := crashing.Store
	info, err := s.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sizes := []int{100, options.LargeBytes}
	for round := range 3 {
		acknowledged := createUntilKilled(t, crashing, round, sizes)
		_, err := s.ReadAt(t.Context(), "any", make([]byte, 1), 0)
		wantError(t, err, store.ErrDown, "reading while the server is down")
		wantError(t, s.Create(t.Context(), "any", nil), store.ErrDown, "creating while the server is down")
		wantError(t, s.Delete(t.Context(), "any"), store.ErrDown, "deleting while the server is down")
		_, err = s.Info(t.Context())
		wantError(t, err, store.ErrDown, "describing while the server is down")
		if lister, ok := s.(store.Lister); ok {
			err := lister.List(t.Context(), "", func(string, int64) error { return nil })
			wantError(t, err, store.ErrDown, "listing while the server is down")
			wantPageError(t, func(after string) error {
				_, _, err := lister.Page(t.Context(), "", after, 10)
				return err
			}, store.ErrDown)
		}
		crashing.Restart()
		checkAfterCrash(t, s, acknowledged, info.Durable)
		key := fmt.Sprintf("after/%d", round)
		create(t, s, key, content(key, options.LargeBytes))
		wantValue(t, s, key, content(key, options.LargeBytes))
	}
}

// createUntilKilled creates values from several goroutines, kills the server when some are stored, and returns every
// key that was tried, with its size, and whether its creation was acknowledged.
func createUntilKilled(t *testing.T, crashing Crashing, round int, sizes []int) map[string]attempt {
	var mu sync.Mutex
	attempts := map[string]attempt{}
	enough := make(chan struct{})
	var once sync.Once
	var group sync.WaitGroup
	for creator := range 4 {
		group.Go(func() {
			for i := 0; ; i++ {
				size := sizes[(creator+i)%len(sizes)]
				key := fmt.Sprintf("b/%d/%d/%d", round, creator, i)
				err := crashing.Store.Create(t.Context(), key, content(key, size))
				mu.Lock()
				attempts[key] = attempt{size: size, acknowledged: err == nil}
				if len(attempts) >= 12 {
					once.Do(func() { close(enough) })
				}
				mu.Unlock()
				if err != nil {
					once.Do(func() { close(enough) })
					if errors.Is(err, store.ErrExists) || errors.Is(err, context.Canceled) {
						t.Errorf("creating while the server is killed: %v", err)
					}
					return
				}
			}
		})
	}
	<-enough
	crashing.Kill()
	group.Wait()
	return attempts
}

type attempt struct {
	size         int
	acknowledged bool
}

// checkAfterCrash checks that every value is whole or absent, and present if it was promised.
func checkAfterCrash(t *testing.T, s store.Store, attempts map[string]attempt, durable bool) {
	whole := 0
	for key, attempt := range attempts {
		got, err := readAll(t.Context(), s, key, attempt.size)
		switch {
		case err == nil && bytes.Equal(got, content(key, attempt.size)):
			whole++
		case err == nil:
			t.Errorf("%q has %d bytes after the crash that differ from the %d given", key, len(got), attempt.size)
		case errors.Is(err, store.ErrNotFound) && (!durable || !attempt.acknowledged):
		default:
			t.Errorf("%q, acknowledged %v, durable %v: %v", key, attempt.acknowledged, durable, err)
		}
	}
	t.Logf("%d of %d values were there after the crash", whole, len(attempts))
}

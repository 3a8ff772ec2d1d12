package storetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/restripe/restripe/agent/store"
)

// testFull fills a small store with values of several sizes, each size until it does not fit any more.
func testFull(t *testing.T, s store.Store, options Options) {
	sizes := []int{options.LargeBytes, 200_000, 9_000}
	stored := map[string]int{}
	for _, size := range sizes {
		for i := 0; ; i++ {
			key := fmt.Sprintf("b/%d/%d", size, i)
			if i > 4*SmallBytes/size {
				t.Fatalf("a store of %d bytes takes %d values of %d bytes", SmallBytes, i, size)
			}
			err := s.Create(t.Context(), key, content(key, size))
			if err == nil {
				stored[key] = size
				continue
			}
			wantError(t, err, store.ErrFull, "creating in a full store")
			_, err = readAll(t.Context(), s, key, size)
			wantError(t, err, store.ErrNotFound, "reading what did not fit")
			break
		}
	}
	if len(stored) < SmallBytes/4/options.LargeBytes {
		t.Fatalf("a store of %d bytes takes only %d values", SmallBytes, len(stored))
	}
	for key, size := range stored {
		for _, other := range []int{100, 9_000, options.LargeBytes} {
			err := s.Create(t.Context(), key, content("other", other))
			if !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrFull) {
				t.Fatalf("creating %q again, with %d bytes, in a full store: %v", key, other, err)
			}
		}
		wantValue(t, s, key, content(key, size))
	}
	for key := range stored {
		if err := s.Delete(t.Context(), key); err != nil {
			t.Fatalf("deleting from a full store: %v", err)
		}
	}
	create(t, s, "again", content("again", options.LargeBytes))
	wantValue(t, s, "again", content("again", options.LargeBytes))
}

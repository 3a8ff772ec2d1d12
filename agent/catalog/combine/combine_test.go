package combine_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/restripe/restripe/agent/catalog/combine"
)

// item is done when it is closed.
type item struct {
	number int
	done   chan struct{}
}

// Whatever comes while a turn is carried out goes into the next, up to what a turn may have; each item is done once.
func TestWhatWaitsIsCarriedOutTogether(t *testing.T) {
	const count, most = 100, 16
	var turns [][]*item
	held, began := make(chan struct{}), make(chan struct{}, count)
	q := combine.New(func(waiting []*item) int { return min(len(waiting), most) }, func(_ context.Context, batch []*item) {
		began <- struct{}{}
		<-held
		turns = append(turns, batch)
		for _, one := range batch {
			close(one.done)
		}
	})
	do := func(number int) {
		one := &item{number, make(chan struct{})}
		if _, err := q.Do(t.Context(), one, one.done); err != nil {
			t.Errorf("item %d: %v", number, err)
		}
	}
	var callers sync.WaitGroup
	callers.Go(func() { do(0) })
	<-began
	// One that has given up before its turn is not carried out, whether or not it was to lead.
	gone, give := context.WithCancel(t.Context())
	give()
	left := &item{-1, make(chan struct{})}
	if begun, err := q.Do(gone, left, left.done); begun || !errors.Is(err, context.Canceled) {
		t.Errorf("an item whose caller has left: begun %v, %v", begun, err)
	}
	for number := 1; number < count; number++ {
		callers.Go(func() { do(number) })
	}
	close(held)
	callers.Wait()
	seen := map[int]bool{}
	for _, batch := range turns {
		if len(batch) > most {
			t.Errorf("a turn has %d items", len(batch))
		}
		for _, one := range batch {
			if one.number < 0 || seen[one.number] {
				t.Errorf("item %d was carried out, and should not have been", one.number)
			}
			seen[one.number] = true
		}
	}
	if len(seen) != count {
		t.Errorf("%d of %d items were carried out", len(seen), count)
	}
}

package member

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/restripe/restripe/agent/block"
)

// Who asks while others count, or soon after, is told the same; who asks after a change, or later, is told anew.
func TestCountsAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s slotCounts
		counts := 0
		const takes = 100 * time.Millisecond
		ask := func() int64 {
			t.Helper()
			counted, err := s.get(t.Context(), func() (map[block.NodeID]slotCount, error) {
				counts++
				<-time.After(takes)
				return map[block.NodeID]slotCount{"n1": {stored: int64(counts)}}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return counted["n1"].stored
		}
		answers := make(chan int64)
		for range 3 {
			go func() { answers <- ask() }()
		}
		for range 3 {
			if counted := <-answers; counted != 1 {
				t.Errorf("asked side by side: count %d", counted)
			}
		}
		<-time.After(countSharedTimes*takes - 1)
		if counted := ask(); counted != 1 {
			t.Errorf("asked soon after: count %d", counted)
		}
		<-time.After(1)
		if counted := ask(); counted != 2 {
			t.Errorf("asked later: count %d", counted)
		}
		s.Forget()
		if counted := ask(); counted != 3 {
			t.Errorf("asked after a change: count %d", counted)
		}
		s.Forget()
		broken := errors.New("broken")
		if _, err := s.get(t.Context(), func() (map[block.NodeID]slotCount, error) { return nil, broken }); !errors.Is(err, broken) {
			t.Errorf("a count that fails: %v", err)
		}
		if counted := ask(); counted != 4 {
			t.Errorf("asked after a failure: count %d", counted)
		}
		s.Forget()
		ended, end := context.WithCancel(t.Context())
		end()
		s.turn <- struct{}{}
		if _, err := s.get(ended, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("one who does not wait: %v", err)
		}
	})
}

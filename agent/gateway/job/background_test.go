package job_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/restripe/restripe/agent/gateway/job"
)

// Work that begins while everything is stopped ends by itself, and what had begun before is waited for.
func TestWorkBeginsWhileAllIsStopped(t *testing.T) {
	for range 300 {
		b := job.NewBackground(t.Context())
		var ended atomic.Int64
		before := make(chan struct{})
		b.Go(func(ctx context.Context) {
			close(before)
			<-ctx.Done()
			ended.Add(1)
		})
		<-before
		var late sync.WaitGroup
		for range 4 {
			late.Go(func() {
				for range 10 {
					done := make(chan struct{})
					b.Go(func(ctx context.Context) {
						<-ctx.Done()
						close(done)
					})
					<-done
				}
			})
		}
		var stopping sync.WaitGroup
		for range 2 {
			stopping.Go(b.Stop)
		}
		stopping.Wait()
		if ended.Load() != 1 {
			t.Fatal("work under way was not waited for")
		}
		late.Wait()
	}
}

package job

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// counting is a walk of so many pages that tells how many there were before it.
type counting struct {
	pages int
	page  time.Duration // one takes so long
	walks int
	fails error
}

func (c *counting) walk(_ context.Context, rest func(int) error) (int, error) {
	c.walks++
	for range c.pages {
		<-time.After(c.page)
		if err := rest(1); err != nil {
			return 0, err
		}
	}
	return c.walks, c.fails
}

// recent runs a test of what a walk finds.
func recent(t *testing.T, c *counting, test func(t *testing.T, r *Recent[int], ask func(shares bool) Found[int])) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		background := NewBackground(t.Context())
		defer background.Stop()
		r := NewRecent(background, c.walk)
		test(t, r, func(shares bool) Found[int] {
			t.Helper()
			found, err := r.Ask(t.Context(), shares)
			if err != nil {
				t.Fatal(err)
			}
			return found
		})
	})
}

// Who shares is told the same as others who ask at the time, or soon after; who asks after a change, or later, is told anew, as
// is everybody who does not share.
func TestShortWalksAreShared(t *testing.T) {
	c := &counting{pages: 1, page: 100 * time.Millisecond}
	recent(t, c, func(t *testing.T, r *Recent[int], ask func(bool) Found[int]) {
		answers := make(chan int)
		for range 3 {
			go func() { answers <- ask(true).Value }()
		}
		for range 3 {
			if found := <-answers; found != 1 {
				t.Errorf("asked side by side: walk %d", found)
			}
		}
		<-time.After(sharedTimes*c.page - 1)
		if found := ask(true).Value; found != 1 {
			t.Errorf("asked soon after: walk %d", found)
		}
		<-time.After(1)
		if found := ask(true).Value; found != 2 {
			t.Errorf("asked later: walk %d", found)
		}
		r.Forget()
		if found := ask(true).Value; found != 3 {
			t.Errorf("asked after a change: walk %d", found)
		}
		if found := ask(false); found.Value != 4 || found.Old {
			t.Errorf("asked for what holds now: walk %+v", found)
		}
		under := make(chan int)
		go func() { under <- ask(false).Value }()
		synctest.Wait()
		<-time.After(1)
		if found := ask(false).Value; <-under != 5 || found != 6 {
			t.Errorf("asked while a walk was under way: walk %d, want 6, which began after that", found)
		}
		c.fails = errors.New("broken")
		if _, err := r.Ask(t.Context(), false); !errors.Is(err, c.fails) {
			t.Errorf("a walk that fails: %v", err)
		}
		broken := c.fails
		c.fails = nil
		if found, err := r.Ask(t.Context(), false); err != nil || found.Value != 8 {
			t.Errorf("a walk after one that failed with %v: %+v, %v", broken, found, err)
		}
	})
}

// A long walk goes on when those who asked for it have left, takes a tenth of the time once there was one before, and however
// many ask, there is one, and a pause as long as it took after it; they are told at once of the one before.
func TestLongWalksAreToldOfAsOfWhenTheyBegan(t *testing.T) {
	c := &counting{pages: 20, page: 100 * time.Millisecond}
	recent(t, c, func(t *testing.T, r *Recent[int], ask func(bool) Found[int]) {
		began := time.Now()
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			if _, err := r.Ask(ctx, true); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("nothing was found yet, and the answer is %v", err)
			}
			cancel()
		}
		first := ask(false)
		if took := time.Since(began); first.Value != 1 || took != 2*time.Second || !first.Old || !first.Began.Equal(began) {
			t.Errorf("the first walk: %+v after %v", first, took)
		}
		at := time.Now()
		for range 30 { // a second
			if found := ask(false); found != first {
				t.Errorf("after %v there is %+v", time.Since(at), found)
			}
			<-time.After(time.Second / 30)
		}
		if c.walks != 1 || time.Since(at) > time.Second {
			t.Errorf("%d walks after %v", c.walks, time.Since(at))
		}
		<-time.After(2 * time.Second)
		again := time.Now()
		for ask(false) == first {
			<-time.After(time.Second)
		}
		// Five pages until it is long, and then each with a rest of nine times as long.
		if took := time.Since(again); c.walks != 2 || took < 15*time.Second || took > 17*time.Second {
			t.Errorf("%d walks, the last took %v", c.walks, took)
		}
	})
}

// Walks that have become long are no longer waited for, and what is told instead is said to be old.
func TestAWalkThatGrowsLong(t *testing.T) {
	c := &counting{pages: 1, page: time.Millisecond}
	recent(t, c, func(t *testing.T, _ *Recent[int], ask func(bool) Found[int]) {
		ask(false)
		c.page = time.Minute
		began := time.Now()
		if found := ask(false); found.Value != 1 || !found.Old || time.Since(began) != shortWalk {
			t.Errorf("%+v after %v", found, time.Since(began))
		}
	})
}

// How far a walk is can be told while it is the first; later ones are for nobody to wait for.
func TestTheFirstWalkSaysHowFarItIs(t *testing.T) {
	c := &counting{pages: 100, page: 100 * time.Millisecond}
	recent(t, c, func(t *testing.T, r *Recent[int], ask func(bool) Found[int]) {
		if _, seen, isUnderWay := r.First(); isUnderWay || seen != 0 {
			t.Errorf("%d records before anybody asked", seen)
		}
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			ask(false)
		}()
		<-time.After(2*time.Second + 50*time.Millisecond)
		if began, seen, isUnderWay := r.First(); !isUnderWay || seen != 20 || time.Since(began) != 2*time.Second+50*time.Millisecond {
			t.Errorf("after 2 s: %d records since %s", seen, began)
		}
		<-answered
		<-time.After(time.Hour)
		ask(false)
		if _, _, isUnderWay := r.First(); isUnderWay {
			t.Error("a later walk is told of as the first")
		}
	})
}

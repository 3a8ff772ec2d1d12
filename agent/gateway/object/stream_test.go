package object

import (
	"testing"
	"time"
)

// A client that stalled gets as much as others once it took little for often enough without delay, counted from the last delay.
func TestAClientThatStalledGetsLittleForAWhile(t *testing.T) {
	var p pace
	if p.isSlow() {
		t.Error("slow from the beginning")
	}
	p.stalled()
	for range slowTimes - 1 {
		p.took(noDelay)
	}
	p.took(noDelay + 1)
	for i := range slowTimes {
		if !p.isSlow() {
			t.Fatalf("not slow any more after %d parts without delay", i)
		}
		p.took(time.Microsecond)
	}
	if p.isSlow() {
		t.Errorf("still slow after %d parts without delay", slowTimes)
	}
}

package hedge

import (
	"testing"
	"time"
)

func TestHedgesWaitForTheUsualTime(t *testing.T) {
	now := time.Unix(1000, 0)
	var h Hedges
	if have := h.Delay(now, 1); have != first {
		t.Errorf("before any read: %s", have)
	}
	for _, c := range []struct {
		latency, from, to time.Duration
	}{
		{100 * time.Microsecond, least, least},
		{10 * time.Millisecond, 36 * time.Millisecond, 44 * time.Millisecond},
		{time.Minute, most, most},
	} {
		now = now.Add(time.Minute) // what was before is forgotten
		for i := range 100 {
			latency := c.latency
			if i%3 == 0 {
				latency = 10 * time.Minute // stragglers, but fewer than half, do not count
			}
			h.Answered(now, 1, latency)
		}
		now = now.Add(time.Second)
		if have := h.Delay(now, 1); have < c.from || have > c.to {
			t.Errorf("after reads of %s: %s, want %s to %s", c.latency, have, c.from, c.to)
		}
	}
}

// Long reads take longer than short ones, and are late when they take longer than other long ones.
func TestLongReadsAreNotLateForTheirLength(t *testing.T) {
	now := time.Unix(1000, 0)
	var h Hedges
	latencies := map[int]time.Duration{100: time.Millisecond, 200 << 10: 5 * time.Millisecond, 1 << 20: 20 * time.Millisecond}
	for length, latency := range latencies {
		for range 100 {
			h.Answered(now, length, latency)
		}
	}
	for range 10_000 {
		h.Answered(now, 100, time.Millisecond)
	}
	for length, latency := range latencies {
		if have := h.Delay(now, length); have < latency*factor*9/10 || have > latency*factor*11/10 {
			t.Errorf("a read of %d bytes waits %s, others of that length take %s", length, have, latency)
		}
	}
}

func TestHedgesAreRationed(t *testing.T) {
	var h Hedges
	now := time.Unix(1, 0)
	taken := func() (n int) {
		for h.Take(now, 1000, 1) {
			n++
		}
		return n
	}
	if n := taken(); n != burst {
		t.Errorf("%d at once, want %d", n, burst)
	}
	for range 100 {
		h.Served(1000)
	}
	if n := taken(); n < 9 || n > 10 {
		t.Errorf("%d for 100 reads", n)
	}
	for range 10_000 {
		h.Served(1000)
	}
	if n := taken(); n != burst {
		t.Errorf("%d saved up, want %d", n, burst)
	}
	now = now.Add(time.Second / 2)
	if n := taken(); n != perSecond/2 {
		t.Errorf("%d after half a second without a read, want %d: readers that all wait for one node would wait on", n, perSecond/2)
	}
	for range 100 { // by clocks that are not in order
		h.Take(now.Add(-time.Second), 1000, 1)
	}
	if n := taken(); n != 0 {
		t.Errorf("%d more without time going on", n)
	}
}

// Hedges that decode long fragments of many blocks are as few as make them read a tenth of what is read for clients.
func TestHedgesAreRationedByWhatTheyRead(t *testing.T) {
	var h Hedges
	now := time.Unix(1, 0)
	hedged := 0
	const length, blocks, fragments = 640 << 10, 9, 10_000
	for range fragments {
		for h.Take(now, length, blocks) {
			hedged++
		}
		h.Served(length)
	}
	if read, most := hedged*blocks, int(fragments*share)+burst; read > most || read < fragments*share/2 {
		t.Errorf("hedges read %d blocks beside %d fragments, want at most %d", read, fragments, most)
	}
}

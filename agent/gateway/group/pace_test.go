package group

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/block"
)

// At every instant the bytes paid for are within every rate there was, but for what a second accrues; and what is asked
// for is paid in the end, however often the rates change.
func TestPacerStaysWithinItsRates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := []block.NodeID{"a", "b", "c"}
		domains := map[block.NodeID]string{"a": "rack1", "b": "rack1", "c": "rack2"}
		rate := func(name string) int64 { return rapid.Int64Range(0, 1000).Draw(t, name) }
		draw := func() Rates { return Rates{rate("total"), rate("node"), rate("domain")} }
		limits := draw()
		p := NewPacer(limits, func(id block.NodeID) string { return domains[id] })
		now := time.Unix(1000, 0)
		allowed, paid := map[string]float64{}, map[string]float64{}
		names := []string{bucketTotal, "n/a", "n/b", "n/c", "d/rack1", "d/rack2"}
		pass := func(while time.Duration) {
			now = now.Add(while)
			for _, name := range names {
				if of := limits.of(name); of == 0 {
					allowed[name] = math.Inf(1)
				} else {
					allowed[name] += float64(of) * while.Seconds()
				}
			}
		}
		for range rapid.IntRange(1, 15).Draw(t, "groups") {
			l := Load{Total: rapid.Int64Range(0, 5000).Draw(t, "bytes"), nodes: map[block.NodeID]int64{}}
			for _, id := range nodes {
				l.nodes[id] = rapid.Int64Range(0, 2000).Draw(t, "at "+string(id))
			}
			demands := p.demands(l)
			for waits := 0; ; waits++ {
				wait, _ := p.pay(demands, now)
				if wait == 0 {
					break
				}
				if waits > 2000 {
					t.Fatal("a group is never paid")
				}
				if waits < 20 && rapid.IntRange(0, 5).Draw(t, "change") == 0 {
					pass(wait / 2)
					limits = draw()
					p.Set(limits, now)
				} else {
					pass(wait)
				}
			}
			for name, bytes := range demands {
				paid[name] += float64(bytes)
			}
			for _, name := range names {
				if over := paid[name] - allowed[name]; over > 0.01*allowed[name]+1 && limits.of(name) > 0 {
					t.Fatalf("%s: %v bytes were paid for, the rates allow %v", name, paid[name], allowed[name])
				}
			}
			if rapid.Bool().Draw(t, "rest") {
				pass(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			}
		}
	})
}

// After a pause work begins at its rate: what came meanwhile is not spent at once. What came to one node while groups waited
// for another is there for the next.
func TestPacerDoesNotSaveUpWhileIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPacer(Rates{Node: 1000}, func(id block.NodeID) string { return string(id) })
		began := time.Now()
		for range 3 {
			<-time.After(time.Minute) // no group waits
			began = time.Now()
			for range 20 {
				if err := p.Wait(t.Context(), nil, Load{nodes: map[block.NodeID]int64{"a": 100}}); err != nil {
					t.Fatal(err)
				}
			}
			if took := time.Since(began); took < 1890*time.Millisecond || took > 2020*time.Millisecond {
				t.Errorf("2000 bytes at 1000 a second were paid for in %v", took)
			}
		}
		for range 2 {
			for _, id := range []block.NodeID{"b", "a"} { // both of them get what comes to them
				if err := p.Wait(t.Context(), nil, Load{nodes: map[block.NodeID]int64{id: 1000}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if took := time.Since(began) - 2*time.Second; took > 2020*time.Millisecond {
			t.Errorf("2000 bytes at each of two nodes took %v", took)
		}
	})
}

func TestPacerLetsGoWhenToldTo(t *testing.T) {
	wait := func(p *Pacer, ctx context.Context, halt chan struct{}) <-chan error {
		done := make(chan error, 1)
		go func() { done <- p.Wait(ctx, halt, Load{Total: 1 << 40}) }()
		return done
	}
	made := func() *Pacer {
		return NewPacer(Rates{Total: 1}, func(id block.NodeID) string { return fmt.Sprint(id) })
	}
	p := made()
	done := wait(p, t.Context(), nil)
	p.Set(Rates{}, time.Now())
	if err := <-done; err != nil {
		t.Errorf("after the limit was lifted: %v", err)
	}
	halt := make(chan struct{})
	p = made()
	first, second := wait(p, t.Context(), halt), wait(p, t.Context(), halt)
	close(halt)
	for _, done := range []<-chan error{first, second} {
		if err := <-done; !errors.Is(err, ErrHalted) {
			t.Errorf("when halted: %v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	first, second = wait(p, ctx, nil), wait(p, ctx, nil)
	cancel()
	for _, done := range []<-chan error{first, second} {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("when cancelled: %v", err)
		}
	}
}

package shadow

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// testPrices are those of rep(3), rs(4,2) and rs(12,2) where rs(4,2) is better below 4 uses a day and rs(12,2) below 1/4.
func testPrices() Prices {
	return Prices{
		Stored: []float64{3, 1.5, 1.25}, Use: []float64{0, 0.375, 1.375},
		Move: [][]float64{{0, 0, 0}, {20, 0, 0}, {24, 11, 0}},
	}
}

func TestPricesThatAreRefused(t *testing.T) {
	good := testPrices()
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for what, spoil := range map[string]func(*Prices){
		"no rungs":           func(p *Prices) { *p = Prices{} },
		"a use missing":      func(p *Prices) { p.Use = p.Use[:2] },
		"a row missing":      func(p *Prices) { p.Move = p.Move[:2] },
		"a move missing":     func(p *Prices) { p.Move[1] = p.Move[1][:2] },
		"a negative price":   func(p *Prices) { p.Stored[1] = -1 },
		"no number":          func(p *Prices) { p.Use[2] = math.NaN() },
		"an endless price":   func(p *Prices) { p.Move[2][0] = math.Inf(1) },
		"nothing but a rung": func(p *Prices) { *p = Prices{Stored: []float64{1}} },
	} {
		p := testPrices()
		spoil(&p)
		if _, err := New(p, Candidates(3), 0); !errors.Is(err, ErrPrices) {
			t.Errorf("%s: %v, want %v", what, err, ErrPrices)
		}
	}
}

func TestBestRung(t *testing.T) {
	prices := testPrices()
	for rate, want := range map[float64]int{0: 2, 0.24: 2, 0.26: 1, 3.9: 1, 4.1: 0, 1e9: 0} {
		if got := prices.Best(rate); got != want {
			t.Errorf("used %v times a day: rung %d, want %d", rate, got, want)
		}
	}
}

// A move down is made when the group has been where it is for as long as the move takes to pay for itself.
func TestPayback(t *testing.T) {
	prices := testPrices()
	prices.Move[0][1], prices.Move[0][2], prices.Move[1][2] = 3, 7, 1e9
	const day = 24 * time.Hour
	for _, c := range []struct {
		from, to int
		want     time.Duration
	}{{0, 1, 2 * day}, {0, 2, 4 * day}, {1, 2, never}, {1, 0, 0}, {2, 2, 0}} {
		if got := prices.Payback(c.from, c.to); got != c.want {
			t.Errorf("from rung %d to %d after %v, want %v", c.from, c.to, got, c.want)
		}
	}
	prices.Stored[1] = 4
	if got := prices.Payback(0, 1); got != never {
		t.Errorf("a move that saves nothing is made after %v", got)
	}
	first := Candidates(3)[First]
	if got := first.Stay(&prices, 0, 2); got != 4*day {
		t.Errorf("a group stays for %v", got)
	}
	if got := first.Stay(&prices, 2, 0); got != first.Dwell {
		t.Errorf("a group gets hotter after %v, want %v", got, first.Dwell)
	}
	c, err := New(prices, Candidates(3), 0)
	if err != nil {
		t.Fatal(err)
	}
	const slow = 1
	c.Use(1, Use{Bytes: 1, Times: 1})
	at := func() int { return c.Rung(1, slow) }
	for range 4*24 - 1 {
		c.Advance()
	}
	if at() != 0 {
		t.Errorf("after four days less an hour it is on rung %d", at())
	}
	if c.Advance(); at() != 2 {
		t.Errorf("after four days it is on rung %d", at())
	}
}

// What two groups cost under every fixed code can be worked out by hand.
func TestCostsByHand(t *testing.T) {
	c, err := New(testPrices(), Candidates(3), 0)
	if err != nil {
		t.Fatal(err)
	}
	for hour := range 48 {
		if hour == 0 {
			c.Use(1, Use{Bytes: 10, Times: 1}) // two days of 10 bytes, used once
		}
		if hour >= 24 {
			c.Use(2, Use{Bytes: 1, Times: 1}) // one day of 1 byte, used 24 times
		}
		c.Advance()
	}
	costs := c.Costs()
	for rung, want := range []float64{63, 31.5 + 10*0.375 + 24*0.375, 26.25 + 10*1.375 + 24*1.375} {
		if got := costs[len(costs)-3+rung]; math.Abs(got-want) > 1e-9 {
			t.Errorf("everything on rung %d costs %v, want %v", rung, got, want)
		}
	}
	// By use: the group of one use goes to the coldest rung for nothing, the other stays where it is written. The first candidate has
	// neither get colder than both are on average, which is once the second one is in use.
	const byUse = First + 1
	if cost := costs[byUse]; cost >= 63 || cost <= 26.25+3 {
		t.Errorf("by use it costs %v", cost)
	}
	way := c.Way(func(name uint64) int { return 2 })
	if want := []float64{24 * 11, 11 * 11, 0}; !slices.Equal(way[len(way)-3:], want) {
		t.Errorf("from the coldest rung the way to the others costs %v, want %v", way[len(way)-3:], want)
	}
	if got := way[byUse]; got != 24 {
		t.Errorf("from the coldest rung the way to where they are by use costs %v, want 24, of the one in use", got)
	}
}

// drive writes groups and has them used at random, each so many times a day.
func drive(c *Class, days int, rates []float64) {
	random := rand.New(rand.NewPCG(1, 2))
	name := func(g int) uint64 { return uint64(g+1) * 0x9e3779b97f4a7c15 }
	for g := range rates {
		c.Use(name(g), Use{Bytes: 1, Times: 1})
	}
	for range days * 24 {
		for g, rate := range rates {
			for passed := random.ExpFloat64(); passed < rate/24; passed += random.ExpFloat64() {
				c.Use(name(g), Use{Bytes: 1, Times: 1})
			}
		}
		c.Advance()
	}
}

// A class whose groups are all used alike says as much of a new group as watching it for weeks; one whose groups differ
// says little.
func TestEstimates(t *testing.T) {
	alike, apart := make([]float64, 400), make([]float64, 400)
	for i := range alike {
		alike[i] = 2
		if i < 20 {
			apart[i] = 40
		} else {
			apart[i] = 0.2
		}
	}
	estimates := map[string]Estimate{}
	for name, rates := range map[string][]float64{"alike": alike, "apart": apart} {
		c, err := New(testPrices(), Candidates(3), 0)
		if err != nil {
			t.Fatal(err)
		}
		drive(c, 10, rates)
		if e := c.Estimate(First); e.Rate(0, 30) != e.Mean || e.Rate(100, 1) <= e.Mean {
			t.Errorf("%s: the first candidate takes groups to be used %v and %v times a day", name, e.Rate(0, 30), e.Rate(100, 1))
		}
		estimates[name] = c.Estimate(First + 1)
	}
	if e := estimates["alike"]; math.Abs(e.Mean-2) > 0.2 || e.Prior < 20 {
		t.Errorf("of groups used twice a day: %+v", e)
	}
	if e := estimates["apart"]; math.Abs(e.Mean-2.19) > 0.4 || e.Prior > 1 {
		t.Errorf("of groups of which one in twenty is used 40 times a day: %+v", e)
	}
	e := estimates["apart"]
	quiet := Watched(72*time.Hour, 2)
	if young, old := e.Rate(0, 0), e.Rate(0, quiet); young != e.Mean || old > e.Mean/4 {
		t.Errorf("a group that was just written is taken to be used %v times a day, one that is quiet for two days %v", young, old)
	}
}

// A sample says what all of them cost, and the same each time.
func TestASampleStandsForAll(t *testing.T) {
	rates := make([]float64, 3000)
	for i := range rates {
		rates[i] = 300 / float64(i+1)
	}
	var all [3][]float64
	for i, limit := range []int{len(rates), 800, 800} {
		c, err := New(testPrices(), Candidates(3), limit)
		if err != nil {
			t.Fatal(err)
		}
		drive(c, 6, rates)
		if len(c.groups) > limit {
			t.Errorf("%d groups are followed, at most %d", len(c.groups), limit)
		}
		all[i] = c.Costs()
	}
	for i := range all[0] {
		if ratio := all[1][i] / all[0][i]; ratio < 0.75 || ratio > 1.25 {
			t.Errorf("candidate %d: by a sample %v, by all %v", i, all[1][i], all[0][i])
		}
	}
	if !slices.Equal(all[1], all[2]) {
		t.Errorf("told the same twice: %v and %v", all[1], all[2])
	}
}

// A class with one group, or none, is reckoned with like any other.
func TestOneGroup(t *testing.T) {
	c, err := New(testPrices(), Candidates(3), 1)
	if err != nil {
		t.Fatal(err)
	}
	c.Advance()
	c.Use(1<<40, Use{Bytes: 1, Times: 1})
	for range 48 {
		c.Use(1<<40, Use{Bytes: 1, Times: 2})
		c.Advance()
	}
	if e := c.Estimate(First); math.Abs(e.Mean-48) > 2 || e.Prior <= 0 {
		t.Errorf("of one group that is used 48 times a day: %+v", e)
	}
	if c.Rung(1<<40, First) != 0 {
		t.Errorf("it is on rung %d", c.Rung(1<<40, First))
	}
	for i, cost := range c.Costs() {
		if math.IsNaN(cost) || cost <= 0 {
			t.Errorf("candidate %d costs %v", i, cost)
		}
	}
}

func TestForgottenGroupsCostNothing(t *testing.T) {
	c, err := New(testPrices(), Candidates(3), 0)
	if err != nil {
		t.Fatal(err)
	}
	c.Use(1, Use{Bytes: 1, Times: 1})
	c.Advance()
	before := c.Costs()
	c.Forget(1)
	c.Advance()
	if after := c.Costs(); !slices.Equal(before, after) {
		t.Errorf("%v became %v", before, after)
	}
}

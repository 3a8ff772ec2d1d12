package gateway_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/heat/shadow"
)

// testPrices are of three rungs, where the second is better below 4 uses a day and the third below 1/4.
func testPrices() *api.RungPrices {
	return &api.RungPrices{
		Stored: []float64{3, 1.5, 1.25}, Use: []float64{0, 0.375, 1.375}, Move: [][]float64{{0, 0, 0}, {20, 0, 0}, {24, 11, 0}},
	}
}

// price has the first class followed at these prices.
func (c *cluster) price(prices *api.RungPrices) {
	c.t.Helper()
	spec := specOf(c.gateway.Classes()[0])
	spec.HalfLife, spec.Dwell, spec.Prices, spec.Expected = "72h", "3h", prices, true
	c.putClass(c.gateway, spec)
}

func costOf(t *testing.T, shadows *api.Shadows, name string) api.ShadowCost {
	t.Helper()
	for _, candidate := range shadows.Candidates {
		if candidate.Name == name {
			return candidate
		}
	}
	t.Fatalf("no candidate is called %q: %+v", name, shadows.Candidates)
	return api.ShadowCost{}
}

// hours has a class used for so many hours, and walked over after each.
func (c *cluster) hours(clock *handClock, count int, each func()) (report api.ClassHeat) {
	c.t.Helper()
	for range count {
		each()
		clock.move(time.Hour)
		report = classOf(c.t, c.walked(c.gateway, clock), "default")
	}
	return report
}

func TestShadowsSayWhatOthersWouldCost(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	clock := c.withClock()
	c.fill("k", 5)
	if plain := classOf(t, c.walked(c.gateway, clock), "default"); plain.Estimate != nil || plain.Shadows != nil {
		t.Fatalf("a class without prices: %+v, %+v", plain.Estimate, plain.Shadows)
	}
	c.price(testPrices())
	first := classOf(t, c.walked(c.gateway, clock), "default")
	if first.Estimate == nil || first.Shadows == nil || first.Shadows.Days != 0 || first.Shadows.Followed != 5 {
		t.Fatalf("followed from now on: %+v, %+v", first.Estimate, first.Shadows)
	}
	bytes := float64(first.Rungs[0].Bytes)
	report := c.hours(clock, 12, func() { c.use(c.gateway, "k0", 2) })
	shadows := report.Shadows
	if shadows.Days != 0.5 || shadows.Followed != 5 || shadows.Groups != 5 {
		t.Fatalf("after twelve hours: %+v", shadows)
	}
	for rung, want := range []float64{3 * bytes / 2, 1.5*bytes/2 + 24*0.375*bytes/5, 1.25*bytes/2 + 24*1.375*bytes/5} {
		name := (&shadow.Candidate{Always: rung}).Name()
		candidate := costOf(t, shadows, name)
		if math.Abs(candidate.Cost-want) > want/100 { // uses are counted as if they were in the middle of the hour
			t.Errorf("%s costs %v, want %v", name, candidate.Cost, want)
		}
		if candidate.Way != 0 {
			t.Errorf("the way to %s costs %v: colder is free", name, candidate.Way)
		}
	}
	if want := 3 * bytes / 2; math.Abs(shadows.Done-want) > want/100 {
		t.Errorf("where groups really are it cost %v, want %v", shadows.Done, want)
	}
	if used, _ := groupsAt(report.Rungs[0], 8, math.Inf(1)); used != 1 {
		t.Errorf("%d groups count as used more than 8 times a day, want the one", used)
	}
	// A group that is written now is taken to be used as the class is, and neither as never used nor once.
	c.put("new", noise(objectBytes, 99), api.PutOptions{})
	before := classOf(t, c.walked(c.gateway, clock), "default")
	mean := before.Estimate.Mean
	if mean < 1 || mean > 20 {
		t.Fatalf("the class is used %v times a day", mean)
	}
	bucket := before.Rungs[0].Buckets[api.HeatBucketOf(mean)]
	if bucket.Groups < 1 {
		t.Errorf("nothing is used as often as the class, %v times a day: %+v", mean, before.Rungs[0].Buckets)
	}
	// It is told of, and what is deleted is forgotten.
	if err := c.gateway.Delete(t.Context(), "k1", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.gateway.Sweep(t.Context(), api.SweepRequest{}); err != nil {
		t.Fatal(err)
	}
	if after := c.hours(clock, 1, func() {}); after.Shadows.Followed != 5 || after.Shadows.Days != 13.0/24 {
		t.Errorf("one came and one went: %+v", after.Shadows)
	}
	// Other prices go on with the same books; another ladder begins anew.
	dear := testPrices()
	dear.Stored[0] = 30
	c.price(dear)
	paid := costOf(t, shadows, "always 0").Cost
	if after := c.hours(clock, 1, func() {}); costOf(t, after.Shadows, "always 0").Cost < paid+10*bytes/24 {
		t.Errorf("at ten times the price: %+v after %v", after.Shadows, paid)
	}
	spec := specOf(c.gateway.Classes()[0])
	spec.Ladder, spec.Default = "rep(3),rs(2,2)", ""
	spec.Prices = &api.RungPrices{Stored: []float64{3, 2}, Use: []float64{0, 1}, Move: [][]float64{{0, 0}, {9, 0}}}
	c.putClass(c.gateway, spec)
	after := classOf(t, c.walked(c.gateway, clock), "default").Shadows
	if after.Days != 0 || len(after.Candidates) != len(shadow.Candidates(2)) {
		t.Errorf("of another ladder: %+v", after)
	}
}

// What is cold counts as settled when it has been where it is for as long as a move takes to pay for itself; what is hot, after the
// dwell.
func TestColdGroupsStayUntilTheMovePays(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	clock := c.withClock()
	c.fill("k", 3)
	prices := testPrices()
	prices.Move[0][1], prices.Move[0][2] = 3, 3.5 // two days
	c.price(prices)
	settledAfter := func() (settled, all int64) {
		report := classOf(t, c.walked(c.gateway, clock), "default")
		for _, bucket := range report.Rungs[0].Buckets {
			settled, all = settled+bucket.SettledGroups, all+bucket.Groups
		}
		return settled, all
	}
	c.walked(c.gateway, clock)
	clock.move(47 * time.Hour)
	if settled, all := settledAfter(); settled != 0 || all != 3 {
		t.Errorf("after 47 hours %d of %d groups are settled", settled, all)
	}
	c.use(c.gateway, "k0", 30) // so often that it stays
	clock.move(30 * time.Minute)
	c.walked(c.gateway, clock) // by the estimate of the one before
	if settled, _ := settledAfter(); settled != 1 {
		t.Errorf("%d groups are settled, want the one that is hot", settled)
	}
	clock.move(time.Hour)
	if settled, _ := settledAfter(); settled != 3 {
		t.Errorf("after two days %d groups are settled", settled)
	}
	request := api.TransitionRequest{Selector: api.Selector{Class: "default"}, From: "rep(3)", To: "rs(6,2)", SettledSeconds: 48 * 3600}
	if estimate, err := c.gateway.Estimate(t.Context(), request); err != nil || estimate.Groups != 3 {
		t.Errorf("%+v, %v", estimate, err)
	}
}

// A clock that is set back costs nothing and stops nothing, and a gateway that starts begins its books anew where groups are.
func TestShadowsAndClocks(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	clock := c.withClock()
	c.fill("k", 3)
	c.price(testPrices())
	c.walked(c.gateway, clock)
	before := c.hours(clock, 3, func() {}).Shadows
	clock.move(-24 * time.Hour)
	c.await("a walk begins at the time of now", func() bool {
		c.price(testPrices()) // has it begin
		return !c.gateway.Heat().Began.After(clock.Now())
	})
	after := c.hours(clock, 2, func() {}).Shadows
	if passed := after.Days - before.Days; passed < 1.0/24 || passed > 2.0/24+1e-9 {
		t.Errorf("two hours after the clock was set back %v days more are paid", passed)
	}
	clock.move(30 * 24 * time.Hour) // asleep
	if late := c.hours(clock, 1, func() {}).Shadows; late.Days-after.Days > 2.1 {
		t.Errorf("after a month %v days were made up for", late.Days-after.Days)
	}
	spec := specOf(c.gateway.Classes()[0])
	c.restart(clock)
	report := classOf(t, c.walked(c.gateway, clock), "default")
	if report.Shadows == nil || report.Shadows.Days != 0 || report.Shadows.Followed != 3 {
		t.Errorf("after a restart: %+v, class %+v", report.Shadows, spec)
	}
}

func TestPricesThatNoClassHas(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	for what, spoil := range map[string]func(*api.RungPrices){
		"of 2 rungs":   func(p *api.RungPrices) { p.Stored, p.Use, p.Move = p.Stored[:2], p.Use[:2], p.Move[:2] },
		"no price":     func(p *api.RungPrices) { p.Use[1] = -1 },
		"3 rungs are":  func(p *api.RungPrices) { p.Move = p.Move[:2] },
		"2 moves from": func(p *api.RungPrices) { p.Move[1] = p.Move[1][:2] },
	} {
		spec := specOf(c.gateway.Classes()[0])
		spec.Prices = testPrices()
		spoil(spec.Prices)
		_, err := c.gateway.PutClass(t.Context(), spec)
		if err == nil || !strings.Contains(err.Error(), "prices") || !strings.Contains(err.Error(), what) {
			t.Errorf("%q: %v", what, err)
		}
	}
}

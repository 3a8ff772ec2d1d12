package decide

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/heat/shadow"
	"github.com/restripe/restripe/operator/api/v1alpha1"
)

var leadBegan = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func plainMoney(amount float64) string { return fmt.Sprintf("%.2f", amount) }

// heatWith is that of a class whose candidates have paid so much, but for one.
func heatWith(since time.Time, each float64, candidate int, pays float64) *ClassHeat {
	shadows := &api.Shadows{Since: since, Done: each + 1}
	for i, c := range shadow.Candidates(len(leadLadder)) {
		cost := each
		if i == candidate {
			cost = pays
		}
		shadows.Candidates = append(shadows.Candidates, api.ShadowCost{Name: c.Name(), Cost: cost, Way: 0.1})
	}
	return &ClassHeat{Complete: true, Shadows: shadows, Rungs: []RungHeat{{Scheme: leadLadder[0], Groups: 10, Bytes: 10 << 20}}}
}

// kept is a leader as the next look finds it, through a status that was written and read.
func kept(t *testing.T, l *Leader, now time.Time) Leader {
	t.Helper()
	text, err := json.Marshal(l.Status(plainMoney))
	if err != nil {
		t.Fatal(err)
	}
	var status v1alpha1.TemperatureStatus
	if err := json.Unmarshal(text, &status); err != nil {
		t.Fatal(err)
	}
	return LeaderOf(&status, leadLadder, false, now)
}

// The books are looked at once a day, and what they say is kept in the status from one look to the next.
func TestLeadersChangeOnceADayAtMost(t *testing.T) {
	const better = 3
	leader := LeaderOf(nil, leadLadder, false, leadBegan)
	changes, looks := 0, 0
	for hour := range 24*5 + 1 {
		now := leadBegan.Add(time.Duration(hour) * time.Hour)
		days := float64(hour) / 24
		leader = kept(t, &leader, now)
		before := leader.LookedAt
		if leader.Look(now, heatWith(leadBegan, 10*days, better, 6*days), plainMoney) {
			changes++
			if hour != 96 {
				t.Errorf("another one leads from hour %d, want 96", hour)
			}
		}
		if !leader.LookedAt.Equal(before) {
			looks++
		}
	}
	if leader.Candidate != better || changes != 1 || looks != 6 {
		t.Errorf("%d leads after %d changes and %d looks, want %d after 1 and 6", leader.Candidate, changes, looks, better)
	}
	for _, amount := range []string{"would have cost 22.32", "cost 37.19", "at most 0.10"} {
		if !strings.Contains(leader.Reason, amount) {
			t.Errorf("no %q in %s", amount, leader.Reason)
		}
	}
	status := leader.Status(plainMoney)
	if want := 4*10 + 6.0; math.Abs(leader.Cost-want) > 1e-6 || status.Paid != "50.00" {
		t.Errorf("leaders cost %v, want %v; paid was %s", leader.Cost, want, status.Paid)
	}
	for i, candidate := range status.Candidates {
		want := "50.00"
		if i == better {
			want = "30.00"
		}
		if candidate.Paid != want {
			t.Errorf("%s would have cost %s, want %s", candidate.Text, candidate.Paid, want)
		}
	}
	if last := status.Candidates[len(status.Candidates)-1]; last.Text != "everything on rs(12,2)" {
		t.Errorf("the last one is %s", last.Text)
	}
	if status.GroupBytes != 1<<20 {
		t.Errorf("groups of %d bytes, want 1 MiB", status.GroupBytes)
	}
}

// A gateway that starts begins its books anew: what is in them is counted, and what was in the old ones is not forgotten. Books of
// another gateway that go further back say nothing of the last day.
func TestBooksOfOtherStarts(t *testing.T) {
	day := func(n float64) time.Time { return leadBegan.Add(time.Duration(n * 24 * float64(time.Hour))) }
	leader := LeaderOf(nil, leadLadder, false, leadBegan)
	look := func(now, since time.Time, cost float64) {
		leader = kept(t, &leader, now)
		leader.Look(now, heatWith(since, cost, -1, 0), plainMoney)
	}
	look(day(0), leadBegan, 0)
	look(day(1), leadBegan, 10)
	look(day(2.1), day(1.5), 6) // started at noon
	if leader.Cost != 16 {
		t.Errorf("after a restart leaders have cost %v, want 16", leader.Cost)
	}
	look(day(3.2), day(0.5), 27)
	if leader.Cost != 16 {
		t.Errorf("another gateway's books are counted for days that were counted already: %v, want 16", leader.Cost)
	}
	look(day(4.3), day(0.5), 38)
	if leader.Cost != 27 {
		t.Errorf("of the other gateway's next day: %v, want 27", leader.Cost)
	}
	leader = kept(t, &leader, day(5))
	if leader.Look(day(1), heatWith(day(0.5), 38, -1, 0), plainMoney) || leader.Cost != 27 {
		t.Errorf("a clock that was set back: %v", leader.Cost)
	}
	missing := heatWith(day(0.5), 60, -1, 0)
	missing.Shadows.Candidates = missing.Shadows.Candidates[1:]
	if leader.Look(day(9), missing, plainMoney) || leader.Cost != 27 {
		t.Error("candidates of another release are compared")
	}
}

// Where rules choose nobody takes the lead, and the books say what rules cost.
func TestRulesHaveBooksToo(t *testing.T) {
	leader := LeaderOf(nil, leadLadder, true, leadBegan)
	for day := range 4 {
		now := leadBegan.Add(time.Duration(day) * 24 * time.Hour)
		leader = LeaderOf(leader.Status(plainMoney), leadLadder, true, now)
		if leader.Look(now, heatWith(leadBegan, 10*float64(day), 3, float64(day)), plainMoney) {
			t.Error("a candidate takes the lead from rules")
		}
	}
	status := leader.Status(plainMoney)
	if status.Paid != "30.00" || status.Leader != "the rules of the policy" || status.Candidates[3].Paid != "3.00" {
		t.Errorf("%+v", status)
	}
	declaration := mustDeclare(t, mediaPolicy("rep(3) rs(4,2) rs(12,2)", "rs(12,2)<1"))
	rules := declaration.Rules
	led := declaration.Follow(&leader, api.RungPrices(leadPrices(4, 0.25)))
	if led.Rules != rules || led.Class.Prices == nil || led.Class.Expected || led.Class.HalfLife != declaration.Class.HalfLife {
		t.Errorf("%+v", led)
	}
	if now := LeaderOf(status, leadLadder, false, leadBegan); now.Candidate != shadow.First || now.Done != 0 {
		t.Errorf("when rules are taken out the books go on: %+v", now)
	}
}

func TestLeadersThatCannotBeKept(t *testing.T) {
	leader := LeaderOf(nil, leadLadder, false, leadBegan)
	leader.Candidate = 2
	for what, spoil := range map[string]func(*v1alpha1.TemperatureStatus){
		"another ladder":          func(s *v1alpha1.TemperatureStatus) { s.Ladder = "rep(3),rs(4,2)" },
		"fewer candidates":        func(s *v1alpha1.TemperatureStatus) { s.Candidates = s.Candidates[1:] },
		"candidates of elsewhere": func(s *v1alpha1.TemperatureStatus) { s.Candidates[0].Name = "1h 1h 1 1" },
		"a leader that is none":   func(s *v1alpha1.TemperatureStatus) { s.Candidate = "nobody" },
	} {
		status := leader.Status(plainMoney)
		if got := LeaderOf(status, leadLadder, false, leadBegan); got.Candidate != 2 {
			t.Fatalf("as it was written: %d leads", got.Candidate)
		}
		spoil(status)
		if got := LeaderOf(status, leadLadder, false, leadBegan); got.Candidate != shadow.First || got.Cost != 0 {
			t.Errorf("%s: %d leads", what, got.Candidate)
		}
	}
	status := leader.Status(plainMoney)
	status.Cost, status.Candidates[1].Seen = "much", "-1"
	if got := LeaderOf(status, leadLadder, false, leadBegan); got.Cost != 0 || got.Seen[1] != 0 {
		t.Errorf("numbers that are none: %v, %v", got.Cost, got.Seen)
	}
}

// Before anything was compared groups only get colder; later they get hotter too. A pin holds against both.
func TestFollow(t *testing.T) {
	prices := api.RungPrices(leadPrices(4, 0.25))
	prices.Move[2][0], prices.Move[1][0] = 20, 20
	policy := mediaPolicy("rep(3) rs(4,2) rs(12,2)")
	policy.Spec.Temperature = &v1alpha1.Temperature{}
	declaration := mustDeclare(t, policy)
	if !declaration.Auto || declaration.Rules != nil {
		t.Fatalf("%+v", declaration)
	}
	leader := LeaderOf(nil, leadLadder, false, leadBegan)
	led := declaration.Follow(&leader, prices)
	first := shadow.Candidates(3)[shadow.First]
	if led.Class.HalfLife != first.HalfLife || led.Class.Dwell != first.Dwell || led.Class.Prices == nil {
		t.Errorf("the class is %+v", led.Class)
	}
	hot := HeatRange{AtLeast: 1024, Below: 2048}
	if to, leaves := led.Rules.Target(leadLadder[2], hot); leaves {
		t.Errorf("on the first day what is hot goes to %s", to)
	}
	if to, leaves := led.Rules.Target(leadLadder[0], HeatRange{Below: 1.0 / 64}); !leaves || to != leadLadder[2] {
		t.Errorf("on the first day what is cold goes to %s, %t", to, leaves)
	}
	leader.Cost = 1
	if to, leaves := declaration.Follow(&leader, prices).Rules.Target(leadLadder[2], hot); !leaves || to != leadLadder[0] {
		t.Errorf("later what is hot goes to %s, %t", to, leaves)
	}
	prices.Move[0][2] = 4 * (prices.Stored[0] - prices.Stored[2])
	rules := declaration.Follow(&leader, prices).Rules
	if got := rules.stay(leadLadder[0], leadLadder[2], time.Hour); got != 4*24*time.Hour {
		t.Errorf("a group gets colder after %v", got)
	}
	if got := rules.stay(leadLadder[2], leadLadder[0], time.Hour); got != first.Dwell {
		t.Errorf("a group gets hotter after %v", got)
	}
	leader.Candidate = len(leader.candidates) - 1
	always := declaration.Follow(&leader, prices)
	if got := always.Rules.stay(leadLadder[0], leadLadder[2], time.Hour); got != time.Hour || always.Class.Expected {
		t.Errorf("where everything is to be on one code a group waits for %v; heat is expected: %t", got, always.Class.Expected)
	}
	declaration.Pinned = true
	if declaration.Follow(&leader, prices).Rules != nil {
		t.Error("a leader rules a class that is pinned")
	}
}

package member

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/wire"
)

// A script is one probe a second: "." an answer, "x" a miss. Beside it stand the states after each probe: u up,
// s suspect, d down.
func TestFailureDetector(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, want string }{
		"steady":                        {"....", "uuuu"},
		"one lost probe says nothing":   {"..x..x..x.", "uuuuuuuuuu"},
		"two in a row do":               {"..xx", "uuus"},
		"and two answers bring it back": {"..xx..", "uuussu"},
		"an answer and a miss do not":   {"..xx.x.x.x..", "uuussssssssu"},
		"never heard of":                {"xx", "ss"},
		"heard of at last":              {"xxx..", "ssssu"},
		"silent for five seconds":       {"..xxxxxx.", "uuusssddd"},
		"back from down":                {"..xxxxxx..", "uuusssdddu"},
		// Each time it turns suspect soon after it came back, it must answer twice as often: 2, 4, 8, 8.
		"comes and goes": {"..xx..xx....xx........xx........", "uuussu" + "us" + "sssu" + "us" + "sssssssu" + "us" + "sssssssu"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if have := statesOf(c.script, 5*time.Second); have != c.want {
				t.Errorf("%s\nhave %s\nwant %s", c.script, have, c.want)
			}
		})
	}
}

// statesOf runs a script from a fixed instant.
func statesOf(script string, downAfter time.Duration) string {
	var states strings.Builder
	h, now := Health{}, time.Unix(1000, 0)
	for _, probe := range script {
		if probe == '.' {
			h = h.answer(now, time.Millisecond)
		} else {
			h = h.miss(now, downAfter)
		}
		states.WriteByte(h.State[0])
		now = now.Add(time.Second)
	}
	return states.String()
}

// A node that was steady for long enough is trusted again after two answers, however often it came and went before.
func TestFailureDetectorForgives(t *testing.T) {
	t.Parallel()
	restless := "..xx..xx....xx........"
	calm := strings.Repeat(".", int(calmAfter/time.Second)+1)
	have := statesOf(restless+calm+"xx..", time.Hour)
	if tail := have[len(have)-4:]; tail != "ussu" {
		t.Errorf("after a minute of peace: %s, want ussu", tail)
	}
}

// Probes that come thick and fast, as those of several requests at once do, count as one.
func TestFailureDetectorCountsProbesApart(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	h := Health{}.answer(now, time.Millisecond)
	for range 10 {
		now = now.Add(time.Millisecond)
		h = h.miss(now, time.Hour)
	}
	if h.State != HealthUp {
		t.Errorf("after ten misses within ten milliseconds: %s", h.State)
	}
	for range 2 {
		now = now.Add(time.Second)
		h = h.miss(now, time.Hour)
	}
	for range 10 {
		now = now.Add(time.Millisecond)
		h = h.answer(now, time.Millisecond)
	}
	if h.State != healthSuspect {
		t.Errorf("after ten answers within ten milliseconds: %s", h.State)
	}
}

func TestFailureDetectorPatience(t *testing.T) {
	t.Parallel()
	h, now := Health{}, time.Unix(1000, 0)
	if h.timeout() != leastPatience {
		t.Errorf("before any answer: %s", h.timeout())
	}
	for range 50 {
		h = h.answer(now, 400*time.Millisecond)
	}
	if got := h.timeout(); got != leastPatience {
		t.Errorf("with steady round trips of 400 ms: %s", got)
	}
	for i := range 50 {
		h = h.answer(now, time.Duration(300+600*(i%2))*time.Millisecond)
	}
	if got := h.timeout(); got < 1500*time.Millisecond || got > greatestPatience {
		t.Errorf("with round trips from 300 to 900 ms: %s", got)
	}
	h = Health{}.answer(now, time.Millisecond).miss(now.Add(time.Second), time.Hour)
	if got := h.timeout(); got != 2*leastPatience {
		t.Errorf("after a miss: %s", got)
	}
	for i := range 10 {
		h = h.miss(now.Add(time.Duration(2+i)*time.Second), time.Hour)
	}
	if got := h.timeout(); got != greatestPatience {
		t.Errorf("after many misses: %s", got)
	}
}

// Whatever the outcomes of probes: a trusted node has answered lately, and one that turned suspect answered at least
// twice in a row before it is trusted again.
func TestFailureDetectorProperties(t *testing.T) {
	t.Parallel()
	source := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		h, now, row := Health{}, time.Unix(1000, 0), 0
		share := source.Float64()
		for range 400 {
			was := h.State
			if source.Float64() < share {
				h, row = h.answer(now, time.Duration(source.IntN(1000))*time.Millisecond), row+1
			} else {
				h, row = h.miss(now, 10*time.Second), 0
			}
			silent := h.silence()
			switch {
			case h.State == HealthUp && was != "" && was != HealthUp && row < answersToTrust:
				t.Fatalf("trusted after %d answers in a row", row)
			case h.State == HealthUp && h.misses >= missesToSuspect:
				t.Fatalf("trusted after %d misses in a row", h.misses)
			case h.State == healthDown && was != healthDown && silent < 10*time.Second:
				t.Fatalf("down after %s", silent)
			case h.timeout() < leastPatience || h.timeout() > greatestPatience:
				t.Fatalf("an answer is waited for %s", h.timeout())
			}
			now = now.Add(time.Duration(500+source.IntN(3000)) * time.Millisecond)
		}
	}
}

// A gateway that stood still for an hour has not asked meanwhile: a node that then misses probes has been silent since the
// first of these, whatever its state was before.
func TestFailureDetectorAfterAStandstill(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"..", "..x", "..xx", "..xxxxxxxx", "x", "xxxxxxxx"} {
		h, now := Health{}, time.Unix(1000, 0)
		for _, probe := range before {
			if probe == '.' {
				h = h.answer(now, time.Millisecond)
			} else {
				h = h.miss(now, 5*time.Second)
			}
			now = now.Add(time.Second)
		}
		was := h.State
		now = now.Add(time.Hour)
		for missed := range 5 {
			h = h.miss(now, 5*time.Second)
			if want := time.Duration(missed) * time.Second; h.silence() != want || h.misses != missed+1 {
				t.Errorf("%s and an hour later: silent for %s with %d misses, want %s with %d", before, h.silence(), h.misses, want, missed+1)
			}
			if h.State == healthDown && was != healthDown {
				t.Errorf("%s and an hour later: down after %d misses", before, missed+1)
			}
			if was == HealthUp && missed == 0 && h.State != HealthUp {
				t.Errorf("%s and an hour later: %s by a single miss", before, h.State)
			}
			now = now.Add(time.Second)
		}
	}
}

// A lost probe is told, and has who answers greeted anew; who missed one is trusted as before. A node that says it is
// another one is not.
func TestALostProbeSaysNothing(t *testing.T) {
	t.Parallel()
	lost := errors.New("lost")
	later := func(target *Agent) { target.Health.counted = target.Health.counted.Add(-time.Second) }
	target := &Agent{Node: catalog.Node{ID: "n1", State: catalog.NodeUp}}
	target.judge(nil, time.Millisecond, time.Hour)
	target.greeted(wire.HelloReply{})
	later(target)
	if worse := target.judge(lost, time.Second, time.Hour); worse || target.isOurs() {
		t.Errorf("after a lost probe: worse %t, ours %t", worse, target.isOurs())
	}
	if trusted, problem, _ := target.State(); !trusted || !errors.Is(problem, lost) {
		t.Errorf("after a lost probe: trusted %t, %v", trusted, problem)
	}
	later(target)
	if worse := target.judge(lost, time.Second, time.Hour); !worse {
		t.Error("after two lost probes it is as good as before")
	}
	if trusted, _, _ := target.State(); trusted {
		t.Error("after two lost probes it is trusted")
	}
	other := &Agent{Node: catalog.Node{ID: "n2", State: catalog.NodeUp}}
	other.judge(nil, time.Millisecond, time.Hour)
	other.judge(api.Refuse(api.ErrUnavailable, "it is n3"), time.Millisecond, time.Hour)
	if trusted, _, _ := other.State(); trusted {
		t.Error("a node that says it is another one is trusted")
	}
}

func TestGivenUp(t *testing.T) {
	t.Parallel()
	up := Member{Node: catalog.Node{ID: "up", State: catalog.NodeUp}, Trusted: true}
	silent := Member{Node: catalog.Node{ID: "silent", State: catalog.NodeUp}, down: true, misses: 100, silence: 10 * time.Minute}
	draining := Member{Node: catalog.Node{ID: "draining", State: catalog.NodeDraining}, down: true, misses: 100, silence: time.Hour}
	away := Member{Node: catalog.Node{ID: "away", State: catalog.NodeUp}, down: true, misses: 100, silence: 9 * time.Minute}
	out := Member{Node: catalog.Node{ID: "out", State: catalog.NodeUp, Out: "gw"}, down: true, misses: 100, silence: time.Hour}
	down := Member{Node: catalog.Node{ID: "down", State: catalog.NodeDown}, down: true, misses: 100, silence: time.Hour}
	missedOnce, notDown := silent, silent
	missedOnce.misses, notDown.down = 1, false
	for name, c := range map[string]struct {
		members []Member
		after   time.Duration
		want    []block.NodeID
	}{
		"a single miss is not silence":  {[]Member{up, up, missedOnce}, 10 * time.Minute, nil},
		"one that is not even down":     {[]Member{up, up, notDown}, 10 * time.Minute, nil},
		"silent for long":               {[]Member{up, up, silent}, 10 * time.Minute, []block.NodeID{"silent"}},
		"not for long enough":           {[]Member{up, up, away}, 10 * time.Minute, nil},
		"a draining node too":           {[]Member{up, up, up, draining, silent}, 10 * time.Minute, []block.NodeID{"draining", "silent"}},
		"those that are gone already":   {[]Member{up, out, down}, 10 * time.Minute, nil},
		"gone ones do not count":        {[]Member{up, up, silent, out, down, down, down}, 10 * time.Minute, []block.NodeID{"silent"}},
		"half are silent: it may be us": {[]Member{up, up, silent, away}, 10 * time.Minute, nil},
		"never":                         {[]Member{up, up, silent}, -1, nil},
	} {
		var have []block.NodeID
		for _, node := range givenUp(c.members, c.after) {
			have = append(have, node.ID)
		}
		if !slices.Equal(have, c.want) {
			t.Errorf("%s: %v, want %v", name, have, c.want)
		}
	}
}

func TestMemberState(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		node    catalog.Node
		trusted bool
		health  healthState
		want    string
	}{
		"up":                              {catalog.Node{State: catalog.NodeUp}, true, HealthUp, "up"},
		"missed probes":                   {catalog.Node{State: catalog.NodeUp}, false, healthSuspect, "suspect"},
		"refused a call":                  {catalog.Node{State: catalog.NodeUp}, false, HealthUp, "suspect"},
		"silent":                          {catalog.Node{State: catalog.NodeUp}, false, healthDown, "down"},
		"draining":                        {catalog.Node{State: catalog.NodeDraining}, true, HealthUp, "draining"},
		"draining and silent":             {catalog.Node{State: catalog.NodeDraining}, false, healthDown, "down"},
		"declared down though it answers": {catalog.Node{State: catalog.NodeDown, Fenced: true}, true, HealthUp, "down"},
		"given up":                        {catalog.Node{State: catalog.NodeUp, Out: "gw", Fenced: true}, false, healthDown, "out"},
		"back, not yet swept":             {catalog.Node{State: catalog.NodeUp, Fenced: true}, true, HealthUp, "out"},
		"given up while it drained":       {catalog.Node{State: catalog.NodeDraining, Out: "gw", Fenced: true}, true, HealthUp, "out"},
		"about to be removed":             {catalog.Node{State: catalog.NodeRemoving, Fenced: true}, true, HealthUp, "removing"},
		"removed":                         {catalog.Node{State: catalog.NodeRemoved, Fenced: true}, true, HealthUp, "removed"},
	} {
		if have := memberState(&c.node, c.trusted, c.health); have != c.want {
			t.Errorf("%s: %s, want %s", name, have, c.want)
		}
	}
}

// TestSilentSince: a node that is not trusted says from when its silence counts, and one that answers is not silent.
func TestSilentSince(t *testing.T) {
	t.Parallel()
	heard := time.Unix(1000, 0)
	node := Agent{Node: catalog.Node{ID: "n1", State: catalog.NodeUp}, Reachable: true, Health: Health{}.answer(heard, time.Millisecond)}
	if info := node.info(&slotCounts{}, heard); info.Silent != nil {
		t.Errorf("it answers, and is silent since %v", info.Silent)
	}
	node.Reachable = false
	for second := 1; second <= missesToSuspect; second++ {
		node.Health = node.Health.miss(heard.Add(time.Duration(second)*time.Second), time.Minute)
	}
	if info := node.info(&slotCounts{}, heard); info.Silent == nil || !info.Silent.Equal(heard) || info.State != nodeSuspect {
		t.Errorf("it is %s and silent since %v, want suspect since %v", info.State, info.Silent, heard)
	}
}

func TestChooseSubstitute(t *testing.T) {
	t.Parallel()
	node := func(id, domain string, chosen int64, changes ...func(*Candidate)) Candidate {
		c := Candidate{Node: catalog.Node{ID: block.NodeID(id), Domain: domain}, chosen: chosen}
		for _, change := range changes {
			change(&c)
		}
		return c
	}
	spare := func(c *Candidate) { c.Node.Spare = true }
	replaces := func(c *Candidate) { c.replaces = true }
	for name, c := range map[string]struct {
		candidates []Candidate
		used       map[string]int
		want       block.NodeID
	}{
		"nobody":                             {nil, nil, ""},
		"a domain of its own":                {[]Candidate{node("a", "r1", 0), node("b", "r2", 9)}, map[string]int{"r1": 1}, "b"},
		"the least used domain":              {[]Candidate{node("a", "r1", 0), node("b", "r2", 0)}, map[string]int{"r1": 3, "r2": 2}, "b"},
		"a domain before a spare":            {[]Candidate{node("a", "r1", 0, spare), node("b", "r2", 0)}, map[string]int{"r1": 1}, "b"},
		"spares first":                       {[]Candidate{node("a", "", 0), node("b", "", 7, spare)}, nil, "b"},
		"the replacement before a spare":     {[]Candidate{node("a", "", 0, spare), node("b", "", 7, replaces)}, nil, "b"},
		"the one that was chosen least":      {[]Candidate{node("a", "", 5), node("b", "", 4)}, nil, "b"},
		"by name where nothing else decides": {[]Candidate{node("b", "", 1), node("a", "", 1)}, nil, "a"},
	} {
		if have, found := ChooseSubstitute(c.candidates, c.used); have != c.want || found != (c.want != "") {
			t.Errorf("%s: %q, want %q", name, have, c.want)
		}
	}
}

func TestAround(t *testing.T) {
	t.Parallel()
	var candidates []Candidate
	for _, node := range []struct{ id, domain string }{
		{"a", "r1"}, {"b", "r1"}, {"c", "r1"}, {"d", "r2"}, {"e", "r2"}, {"f", "r2"}, {"g", "r3"}, {"h", "r3"},
	} {
		candidates = append(candidates, Candidate{Node: catalog.Node{ID: block.NodeID(node.id), Domain: node.domain}})
	}
	for name, c := range map[string]struct {
		held                string
		columns, want, most int
		home                string
		taken               int
	}{
		"those that hold most":               {"dagbceh", 3, 5, 2, "dagbe", 3},
		"no more than may be of one domain":  {"abcdefgh", 3, 5, 2, "abdge", 3},
		"one of each domain":                 {"abcdefgh", 3, 3, 1, "adg", 3},
		"nodes that are not there":           {"xayd", 2, 3, 1, "adg", 2},
		"few hold something":                 {"ab", 3, 5, 2, "abdge", 2},
		"few of different domains":           {"abcdef", 3, 3, 1, "adg", 2},
		"nobody holds anything":              {"", 3, 3, 1, "", 0},
		"no node left that is of another":    {"adg", 3, 4, 1, "", 0},
		"nodes for parities beside any held": {"abc", 3, 6, 3, "abcdge", 3},
	} {
		var held, want []block.NodeID
		for _, id := range c.held {
			held = append(held, block.NodeID(id))
		}
		for _, id := range c.home {
			want = append(want, block.NodeID(id))
		}
		home, taken, found := around(candidates, held, c.columns, c.want, c.most)
		if found != (c.home != "") || found && (!slices.Equal(home, want) || taken != c.taken) {
			t.Errorf("%s: %v, %d columns (%t), want %v, %d", name, home, taken, found, want, c.taken)
		}
	}
}

func TestDrainProgress(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(100_000)
	for name, c := range map[string]struct {
		drain catalog.Drain
		left  int64
		want  api.DrainInfo
	}{
		"begun":             {catalog.Drain{Slots: 40, Began: 90_000}, 40, api.DrainInfo{SlotsTotal: 40, SlotsLeft: 40, ElapsedSeconds: 10, ETASeconds: -1}},
		"a quarter is done": {catalog.Drain{Slots: 40, Began: 90_000}, 30, api.DrainInfo{SlotsTotal: 40, SlotsLeft: 30, ElapsedSeconds: 10, ETASeconds: 30}},
		"resumed":           {catalog.Drain{Slots: 40, Began: 95_000, Elapsed: 15_000}, 20, api.DrainInfo{SlotsTotal: 40, SlotsLeft: 20, ElapsedSeconds: 20, ETASeconds: 20}},
		"paused":            {catalog.Drain{Slots: 40, Began: 90_000, Elapsed: 5_000, Paused: true}, 30, api.DrainInfo{SlotsTotal: 40, SlotsLeft: 30, Paused: true, ElapsedSeconds: 5, ETASeconds: -1}},
		"more came":         {catalog.Drain{Slots: 40, Began: 90_000}, 45, api.DrainInfo{SlotsTotal: 45, SlotsLeft: 45, ElapsedSeconds: 10, ETASeconds: -1}},
		"done":              {catalog.Drain{Slots: 40, Began: 90_000}, 0, api.DrainInfo{SlotsTotal: 40, ElapsedSeconds: 10}},
	} {
		if have := drainInfo(c.drain, c.left, now); *have != c.want {
			t.Errorf("%s: %+v, want %+v", name, *have, c.want)
		}
	}
}

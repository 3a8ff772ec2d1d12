package screen

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"charm.land/bubbles/v2/key"
	"pgregory.net/rapid"

	tea "charm.land/bubbletea/v2"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/console/v1/consolev1connect"
	"github.com/restripe/restripe/operator/words"
)

// TestKeysLead: what each key shows, from the kind and the row that is chosen.
func TestKeysLead(t *testing.T) {
	for _, c := range []struct{ name, from, keys, shows string }{
		{"kinds by name", "overview", ":policies enter", "POLICIES (3)"},
		{"kinds by alias", "overview", ":no enter", "NODES (14)"},
		{"kinds by what they begin with", "overview", ":tra enter", "TRANSITIONS (5)"},
		{"kinds completed by tab", "overview", ":po tab enter", "POLICIES (3)"},
		{"a kind with a filter", "overview", ":transitions~paused enter", "(1 of 5) /paused"},
		{"no such kind", "overview", ":pods enter", `there is no kind "pods"`},
		{"what begins several", "overview", ":o enter", `there is no kind "o"`},
		{"a filter as it is typed", "transitions", "/failed", "TRANSITIONS (1 of 5) /failed"},
		{"a filter of words", "transitions", "/rep~done enter", "(1 of 5)"},
		{"a filter that is kept", "transitions", "/failed enter", "(1 of 5) /failed"},
		{"a filter given up", "transitions", "/failed esc", "TRANSITIONS (5)"},
		{"a filter taken away", "transitions", "/failed enter esc", "TRANSITIONS (5)"},
		{"a filter of nothing", "transitions", "/zzz enter", `No transition has "zzz"; esc takes the filter away.`},
		{"a filter of the overview", "overview", "/logs enter", "TRANSITIONS (1 of 3)"},
		{"no filter for a question", "transitions", "down a /", "(5)"},
		{"open", "transitions", "enter", "TRANSITIONS > media-rs-12-2-7"},
		{"describe", "nodes", "d", "NODES > n1"},
		{"and back", "transitions", "enter esc", "TRANSITIONS (5)"},
		{"back to the overview", "transitions", "esc", "OVERVIEW"},
		{"yaml", "policies", "y", "policy huge as YAML"},
		{"help of the page", "nodes", "?", "drain or undrain"},
		{"help of the kinds", "nodes", "? G", "Read-only"},
		{"plan of a policy", "policies", "p", "plan of huge"},
		{"approve what waits", "transitions", "down a", "Approve transition logs-rs-4-2-2?"},
		{"approve what does not", "transitions", "a", "waits for nobody's approval"},
		{"cancel", "transitions", "c", "type media-rs-12-2-7 to go on:"},
		{"cancel with another name", "transitions", "c media enter", `nothing was done: "media" is not "media-rs-12-2-7"`},
		{"cancel given up", "transitions", "c esc", "TRANSITIONS (5)"},
		{"throttle", "transitions", "t", "Most bytes a second for transition media-rs-12-2-7"},
		{"throttle from what is set", "transitions", "down down t", "limit: 20MiB/s"},
		{"throttle wrongly", "transitions", "tfast enter", `limit "fast": want bytes a second`},
		{"drain", "nodes", "D", "Drain node n1 of demo?"},
		{"what means nothing there", "nodes", "t", "throttle means nothing for node n1"},
		{"pin", "policies", "n", "Pin policy huge to a scheme of its ladder (rs(12,2)), for how long, and why?"},
		{"pin to what is not on the ladder", "policies", "nrep(3)~7d enter", `pin to "rep(3)": the ladder has rs(12,2)`},
		{"pin for no time", "policies", "n12+2 enter", "want a scheme and how long, such as rs(12,2) 7d"},
		{"pin for a strange time", "policies", "n12+2~soon enter", `until "soon": want how long, such as 12h, 7d or 2w`},
		{"unpin what is not pinned", "policies", "u", "policy huge is not pinned; n pins it"},
		{"pin a class", "heat", "n", "Pin policy media to a scheme of its ladder (rep(3), rs(4,2), rs(12,2))"},
		{"pin a node", "nodes", "n", "means nothing for node n1"},
		{"edit without an editor", "policies", "e", "there is no editor"},
		{"the end", "nodes", "G", "▸ n14"},
		{"the beginning", "nodes", "G g", "▸ n1 "},
		{"down and up", "nodes", "j j k", "▸ n2 "},
		{"beyond the end", "nodes", "G down down", "▸ n14"},
		{"sorted by name", "transitions", "s", "NAME^"},
		{"and backwards", "transitions", "s S", "NAMEv"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := furnished(t, c.name == "help of the kinds")
			press(m, ":"+c.from, "enter")
			for _, word := range strings.Fields(c.keys) {
				press(m, strings.ReplaceAll(word, "~", " "))
			}
			if text := m.View().Content; !strings.Contains(strings.Join(strings.Fields(text), " "), strings.Join(strings.Fields(c.shows), " ")) {
				t.Errorf("after %s there is no %q:\n%s", c.keys, c.shows, text)
			}
		})
	}
}

// furnished is a screen with something of every kind that is watched.
func furnished(t testing.TB, readOnly bool) *Model {
	m := still(t, 100, 30, func(o *Options) { o.ReadOnly = readOnly })
	tellOverview(m, overview())
	press(m, ":tr", "enter", ":po", "enter", ":no", "enter", ":he", "enter")
	tellTransitions(m, transitions()...)
	tellPolicies(m, policies()...)
	tellNodes(m, nodes()...)
	tellHeat(m, heats()...)
	return m
}

// rolling is a console that takes transitions back, and counts.
type rolling struct {
	consolev1connect.ConsoleClient
	asked, made int
}

func (r *rolling) PlanRollback(context.Context, *consolev1.PlanRollbackRequest) (*consolev1.PlanRollbackResponse, error) {
	r.asked++
	return &consolev1.PlanRollbackResponse{Lines: []string{"transition/back would take 7 groups", "  sends 3.0 MiB, reads 4.0 MiB"}}, nil
}

func (r *rolling) RollbackTransition(context.Context, *consolev1.RollbackTransitionRequest) (*consolev1.TransitionChange, error) {
	r.made++
	return &consolev1.TransitionChange{Said: "back is made"}, nil
}

// TestRollingBackShowsItsCostFirst asks what it would cost before it asks for the name, and makes nothing without.
func TestRollingBackShowsItsCostFirst(t *testing.T) {
	console := &rolling{}
	m := still(t, 100, 30, func(o *Options) { o.Client = console })
	press(m, ":tr", "enter")
	tellTransitions(m, transitions()...)
	m.Update(press(m, "R")())
	shown := m.View().Content
	for _, words := range []string{"Roll back transition media-rs-12-2-7?", "7 groups; sends 3.0 MiB", "type media-rs-12-2-7 to go on:"} {
		if !strings.Contains(shown, words) {
			t.Errorf("the screen does not say %q:\n%s", words, shown)
		}
	}
	if console.asked != 1 || console.made != 0 {
		t.Fatalf("asked %d times and made %d times before the name was typed", console.asked, console.made)
	}
	m.Update(press(m, "media-rs-12-2-7", "enter")())
	if console.made != 1 {
		t.Errorf("made %d times", console.made)
	}
}

// compacting is a console whose compaction is steered.
type compacting struct {
	consolev1connect.ConsoleClient
	made []string
}

func (c *compacting) change(what, state string) (*consolev1.CompactionChange, error) {
	c.made = append(c.made, what)
	now := compaction()
	now.State = state
	return &consolev1.CompactionChange{Compaction: now, Said: "the compaction of demo is " + state}, nil
}

func (c *compacting) StartCompaction(context.Context, *consolev1.StartCompactionRequest) (*consolev1.CompactionChange, error) {
	return c.change("start", "running")
}

func (c *compacting) PauseCompaction(context.Context, *consolev1.PauseCompactionRequest) (*consolev1.CompactionChange, error) {
	return c.change("pause", "paused")
}

func (c *compacting) ResumeCompaction(context.Context, *consolev1.ResumeCompactionRequest) (*consolev1.CompactionChange, error) {
	return c.change("resume", "running")
}

// TestCompactionIsSteered: the page of a backend begins, pauses and resumes its compaction, and shows it as it is then.
func TestCompactionIsSteered(t *testing.T) {
	console := &compacting{}
	m := still(t, 100, 30, func(o *Options) { o.Client = console })
	openDemo(m, &consolev1.Compaction{Backend: "demo", State: "idle"})
	for _, step := range []struct{ key, shows string }{
		{"C", "compaction        running"}, {"P", "compaction        paused"}, {"P", "compaction        running"},
	} {
		m.Update(press(m, step.key)())
		if text := m.View().Content; !strings.Contains(text, step.shows) || !strings.Contains(text, "the compaction of demo is") {
			t.Errorf("after %s there is no %q:\n%s", step.key, step.shows, text)
		}
	}
	if made := strings.Join(console.made, " "); made != "start pause resume" {
		t.Error(made)
	}
}

// balancing is a console whose nodes are balanced and added.
type balancing struct {
	consolev1connect.ConsoleClient
	made []string
}

func (b *balancing) change(what, state string, rate *int64) (*consolev1.BalanceChange, error) {
	if rate != nil {
		what = fmt.Sprintf("%s at %d", what, *rate)
	}
	b.made = append(b.made, what)
	now := balance()
	now.State = state
	return &consolev1.BalanceChange{Balance: now, Said: "the balance of demo is " + state}, nil
}

func (b *balancing) PlanBalance(_ context.Context, r *consolev1.PlanBalanceRequest) (*consolev1.BalancePlan, error) {
	_, err := b.change("plan", "", r.BytesPerSecond)
	return &consolev1.BalancePlan{Said: "48 MiB would be moved."}, err
}

func (b *balancing) StartBalance(_ context.Context, r *consolev1.StartBalanceRequest) (*consolev1.BalanceChange, error) {
	return b.change("start", "running", r.BytesPerSecond)
}

func (b *balancing) PauseBalance(context.Context, *consolev1.PauseBalanceRequest) (*consolev1.BalanceChange, error) {
	return b.change("pause", "paused", nil)
}

func (b *balancing) ResumeBalance(context.Context, *consolev1.ResumeBalanceRequest) (*consolev1.BalanceChange, error) {
	return b.change("resume", "running", nil)
}

func (b *balancing) CancelBalance(context.Context, *consolev1.CancelBalanceRequest) (*consolev1.BalanceChange, error) {
	return b.change("cancel", "cancelled", nil)
}

func (b *balancing) PlanAddNode(_ context.Context, r *consolev1.AddNodeRequest) (*consolev1.AddNodePlan, error) {
	b.made = append(b.made, "try "+r.Node.Name)
	return &consolev1.AddNodePlan{Said: "n16 would be added."}, nil
}

func (b *balancing) AddNode(_ context.Context, r *consolev1.AddNodeRequest) (*consolev1.AddedNode, error) {
	made := fmt.Sprint("add ", r.Node.Backend, " ", r.Node.Name, " ", r.Address, " ", r.FailureDomain, " ", r.Spare, " ", r.Balance)
	b.made = append(b.made, made)
	return &consolev1.AddedNode{Said: "n16 was added"}, nil
}

// TestBalanceIsSteered: the page of a balance plans and begins it, pauses, resumes and stops it, gives it another rate, and shows it as it
// is then; what is asked about first is not done by another key than y.
func TestBalanceIsSteered(t *testing.T) {
	console := &balancing{}
	m := still(t, 100, 30, func(o *Options) { o.Client = console })
	openBalanceOf(m, &consolev1.Balance{Backend: "demo", State: "none"})
	answer := func(command tea.Cmd) {
		t.Helper()
		if command == nil {
			t.Fatal("nothing is asked of the console")
		}
		m.Update(command())
	}
	shows := func(state string) {
		t.Helper()
		if text := m.View().Content; !strings.Contains(text, "state             "+state) {
			t.Errorf("it is not shown as %s:\n%s", state, text)
		}
	}
	answer(press(m, "B", "20MiB/s", "enter"))
	if text := m.View().Content; !strings.Contains(text, "48 MiB would be moved.") {
		t.Errorf("what would be moved is not said:\n%s", text)
	}
	press(m, "n")
	answer(press(m, "B", "enter"))
	answer(press(m, "y"))
	shows("running")
	answer(press(m, "P"))
	shows("paused")
	answer(press(m, "P"))
	shows("running")
	press(m, "x", "n")
	answer(press(m, "B", "0", "enter"))
	answer(press(m, "x", "y"))
	shows("cancelled")
	want := "plan at 20971520, plan, start, pause, resume, start at 0, cancel"
	if made := strings.Join(console.made, ", "); made != want {
		t.Errorf("it did %s, want %s", made, want)
	}
}

// TestNodesAreAdded: what adding a node means is said before it is added, and what cannot be read is refused before anything is asked.
func TestNodesAreAdded(t *testing.T) {
	console := &balancing{}
	m := still(t, 100, 30, func(o *Options) { o.Client = console })
	press(m, ":no", "enter")
	tellNodes(m, nodes()...)
	for _, text := range []string{"n16", "n16 10.0.0.16:7481 rack1 rack2"} {
		if command := press(m, "N", text, "enter"); command != nil && len(console.made) > 0 || !strings.Contains(m.note.text, "a node to add") {
			t.Errorf("%q is answered by %q, after %q", text, m.note.text, console.made)
		}
	}
	m.Update(press(m, "N", "n16 10.0.0.16:7481 rack1 balance", "enter")())
	if text := m.View().Content; !strings.Contains(text, "n16 would be added.") {
		t.Errorf("what adding it means is not said:\n%s", text)
	}
	m.Update(press(m, "y")())
	want := "try n16, add demo n16 10.0.0.16:7481 rack1 false true"
	if made := strings.Join(console.made, ", "); made != want {
		t.Errorf("it did %s, want %s", made, want)
	}
}

// TestReadOnlyRefuses: every action that changes something is refused before anything is asked of the console.
func TestReadOnlyRefuses(t *testing.T) {
	chosen := []any{transitions()[0], policies()[0], nodes()[0], &consolev1.Object{Key: "a"}, compaction(), balance()}
	for _, one := range actions {
		for _, what := range chosen {
			m := furnished(t, true)
			m.open(&textPage{session: m.session, content: func(*script) {}, chosen: func() any { return what }})
			command := press(m, one.key.Keys()[0])
			refused := command == nil && strings.HasPrefix(m.note.text, "read-only: ")
			if one.changes != refused {
				t.Errorf("%s of %s: refused is %v; %q", one.key.Help().Desc, nameOf(what), refused, m.note.text)
			}
		}
	}
}

// TestEveryKeyIsItsOwn: no two bindings share a key, and each says what it does.
func TestEveryKeyIsItsOwn(t *testing.T) {
	owners := map[string]string{}
	all := reflect.ValueOf(keys)
	for i := range all.NumField() {
		one, name := all.Field(i).Interface().(key.Binding), all.Type().Field(i).Name
		if one.Help().Key == "" || one.Help().Desc == "" {
			t.Errorf("%s has no help", name)
		}
		for _, pressed := range one.Keys() {
			if owners[pressed] != "" {
				t.Errorf("%s and %s both have the key %q", owners[pressed], name, pressed)
			}
			owners[pressed] = name
		}
	}
}

// TestTableKeepsUp: whatever is put, changed, removed, filtered and sorted, the table has what a plain list has, and the
// chosen row stays chosen while it is there.
func TestTableKeepsUp(t *testing.T) {
	l := newLook(true, false)
	rapid.Check(t, func(r *rapid.T) {
		table := newTable(&l, transitionKey, transitionOrder, transitionColumns(&session{look: l, options: Options{Now: time.Now}})...)
		table.SetSize(100, 8)
		plainly := map[string]*consolev1.Transition{}
		for range rapid.IntRange(1, 30).Draw(r, "steps") {
			before, chose := table.Value()
			name := rapid.SampledFrom([]string{"a1", "a2", "a10", "b", "c", "d", "e", "f", "g", "h"}).Draw(r, "name")
			switch rapid.IntRange(0, 4).Draw(r, "what") {
			case 0, 1:
				one := &consolev1.Transition{Name: name, State: rapid.SampledFrom([]string{"Running", "Done", "Paused"}).Draw(r, "state")}
				plainly[name] = one
				table.Put([]*consolev1.Transition{one})
			case 2:
				delete(plainly, name)
				table.Remove([]string{name})
			case 3:
				table.SetFilter(rapid.SampledFrom([]string{"", "a", "done", "nothing has this"}).Draw(r, "filter"))
			case 4:
				table.Update(tea.KeyPressMsg{Code: []rune("sSGgjk")[rapid.IntRange(0, 5).Draw(r, "key")], Text: "x"})
				continue // the cursor may go elsewhere
			}
			if len(table.sorted) != len(plainly) || !slices.IsSortedFunc(table.sorted, table.compare) {
				r.Fatalf("%d rows of %d, in order %v", len(table.sorted), len(plainly), slices.IsSortedFunc(table.sorted, table.compare))
			}
			for _, one := range table.sorted {
				if plainly[one.key] != one.value {
					r.Fatalf("%s is %v", one.key, one.value)
				}
			}
			still := slices.ContainsFunc(table.shown, func(one *entry[*consolev1.Transition]) bool { return chose && one.key == before.Name })
			if now, _ := table.Value(); still && now.Name != before.Name {
				r.Fatalf("%s was chosen, and is there, but %s is chosen now", before.Name, now.Name)
			}
			if rows := strings.Count(table.View(), "\n"); rows > 7 {
				r.Fatalf("%d rows on 7 lines", rows)
			}
		}
	})
}

// TestPartsOfAWhole: the rows before stay until all parts of a new picture came.
func TestPartsOfAWhole(t *testing.T) {
	m := furnished(t, false)
	page := pageOf[*policiesPage](m)
	tell := func(list *consolev1.PolicyList) { m.Update(received[consolev1.PolicyList]{&page.feed, nil, list}) }
	tell(&consolev1.PolicyList{Whole: true, Partial: true, Policies: []*consolev1.Policy{{Name: "x"}}})
	tell(&consolev1.PolicyList{Partial: true, Policies: []*consolev1.Policy{{Name: "y"}}})
	if page.table.Count() != "3" {
		t.Errorf("%s rows while parts are missing", page.table.Count())
	}
	tell(&consolev1.PolicyList{Policies: []*consolev1.Policy{{Name: "z"}}})
	if page.table.Count() != "3" || page.table.shown[0].key != "x" {
		t.Errorf("%s rows, the first %s", page.table.Count(), page.table.shown[0].key)
	}
	tell(&consolev1.PolicyList{Policies: []*consolev1.Policy{{Name: "w"}}, Removed: []string{"x", "y"}})
	if page.table.Count() != "2" || page.table.shown[0].key != "w" {
		t.Errorf("%s rows, the first %s", page.table.Count(), page.table.shown[0].key)
	}
}

// TestSilence: a watch that hears nothing for too long is broken off, to be begun anew.
func TestSilence(t *testing.T) {
	now := noon
	m := still(t, 80, 24, func(o *Options) { o.Now = func() time.Time { return now } })
	stopped := false
	m.overview.feed.stop = func() { stopped = true }
	m.Update(tick(now.Add(silence)))
	if stopped {
		t.Error("broken off too early")
	}
	m.Update(tick(now.Add(silence + time.Second)))
	if !stopped {
		t.Error("not broken off")
	}
	lost(m)
	if m.overview.feed.begun || m.overview.feed.since != now {
		t.Errorf("begun %v, broken since %v", m.overview.feed.begun, m.overview.feed.since)
	}
	m.Update(again[consolev1.Overview]{&m.overview.feed})
	tellOverview(m, overview())
	if !m.overview.feed.begun || !m.overview.feed.since.IsZero() {
		t.Errorf("begun %v, broken since %v", m.overview.feed.begun, m.overview.feed.since)
	}
}

// TestPictureSteps: a merge draws no arrow at any step, a plan that sends draws one where it sends.
func TestPictureSteps(t *testing.T) {
	m := still(t, 80, 24)
	for _, c := range []struct {
		picture *consolev1.Picture
		arrows  []int // steps
	}{{merge(), nil}, {spread(), []int{1}}} {
		g := newGroupPicture(m.session, "", c.picture.From, c.picture.To)
		g.picture = c.picture
		for step := range len(c.picture.Steps) + 1 {
			g.step = step
			s := &script{look: &m.look, width: 80}
			g.Write(s)
			text := strings.Join(s.lines[1:], "\n")
			if drawn := strings.Contains(text, "=→"); drawn != slices.Contains(c.arrows, step) {
				t.Errorf("step %d: an arrow is %v:\n%s", step, drawn, text)
			}
			if last := step == len(c.picture.Steps); strings.Contains(text, " A ") != last {
				t.Errorf("step %d: the new stripes:\n%s", step, text)
			}
		}
	}
}

// TestPictureFits: groups of every width are drawn within the screen.
func TestPictureFits(t *testing.T) {
	m := still(t, 80, 24)
	for columns := range int32(64) {
		for _, width := range []int{40, 80, 120} {
			p := &consolev1.Picture{From: "rep(3)", To: "rs(4,2)", Rows: 20, Columns: columns + 1}
			for cell := range p.Rows * p.Columns {
				p.Cells = append(p.Cells, &consolev1.Cell{Row: cell / p.Columns, Column: cell % p.Columns, OldStripe: cell})
			}
			for row := range int32(8) {
				p.Parities = append(p.Parities, &consolev1.ParityNode{Position: p.Columns + row, OldStripes: []int32{0, 1, 2, 3, 4, 5, 6, 7}})
			}
			g := newGroupPicture(m.session, "", p.From, p.To)
			g.picture = p
			lines := g.array(width, 10, 0)
			if len(lines) != 10 {
				t.Fatalf("%d lines", len(lines))
			}
			for _, line := range lines {
				if textWidth(line) > width {
					t.Fatalf("%d columns, %d wide: %q", columns+1, width, line)
				}
			}
		}
	}
}

// TestNothingSteersTheTerminal: what comes from elsewhere is drawn, never obeyed.
func TestNothingSteersTheTerminal(t *testing.T) {
	evil := "\x1b[2J\x1b]0;x\x07\u202eabc\r\n\u009b31m"
	m := still(t, 100, 30)
	o := overview()
	o.SafetyLine, o.MovingLine, o.Moving[0].Name, o.Moving[0].Reason, o.Classes[0].Class, o.Backends[0].Backend = evil, evil, evil, evil, evil, evil
	o.Sources[0].StaleSince, o.Sources[0].Name, o.Sources[0].Error = ago(0), evil, evil
	o.Nodes.ByState[evil] = 1
	tellOverview(m, o)
	press(m, ":tr", "enter")
	one := transitions()[0]
	one.Name, one.StateWhy, one.Reason, one.Policy, one.PlanHash = evil, evil, evil, evil, evil
	tellTransitions(m, one)
	screens := []string{}
	for _, keys := range [][]string{{":ov", "enter"}, {":tr", "enter"}, {"enter"}, {"esc", "c"}} {
		press(m, keys...)
		screens = append(screens, m.View().Content)
	}
	m.prompt = nil
	m.fail(errors.New(evil))
	screens = append(screens, m.View().Content)
	for _, text := range screens {
		if strings.ContainsAny(text, "\x1b\x07\r\u202e\u009b") {
			t.Errorf("it gets through: %q", text)
		}
	}
}

// TestWords: numbers have units, and times their range.
func TestWords(t *testing.T) {
	progress := func(eta, low, high float64) *consolev1.Progress {
		return &consolev1.Progress{EtaSeconds: &eta, EtaSecondsLow: &low, EtaSecondsHigh: &high}
	}
	for got, want := range map[string]string{
		words.Part(90*mebibyte, 192*mebibyte):  "90 of 192 MiB",
		words.Part(mebibyte/2, 4*mebibyte):     "0.5 of 4.0 MiB",
		words.Part(0, 0):                       "0 B",
		words.Part(3, 900):                     "3 of 900 B",
		etaOf(progress(840, 660, 1140)):        "14 min (11-19)",
		etaOf(progress(12, 10, 15)):            "12 s (10-15)",
		etaOf(&consolev1.Progress{}):           "-",
		etaOf(nil):                             "-",
		schemeText("rs(12,2)"):                 "12+2",
		schemeText("rep(3)"):                   "rep 3",
		schemeText("odd"):                      "odd",
		ageText(ago(90*time.Second), noon):     "2 min",
		ageText(ago(-time.Minute), noon):       "1 s",
		clockText(ago(48*time.Hour), noon):     "2026-03-12 12:04",
		words.Accesses(2770.4):                 "2,770",
		words.Accesses(1_500_000):              "1.5 M",
		shorten("media-rs-12-2-1234", 10, "…"): "media…1234",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if rate, err := parseRate("20 MiB/s"); rate != 20*mebibyte || err != nil {
		t.Error(rate, err)
	}
	for _, wrong := range []string{"", "fast", "-1", "9e30"} {
		if rate, err := parseRate(wrong); err == nil {
			t.Errorf("%q is %d", wrong, rate)
		}
	}
	if naturalCompare("n2", "n10") >= 0 || naturalCompare("n10", "n10a") >= 0 || naturalCompare("", "a") >= 0 || naturalCompare("a01", "a1") != 0 {
		t.Error("natural order")
	}
	if step := heatStep(math.Inf(1)); step != 9 {
		t.Errorf("without end: %d", step)
	}
}

// TestPins: what is typed is read as a scheme, an end and a reason, and a pin is said in words.
func TestPins(t *testing.T) {
	ladder := []string{"rep(3)", "rs(4,2)"}
	for text, want := range map[string]struct {
		scheme, reason string
		until          time.Time
	}{
		"rs(4,2) 12h":                      {"rs(4,2)", "", noon.Add(12 * time.Hour)},
		"4+2 7d the yearly audit":          {"rs(4,2)", "the yearly audit", noon.Add(7 * 24 * time.Hour)},
		"rep3 2w x":                        {"rep(3)", "x", noon.Add(14 * 24 * time.Hour)},
		"rep(3) 2026-12-24":                {"rep(3)", "", time.Date(2026, 12, 24, 0, 0, 0, 0, time.UTC)},
		"rep(3) 2026-12-24T18:30":          {"rep(3)", "", time.Date(2026, 12, 24, 18, 30, 0, 0, time.UTC)},
		"rep(3) 2026-12-24T18:30:00+01:00": {"rep(3)", "", time.Date(2026, 12, 24, 17, 30, 0, 0, time.UTC)},
	} {
		pin, err := parsePin(text, ladder, noon)
		if err != nil || pin.Scheme != want.scheme || pin.Reason != want.reason || !pin.Until.AsTime().Equal(want.until) {
			t.Errorf("%q is %v, %v", text, pin, err)
		}
	}
	for _, wrong := range []string{"", "rs(4,2)", "rs(6,2) 7d", "rs(4,2) 0d", "rs(4,2) -1d", "rs(4,2) 7", "rs(4,2) tomorrow"} {
		if pin, err := parsePin(wrong, ladder, noon); err == nil {
			t.Errorf("%q is %v", wrong, pin)
		}
	}
	pin := &consolev1.Pin{Scheme: "rs(4,2)", Until: ago(-26 * time.Hour), By: "ada", Reason: "the audit"}
	for got, want := range map[string]string{
		pinText(pin, noon):      "to 4+2 until 2026-03-15 14:04 by ada: the audit",
		ladderText(ladder, pin): "rep 3 > [4+2]",
		ladderText(ladder, nil): "rep 3 > 4+2",
		pinText(&consolev1.Pin{Scheme: "rs(4,2)", Until: ago(time.Hour), Ended: true}, noon):                                                                                                                "the pin to 4+2 ended 11:04:11 and has no effect any more; u takes it out",
		ladderText(ladder, &consolev1.Pin{Scheme: "rs(4,2)", Until: ago(time.Hour), Ended: true}):                                                                                                           "rep 3 > 4+2",
		consequence(&consolev1.PolicyPlan{Line: "1 group would move.", Ending: []string{"a-1"}, Moves: []*consolev1.PlannedMove{{From: "rep(3)", To: "rs(4,2)", Fate: "refused", Why: "it does not pay"}}}): "1 group would move. It ends a-1. rep 3 to 4+2 is refused: it does not pay.",
		consequence(&consolev1.PolicyPlan{Unknown: "no report."}):                                                                                                                                           "What would move is not known yet: no report.",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

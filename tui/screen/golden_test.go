package screen

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/charmbracelet/x/ansi"

	tea "charm.land/bubbletea/v2"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
)

var update = flag.Bool("update", false, "write the golden screens anew")

// scenes are screens that are compared with golden files, at every size of sizes.
var scenes = []struct {
	name string
	set  func(m *Model)
}{
	{"overview", func(m *Model) {
		tellOverview(m, overview())
		for i := range 30 { // a quarter of a minute of what moves
			m.overview.rates = remember(m.overview.rates, float64(i%7)*8*mebibyte)
		}
		m.overview.sample()
		for _, picture := range m.overview.pictures {
			picture.picture = merge()
		}
	}},
	{"overview-loading", func(*Model) {}},
	{"overview-empty", func(m *Model) {
		tellOverview(m, &consolev1.Overview{Safety: consolev1.Safety_SAFETY_EMPTY, SafetyLine: "Nothing is stored.", MovingLine: "Nothing is moving.", Nodes: &consolev1.NodeCounts{Total: 14, ByState: map[string]int32{"up": 14}}})
	}},
	{"overview-degraded", func(m *Model) {
		o := overview()
		o.Safety, o.SafetyLine, *o.CanLose = consolev1.Safety_SAFETY_UNPROTECTED, "312 groups miss blocks. Some objects cannot lose any node now, repair done in about 4 min.", 0
		o.Backends[0].State, o.Backends[0].Line = "repairing", "312 groups with blocks missing; they are being rebuilt."
		o.Backends[0].Repair = &consolev1.RepairProgress{State: "running", BytesTotal: 96 * mebibyte, BytesDone: 24 * mebibyte, EtaSeconds: ptr(240.0)}
		o.Nodes = &consolev1.NodeCounts{Total: 15, ByState: map[string]int32{"up": 12, "down": 2, "suspect": 1}, Bad: []*consolev1.Node{
			{Name: "n4", State: "down", Since: ago(5 * time.Minute), GivenUpAt: ago(-5 * time.Minute)}, {Name: "n11", State: "down", Since: ago(4 * time.Minute), GivenUpAt: ago(-6 * time.Minute)},
			{Name: "n9", State: "suspect", Since: ago(3 * time.Second), GivenUpAt: ago(-10 * time.Minute)},
		}}
		o.Sources[1].StaleSince, o.Sources[1].Error = ago(20*time.Second), "gateway 127.0.0.1:7480: connection refused"
		tellOverview(m, o)
	}},
	{"overview-unknown", func(m *Model) {
		o := overview()
		o.Safety, o.LastSafety, o.UnknownSince, o.CanLose = consolev1.Safety_SAFETY_UNSPECIFIED, consolev1.Safety_SAFETY_SAFE, ago(70*time.Second), nil
		o.SafetyLine = "Unknown since 12:03:01 UTC: no gateway of demo answers; last: all 11,478 objects can lose 2 nodes."
		o.Backends[0].State, o.Backends[0].Line, o.Backends[0].Load = "unknown", "No gateway answers.", nil
		tellOverview(m, o)
	}},
	{"overview-catalog-behind", func(m *Model) {
		o := overview()
		o.Safety = consolev1.Safety_SAFETY_BEHIND
		o.SafetyLine = "The catalog of demo is behind what its nodes hold: nothing is deleted until somebody decides. See `restripe catalog lineage`."
		o.Backends[0].State = "behind"
		o.Backends[0].Line = "the catalog is behind what its nodes hold: gateway gw1 found that node n3 has obeyed start gw1/7Q, which this catalog does not know"
		tellOverview(m, o)
	}},
	{"overview-disconnected", func(m *Model) {
		tellOverview(m, overview())
		lost(m)
	}},
	{"transitions", func(m *Model) {
		press(m, ":tr", "enter")
		tellTransitions(m, transitions()...)
		press(m, "down")
	}},
	{"transitions-filter", func(m *Model) {
		press(m, ":tr", "enter")
		tellTransitions(m, transitions()...)
		press(m, "/paused")
	}},
	{"transitions-none", func(m *Model) {
		press(m, ":tr", "enter")
		tellTransitions(m)
	}},
	{"transition", func(m *Model) {
		press(m, ":tr", "enter")
		tellTransitions(m, transitions()...)
		press(m, "enter")
		detail := m.stack[0].(*liveTransition).detail
		detail.picture = newGroupPicture(m.session, "rep(3),rs(4,2),rs(12,2)", "rs(4,2)", "rs(12,2)")
		detail.picture.picture = merge()
		detail.detail = &consolev1.TransitionDetail{Transition: detail.row, Explanation: "Each parity node adds the parities it holds.",
			Comparisons: []*consolev1.Comparison{{Way: "reencode", Applies: true, BytesSent: 137 * mebibyte, BytesRead: 192 * mebibyte}, {Way: "ers2-proxy"}}}
		press(m, "right", "right")
	}},
	{"approve", func(m *Model) {
		press(m, ":tr", "enter")
		tellTransitions(m, transitions()...)
		press(m, "down", "a")
	}},
	{"cancel", func(m *Model) {
		press(m, ":tr", "enter")
		tellTransitions(m, transitions()...)
		press(m, "c", "media-rs")
	}},
	{"refused", func(m *Model) {
		press(m, ":tr", "enter")
		tellTransitions(m, transitions()...)
		m.fail(lackingVerb(m, "pause"))
	}},
	{"policies", func(m *Model) {
		press(m, ":po", "enter")
		tellPolicies(m, policies()...)
	}},
	{"policy", func(m *Model) {
		press(m, ":po", "enter")
		tellPolicies(m, policies()...)
		press(m, "down", "down", "enter")
	}},
	{"nodes", func(m *Model) {
		press(m, ":no", "enter")
		tellNodes(m, nodes()...)
	}},
	{"node", func(m *Model) {
		press(m, ":no", "enter")
		tellNodes(m, nodes()...)
		press(m, "/n11", "enter", "enter")
	}},
	{"heat", func(m *Model) {
		press(m, ":he", "enter")
		tellHeat(m, heats()...)
	}},
	{"class-heat", func(m *Model) {
		press(m, ":he", "enter")
		tellHeat(m, heats()...)
		press(m, "enter")
	}},
	{"class-heat-auto", func(m *Model) {
		press(m, ":he", "enter")
		tellHeat(m, chosen())
		press(m, "enter")
	}},
	{"schemes-none", func(m *Model) {
		press(m, ":sc", "enter")
		pageOf[*aboutPage[*consolev1.Scheme]](m).seen = true
	}},
	{"backend", func(m *Model) { openDemo(m, compaction()) }},
	{"backend-idle", func(m *Model) {
		openDemo(m, &consolev1.Compaction{Backend: "demo", State: "idle"})
	}},
	{"backend-earlier", func(m *Model) { openDemo(m) }},
	{"balance", func(m *Model) { openBalanceOf(m, balance()) }},
	{"balance-none", func(m *Model) { openBalanceOf(m, &consolev1.Balance{Backend: "demo", State: "none"}) }},
	{"balance-earlier", func(m *Model) { openBalanceOf(m) }},
	{"kinds", func(m *Model) { press(m, ":") }},
	{"help", func(m *Model) {
		press(m, ":tr", "enter")
		tellTransitions(m, transitions()...)
		m.who = &consolev1.WhoAmIResponse{User: "ada", By: "token", Verbs: []string{"get", "plan"}}
		press(m, "?")
	}},
}

// openDemo opens the page of a backend with what is known of its compaction.
func openDemo(m *Model, compactions ...*consolev1.Compaction) {
	press(m, ":be", "enter")
	page := pageOf[*aboutPage[*consolev1.Backend]](m)
	page.seen = true
	page.table.Replace(backends())
	press(m, "enter")
	m.stack[0].(*liveBackend).take(&consolev1.CompactionReport{Compactions: compactions})
}

// openBalanceOf opens the balance of the first node's backend with what is known of it.
func openBalanceOf(m *Model, balances ...*consolev1.Balance) {
	press(m, ":no", "enter")
	tellNodes(m, nodes()...)
	press(m, "b")
	m.stack[0].(*liveBalance).take(&consolev1.BalanceReport{Balances: balances})
}

func ptr[T any](value T) *T { return &value }

// lackingVerb is a refusal for want of a verb, as the console makes it.
func lackingVerb(m *Model, verb string) error {
	refusal := connect.NewError(connect.CodePermissionDenied, errors.New("ada may not do this: the verb "+verb+" on transitions is missing; who looks after this console can grant it"))
	if detail, err := connect.NewErrorDetail(&consolev1.MissingVerb{User: "ada", Verb: verb}); err == nil {
		refusal.AddDetail(detail)
	}
	return refusal
}

// TestScreens compares screens with golden files, without colours. With colours they have the same text: nothing is said
// by a colour alone.
func TestScreens(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}} {
		for _, scene := range scenes {
			name := fmt.Sprintf("%s.%dx%d", scene.name, size[0], size[1])
			t.Run(name, func(t *testing.T) {
				m := still(t, size[0], size[1])
				scene.set(m)
				got := m.View().Content
				checkGolden(t, filepath.Join("testdata", "screens", name+".txt"), got)
				checkSize(t, got, size[0], size[1])
				coloured := still(t, size[0], size[1], func(o *Options) { o.NoColor = false })
				scene.set(coloured)
				if text := ansi.Strip(coloured.View().Content); trimLines(text) != trimLines(got) {
					t.Errorf("with colours the text is another:\n%s", text)
				}
			})
		}
	}
}

// TestASCII: where the terminal has no other characters none are drawn.
func TestASCII(t *testing.T) {
	for _, scene := range scenes {
		m := still(t, 80, 24, func(o *Options) { o.ASCII = true })
		scene.set(m)
		for i, r := range m.View().Content {
			if r > 0x7e {
				t.Fatalf("%s: %q at byte %d:\n%s", scene.name, r, i, m.View().Content)
			}
		}
	}
}

// TestTooSmall: a terminal that is too small is told so, and what there was comes back with its size.
func TestTooSmall(t *testing.T) {
	m := still(t, 80, 24)
	tellOverview(m, overview())
	before := m.View().Content
	for _, size := range [][2]int{{79, 24}, {80, 23}, {20, 3}, {1, 1}, {0, 0}} {
		m.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		if text := strings.Join(strings.Fields(m.View().Content), ""); !strings.Contains(text, "needs80x24") {
			t.Errorf("%v: %q", size, m.View().Content)
		}
	}
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	if m.View().Content != before {
		t.Errorf("it does not come back:\n%s", m.View().Content)
	}
}

func checkGolden(t *testing.T, path, got string) {
	t.Helper()
	got = trimLines(got)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("the screen is:\n%s\nand in %s (-update writes it anew):\n%s", got, path, want)
	}
}

// checkSize: no line is longer than the screen, and there are as many as it has.
func checkSize(t *testing.T, content string, width, height int) {
	t.Helper()
	lines := strings.Split(content, "\n")
	if len(lines) != height {
		t.Errorf("%d lines on a screen of %d", len(lines), height)
	}
	for _, line := range lines {
		if wide := ansi.StringWidth(line); wide > width {
			t.Errorf("%d columns on a screen of %d: %q", wide, width, line)
		}
	}
}

func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

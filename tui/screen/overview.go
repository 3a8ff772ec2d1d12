package screen

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"connectrpc.com/connect"

	tea "charm.land/bubbletea/v2"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/words"
)

// overviewPage answers at one glance whether data is safe, what it costs and what is moving.
type overviewPage struct {
	session       *session
	feed          feed[consolev1.Overview]
	overview      *consolev1.Overview // nil: none came yet
	table         table[*consolev1.Transition]
	pictures      map[string]*groupPicture // by way
	rates         []float64                // bytes a second of all transitions, one a second
	heats         map[string][]float64     // mean accesses a day by class, one a second
	width, height int
}

// samplesKept is how many values a sparkline remembers.
const samplesKept = 60

func newOverviewPage(s *session) *overviewPage {
	p := &overviewPage{session: s, pictures: map[string]*groupPicture{}, heats: map[string][]float64{}}
	p.feed = feed[consolev1.Overview]{session: s, open: func(ctx context.Context) (*connect.ServerStreamForClient[consolev1.Overview], error) {
		return s.options.Client.WatchOverview(ctx, &consolev1.WatchOverviewRequest{})
	}}
	p.table = newTable(&s.look, transitionKey, transitionOrder, transitionColumns(s)...)
	return p
}

func (p *overviewPage) Title() (name, aside string) {
	if stale := p.feed.stale(); stale != "" {
		return "", p.session.look.paint(p.session.look.bad, "stale since "+stale[:8])
	}
	o := p.overview
	if o.GetSavedBytes() <= 0 {
		return "", ""
	}
	aside = words.Bytes(o.ProtectedBytes) + " kept in " + words.Bytes(o.StoredBytes) + ", saved " + words.Part(o.SavedBytes, o.SavedBytes+o.StoredBytes)
	if o.SavedPerMonth >= 0.01 {
		aside += fmt.Sprintf(", %.2f a month", o.SavedPerMonth)
	}
	return "", aside
}

func (p *overviewPage) SetSize(width, height int) {
	p.width, p.height = width, height
	p.arrange()
}

func (p *overviewPage) Init() tea.Cmd { return p.feed.begin() }

func (p *overviewPage) Keys() []keyGroup {
	return []keyGroup{{"The chosen transition", transitionKeys()}, {"Moving about", keys.moving()}}
}

func (p *overviewPage) Chosen() any {
	if one, is := p.table.Value(); is {
		return one
	}
	return nil
}

func (p *overviewPage) Filter() string { return p.table.filter }

func (p *overviewPage) SetFilter(text string) tea.Cmd {
	p.table.SetFilter(text)
	p.arrange()
	return p.picture()
}

func (p *overviewPage) Update(message tea.Msg) tea.Cmd {
	switch message := message.(type) {
	case tea.KeyPressMsg:
		p.table.Update(message)
		return p.picture()
	case tick:
		p.sample()
	}
	came, next := p.feed.Update(message)
	if came == nil {
		return next
	}
	p.overview = came
	p.table.Replace(came.Moving)
	p.arrange()
	return tea.Batch(next, p.picture())
}

// sample remembers what the sparklines show.
func (p *overviewPage) sample() {
	if p.overview == nil || !p.feed.since.IsZero() {
		return // what is not known is not drawn as nothing
	}
	rate := 0.0
	for _, backend := range p.overview.Backends {
		rate += backend.Load.GetTransitionBytesPerSecond()
	}
	p.rates = remember(p.rates, rate)
	for _, class := range p.overview.Classes {
		name := class.Backend + "/" + class.Class
		p.heats[name] = remember(p.heats[name], meanHeat(class))
	}
}

func remember(values []float64, value float64) []float64 {
	if values = append(values, value); len(values) > samplesKept {
		values = slices.Delete(values, 0, len(values)-samplesKept)
	}
	return values
}

// meanHeat is the mean accesses a day of a class's groups.
func meanHeat(class *consolev1.ClassOverview) float64 {
	sum, groups := 0.0, int64(0)
	for _, rung := range class.Rungs {
		sum += rung.GetMeanHeat() * float64(rung.Groups)
		groups += rung.Groups
	}
	if groups == 0 {
		return 0
	}
	return sum / float64(groups)
}

// picture asks for the stripe picture of the chosen transition, once for each way.
func (p *overviewPage) picture() tea.Cmd {
	one, is := p.table.Value()
	if !is {
		return nil
	}
	ladder := p.ladder(one)
	way := ladder + "|" + one.From + "|" + one.To
	if p.pictures[way] != nil {
		return nil
	}
	picture := newGroupPicture(p.session, ladder, one.From, one.To)
	p.pictures[way] = picture
	return picture.fetch()
}

// ladder is that of a transition's class, as the overview's rungs have it; empty where they do not.
func (p *overviewPage) ladder(one *consolev1.Transition) string {
	for _, class := range p.overview.GetClasses() {
		if class.Backend != one.Backend || class.Class != one.Class {
			continue
		}
		var codes []string
		for _, rung := range class.Rungs {
			codes = append(codes, rung.Scheme)
		}
		if slices.Contains(codes, one.From) && slices.Contains(codes, one.To) {
			return strings.Join(codes, ",")
		}
	}
	return ""
}

// arrange gives the transitions the lines that the rest leaves them.
func (p *overviewPage) arrange() {
	rows := len(p.table.shown)
	room := p.height - len(p.above()) - p.classLines() - len(p.below()) - 2
	p.table.SetSize(p.width, 1+max(1, min(rows, room-p.pictureLines())))
}

// classLines is how many lines the classes take.
func (p *overviewPage) classLines() int { return 1 + min(5, len(p.overview.GetClasses())) }

func (p *overviewPage) pictureLines() int {
	if len(p.table.shown) == 0 {
		return 0
	}
	return 4
}

func (p *overviewPage) View() string {
	l := &p.session.look
	if p.overview == nil {
		return p.waiting()
	}
	lines := p.above()
	lines = append(lines, p.movingTitle())
	if len(p.table.shown) > 0 {
		lines = append(lines, strings.Split(p.table.View(), "\n")...)
	} else {
		for _, line := range wrapped(p.nothingMoves(), p.width-2) {
			lines = append(lines, "  "+l.paint(l.dim, line))
		}
	}
	lines = append(lines, p.classes()...)
	lines = append(lines, p.below()...)
	if room := p.height - len(lines); room >= 3 && len(p.table.shown) > 0 {
		lines = append(lines, p.group(room)...)
	}
	return strings.Join(lines, "\n")
}

// waiting is what is shown before anything came.
func (p *overviewPage) waiting() string {
	text := "Asking the console at " + p.session.options.Address + "."
	if stale := p.feed.stale(); stale != "" {
		text = "Nothing since " + stale + ". Trying again."
	}
	return strings.Join(wrapped(text, max(1, p.width)), "\n")
}

// above are the sentences at the top.
func (p *overviewPage) above() []string {
	l, o := &p.session.look, p.overview
	safety := o.GetSafetyLine()
	if o.GetSafetyAt() != nil {
		safety += " Checked " + ageText(o.SafetyAt, p.session.now()) + " ago."
	}
	lines := append(wrapped(plain(safety), p.width), wrapped(plain(o.GetMovingLine()), p.width)...)
	if stale := p.feed.stale(); stale != "" {
		for _, line := range wrapped("Stale since "+stale+". Trying again.", max(1, p.width)) {
			lines = append(lines, l.paint(l.bad, line))
		}
	}
	for _, source := range o.GetSources() {
		if source.StaleSince != nil {
			text := fmt.Sprintf("%s has not answered since %s: %s", source.Name, clockText(source.StaleSince, p.session.now()), source.Error)
			for _, line := range wrapped(l.glyphs.warning+" "+plain(text), p.width) {
				lines = append(lines, l.paint(l.warn, line))
			}
		}
	}
	return lines
}

func (p *overviewPage) movingTitle() string {
	l := &p.session.look
	title := fmt.Sprintf("TRANSITIONS (%d)", p.overview.MovingTotal)
	if shown := len(p.overview.Moving); p.table.filter != "" {
		title = fmt.Sprintf("TRANSITIONS (%d of %d)", len(p.table.shown), p.overview.MovingTotal)
	} else if int64(shown) < p.overview.MovingTotal {
		title += fmt.Sprintf(", the first %d", shown)
	}
	rate := 0.0
	if len(p.rates) > 0 {
		rate = p.rates[len(p.rates)-1]
	}
	right := "moving " + words.Rate(int64(rate)) + " " + l.spark(p.rates, 20)
	return l.paint(l.title, fit(title, p.width-textWidth(right), false)) + right
}

// spreads are the widths of the table of classes: of the data, the ladder and the sparkline.
func (p *overviewPage) spreads() (data, ladder, heat int) {
	if p.width >= 100 {
		return 10, p.width - 58, 15
	}
	return 0, p.width - 41, 8
}

func (p *overviewPage) nothingMoves() string {
	switch {
	case p.table.filter != "":
		return fmt.Sprintf("None of them has %q; esc takes the filter away.", plain(p.table.filter))
	case len(p.overview.Classes) == 0 && p.overview.Objects == 0:
		return "Nothing is stored. Declare a backend with `restripe apply -f`, and put objects with `restripe put`."
	}
	return "No transition is under way; :transitions has those that have ended."
}

// classes are what is stored, by class, with its place on the ladder.
func (p *overviewPage) classes() []string {
	l := &p.session.look
	data, ladder, spark := p.spreads()
	head := fit(fit("DATA", max(0, data-1), true), data, false) + fit("STORED", 9, true) + "  " + fit("LADDER", ladder, false) + " ACCESSES/DAY"
	lines := []string{l.paint(l.title, fit("CLASSES", 14, false)) + l.paint(l.dim, fit(head, p.width-14, false))}
	classes := p.overview.Classes
	for i, class := range classes {
		if left := max(len(classes), int(p.overview.ClassesTotal)) - i; i == 4 && left > 1 {
			lines = append(lines, l.paint(l.dim, fmt.Sprintf("  and %d more: :heat has all", left)))
			break
		}
		var rungs []string
		for _, rung := range class.Rungs {
			rungs = append(rungs, schemeText(rung.Scheme)+" "+words.Bytes(rung.Bytes))
		}
		name := class.Backend + "/" + class.Class
		heat := meanHeat(class)
		bytes := fit(fit(words.Bytes(class.Bytes), max(0, data-1), true), data, false)
		places := fit(shortenEnd(plain(strings.Join(rungs, ", ")), ladder, l.glyphs.more), ladder, false)
		lines = append(lines, "  "+fit(shorten(plain(class.Class), 11, l.glyphs.more), 11, false)+" "+bytes+
			fit(words.Bytes(class.StoredBytes), 9, true)+"  "+places+" "+fit(words.Accesses(heat), 6, true)+" "+l.spark(p.heats[name], spark))
	}
	return lines
}

// below are the nodes and what clients ask for.
func (p *overviewPage) below() []string {
	l, o := &p.session.look, p.overview
	var states []string
	counts := o.GetNodes().GetByState()
	for _, state := range slices.Sorted(maps.Keys(counts)) {
		if state != "up" {
			states = append(states, l.paint(l.warn, fmt.Sprintf("%d %s%s", counts[state], plain(state), p.named(state))))
		}
	}
	states = slices.Insert(states, 0, fmt.Sprintf("%d of %d up", counts["up"], o.GetNodes().GetTotal()))
	lines := wrapped(l.paint(l.title, "NODES ")+strings.Join(states, ", "), p.width)
	if o.GetUnknownSince() != nil {
		lines[len(lines)-1] += l.paint(l.dim, " (as last heard)")
	}
	for _, backend := range o.GetBackends() {
		if load := backend.Load; load != nil && load.WindowSeconds > 0 {
			line := fmt.Sprintf("%s: %.0f requests/s", plain(backend.Backend), float64(load.Requests)/load.WindowSeconds)
			if load.Requests > 0 {
				line += fmt.Sprintf(", p50 %.1f ms, p99 %.1f ms", load.P50Seconds*1000, load.P99Seconds*1000)
			}
			if last := len(lines) - 1; textWidth(lines[last])+3+textWidth(line) <= p.width {
				lines[last] += "   " + line
			} else {
				lines = append(lines, fit(line, p.width, false))
			}
			break
		}
	}
	lines = append(lines, p.next()...)
	for _, backend := range o.GetBackends() {
		if backend.State != "whole" {
			text := backend.Backend + ": " + backend.Line
			if r := backend.Repair; r != nil && r.State == "running" {
				text += fmt.Sprintf(" %s %s", l.bar(r.BytesDone, r.BytesTotal, 10), words.Part(r.BytesDone, r.BytesTotal))
				if r.EtaSeconds != nil {
					text += ", about " + words.About(words.Seconds(*r.EtaSeconds))
				}
			}
			for _, line := range wrapped(l.glyphs.warning+" "+plain(text), p.width) {
				lines = append(lines, l.paint(l.warn, line))
			}
		}
	}
	return lines
}

// named are the names of bad nodes of a state, with for how long they are so: " (n9 3 s)".
func (p *overviewPage) named(state string) string {
	var names []string
	for _, node := range p.overview.GetNodes().GetBad() {
		if node.State == state {
			name := plain(node.Name)
			if node.Since != nil {
				name += " " + ageText(node.Since, p.session.now())
			}
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	if more := int(p.overview.Nodes.ByState[state]) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// next is what becomes of silent nodes by itself.
func (p *overviewPage) next() []string {
	var first *consolev1.Node
	for _, node := range p.overview.GetNodes().GetBad() {
		if node.GivenUpAt != nil && (first == nil || node.GivenUpAt.AsTime().Before(first.GivenUpAt.AsTime())) {
			first = node
		}
	}
	if first == nil || p.overview.GetUnknownSince() != nil {
		return nil
	}
	text := plain(first.Name) + " is given up now"
	if left := first.GivenUpAt.AsTime().Sub(p.session.now()); left > 0 {
		text = plain(first.Name) + " is given up in " + words.Span(left)
	}
	text += " if it stays silent; then its blocks are rebuilt on other nodes."
	return wrapped(p.session.look.paint(p.session.look.warn, text), p.width)
}

// group is the stripe picture of the chosen transition, in few lines, and why it is made.
func (p *overviewPage) group(room int) []string {
	one, is := p.table.Value()
	if !is {
		return nil
	}
	var lines []string
	if picture := p.pictures[p.ladder(one)+"|"+one.From+"|"+one.To]; picture != nil {
		lines = picture.Short(p.width, max(2, min(room-1, 8)))
	}
	if one.Reason != "" {
		lines = append(lines, wrapped(p.session.look.paint(p.session.look.title, "WHY ")+plain(one.Reason), p.width)...)
	}
	return lines[:min(len(lines), room)]
}

// header is the first line: safe, how dear, what was saved, what time it is.
func (m *Model) header() string {
	l := &m.look
	o := m.overview.overview
	left := l.paint(l.title, "Restripe") + "  " + m.safety(o)
	if o.GetOverhead() > 0 {
		left += fmt.Sprintf("   overhead %.2fx", o.Overhead)
	}
	right := m.now().Format("15:04:05")
	if m.options.ReadOnly {
		right = "read-only  " + right
	}
	return fit(left, m.width-textWidth(right)-1, false) + " " + right
}

// safetyWords are the verdicts that can have been the last ones.
var safetyWords = map[consolev1.Safety]string{
	consolev1.Safety_SAFETY_SAFE: "safe", consolev1.Safety_SAFETY_REDUCED: "reduced", consolev1.Safety_SAFETY_UNPROTECTED: "UNPROTECTED",
	consolev1.Safety_SAFETY_BEHIND: "CATALOG BEHIND",
}

func (m *Model) safety(o *consolev1.Overview) string {
	l := &m.look
	if !m.overview.feed.since.IsZero() {
		return l.paint(l.bad, l.glyphs.bad+" disconnected since "+m.overview.feed.since.In(m.now().Location()).Format("15:04:05"))
	}
	if o.GetUnknownSince() != nil {
		text := " unknown since " + o.UnknownSince.AsTime().In(m.now().Location()).Format("15:04:05")
		if last := safetyWords[o.LastSafety]; last != "" {
			text += "; last: " + last
		}
		return l.paint(l.warn, l.glyphs.warning+text)
	}
	lose := "can lose " + words.Count(int64(o.GetCanLose()), "node")
	switch o.GetSafety() {
	case consolev1.Safety_SAFETY_BEHIND:
		return l.paint(l.bad, l.glyphs.bad+" CATALOG BEHIND: nothing is deleted")
	case consolev1.Safety_SAFETY_EMPTY:
		return "nothing is stored"
	case consolev1.Safety_SAFETY_SAFE:
		return l.paint(l.good, l.glyphs.good+" safe: "+lose)
	case consolev1.Safety_SAFETY_REDUCED:
		return l.paint(l.warn, l.glyphs.warning+" reduced: "+lose)
	case consolev1.Safety_SAFETY_UNPROTECTED:
		return l.paint(l.bad, l.glyphs.bad+" UNPROTECTED: "+lose)
	}
	return l.paint(l.dim, "safety not known yet")
}

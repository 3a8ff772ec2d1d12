package screen

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	"connectrpc.com/connect"

	tea "charm.land/bubbletea/v2"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/words"
)

func transitionKey(t *consolev1.Transition) string { return t.Name }

// transitionOrder puts those that have not ended first, and the newest before the others.
func transitionOrder(a, b *consolev1.Transition) int {
	if by := cmp.Compare(endedRank(a), endedRank(b)); by != 0 {
		return by
	}
	return cmp.Compare(b.Created.GetSeconds(), a.Created.GetSeconds())
}

func endedRank(t *consolev1.Transition) int {
	switch t.State {
	case "Running":
		return 0
	case "Unapproved", "Waiting", "Paused":
		return 1
	}
	return 2
}

func transitionColumns(s *session) []column[*consolev1.Transition] {
	l := &s.look
	return []column[*consolev1.Transition]{
		{title: "NAME", name: true, text: transitionKey},
		{title: "POLICY", width: 16, from: 120, text: func(t *consolev1.Transition) string { return cmp.Or(t.Policy, "by hand") }},
		{title: "CLASS", width: 10, from: 100, text: func(t *consolev1.Transition) string { return t.Class }},
		{title: "FROM", width: 6, text: func(t *consolev1.Transition) string { return schemeText(t.From) }},
		{title: "TO", width: 6, text: func(t *consolev1.Transition) string { return schemeText(t.To) }},
		{title: "DONE", width: 24, text: func(t *consolev1.Transition) string { return doneText(l, t) },
			number: func(t *consolev1.Transition) float64 { return doneShare(t) }, paint: func(t *consolev1.Transition, text string) string { return stateColour(l, t, text) }},
		{title: "ETA", width: 14, text: func(t *consolev1.Transition) string { return etaText(t) }, number: func(t *consolev1.Transition) float64 { return t.Progress.GetEtaSeconds() }},
		{title: "SENT", width: 8, right: true, text: func(t *consolev1.Transition) string { return words.Bytes(t.Progress.GetMeasured().GetBytesSent()) },
			number: func(t *consolev1.Transition) float64 { return float64(t.Progress.GetMeasured().GetBytesSent()) }},
	}
}

func doneShare(t *consolev1.Transition) float64 {
	if t.Progress.GetBytesTotal() == 0 {
		return 0
	}
	return float64(t.Progress.BytesDone) / float64(t.Progress.BytesTotal)
}

func etaText(t *consolev1.Transition) string {
	if t.State != "Running" {
		return "-"
	}
	if t.Progress != nil && t.Progress.EtaSeconds == nil {
		return "estimating"
	}
	return etaOf(t.Progress)
}

// doneText is how far a transition is, or why it goes no further.
func doneText(l *look, t *consolev1.Transition) string {
	g := &l.glyphs
	switch t.State {
	case "Running":
		if t.Progress.GetBytesTotal() == 0 {
			return g.running + " starting"
		}
		return l.bar(t.Progress.BytesDone, t.Progress.BytesTotal, 8) + " " + words.Part(t.Progress.BytesDone, t.Progress.BytesTotal)
	case "Paused":
		return g.pause + " paused, " + words.Part(t.Progress.GetBytesDone(), t.Progress.GetBytesTotal())
	case "Unapproved":
		return g.warning + " to approve"
	case "Waiting":
		return g.waiting + " waiting: " + t.StateWhy
	case "Done":
		return g.ended + " done, " + words.Bytes(t.Progress.GetBytesDone())
	case "Cancelled":
		return g.bad + " cancelled"
	case "Failed":
		return g.bad + " failed: " + t.StateWhy
	}
	return t.State
}

func stateColour(l *look, t *consolev1.Transition, text string) string {
	switch t.State {
	case "Done":
		return l.paint(l.good, text)
	case "Paused", "Unapproved", "Waiting":
		return l.paint(l.warn, text)
	case "Failed", "Cancelled":
		return l.paint(l.bad, text)
	}
	return text
}

func transitionKeys() []key.Binding {
	return []key.Binding{keys.Open, keys.Plan, keys.Pause, keys.Approve, keys.Cancel, keys.Throttle, keys.Rollback, keys.YAML, keys.Describe}
}

// transitionsPage lists every transition.
type transitionsPage struct {
	session *session
	feed    feed[consolev1.TransitionList]
	table   table[*consolev1.Transition]
	coming  []*consolev1.Transition // of a whole picture of which parts are missing
	seen    bool
}

func newTransitionsPage(s *session) *transitionsPage {
	p := &transitionsPage{session: s}
	p.feed = feed[consolev1.TransitionList]{session: s, open: func(ctx context.Context) (*connect.ServerStreamForClient[consolev1.TransitionList], error) {
		return s.options.Client.WatchTransitions(ctx, &consolev1.WatchTransitionsRequest{})
	}}
	p.table = newTable(&s.look, transitionKey, transitionOrder, transitionColumns(s)...)
	return p
}

func (p *transitionsPage) Title() (name, aside string) {
	return listTitle(p.session, p.table.Count(), p.table.filter, p.feed.stale())
}

// listTitle says how many rows a list has, of which filter, and since when it is stale.
func listTitle(s *session, count, filter, stale string) (name, aside string) {
	name = "(" + count + ")"
	if filter != "" {
		name += " /" + filter
	}
	if stale != "" {
		aside = s.look.paint(s.look.bad, "stale since "+stale[:8])
	}
	return name, aside
}

func (p *transitionsPage) SetSize(width, height int)     { p.table.SetSize(width, height) }
func (p *transitionsPage) Init() tea.Cmd                 { return p.feed.begin() }
func (p *transitionsPage) Filter() string                { return p.table.filter }
func (p *transitionsPage) SetFilter(text string) tea.Cmd { p.table.SetFilter(text); return nil }

func (p *transitionsPage) Keys() []keyGroup {
	return []keyGroup{{"The chosen transition", transitionKeys()}, listKeys()}
}

// listKeys are the keys of every list.
func listKeys() keyGroup {
	return keyGroup{"Moving about", append(keys.moving(), keys.Sort, keys.Reverse)}
}

func (p *transitionsPage) Chosen() any {
	if one, is := p.table.Value(); is {
		return one
	}
	return nil
}

func (p *transitionsPage) Update(message tea.Msg) tea.Cmd {
	if pressed, is := message.(tea.KeyPressMsg); is {
		p.table.Update(pressed)
		return nil
	}
	came, next := p.feed.Update(message)
	if came != nil {
		p.seen = !came.Partial || p.seen
		p.coming = applyList(&p.table, p.coming, came.Whole, came.Partial, came.Transitions, came.Removed)
	}
	return next
}

// applyList brings a table up to date with a message of a watch. The parts of a whole picture are kept until the last one
// came, and are returned: until then the rows before stay.
func applyList[T any](t *table[T], coming []T, whole, partial bool, values []T, removed []string) []T {
	if whole || coming != nil {
		if whole {
			coming = make([]T, 0, len(values))
		}
		if coming = append(coming, values...); !partial {
			t.Replace(coming)
			return nil
		}
		return coming
	}
	t.Put(values)
	t.Remove(removed)
	return nil
}

func (p *transitionsPage) View() string {
	if len(p.table.shown) == 0 {
		return emptyList(p.session, p.feed.stale(), p.seen, p.table.filter, "transition",
			"There is no transition. Policies make them when groups cool or warm up; `restripe transition start` makes one by hand.", p.table.width)
	}
	return p.table.View()
}

// emptyList says why a list has no rows, and what to do.
func emptyList(s *session, stale string, seen bool, filter, what, advice string, width int) string {
	text := advice
	switch {
	case stale != "":
		text = "Nothing since " + stale + ". Trying again."
	case !seen:
		text = "Asking the console at " + s.options.Address + "."
	case filter != "":
		text = fmt.Sprintf("No %s has %q; esc takes the filter away.", what, plain(filter))
	}
	return strings.Join(wrapped(text, max(1, width)), "\n")
}

// transitionDetail is what is known of one transition beyond its row.
type transitionDetail struct {
	session *session
	row     *consolev1.Transition // as it last was
	detail  *consolev1.TransitionDetail
	failure string
	picture *groupPicture
}

// openTransition opens what there is to know of a transition.
func openTransition(s *session, row *consolev1.Transition) tea.Cmd {
	d := &transitionDetail{session: s, row: row}
	page := &textPage{session: s, name: row.Name, content: d.write, fetch: d.fetch, chosen: func() any { return d.row }}
	page.pressed = func(pressed tea.KeyPressMsg) (tea.Cmd, bool) {
		return nil, d.picture != nil && d.picture.Press(pressed)
	}
	page.own = []keyGroup{{"The transition", transitionKeys()[1:]}, {"The stripe picture", []key.Binding{keys.Before, keys.After, keys.First, keys.Last}}}
	return s.open(&liveTransition{page, d})
}

// liveTransition keeps the page of a transition up to date.
type liveTransition struct {
	*textPage
	detail *transitionDetail
}

func (p *liveTransition) Update(message tea.Msg) tea.Cmd {
	switch message := message.(type) {
	case received[consolev1.Overview]:
		p.take(message.message.Moving)
	case received[consolev1.TransitionList]:
		p.take(message.message.Transitions)
	case tick:
		if p.detail.row.Ended == nil && time.Time(message).Unix()%2 == 0 {
			return p.detail.refresh()
		}
	}
	return p.textPage.Update(message)
}

func (p *liveTransition) take(rows []*consolev1.Transition) {
	for _, one := range rows {
		if one.Name == p.detail.row.Name {
			p.detail.row = one
		}
	}
}

// fetch asks for the detail, and with it for the picture of its plan.
func (d *transitionDetail) fetch() tea.Cmd {
	return d.ask(func() tea.Cmd {
		d.picture = newGroupPicture(d.session, d.detail.Ladder, d.row.From, d.row.To)
		return d.picture.fetch()
	})
}

// refresh asks for the detail again.
func (d *transitionDetail) refresh() tea.Cmd { return d.ask(func() tea.Cmd { return nil }) }

func (d *transitionDetail) ask(then func() tea.Cmd) tea.Cmd {
	return ask(d.session, func(ctx context.Context) (*consolev1.TransitionDetail, error) {
		return d.session.options.Client.GetTransition(ctx, &consolev1.GetTransitionRequest{Name: d.row.Name})
	}, func(detail *consolev1.TransitionDetail, err error) tea.Cmd {
		if err != nil {
			d.failure = failureText(err, d.session.options.Address)
			return nil
		}
		d.detail, d.row, d.failure = detail, detail.Transition, ""
		return then()
	})
}

func (d *transitionDetail) write(s *script) {
	t, l := d.row, &d.session.look
	s.Raw(stateColour(l, t, doneText(l, t)))
	if t.StateWhy != "" {
		s.Text(t.StateWhy)
	}
	if d.failure != "" {
		s.Raw(l.paint(l.bad, l.glyphs.bad+" "+d.failure))
	}
	s.Head("What and why")
	s.Field("way", t.From+" "+l.glyphs.arrow+" "+t.To)
	s.Field("groups", cmp.Or(t.Heat, "all"))
	s.Field("why", t.Reason)
	s.Field("policy", cmp.Or(t.Policy, "none: it was started by hand"))
	s.Field("class", t.Class+" at "+t.Backend)
	s.Field("roll back of", t.RollbackOf)
	if t.NeedsApproval {
		s.Field("approval", map[bool]string{false: "waits for a person: a approves", true: "given"}[t.Approved])
	}
	if t.BytesPerSecondLimit > 0 {
		s.Field("limit", words.Rate(t.BytesPerSecondLimit)+" for this transition")
	}
	d.writeProgress(s)
	d.writeCost(s)
	if d.picture != nil {
		d.picture.Write(s)
	}
	if d.detail == nil {
		return
	}
	writeComparisons(s, d.detail.Comparisons)
	if d.detail.Explanation != "" {
		s.Head("The plan in words")
		s.Text(d.detail.Explanation)
	}
	writeConditions(s, d.session, d.detail.Conditions)
}

func (d *transitionDetail) writeProgress(s *script) {
	t := d.row
	p := t.Progress
	if p == nil {
		return
	}
	s.Head("Progress")
	s.Raw(s.look.bar(p.BytesDone, p.BytesTotal, min(50, s.width-30)) + " " + words.Part(p.BytesDone, p.BytesTotal))
	s.Field("groups", fmt.Sprintf("%d of %s", p.GroupsDone, words.Count(p.GroupsTotal, "group")))
	if t.State == "Running" {
		s.Field("rate", words.Rate(p.BytesPerSecond))
		if p.EtaSeconds != nil {
			s.Field("left", "about "+etaOf(p))
		} else {
			s.Field("left", "estimating")
		}
	}
	if m := p.Measured; m != nil {
		s.Field("sent", trafficPair(m.BytesSent, p.Predicted.GetBytesSent()))
		s.Field("read", trafficPair(m.BytesRead, p.Predicted.GetBytesRead()))
		s.Field("written", trafficPair(m.BytesWritten, p.Predicted.GetBytesWritten()))
	}
	if p.GroupsOffLadder > 0 {
		s.Field("ladder", words.Count(p.GroupsOffLadder, "group")+" written for another one")
	}
	if p.GroupsReshaped > 0 {
		s.Field("reshaped", words.Count(p.GroupsReshaped, "group")+" by columns of others")
	}
	if p.GroupsSkipped > 0 {
		s.Field("skipped", words.Count(p.GroupsSkipped, "group")+" that changed meanwhile")
	}
	s.Field("started", clockText(t.Started, d.session.now()))
	if len(p.OtherWaysBytesSent) > 0 {
		var others []string
		for _, way := range slices.Sorted(maps.Keys(p.OtherWaysBytesSent)) {
			others = append(others, way+" "+words.Bytes(p.OtherWaysBytesSent[way]))
		}
		s.Field("others had sent", strings.Join(others, ", ")+" for the same groups")
	}
	if t.Ended != nil {
		s.Field("ended", fmt.Sprintf("%s, after %s", clockText(t.Ended, d.session.now()), words.Span(t.Ended.AsTime().Sub(t.Started.AsTime()))))
	}
}

// trafficPair is what was measured beside what was predicted.
func trafficPair(measured, predicted int64) string {
	if measured == predicted {
		return words.Bytes(measured) + ", as predicted"
	}
	return words.Bytes(measured) + ", predicted " + words.Bytes(predicted)
}

func (d *transitionDetail) writeCost(s *script) {
	c := d.row.Cost
	if c == nil {
		return
	}
	s.Head("Cost of all of it, predicted")
	s.Field("sent", words.Bytes(c.Traffic.GetBytesSent())+sentReason(c.Traffic.GetBytesSent(), c.ReencodeBytesSent))
	s.Field("read", words.Bytes(c.Traffic.GetBytesRead()))
	s.Field("written", words.Bytes(c.Traffic.GetBytesWritten()))
	s.Field("peak space", words.Bytes(c.PeakBytes)+" more than before, while it runs")
	s.Field("price", c.Price)
	s.Field("saves a month", c.SavingPerMonth)
	s.Field("plan", d.row.PlanHash)
}

// sentReason says why so much is sent.
func sentReason(sent, again int64) string {
	if sent == 0 {
		return " over the network: every node makes its blocks of what it already holds; re-encoding would send " + words.Bytes(again)
	}
	return "; re-encoding would send " + words.Bytes(again)
}

// writeComparisons tells what other ways cost.
func writeComparisons(s *script, comparisons []*consolev1.Comparison) {
	if len(comparisons) == 0 {
		return
	}
	s.Head("Other ways to do the same")
	for _, one := range comparisons {
		if !one.Applies {
			s.Field(one.Way, "cannot do this")
			continue
		}
		s.Field(one.Way, "sends "+words.Bytes(one.BytesSent)+", reads "+words.Bytes(one.BytesRead))
	}
}

// writeConditions tells what the operator says of an object.
func writeConditions(s *script, session *session, conditions []*consolev1.Condition) {
	if len(conditions) == 0 {
		return
	}
	s.Head("Conditions")
	for _, one := range conditions {
		s.Field(one.Type, fmt.Sprintf("%s, %s for %s: %s", one.Status, one.Reason, ageText(one.Since, session.now()), one.Message))
	}
}

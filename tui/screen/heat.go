package screen

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	"connectrpc.com/connect"
	"github.com/dustin/go-humanize"
	"google.golang.org/protobuf/types/known/timestamppb"

	tea "charm.land/bubbletea/v2"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/price"
	"github.com/restripe/restripe/operator/words"
)

// heatPage lists the classes with their heat and their places on their ladders.
type heatPage struct {
	session *session
	feed    feed[consolev1.HeatReport]
	table   table[*consolev1.ClassHeat]
	seen    bool
}

func newHeatPage(s *session) *heatPage {
	p := &heatPage{session: s}
	p.feed = feed[consolev1.HeatReport]{session: s, open: func(ctx context.Context) (*connect.ServerStreamForClient[consolev1.HeatReport], error) {
		return s.options.Client.WatchHeat(ctx, &consolev1.WatchHeatRequest{})
	}}
	p.table = newTable(&s.look, func(one *consolev1.ClassHeat) string { return one.Backend + "/" + one.Class }, nil,
		column[*consolev1.ClassHeat]{title: "CLASS", width: 14, name: true, text: func(one *consolev1.ClassHeat) string { return one.Class }},
		column[*consolev1.ClassHeat]{title: "BACKEND", width: 12, from: 100, text: func(one *consolev1.ClassHeat) string { return one.Backend }},
		column[*consolev1.ClassHeat]{title: "ON ITS LADDER", text: rungsText},
		column[*consolev1.ClassHeat]{title: "GROUPS", width: 6, right: true, text: func(one *consolev1.ClassHeat) string { return fmt.Sprint(classGroups(one)) },
			number: func(one *consolev1.ClassHeat) float64 { return float64(classGroups(one)) }},
		column[*consolev1.ClassHeat]{title: "COLD TO HOT", width: 11, text: func(one *consolev1.ClassHeat) string { return s.look.spark(heatValues(one), 10) },
			number: classHeat},
		column[*consolev1.ClassHeat]{title: "MEAN", width: 6, right: true, text: func(one *consolev1.ClassHeat) string { return words.Accesses(classHeat(one)) }, number: classHeat},
	)
	return p
}

// rungsText is what lies on each rung; the one that the class is pinned to is in brackets.
func rungsText(one *consolev1.ClassHeat) string {
	var parts []string
	for _, rung := range one.Rungs {
		parts = append(parts, pinnedText(rung.Scheme, one.Pin)+" "+words.Bytes(rung.Bytes))
	}
	return strings.Join(parts, ", ")
}

func classGroups(one *consolev1.ClassHeat) (groups int64) {
	for _, rung := range one.Rungs {
		groups += rung.Groups
	}
	return groups
}

// heatValues are the groups of a class by heat, the coldest first: never used, up to 1 access a day, and by powers of ten
// above that.
func heatValues(one *consolev1.ClassHeat) []float64 {
	values := make([]float64, 10)
	for _, rung := range one.Rungs {
		for _, bucket := range rung.Buckets {
			values[heatStep(bucket.AtLeast)] += float64(bucket.Groups)
		}
	}
	return values
}

// heatStep is where a heat belongs in heatValues.
func heatStep(atLeast float64) int {
	switch {
	case atLeast <= 0:
		return 0
	case atLeast < 1:
		return 1
	}
	return 2 + int(min(7, math.Log10(atLeast)))
}

// classHeat is the mean of the lower bounds of a class's groups, in accesses a day.
func classHeat(one *consolev1.ClassHeat) float64 {
	sum, groups := 0.0, int64(0)
	for _, rung := range one.Rungs {
		for _, bucket := range rung.Buckets {
			sum += bucket.AtLeast * float64(bucket.Groups)
			groups += bucket.Groups
		}
	}
	if groups == 0 {
		return 0
	}
	return sum / float64(groups)
}

func (p *heatPage) Title() (name, aside string) {
	return listTitle(p.session, p.table.Count(), p.table.filter, p.feed.stale())
}

func (p *heatPage) SetSize(width, height int)     { p.table.SetSize(width, height) }
func (p *heatPage) Init() tea.Cmd                 { return p.feed.begin() }
func (p *heatPage) Filter() string                { return p.table.filter }
func (p *heatPage) SetFilter(text string) tea.Cmd { p.table.SetFilter(text); return nil }

func (p *heatPage) Keys() []keyGroup {
	return []keyGroup{{"The chosen class", []key.Binding{keys.Open, keys.Pin, keys.Unpin, keys.Describe}}, listKeys()}
}

func (p *heatPage) Chosen() any {
	if one, is := p.table.Value(); is {
		return one
	}
	return nil
}

func (p *heatPage) Update(message tea.Msg) tea.Cmd {
	if pressed, is := message.(tea.KeyPressMsg); is {
		p.table.Update(pressed)
		return nil
	}
	came, next := p.feed.Update(message)
	if came != nil {
		p.seen = true
		p.table.Replace(came.Classes)
	}
	return next
}

func (p *heatPage) View() string {
	if len(p.table.shown) == 0 {
		return emptyList(p.session, p.feed.stale(), p.seen, p.table.filter, "class",
			"No class is known. A policy declares one; gateways tell of the heat of its groups when it has some.", p.table.width)
	}
	return p.table.View()
}

// liveHeat shows the heat of a class, and its history.
type liveHeat struct {
	*textPage
	class   *consolev1.ClassHeat
	history *consolev1.History
	failure string
}

// historySpan is how far back the heat map reaches.
const historySpan = 24 * time.Hour

func openClassHeat(s *session, row *consolev1.ClassHeat) tea.Cmd {
	p := &liveHeat{class: row}
	p.textPage = &textPage{session: s, name: row.Class, chosen: func() any { return p.class }, own: []keyGroup{{"The class", []key.Binding{keys.Pin, keys.Unpin}}}}
	p.content = p.write
	p.fetch = func() tea.Cmd {
		request := &consolev1.GetHistoryRequest{Backend: row.Backend, Class: row.Class, Samples: 64, Since: timestamppb.New(s.now().Add(-historySpan))}
		return ask(s, func(ctx context.Context) (*consolev1.History, error) {
			return s.options.Client.GetHistory(ctx, request)
		}, func(history *consolev1.History, err error) tea.Cmd {
			if p.failure = ""; err != nil {
				p.failure = failureText(err, s.options.Address)
				return nil
			}
			p.history = history
			return nil
		})
	}
	return s.open(p)
}

func (p *liveHeat) Update(message tea.Msg) tea.Cmd {
	if came, is := message.(received[consolev1.HeatReport]); is {
		for _, one := range came.message.Classes {
			if one.Backend == p.class.Backend && one.Class == p.class.Class {
				p.class = one
			}
		}
	}
	return p.textPage.Update(message)
}

func (p *liveHeat) write(s *script) {
	one, l := p.class, &p.session.look
	s.Field("policy", one.Policy)
	if one.Choice != nil && !one.Choice.ByRules {
		s.Field("chosen by", "what costs least (mode auto)")
	}
	s.Field("half-life", one.HalfLife+": after it an access counts half")
	s.Field("dwell", one.Dwell+": a group stays that long before it moves")
	if one.Pin != nil {
		s.Field("pinned", pinText(one.Pin, p.session.now()))
	}
	if !one.Complete {
		s.Field("not complete", "not every gateway has told of its groups")
	}
	s.Head("On its ladder")
	most := int64(1)
	for _, rung := range one.Rungs {
		most = max(most, rung.Bytes)
	}
	for _, rung := range one.Rungs {
		s.Raw(fit(schemeText(rung.Scheme), 8, false) + " " + l.bar(rung.Bytes, most, 24) + " " +
			fmt.Sprintf("%s as %s in %s", words.Bytes(rung.Bytes), words.Bytes(rung.StoredBytes), words.Count(rung.Groups, "group")))
		for _, rule := range one.Rules {
			if rule.Scheme == rung.Scheme {
				s.Field("", ruleText(rule))
			}
		}
	}
	p.writeChoice(s)
	p.writeGroups(s)
	p.writeMap(s)
}

// writeChoice says who chooses, and what others would have cost.
func (p *liveHeat) writeChoice(s *script) {
	choice := p.class.Choice
	if choice == nil {
		return
	}
	s.Head("Who chooses")
	s.Field("leads", choice.Leader)
	s.Field("since", words.Time(choice.Since.AsTime()))
	s.Text(choice.Reason)
	if choice.Days == 0 {
		s.Text("Candidates are compared once a day; nothing is known of what others would cost yet.")
		return
	}
	s.Field("paid", price.Amount(choice.Paid)+" since "+words.Time(choice.CountedSince.AsTime()))
	switch {
	case choice.BestFixed == "":
	case choice.SavedPerMonth < 0:
		s.Field("a month", fmt.Sprintf("%s more than %s", price.Amount(-choice.SavedPerMonth), choice.BestFixed))
	default:
		s.Field("a month", fmt.Sprintf("%s less than %s", price.Amount(choice.SavedPerMonth), choice.BestFixed))
	}
	most := choice.Paid
	for _, way := range choice.Ways {
		most = max(most, way.Paid)
	}
	for _, way := range choice.Ways {
		mark := "  "
		if way.Leads {
			mark = "> "
		}
		const before = 2 + 8 + 1 + 12 + 1
		s.Raw(mark + fit(price.Amount(way.Paid), 8, true) + " " + s.look.bar(int64(1e6*way.Paid/max(most, 1e-12)), 1e6, 12) + " " +
			fit(way.Text, max(1, s.width-before), false))
	}
}

// writeGroups draws how many groups are how hot.
func (p *liveHeat) writeGroups(s *script) {
	l := s.look
	s.Head("Groups by accesses a day")
	values := heatValues(p.class)
	most := int64(1)
	for _, value := range values {
		most = max(most, int64(value))
	}
	for i, value := range values {
		bar := l.bar(int64(value), most, 24)
		s.Raw(fit(heatLabel(i), 14, true) + " " + l.warmth(float64(i)/float64(len(values)-1), bar) + " " + words.Count(int64(value), "group"))
	}
}

// heatLabel names a step of heatValues.
func heatLabel(step int) string {
	switch step {
	case 0:
		return "unused"
	case 1:
		return "below 1"
	case 9:
		return "10 M and more"
	}
	return strings.TrimSpace(humanize.SIWithDigits(math.Pow10(step-2), 0, "")) + " and more"
}

// writeMap draws the bytes of the class by heat over time: a column for each sample, the hottest at the top.
func (p *liveHeat) writeMap(s *script) {
	l := s.look
	s.Head("Data by heat over the last 24 h")
	switch {
	case p.failure != "":
		s.Text("The history is not known: " + p.failure)
		return
	case p.history == nil:
		s.Text("Asking for the history.")
		return
	case len(p.history.Classes) == 0 || len(p.history.Classes[0].Samples) == 0:
		s.Text("There is no history yet: the console takes a sample every few minutes.")
		return
	}
	samples := p.history.Classes[0].Samples
	if most := max(1, s.width-16); len(samples) > most {
		samples = samples[len(samples)-most:]
	}
	for step := 9; step >= 0; step-- {
		var line strings.Builder
		for _, sample := range samples {
			share := heatShare(sample, step)
			shade := 0
			if share > 0 {
				shade = min(len(l.glyphs.shade)-1, 1+int(share*float64(len(l.glyphs.shade)-1)))
			}
			line.WriteString(l.glyphs.shade[shade])
		}
		s.Raw(fit(heatLabel(step), 14, true) + " " + l.warmth(float64(step)/9, line.String()))
	}
	now := p.session.now()
	from, until := clockText(samples[0].At, now), clockText(samples[len(samples)-1].At, now)
	s.Raw(l.paint(l.dim, strings.Repeat(" ", 15)+fmt.Sprintf("from %s to %s, %s; darker is more of the data", from, until, words.Count(int64(len(samples)), "sample"))))
}

// heatShare is the part of a sample's data that is of a step of heat.
func heatShare(sample *consolev1.HistorySample, step int) float64 {
	total, here := int64(0), int64(0)
	for _, bucket := range sample.Buckets {
		total += bucket.Bytes
		if heatStep(bucket.AtLeast) == step {
			here += bucket.Bytes
		}
	}
	if total == 0 {
		return 0
	}
	return float64(here) / float64(total)
}

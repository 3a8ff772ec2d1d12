package screen

import (
	"context"
	"fmt"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"

	tea "charm.land/bubbletea/v2"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/words"
)

// aboutInterval is how often the console is asked for what it does not tell by itself.
const aboutInterval = 5 * time.Second

// aboutPage lists something that the console tells about itself: schemes or backends.
type aboutPage[T any] struct {
	session *session
	what    string
	advice  string
	table   table[T]
	rows    func(*consolev1.About) []T
	own     []key.Binding

	seen    bool
	asking  bool
	asked   time.Time
	since   time.Time // since when it does not answer
	failure string
}

func newSchemesPage(s *session) *aboutPage[*consolev1.Scheme] {
	p := &aboutPage[*consolev1.Scheme]{session: s, what: "scheme", rows: func(a *consolev1.About) []*consolev1.Scheme { return a.Schemes },
		advice: "No scheme has a name. Policies can say codes such as rs(4,2) themselves; a RedundancyScheme gives one a name."}
	p.table = newTable(&s.look, func(one *consolev1.Scheme) string { return one.Name }, nil,
		column[*consolev1.Scheme]{title: "NAME", name: true, text: func(one *consolev1.Scheme) string { return one.Name }},
		column[*consolev1.Scheme]{title: "CODE", width: 12, text: func(one *consolev1.Scheme) string { return one.Code }},
		column[*consolev1.Scheme]{title: "CAN LOSE", width: 10, text: func(one *consolev1.Scheme) string { return words.Count(int64(one.CanLose), "node") },
			number: func(one *consolev1.Scheme) float64 { return float64(one.CanLose) }},
		column[*consolev1.Scheme]{title: "OVERHEAD", width: 9, right: true, text: func(one *consolev1.Scheme) string { return one.Overhead }},
		column[*consolev1.Scheme]{title: "POLICIES", width: 8, right: true, text: func(one *consolev1.Scheme) string { return fmt.Sprint(one.Policies) },
			number: func(one *consolev1.Scheme) float64 { return float64(one.Policies) }},
	)
	return p
}

func newBackendsPage(s *session) *aboutPage[*consolev1.Backend] {
	p := &aboutPage[*consolev1.Backend]{session: s, what: "backend", own: []key.Binding{keys.Compact},
		rows:   func(a *consolev1.About) []*consolev1.Backend { return a.Backends },
		advice: "There is no backend. Declare a StorageBackend with `restripe apply -f`, or start everything on this machine with `restripe up`."}
	p.table = newTable(&s.look, func(one *consolev1.Backend) string { return one.Name }, nil,
		column[*consolev1.Backend]{title: "NAME", width: 16, text: func(one *consolev1.Backend) string { return one.Name }},
		column[*consolev1.Backend]{title: "TYPE", width: 10, text: func(one *consolev1.Backend) string { return one.Type }},
		column[*consolev1.Backend]{title: "USED", width: 21, text: func(one *consolev1.Backend) string { return backendUsed(&s.look, one) },
			number: func(one *consolev1.Backend) float64 { return float64(one.UsedBytes) }},
		column[*consolev1.Backend]{title: "STATE", width: 14, text: func(one *consolev1.Backend) string { return backendState(&s.look, one) }},
		column[*consolev1.Backend]{title: "GATEWAYS", text: func(one *consolev1.Backend) string { return strings.Join(one.Gateways, " ") }},
	)
	return p
}

func backendUsed(l *look, one *consolev1.Backend) string {
	if one.CapacityBytes <= 0 {
		return words.Bytes(one.UsedBytes)
	}
	return l.bar(one.UsedBytes, one.CapacityBytes, 6) + " " + words.Part(one.UsedBytes, one.CapacityBytes)
}

func backendState(l *look, one *consolev1.Backend) string {
	for _, c := range one.Conditions {
		if c.Type == "Ready" {
			if c.Status == "True" {
				return l.glyphs.good + " ready"
			}
			return l.glyphs.warning + " " + c.Reason
		}
	}
	return l.glyphs.waiting + " new"
}

func (p *aboutPage[T]) Title() (name, aside string) {
	return listTitle(p.session, p.table.Count(), p.table.filter, p.stale())
}

func (p *aboutPage[T]) stale() string {
	if p.since.IsZero() {
		return ""
	}
	return p.since.In(p.session.now().Location()).Format("15:04:05") + ": " + p.failure
}

func (p *aboutPage[T]) SetSize(width, height int)     { p.table.SetSize(width, height) }
func (p *aboutPage[T]) Filter() string                { return p.table.filter }
func (p *aboutPage[T]) SetFilter(text string) tea.Cmd { p.table.SetFilter(text); return nil }

func (p *aboutPage[T]) Keys() []keyGroup {
	return []keyGroup{{"The chosen " + p.what, append([]key.Binding{keys.Open, keys.Describe}, p.own...)}, listKeys()}
}

func (p *aboutPage[T]) Chosen() any {
	if one, is := p.table.Value(); is {
		return one
	}
	return nil
}

func (p *aboutPage[T]) Init() tea.Cmd {
	if p.asking {
		return nil
	}
	p.asking, p.asked = true, p.session.now()
	return ask(p.session, func(ctx context.Context) (*consolev1.About, error) {
		return p.session.options.Client.GetAbout(ctx, &consolev1.GetAboutRequest{})
	}, func(about *consolev1.About, err error) tea.Cmd {
		p.asking = false
		if err != nil {
			if p.since.IsZero() {
				p.since = p.session.now()
			}
			p.failure = failureText(err, p.session.options.Address)
			return nil
		}
		p.seen, p.since = true, time.Time{}
		p.table.Replace(p.rows(about))
		return nil
	})
}

func (p *aboutPage[T]) Update(message tea.Msg) tea.Cmd {
	switch message := message.(type) {
	case tea.KeyPressMsg:
		if key.Matches(message, keys.Refresh) {
			return p.Init()
		}
		p.table.Update(message)
	case tick:
		if p.session.now().Sub(p.asked) >= aboutInterval {
			return p.Init()
		}
	}
	return nil
}

func (p *aboutPage[T]) View() string {
	if len(p.table.shown) == 0 {
		return emptyList(p.session, p.stale(), p.seen, p.table.filter, p.what, p.advice, p.table.width)
	}
	return p.table.View()
}

func openScheme(s *session, one *consolev1.Scheme) tea.Cmd {
	return s.open(&textPage{session: s, name: one.Name, chosen: func() any { return one }, content: func(w *script) {
		w.Head("Scheme", one.Name)
		w.Field("code", one.Code)
		w.Field("can lose", words.Count(int64(one.CanLose), "node")+" without losing data")
		w.Field("overhead", one.Overhead+" stored bytes for each byte of data")
		w.Field("used by", words.Count(int64(one.Policies), "policy"))
	}})
}

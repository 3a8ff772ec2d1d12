package screen

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"charm.land/bubbles/v2/key"

	tea "charm.land/bubbletea/v2"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
)

// auditPage lists what was done through the console, the newest first.
type auditPage struct {
	session *session
	table   table[*consolev1.AuditAction]
	actions []*consolev1.AuditAction
	next    int64
	seen    bool
	asking  int
	failure string
}

// auditPageSize is how many actions are asked for at once.
const auditPageSize = 200

func newAuditPage(s *session) *auditPage {
	p := &auditPage{session: s}
	p.table = newTable(&s.look, func(one *consolev1.AuditAction) string { return fmt.Sprint(one.Sequence) },
		func(a, b *consolev1.AuditAction) int { return int(b.Sequence - a.Sequence) },
		column[*consolev1.AuditAction]{title: "WHEN", width: 16, text: func(one *consolev1.AuditAction) string { return clockText(one.Begun, s.now()) },
			number: func(one *consolev1.AuditAction) float64 { return float64(one.Sequence) }},
		column[*consolev1.AuditAction]{title: "USER", width: 12, text: func(one *consolev1.AuditAction) string { return one.User }},
		column[*consolev1.AuditAction]{title: "FROM", width: 21, from: 120, text: func(one *consolev1.AuditAction) string { return one.From }},
		column[*consolev1.AuditAction]{title: "ACTION", width: 18, text: func(one *consolev1.AuditAction) string { return one.Action }},
		column[*consolev1.AuditAction]{title: "OBJECT", name: true, text: func(one *consolev1.AuditAction) string { return one.Object }},
		column[*consolev1.AuditAction]{title: "RESULT", width: 10, text: func(one *consolev1.AuditAction) string { return resultText(&s.look, one) },
			paint: func(one *consolev1.AuditAction, text string) string { return resultColour(&s.look, one, text) }},
	)
	return p
}

func resultText(l *look, one *consolev1.AuditAction) string {
	switch one.Result {
	case "done":
		return l.glyphs.good + " done"
	case "unknown":
		return l.glyphs.waiting + " unknown"
	}
	return l.glyphs.bad + " " + one.Result
}

func resultColour(l *look, one *consolev1.AuditAction, text string) string {
	switch one.Result {
	case "done":
		return l.paint(l.good, text)
	case "unknown":
		return l.paint(l.warn, text)
	}
	return l.paint(l.bad, text)
}

func (p *auditPage) Title() (name, aside string) {
	count := p.table.Count()
	if p.next != 0 {
		count += ", older below"
	}
	return listTitle(p.session, count, p.table.filter, "")
}

func (p *auditPage) SetSize(width, height int)     { p.table.SetSize(width, height) }
func (p *auditPage) Filter() string                { return p.table.filter }
func (p *auditPage) SetFilter(text string) tea.Cmd { p.table.SetFilter(text); return nil }
func (p *auditPage) Init() tea.Cmd                 { return p.list(0) }

// list asks for the actions before one; 0: the newest.
func (p *auditPage) list(before int64) tea.Cmd {
	p.asking++
	question := p.asking
	return ask(p.session, func(ctx context.Context) (*consolev1.AuditList, error) {
		return p.session.options.Client.ListAudit(ctx, &consolev1.ListAuditRequest{Limit: auditPageSize, Before: before})
	}, func(list *consolev1.AuditList, err error) tea.Cmd {
		if question != p.asking {
			return nil
		}
		if err != nil {
			p.failure = failureText(err, p.session.options.Address)
			return nil
		}
		if before == 0 {
			p.actions = nil
		}
		p.failure, p.seen, p.next = "", true, list.Next
		p.actions = append(p.actions, list.Actions...)
		p.table.Replace(p.actions)
		return nil
	})
}

func (p *auditPage) Keys() []keyGroup {
	return []keyGroup{{"The chosen action", []key.Binding{keys.Open, keys.Describe}}, {"Moving about", append(listKeys().keys, keys.Refresh)}}
}

func (p *auditPage) Chosen() any {
	if one, is := p.table.Value(); is {
		return one
	}
	return nil
}

func (p *auditPage) Update(message tea.Msg) tea.Cmd {
	switch message := message.(type) {
	case tea.KeyPressMsg:
		switch {
		case key.Matches(message, keys.Refresh):
			return p.Init()
		case p.table.Update(message) && p.table.AtEnd() && p.next != 0:
			return p.list(p.next)
		}
	case tick:
		if p.seen && p.table.cursor == 0 && len(p.actions) <= auditPageSize && p.session.now().Second()%5 == 0 {
			return p.Init()
		}
	}
	return nil
}

func (p *auditPage) View() string {
	if p.failure != "" {
		return p.session.look.paint(p.session.look.bad, wrappedText(p.session.look.glyphs.bad+" "+p.failure+"; r asks again", p.table.width))
	}
	if len(p.table.shown) == 0 {
		return emptyList(p.session, "", p.seen, p.table.filter, "action", "Nothing was changed through this console yet.", p.table.width)
	}
	return p.table.View()
}

// openAuditAction shows what was there before an action and after it.
func openAuditAction(s *session, one *consolev1.AuditAction) tea.Cmd {
	return s.open(&textPage{session: s, name: fmt.Sprintf("action %d", one.Sequence), chosen: func() any { return one }, content: func(w *script) {
		w.Raw(resultColour(&s.look, one, resultText(&s.look, one)))
		w.Field("error", one.Error)
		w.Field("who", one.User+" from "+one.From)
		w.Field("known by", one.Method)
		w.Field("what", one.Action+" of "+one.Object)
		w.Field("verb", one.Verb)
		w.Field("begun", clockText(one.Begun, s.now()))
		w.Field("ended", clockText(one.Ended, s.now()))
		w.Field("plan", one.PlanHash)
		for _, part := range []struct{ name, text string }{{"Before", one.Before}, {"After", one.After}} {
			w.Head(part.name)
			if part.text == "" {
				w.Text("Nothing.")
				continue
			}
			w.Verbatim(indented(part.text))
		}
	}})
}

// indented writes JSON for people; what is none stays as it is.
func indented(text string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(text), "", "  ") != nil {
		return text
	}
	return b.String()
}

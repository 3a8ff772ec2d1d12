package screen

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	"connectrpc.com/connect"

	tea "charm.land/bubbletea/v2"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/words"
)

// policiesPage lists the policies.
type policiesPage struct {
	session *session
	feed    feed[consolev1.PolicyList]
	table   table[*consolev1.Policy]
	coming  []*consolev1.Policy
	seen    bool
}

func newPoliciesPage(s *session) *policiesPage {
	p := &policiesPage{session: s}
	p.feed = feed[consolev1.PolicyList]{session: s, open: func(ctx context.Context) (*connect.ServerStreamForClient[consolev1.PolicyList], error) {
		return s.options.Client.WatchPolicies(ctx, &consolev1.WatchPoliciesRequest{})
	}}
	p.table = newTable(&s.look, func(one *consolev1.Policy) string { return one.Name }, nil,
		column[*consolev1.Policy]{title: "NAME", name: true, text: func(one *consolev1.Policy) string { return one.Name }},
		column[*consolev1.Policy]{title: "BACKEND", width: 10, from: 100, text: func(one *consolev1.Policy) string { return one.Backend }},
		column[*consolev1.Policy]{title: "LADDER", width: 20, text: func(one *consolev1.Policy) string { return ladderText(one.Ladder, one.Pin) }},
		column[*consolev1.Policy]{title: "DATA", width: 9, right: true, text: func(one *consolev1.Policy) string { return words.Bytes(policyBytes(one)) },
			number: func(one *consolev1.Policy) float64 { return float64(policyBytes(one)) }},
		column[*consolev1.Policy]{title: "SAVED", width: 9, right: true, text: func(one *consolev1.Policy) string { return words.Bytes(one.SavedBytes) },
			number: func(one *consolev1.Policy) float64 { return float64(one.SavedBytes) }},
		column[*consolev1.Policy]{title: "MOVING", width: 6, right: true, text: func(one *consolev1.Policy) string { return fmt.Sprint(one.ActiveTransitions) },
			number: func(one *consolev1.Policy) float64 { return float64(one.ActiveTransitions) }},
		column[*consolev1.Policy]{title: "APPROVAL", width: 11, from: 100, text: func(one *consolev1.Policy) string { return one.Approval }},
		column[*consolev1.Policy]{title: "STATE", width: 14, text: func(one *consolev1.Policy) string { return policyState(&s.look, one) },
			paint: func(one *consolev1.Policy, text string) string { return policyColour(&s.look, one, text) }},
	)
	return p
}

// ladderText is a ladder, with the scheme that it is pinned to in brackets.
func ladderText(ladder []string, pin *consolev1.Pin) string {
	short := make([]string, len(ladder))
	for i, code := range ladder {
		short[i] = pinnedText(code, pin)
	}
	return strings.Join(short, " > ")
}

func policyBytes(one *consolev1.Policy) (bytes int64) {
	for _, rung := range one.Rungs {
		bytes += rung.Bytes
	}
	return bytes
}

// policyState is what to know first of a policy: an icon and a word.
func policyState(l *look, one *consolev1.Policy) string {
	switch {
	case one.Deleting:
		return l.glyphs.waiting + " deleting"
	case one.StopPolicy == "Hold":
		return l.glyphs.pause + " held"
	case one.StopPolicy == "HoldAndDrain":
		return l.glyphs.pause + " drained"
	}
	if len(one.Conditions) == 0 {
		return l.glyphs.waiting + " new"
	}
	wrong := unready(one)
	switch {
	case isTrue(one, "Stalled"):
		return l.glyphs.warning + " stalled"
	case wrong == nil:
		return l.glyphs.good + " ready"
	case isTrue(one, "Progressing"):
		return l.glyphs.running + " moving"
	case isTrue(one, "AwaitingApproval"):
		return l.glyphs.waiting + " to approve"
	case isTrue(one, "Paused"):
		return l.glyphs.pause + " paused"
	case wrong.Reason == "NotConverged":
		return l.glyphs.waiting + " converging"
	}
	return l.glyphs.warning + " " + wrong.Reason
}

// isTrue reports whether a policy says that a condition holds.
func isTrue(one *consolev1.Policy, condition string) bool {
	return slices.ContainsFunc(one.Conditions, func(c *consolev1.Condition) bool { return c.Type == condition && c.Status == "True" })
}

// unready is the condition that says why a policy is not ready; nil: it is.
func unready(one *consolev1.Policy) *consolev1.Condition {
	for _, c := range one.Conditions {
		if c.Type == "Ready" && c.Status != "True" {
			return c
		}
	}
	return nil
}

func policyColour(l *look, one *consolev1.Policy, text string) string {
	switch {
	case one.StopPolicy == "Hold" || one.StopPolicy == "HoldAndDrain" || one.Deleting || len(one.Conditions) == 0 || unready(one) != nil:
		return l.paint(l.warn, text)
	}
	return l.paint(l.good, text)
}

func (p *policiesPage) Title() (name, aside string) {
	return listTitle(p.session, p.table.Count(), p.table.filter, p.feed.stale())
}

func (p *policiesPage) SetSize(width, height int)     { p.table.SetSize(width, height) }
func (p *policiesPage) Init() tea.Cmd                 { return p.feed.begin() }
func (p *policiesPage) Filter() string                { return p.table.filter }
func (p *policiesPage) SetFilter(text string) tea.Cmd { p.table.SetFilter(text); return nil }

func policyKeys() []key.Binding {
	return []key.Binding{keys.Open, keys.Edit, keys.Plan, keys.Pause, keys.Pin, keys.Unpin, keys.YAML, keys.Describe}
}

func (p *policiesPage) Keys() []keyGroup {
	return []keyGroup{{"The chosen policy", policyKeys()}, listKeys()}
}

func (p *policiesPage) Chosen() any {
	if one, is := p.table.Value(); is {
		return one
	}
	return nil
}

func (p *policiesPage) Update(message tea.Msg) tea.Cmd {
	if pressed, is := message.(tea.KeyPressMsg); is {
		p.table.Update(pressed)
		return nil
	}
	came, next := p.feed.Update(message)
	if came != nil {
		p.seen = !came.Partial || p.seen
		p.coming = applyList(&p.table, p.coming, came.Whole, came.Partial, came.Policies, came.Removed)
	}
	return next
}

func (p *policiesPage) View() string {
	if len(p.table.shown) == 0 {
		return emptyList(p.session, p.feed.stale(), p.seen, p.table.filter, "policy",
			"There is no policy. Declare one with `restripe apply -f policy.yaml`; `restripe schema` says what goes into it.", p.table.width)
	}
	return p.table.View()
}

// livePolicy keeps the page of a policy up to date.
type livePolicy struct {
	*textPage
	policy *consolev1.Policy
}

func openPolicy(s *session, row *consolev1.Policy) tea.Cmd {
	p := &livePolicy{policy: row}
	p.textPage = &textPage{session: s, name: row.Name, chosen: func() any { return p.policy }, own: []keyGroup{{"The policy", policyKeys()[1:]}}}
	p.content = p.write
	p.fetch = func() tea.Cmd {
		return ask(s, func(ctx context.Context) (*consolev1.PolicyDetail, error) {
			return s.options.Client.GetPolicy(ctx, &consolev1.GetPolicyRequest{Name: row.Name})
		}, func(detail *consolev1.PolicyDetail, err error) tea.Cmd {
			if err != nil {
				s.fail(err)
				return nil
			}
			p.policy = detail.Policy
			return nil
		})
	}
	return s.open(p)
}

func (p *livePolicy) Update(message tea.Msg) tea.Cmd {
	if came, is := message.(received[consolev1.PolicyList]); is {
		for _, one := range came.message.Policies {
			if one.Name == p.policy.Name {
				p.policy = one
			}
		}
	}
	return p.textPage.Update(message)
}

func (p *livePolicy) write(s *script) {
	one, l := p.policy, &p.session.look
	s.Raw(policyColour(l, one, policyState(l, one)))
	s.Head("What it says")
	s.Field("class", one.Class+" at "+one.Backend)
	s.Field("objects", strings.Join(quoted(one.Prefixes), ", "))
	s.Field("ladder", ladderText(one.Ladder, one.Pin))
	if one.Pin != nil {
		s.Field("pinned", pinText(one.Pin, p.session.now()))
	}
	s.Field("approval", one.Approval)
	if one.BytesPerSecond > 0 {
		s.Field("budget", words.Rate(one.BytesPerSecond))
	}
	if one.NextWindow != nil {
		s.Field("next window", clockText(one.NextWindow, p.session.now()))
	}
	for _, rule := range one.Rules {
		s.Field(schemeText(rule.Scheme), ruleText(rule))
	}
	if len(one.Rules) > 0 && one.HysteresisPercent > 0 {
		s.Field("hysteresis", fmt.Sprintf("%d %% of each threshold", one.HysteresisPercent))
	}
	s.Head("What is where")
	most := int64(1)
	for _, rung := range one.Rungs {
		most = max(most, rung.StoredBytes)
	}
	for _, rung := range one.Rungs {
		s.Raw(fit(schemeText(rung.Scheme), 8, false) + " " + l.bar(rung.StoredBytes, most, 20) + " " +
			fmt.Sprintf("%s as %s in %s", words.Bytes(rung.Bytes), words.Bytes(rung.StoredBytes), words.Count(rung.Groups, "group")))
	}
	s.Field("saved", fmt.Sprintf("%s against keeping all of it on %s", words.Bytes(one.SavedBytes), schemeText(first(one.Ladder))))
	s.Field("moving now", words.Count(int64(one.ActiveTransitions), "transition"))
	writeConditions(s, p.session, one.Conditions)
}

func first(ladder []string) string {
	if len(ladder) == 0 {
		return "the first step"
	}
	return ladder[0]
}

func quoted(texts []string) []string {
	list := make([]string, len(texts))
	for i, text := range texts {
		list[i] = fmt.Sprintf("%q", text)
	}
	return list
}

// ruleText is the range of heat that a scheme is for.
func ruleText(rule *consolev1.TemperatureRule) string {
	low, high := words.Decimal(rule.GetAtLeast()), words.Decimal(rule.GetBelow())
	switch {
	case rule.AtLeast != nil && rule.Below != nil:
		return fmt.Sprintf("at least %s and below %s accesses a day of a group", low, high)
	case rule.AtLeast != nil:
		return fmt.Sprintf("at least %s accesses a day of a group", low)
	case rule.Below != nil:
		return fmt.Sprintf("below %s accesses a day of a group", high)
	}
	return "whatever the heat"
}

// writePlans tells what policies would move now.
func writePlans(s *script, plans []*consolev1.PolicyPlan) {
	l := s.look
	for _, plan := range plans {
		s.Head("Plan of policy", plan.Policy)
		s.Text(cmp.Or(plan.Line, plan.Unknown, "Nothing would move."))
		if len(plan.Ending) > 0 {
			s.Text("It ends " + strings.Join(plan.Ending, ", ") + ", as the policy wants something else.")
		}
		for _, one := range plan.Feasibility {
			mark, style := l.glyphs.warning, l.warn
			if one.Severity == "error" {
				mark, style = l.glyphs.bad, l.bad
			}
			for _, line := range wrapped(mark+" "+plain(one.Message), s.width) {
				s.Raw(l.paint(style, line))
			}
		}
		for _, move := range plan.Moves {
			s.Head("Move", schemeText(move.From), l.glyphs.arrow, schemeText(move.To))
			s.Field("groups", fmt.Sprintf("%s with %s: %s", words.Count(move.Groups, "group"), words.Bytes(move.Bytes), move.Heat))
			s.Field("will be", fateText(move))
			s.Field("sent", words.Bytes(move.Traffic.GetBytesSent())+sentReason(move.Traffic.GetBytesSent(), reencoded(move.Comparisons)))
			s.Field("read, written", words.Bytes(move.Traffic.GetBytesRead())+", "+words.Bytes(move.Traffic.GetBytesWritten()))
			s.Field("peak space", words.Bytes(move.PeakBytes)+" more than before, while it runs")
			s.Field("stored", words.Bytes(move.StoredBefore)+" before, "+words.Bytes(move.StoredAfter)+" after")
			if move.BudgetSeconds != nil {
				s.Field("time", "about "+words.About(words.Seconds(*move.BudgetSeconds))+" within the budget")
			}
			s.Field("price", fmt.Sprintf("%.4g once; saves %.4g a month", move.Price, move.SavingPerMonth))
			writeComparisons(s, move.Comparisons)
			if move.Explanation != "" {
				s.Head("In words")
				s.Text(move.Explanation)
			}
		}
		s.Field("plan", plan.PlanHash)
	}
}

func fateText(move *consolev1.PlannedMove) string {
	switch move.Fate {
	case "approval":
		return strings.TrimSuffix("made when a person approves: "+move.Why, ": ")
	case "refused":
		return "refused: " + move.Why
	}
	return strings.TrimSuffix("made by itself: "+move.Why, ": ")
}

func reencoded(comparisons []*consolev1.Comparison) int64 {
	for _, one := range comparisons {
		if one.Way == "reencode" {
			return one.BytesSent
		}
	}
	return 0
}

// planChosen shows what would happen: of a policy its plan, of a transition the picture of its own.
func (m *Model) planChosen(chosen any) (tea.Cmd, bool) {
	switch one := chosen.(type) {
	case *consolev1.Transition:
		return m.planTransition(one), true
	case *consolev1.Policy:
		return m.planPolicy(one), true
	}
	return nil, false
}

func (m *Model) planPolicy(one *consolev1.Policy) tea.Cmd {
	var plan *consolev1.PlanPolicyResponse
	text := "Asking what it would move now."
	page := &textPage{session: m.session, name: "plan of " + one.Name, chosen: func() any { return one }}
	page.content = func(s *script) {
		if plan == nil {
			s.Text(text)
			return
		}
		writeFindings(s, plan.Findings)
		writePlans(s, plan.Plans)
	}
	page.fetch = func() tea.Cmd {
		return ask(m.session, func(ctx context.Context) (*consolev1.PlanPolicyResponse, error) {
			detail, err := m.options.Client.GetPolicy(ctx, &consolev1.GetPolicyRequest{Name: one.Name})
			if err != nil {
				return nil, err
			}
			return m.options.Client.PlanPolicy(ctx, &consolev1.PlanPolicyRequest{Document: &consolev1.Document{Name: one.Name, Text: detail.Yaml}})
		}, func(answer *consolev1.PlanPolicyResponse, err error) tea.Cmd {
			if plan = answer; err != nil {
				plan, text = nil, failureText(err, m.options.Address)
			}
			return nil
		})
	}
	return m.open(page)
}

// planTransition shows what the plan of a transition does to one group, and what other ways would cost.
func (m *Model) planTransition(row *consolev1.Transition) tea.Cmd {
	d := &transitionDetail{session: m.session, row: row}
	page := &textPage{session: m.session, name: "plan of " + row.Name, fetch: d.fetch, chosen: func() any { return d.row }}
	page.content = func(s *script) {
		if d.failure != "" {
			s.Text(d.failure)
		}
		if d.picture != nil {
			d.picture.Write(s)
		}
		d.writeCost(s)
		if d.detail != nil {
			writeComparisons(s, d.detail.Comparisons)
			s.Head("In words")
			s.Text(d.detail.Explanation)
		}
	}
	page.pressed = func(pressed tea.KeyPressMsg) (tea.Cmd, bool) {
		return nil, d.picture != nil && d.picture.Press(pressed)
	}
	page.own = []keyGroup{{"The stripe picture", []key.Binding{keys.Before, keys.After, keys.First, keys.Last}}, {"The transition", []key.Binding{keys.Approve, keys.Cancel}}}
	return m.open(page)
}

package screen

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	"github.com/dustin/go-humanize"

	tea "charm.land/bubbletea/v2"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/words"
)

// action is what a key does with what is chosen. begin returns false where the key means nothing for it.
type action struct {
	key     *key.Binding
	verb    string // that the console wants for it
	changes bool   // refused where the screen is read-only
	begin   func(m *Model, chosen any) (tea.Cmd, bool)
}

var actions = []action{
	{&keys.Open, "get", false, (*Model).openChosen},
	{&keys.Describe, "get", false, (*Model).openChosen},
	{&keys.YAML, "get", false, (*Model).showYAML},
	{&keys.Plan, "plan", false, (*Model).planChosen},
	{&keys.Edit, "apply", true, (*Model).editChosen},
	{&keys.Pause, "pause", true, (*Model).pauseChosen},
	{&keys.Approve, "approve", true, (*Model).approveChosen},
	{&keys.Cancel, "cancel", true, (*Model).cancelChosen},
	{&keys.Throttle, "pause", true, (*Model).throttleChosen},
	{&keys.Rollback, "rollback", true, (*Model).rollbackChosen},
	{&keys.Drain, "apply", true, (*Model).drainChosen},
	{&keys.Compact, "apply", true, (*Model).compactChosen},
	{&keys.Balance, "get", false, (*Model).showBalance},
	{&keys.Begin, "apply", true, (*Model).beginBalance},
	{&keys.Stop, "pause", true, (*Model).stopBalance},
	{&keys.Add, "apply", true, (*Model).addNode},
	{&keys.Pin, "apply", true, (*Model).pinChosen},
	{&keys.Unpin, "apply", true, (*Model).unpinChosen},
	{&keys.Move, "apply", true, (*Model).moveChosen},
}

// act does what a key means for what is chosen, and reports whether it means something.
func (m *Model) act(pressed tea.KeyPressMsg) (tea.Cmd, bool) {
	at := slices.IndexFunc(actions, func(a action) bool { return key.Matches(pressed, *a.key) })
	if at < 0 {
		return nil, false
	}
	var chosen any
	if one, can := m.top().(chooser); can {
		chosen = one.Chosen()
	}
	one := &actions[at]
	if chosen == nil {
		return nil, false
	}
	if one.changes && m.options.ReadOnly {
		m.warn(fmt.Sprintf("read-only: %s is refused; start restripe tui without --read-only to change something", one.key.Help().Desc))
		return nil, true
	}
	command, meant := one.begin(m, chosen)
	if !meant {
		m.warn(fmt.Sprintf("%s means nothing for %s; ? has the keys", one.key.Help().Desc, nameOf(chosen)))
	}
	return command, true
}

// lacking says which verb a key wants that the person lacks.
func (m *Model) lacking(one key.Binding) string {
	for i := range actions {
		if actions[i].key.Help() != one.Help() || m.who == nil {
			continue
		}
		if verb := actions[i].verb; !slices.Contains(m.who.Verbs, verb) {
			return " (you lack the verb " + verb + ")"
		}
		if actions[i].changes && m.options.ReadOnly {
			return " (refused: read-only)"
		}
	}
	return ""
}

// nameOf is what is chosen, in words.
func nameOf(chosen any) string {
	switch one := chosen.(type) {
	case *consolev1.Transition:
		return "transition " + plain(one.Name)
	case *consolev1.Policy:
		return "policy " + plain(one.Name)
	case *consolev1.Node:
		return "node " + plain(one.Name)
	case *consolev1.Object:
		return "object " + plain(one.Key)
	case *consolev1.Scheme:
		return "scheme " + plain(one.Name)
	case *consolev1.Backend:
		return "backend " + plain(one.Name)
	case *consolev1.Compaction:
		return "the compaction of " + plain(one.Backend)
	case *consolev1.Balance:
		return "the balance of " + plain(one.Backend)
	case *consolev1.AuditAction:
		return fmt.Sprintf("action %d", one.Sequence)
	case *consolev1.ClassHeat:
		return "class " + plain(one.Class)
	}
	return "this"
}

func (m *Model) openChosen(chosen any) (tea.Cmd, bool) {
	switch one := chosen.(type) {
	case *consolev1.Transition:
		if _, is := m.top().(*liveTransition); is {
			return nil, true
		}
		return openTransition(m.session, one), true
	case *consolev1.Policy:
		return openPolicy(m.session, one), true
	case *consolev1.Node:
		return openNode(m.session, one), true
	case *consolev1.Scheme:
		return openScheme(m.session, one), true
	case *consolev1.Backend:
		return openBackend(m.session, one), true
	case *consolev1.Object:
		return openObject(m.session, one), true
	case *consolev1.AuditAction:
		return openAuditAction(m.session, one), true
	case *consolev1.ClassHeat:
		return openClassHeat(m.session, one), true
	}
	return nil, false
}

// showYAML shows what was declared, as a person would write it.
func (m *Model) showYAML(chosen any) (tea.Cmd, bool) {
	var get func(ctx context.Context) (string, error)
	client := m.options.Client
	switch one := chosen.(type) {
	case *consolev1.Transition:
		get = func(ctx context.Context) (string, error) {
			detail, err := client.GetTransition(ctx, &consolev1.GetTransitionRequest{Name: one.Name})
			if err == nil && detail.Yaml == "" {
				return "# It was started by hand at a gateway, and is declared nowhere.", nil
			}
			return detail.GetYaml(), err
		}
	case *consolev1.Policy:
		get = func(ctx context.Context) (string, error) {
			detail, err := client.GetPolicy(ctx, &consolev1.GetPolicyRequest{Name: one.Name})
			return detail.GetYaml(), err
		}
	default:
		return nil, false
	}
	text := "Asking for it."
	page := &textPage{session: m.session, name: nameOf(chosen) + " as YAML", content: func(s *script) { s.Verbatim(text) }, chosen: func() any { return chosen }}
	page.fetch = func() tea.Cmd {
		return ask(m.session, get, func(yaml string, err error) tea.Cmd {
			if text = yaml; err != nil {
				text = failureText(err, m.options.Address)
			}
			return nil
		})
	}
	return m.open(page), true
}

// change makes a call that changes something, and says how it ended.
func (m *Model) change(call func(ctx context.Context) (said string, err error)) tea.Cmd {
	return ask(m.session, call, func(said string, err error) tea.Cmd {
		if err != nil {
			m.fail(err)
			return nil
		}
		m.say(plain(said))
		return nil
	})
}

func (m *Model) pauseChosen(chosen any) (tea.Cmd, bool) {
	client := m.options.Client
	switch one := chosen.(type) {
	case *consolev1.Transition:
		return m.change(func(ctx context.Context) (string, error) {
			if one.State == "Paused" {
				change, err := client.ResumeTransition(ctx, &consolev1.ResumeTransitionRequest{Name: one.Name})
				return change.GetSaid(), err
			}
			change, err := client.PauseTransition(ctx, &consolev1.PauseTransitionRequest{Name: one.Name})
			return change.GetSaid(), err
		}), true
	case *consolev1.Policy:
		hold := consolev1.Hold_HOLD_HOLD
		if one.StopPolicy != "None" && one.StopPolicy != "" {
			hold = consolev1.Hold_HOLD_NONE
		}
		return m.change(func(ctx context.Context) (string, error) {
			held, err := client.HoldPolicy(ctx, &consolev1.HoldPolicyRequest{Name: one.Name, Hold: hold})
			return held.GetSaid(), err
		}), true
	case *consolev1.Compaction:
		return m.pauseCompaction(one), true
	case *consolev1.Balance:
		return m.pauseBalance(one), true
	}
	return nil, false
}

// approveChosen approves the plan that was looked at: of another one by then the console refuses it.
func (m *Model) approveChosen(chosen any) (tea.Cmd, bool) {
	one, is := chosen.(*consolev1.Transition)
	if !is {
		return nil, false
	}
	if !one.NeedsApproval || one.Approved {
		m.warn(nameOf(one) + " waits for nobody's approval: " + plain(one.StateWhy))
		return nil, true
	}
	question := fmt.Sprintf("Approve %s? %s %s %s", nameOf(one), schemeText(one.From), m.look.glyphs.arrow, schemeText(one.To))
	if c := one.Cost; c != nil {
		question += fmt.Sprintf(" takes %s: sends %s, reads %s, writes %s, needs %s more space meanwhile", words.Count(c.Groups, "group"), words.Bytes(c.Traffic.GetBytesSent()),
			words.Bytes(c.Traffic.GetBytesRead()), words.Bytes(c.Traffic.GetBytesWritten()), words.Bytes(c.PeakBytes))
	} else {
		question += " is not planned yet, so that its cost is not known"
	}
	m.prompt = newQuestion(question+". y approves, any other key leaves it.", func() tea.Cmd {
		return m.change(func(ctx context.Context) (string, error) {
			change, err := m.options.Client.ApproveTransition(ctx, &consolev1.ApproveTransitionRequest{Name: one.Name, PlanHash: one.PlanHash})
			return change.GetSaid(), err
		})
	})
	return nil, true
}

// askName asks for a name before what cannot simply be taken back.
func (m *Model) askName(question, name string, call func(ctx context.Context) (string, error)) {
	name = plain(name)
	m.prompt = newPrompt(question, "type "+name+" to go on: ", "", func(text string) tea.Cmd {
		if strings.TrimSpace(text) != name {
			m.warn(fmt.Sprintf("nothing was done: %q is not %q", plain(text), name))
			return nil
		}
		return m.change(call)
	})
}

func (m *Model) cancelChosen(chosen any) (tea.Cmd, bool) {
	one, is := chosen.(*consolev1.Transition)
	if !is {
		return nil, false
	}
	m.askName(fmt.Sprintf("Cancel %s? The %d groups done stay %s, the others stay %s. What was done is not taken back: R does that.", nameOf(one),
		one.Progress.GetGroupsDone(), schemeText(one.To), schemeText(one.From)), one.Name,
		func(ctx context.Context) (string, error) {
			change, err := m.options.Client.CancelTransition(ctx, &consolev1.CancelTransitionRequest{Name: one.Name})
			return change.GetSaid(), err
		})
	return nil, true
}

func (m *Model) rollbackChosen(chosen any) (tea.Cmd, bool) {
	one, is := chosen.(*consolev1.Transition)
	if !is {
		return nil, false
	}
	cost := func(ctx context.Context) (*consolev1.PlanRollbackResponse, error) {
		return m.options.Client.PlanRollback(ctx, &consolev1.PlanRollbackRequest{Name: one.Name})
	}
	return ask(m.session, cost, func(plan *consolev1.PlanRollbackResponse, err error) tea.Cmd {
		if err != nil {
			m.fail(err)
			return nil
		}
		m.askName(fmt.Sprintf("Roll back %s? %s. The policy is held until P lets it go on.", nameOf(one), plain(inOneLine(plan.Lines))), one.Name,
			func(ctx context.Context) (string, error) {
				change, err := m.options.Client.RollbackTransition(ctx, &consolev1.RollbackTransitionRequest{
					Name: one.Name, Reason: "asked for at the terminal",
				})
				return change.GetSaid(), err
			})
		return nil
	}), true
}

// inOneLine makes sentences of lines.
func inOneLine(lines []string) string {
	parts := make([]string, len(lines))
	for i := range parts {
		parts[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(parts, "; ")
}

func (m *Model) throttleChosen(chosen any) (tea.Cmd, bool) {
	one, is := chosen.(*consolev1.Transition)
	if !is {
		return nil, false
	}
	limit := ""
	if one.BytesPerSecondLimit > 0 {
		limit = strings.ReplaceAll(words.Rate(one.BytesPerSecondLimit), " ", "")
	}
	m.prompt = newPrompt("Most bytes a second for "+nameOf(one)+", such as 20MiB/s; 0 takes its limit away.", "limit: ", limit, func(text string) tea.Cmd {
		rate, err := parseRate(text)
		if err != nil {
			m.warn(err.Error())
			return nil
		}
		return m.change(func(ctx context.Context) (string, error) {
			change, err := m.options.Client.ThrottleTransition(ctx, &consolev1.ThrottleTransitionRequest{Name: one.Name, BytesPerSecond: rate})
			return change.GetSaid(), err
		})
	})
	return nil, true
}

// parseRate reads 20MiB/s, 20 MB/s, 20MiB or 0.
func parseRate(text string) (int64, error) {
	rate, err := humanize.ParseBytes(strings.TrimSuffix(strings.TrimSpace(text), "/s"))
	if err != nil || rate > 1<<62 {
		return 0, fmt.Errorf("limit %q: want bytes a second such as 20MiB/s, or 0 for none", plain(text))
	}
	return int64(rate), nil
}

func (m *Model) drainChosen(chosen any) (tea.Cmd, bool) {
	one, is := chosen.(*consolev1.Node)
	if !is {
		return nil, false
	}
	name := &consolev1.NodeName{Backend: one.Backend, Name: one.Name}
	if one.Declared == "draining" {
		return m.change(func(ctx context.Context) (string, error) {
			change, err := m.options.Client.UndrainNode(ctx, &consolev1.UndrainNodeRequest{Node: name})
			return change.GetSaid(), err
		}), true
	}
	m.askName(fmt.Sprintf("Drain %s of %s? What lies on it, %s in %s slots, is copied to other nodes.", nameOf(one), plain(one.Backend), words.Bytes(one.UsedBytes), words.Known(one.Slots)), one.Name,
		func(ctx context.Context) (string, error) {
			change, err := m.options.Client.DrainNode(ctx, &consolev1.DrainNodeRequest{Node: name})
			return change.GetSaid(), err
		})
	return nil, true
}

func (m *Model) moveChosen(chosen any) (tea.Cmd, bool) {
	one, is := chosen.(*consolev1.Object)
	if !is {
		return nil, false
	}
	m.prompt = newPrompt(fmt.Sprintf("Move %s, %s in %s, to which scheme of its ladder? Objects that share its group move with it.", nameOf(one), words.Bytes(one.Size),
		schemeText(one.Scheme)), "scheme: ", "", func(text string) tea.Cmd {
		return m.change(func(ctx context.Context) (string, error) {
			moved, err := m.options.Client.MoveObject(ctx, &consolev1.MoveObjectRequest{Backend: one.Backend, Key: one.KeyBytes, To: strings.TrimSpace(text)})
			return moved.GetSaid(), err
		})
	})
	return nil, true
}

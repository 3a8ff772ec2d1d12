package screen

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"

	tea "charm.land/bubbletea/v2"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/words"
)

// liveBalance shows the balance of a backend's nodes as long as it is looked at.
type liveBalance struct {
	*textPage
	polled
	balance *consolev1.Balance // what is not known yet has no state
	known   bool               // whether the gateways tell of one
}

func openBalance(s *session, backend string) tea.Cmd {
	p := &liveBalance{balance: &consolev1.Balance{Backend: backend}}
	own := []keyGroup{{"The balance", []key.Binding{keys.Begin, keys.Pause, keys.Stop, keys.Add}}}
	p.textPage = &textPage{session: s, name: "balance of " + backend, chosen: func() any { return p.balance }, own: own}
	p.content, p.fetch = p.write, p.ask
	return s.open(p)
}

func (p *liveBalance) ask() tea.Cmd {
	return p.poll(p.session, func(ctx context.Context) (func(), error) {
		report, err := p.session.options.Client.GetBalances(ctx, &consolev1.GetBalancesRequest{Backend: p.balance.Backend})
		return func() { p.take(report) }, err
	})
}

func (p *liveBalance) take(report *consolev1.BalanceReport) {
	p.known, p.failure = true, ""
	for _, one := range report.Balances {
		p.balance = one
	}
}

func (p *liveBalance) Update(message tea.Msg) tea.Cmd {
	if p.isDue(p.session, message) {
		return p.ask()
	}
	return p.textPage.Update(message)
}

func (p *liveBalance) write(s *script) {
	one, l, now := p.balance, &p.session.look, p.session.now()
	s.Head("Balance", one.Backend)
	switch {
	case p.failure != "":
		s.Text(p.failure)
		return
	case one.State == "" && p.known:
		s.Text("Its gateways do not tell of a balance.")
		return
	case one.State == "":
		s.Text("Asking for it.")
		return
	}
	s.Field("state", one.State)
	if one.Number == 0 {
		s.Text("Nothing was balanced yet. A balance moves blocks until every node holds about its share, by what its store can hold.")
		return
	}
	if one.Planned {
		bar := l.bar(one.BytesMoved, one.BytesTotal, 30)
		s.Raw(fmt.Sprintf("%s %s of %s moved", bar, words.Bytes(one.BytesMoved), words.Bytes(one.BytesTotal)))
	}
	s.Field("slots moved", words.Number(one.SlotsMoved))
	if one.EtaSeconds != nil {
		s.Field("left", "about "+words.About(words.Seconds(*one.EtaSeconds)))
	}
	if one.BytesPerSecond > 0 {
		s.Field("limit", words.Rate(one.BytesPerSecond))
	}
	s.Field("waits for", one.Waits)
	s.Field("error", one.Error)
	s.Field("note", one.Note)
	if one.Started != nil {
		s.Field("began", ageText(one.Started, now)+" ago")
	}
	if one.Finished != nil {
		s.Field("ended", ageText(one.Finished, now)+" ago")
	}
}

// backendOf is the backend that what is chosen belongs to; empty: it belongs to none.
func backendOf(chosen any) string {
	switch one := chosen.(type) {
	case *consolev1.Node:
		return one.Backend
	case *consolev1.Backend:
		return one.Name
	case *consolev1.Compaction:
		return one.Backend
	case *consolev1.Balance:
		return one.Backend
	}
	return ""
}

func (m *Model) showBalance(chosen any) (tea.Cmd, bool) {
	backend := backendOf(chosen)
	if _, is := m.top().(*liveBalance); is || backend == "" {
		return nil, is
	}
	return openBalance(m.session, backend), true
}

// steerBalance changes a balance, says how that ended, and shows it as it is then.
func (m *Model) steerBalance(call func(ctx context.Context) (*consolev1.BalanceChange, error)) tea.Cmd {
	page, shown := m.top().(*liveBalance)
	return ask(m.session, call, func(change *consolev1.BalanceChange, err error) tea.Cmd {
		if err != nil {
			m.fail(err)
			return nil
		}
		if m.say(plain(change.Said)); shown && change.Balance != nil {
			page.balance = change.Balance
		}
		return nil
	})
}

// beginBalance asks for a rate, says what would be moved, and begins; a balance under way gets the rate.
func (m *Model) beginBalance(chosen any) (tea.Cmd, bool) {
	one, is := chosen.(*consolev1.Balance)
	if !is {
		return nil, false
	}
	question := "Most bytes a second for " + nameOf(one) + ", such as 20MiB/s; 0 for no limit, nothing for what is usual."
	m.prompt = newPrompt(question, "limit: ", "",
		func(text string) tea.Cmd {
			var rate *int64
			if strings.TrimSpace(text) != "" {
				limit, err := parseRate(text)
				if err != nil {
					m.warn(err.Error())
					return nil
				}
				rate = &limit
			}
			begin := func(ctx context.Context) (*consolev1.BalanceChange, error) {
				return m.options.Client.StartBalance(ctx, &consolev1.StartBalanceRequest{Backend: one.Backend, BytesPerSecond: rate})
			}
			if one.State == "running" || one.State == "paused" {
				return m.steerBalance(begin)
			}
			return ask(m.session, func(ctx context.Context) (*consolev1.BalancePlan, error) {
				return m.options.Client.PlanBalance(ctx, &consolev1.PlanBalanceRequest{Backend: one.Backend, BytesPerSecond: rate})
			}, func(plan *consolev1.BalancePlan, err error) tea.Cmd {
				switch {
				case err != nil:
					m.fail(err)
				case plan.Even:
					m.say(plain(plan.Said))
				default:
					m.prompt = newQuestion(plain(plan.Said)+" y begins, any other key leaves it.", func() tea.Cmd { return m.steerBalance(begin) })
				}
				return nil
			})
		})
	return nil, true
}

// pauseBalance pauses a balance, or goes on with one that is paused.
func (m *Model) pauseBalance(one *consolev1.Balance) tea.Cmd {
	return m.steerBalance(func(ctx context.Context) (*consolev1.BalanceChange, error) {
		if one.State == "paused" {
			return m.options.Client.ResumeBalance(ctx, &consolev1.ResumeBalanceRequest{Backend: one.Backend})
		}
		return m.options.Client.PauseBalance(ctx, &consolev1.PauseBalanceRequest{Backend: one.Backend})
	})
}

func (m *Model) stopBalance(chosen any) (tea.Cmd, bool) {
	one, is := chosen.(*consolev1.Balance)
	if !is {
		return nil, false
	}
	question := "Stop " + nameOf(one) + "? What was moved stays where it is. y stops it, any other key goes on."
	m.prompt = newQuestion(question, func() tea.Cmd {
		return m.steerBalance(func(ctx context.Context) (*consolev1.BalanceChange, error) {
			return m.options.Client.CancelBalance(ctx, &consolev1.CancelBalanceRequest{Backend: one.Backend})
		})
	})
	return nil, true
}

// addNode asks for a node to add, says what adding it means, and adds it.
func (m *Model) addNode(chosen any) (tea.Cmd, bool) {
	backend := backendOf(chosen)
	if backend == "" {
		return nil, false
	}
	question := "Add a node to " + plain(backend) + ": NAME HOST:PORT [DOMAIN] [spare] [balance]. With balance it is filled with its share."
	m.prompt = newPrompt(question, "node: ", "", func(text string) tea.Cmd {
		request, err := parseNode(backend, text)
		if err != nil {
			m.warn(err.Error())
			return nil
		}
		return ask(m.session, func(ctx context.Context) (*consolev1.AddNodePlan, error) {
			return m.options.Client.PlanAddNode(ctx, request)
		},
			func(plan *consolev1.AddNodePlan, err error) tea.Cmd {
				if err != nil {
					m.fail(err)
					return nil
				}
				m.prompt = newQuestion(plain(plan.Said)+" y adds it, any other key leaves it.", func() tea.Cmd {
					return m.change(func(ctx context.Context) (string, error) {
						added, err := m.options.Client.AddNode(ctx, request)
						return added.GetSaid(), err
					})
				})
				return nil
			})
	})
	return nil, true
}

// parseNode reads NAME HOST:PORT [DOMAIN] [spare] [balance].
func parseNode(backend, text string) (*consolev1.AddNodeRequest, error) {
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return nil, errors.New("a node to add: want its name and the address of its agent, such as n16 10.0.0.16:7481")
	}
	request := &consolev1.AddNodeRequest{Node: &consolev1.NodeName{Backend: backend, Name: fields[0]}, Address: fields[1]}
	for _, field := range fields[2:] {
		switch {
		case field == "spare":
			request.Spare = true
		case field == "balance":
			request.Balance = true
		case request.FailureDomain == "":
			request.FailureDomain = field
		default:
			return nil, fmt.Errorf("a node to add: %s is one word too many; want NAME HOST:PORT [DOMAIN] [spare] [balance]", plain(field))
		}
	}
	return request, nil
}

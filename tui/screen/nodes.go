package screen

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"
	"connectrpc.com/connect"

	tea "charm.land/bubbletea/v2"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/words"
)

// nodesPage lists the nodes of every backend.
type nodesPage struct {
	session *session
	feed    feed[consolev1.NodeList]
	table   table[*consolev1.Node]
	coming  []*consolev1.Node
	seen    bool
}

func nodeKey(backend, name string) string { return backend + "/" + name }

func newNodesPage(s *session) *nodesPage {
	p := &nodesPage{session: s}
	p.feed = feed[consolev1.NodeList]{session: s, open: func(ctx context.Context) (*connect.ServerStreamForClient[consolev1.NodeList], error) {
		return s.options.Client.WatchNodes(ctx, &consolev1.WatchNodesRequest{})
	}}
	p.table = newTable(&s.look, func(one *consolev1.Node) string { return nodeKey(one.Backend, one.Name) }, nil,
		column[*consolev1.Node]{title: "NAME", name: true, text: func(one *consolev1.Node) string { return one.Name }},
		column[*consolev1.Node]{title: "BACKEND", width: 10, text: func(one *consolev1.Node) string { return one.Backend }},
		column[*consolev1.Node]{title: "STATE", width: 12, text: func(one *consolev1.Node) string { return nodeState(&s.look, one) },
			paint: func(one *consolev1.Node, text string) string { return nodeColour(&s.look, one, text) }},
		column[*consolev1.Node]{title: "FOR", width: 7, right: true, text: func(one *consolev1.Node) string { return ageText(one.Since, s.now()) },
			number: func(one *consolev1.Node) float64 { return -float64(one.Since.GetSeconds()) }},
		column[*consolev1.Node]{title: "DOMAIN", width: 10, text: func(one *consolev1.Node) string { return cmp.Or(one.FailureDomain, "-") }},
		column[*consolev1.Node]{title: "USED", width: 21, text: func(one *consolev1.Node) string { return usedText(&s.look, one) },
			number: func(one *consolev1.Node) float64 { return float64(one.UsedBytes) }},
		column[*consolev1.Node]{title: "SLOTS", width: 6, right: true, text: func(one *consolev1.Node) string { return words.Known(one.Slots) },
			number: func(one *consolev1.Node) float64 { return float64(one.Slots) }},
		column[*consolev1.Node]{title: "STORE", width: 10, from: 100, text: func(one *consolev1.Node) string { return one.StoreKind }},
		column[*consolev1.Node]{title: "ADDRESS", width: 22, from: 120, text: func(one *consolev1.Node) string { return one.Address }},
	)
	return p
}

func nodeState(l *look, one *consolev1.Node) string {
	mark := l.glyphs.warning
	switch one.State {
	case "up":
		mark = l.glyphs.good
	case "down", "out":
		mark = l.glyphs.bad
	}
	text := mark + " " + one.State
	if one.Declared == "draining" && one.State == "up" {
		text = l.glyphs.waiting + " draining"
	}
	if one.Spare {
		text += " spare"
	}
	return text
}

func nodeColour(l *look, one *consolev1.Node, text string) string {
	switch one.State {
	case "up":
		return l.paint(l.good, text)
	case "down", "out":
		return l.paint(l.bad, text)
	}
	return l.paint(l.warn, text)
}

// usedText is a bar where the capacity is known.
func usedText(l *look, one *consolev1.Node) string {
	if one.CapacityBytes <= 0 {
		return words.Bytes(one.UsedBytes)
	}
	return l.bar(one.UsedBytes, one.CapacityBytes, 6) + " " + words.Part(one.UsedBytes, one.CapacityBytes)
}

func (p *nodesPage) Title() (name, aside string) {
	return listTitle(p.session, p.table.Count(), p.table.filter, p.feed.stale())
}

func (p *nodesPage) SetSize(width, height int)     { p.table.SetSize(width, height) }
func (p *nodesPage) Init() tea.Cmd                 { return p.feed.begin() }
func (p *nodesPage) Filter() string                { return p.table.filter }
func (p *nodesPage) SetFilter(text string) tea.Cmd { p.table.SetFilter(text); return nil }

func (p *nodesPage) Keys() []keyGroup {
	return []keyGroup{
		{"The chosen node", []key.Binding{keys.Open, keys.Drain, keys.Describe}},
		{"Its backend", []key.Binding{keys.Balance, keys.Add}}, listKeys(),
	}
}

func (p *nodesPage) Chosen() any {
	if one, is := p.table.Value(); is {
		return one
	}
	return nil
}

func (p *nodesPage) Update(message tea.Msg) tea.Cmd {
	if pressed, is := message.(tea.KeyPressMsg); is {
		p.table.Update(pressed)
		return nil
	}
	came, next := p.feed.Update(message)
	if came != nil {
		var removed []string
		for _, one := range came.Removed {
			removed = append(removed, nodeKey(one.Backend, one.Name))
		}
		p.seen = !came.Partial || p.seen
		p.coming = applyList(&p.table, p.coming, came.Whole, came.Partial, came.Nodes, removed)
	}
	return next
}

func (p *nodesPage) View() string {
	if len(p.table.shown) == 0 {
		return emptyList(p.session, p.feed.stale(), p.seen, p.table.filter, "node",
			"There is no node. Declare a StorageBackend that names gateways, or start everything on this machine with `restripe up`.", p.table.width)
	}
	return p.table.View()
}

// liveNode keeps the page of a node up to date.
type liveNode struct {
	*textPage
	node     *consolev1.Node
	findings []*consolev1.ScrubFinding
	failure  string
}

func openNode(s *session, row *consolev1.Node) tea.Cmd {
	p := &liveNode{node: row}
	own := []keyGroup{{"The node", []key.Binding{keys.Drain, keys.Balance}}}
	p.textPage = &textPage{session: s, name: row.Name, chosen: func() any { return p.node }, own: own}
	p.content = p.write
	p.fetch = func() tea.Cmd {
		return ask(s, func(ctx context.Context) (*consolev1.ScrubReport, error) {
			return s.options.Client.GetScrubs(ctx, &consolev1.GetScrubsRequest{Backend: row.Backend})
		}, func(report *consolev1.ScrubReport, err error) tea.Cmd {
			if err != nil {
				p.failure = failureText(err, s.options.Address)
				return nil
			}
			p.findings, p.failure = nil, ""
			for _, one := range report.Findings {
				if one.Node == row.Name {
					p.findings = append(p.findings, one)
				}
			}
			return nil
		})
	}
	return s.open(p)
}

func (p *liveNode) Update(message tea.Msg) tea.Cmd {
	if came, is := message.(received[consolev1.NodeList]); is {
		for _, one := range came.message.Nodes {
			if one.Backend == p.node.Backend && one.Name == p.node.Name {
				p.node = one
			}
		}
	}
	return p.textPage.Update(message)
}

func (p *liveNode) write(s *script) {
	one, l, now := p.node, &p.session.look, p.session.now()
	s.Raw(nodeColour(l, one, nodeState(l, one)+" for "+ageText(one.Since, now)))
	s.Head("Where")
	s.Field("backend", one.Backend)
	s.Field("address", one.Address)
	s.Field("failure domain", cmp.Or(one.FailureDomain, "none declared: it counts as one of its own"))
	s.Field("declared", one.Declared)
	s.Field("replaces", one.Replaces)
	s.Field("release", one.Release)
	s.Field("taken out by", one.OutBy)
	if one.Fenced {
		s.Field("fenced", "it was away, and takes part again when its store was swept")
	}
	s.Head("What it holds")
	s.Field("store", one.StoreKind+map[bool]string{true: ", durable", false: ", not durable: what it holds is gone when it ends"}[one.Durable])
	s.Field("used", usedText(l, one))
	if one.Slots < 0 {
		s.Field("slots", "not counted yet")
	} else {
		s.Field("slots", words.Count(one.Slots, "group")+" have a part on it")
	}
	if d := one.Drain; d != nil {
		s.Head("Drain")
		if moved := d.SlotsTotal - d.SlotsLeft; d.SlotsLeft < 0 {
			s.Text("What lies on it is being counted.")
		} else {
			s.Raw(fmt.Sprintf("%s %d of %s moved", l.bar(moved, d.SlotsTotal, 30), moved, words.Count(d.SlotsTotal, "slot")))
		}
		if d.Paused {
			s.Text("It is paused.")
		}
		if d.EtaSeconds != nil {
			s.Field("left", "about "+words.About(words.Seconds(*d.EtaSeconds)))
		}
		if d.BytesPerSecond > 0 {
			s.Field("limit", words.Rate(d.BytesPerSecond))
		}
	}
	for _, text := range one.Warnings {
		for _, line := range wrapped(l.glyphs.warning+" "+plain(text), s.width) {
			s.Raw(l.paint(l.warn, line))
		}
	}
	s.Head("What scrubs found wrong on it")
	switch {
	case p.failure != "":
		s.Text(p.failure)
	case len(p.findings) == 0:
		s.Text("Nothing.")
	}
	for _, finding := range p.findings {
		s.Field(clockText(finding.Found, now), finding.Kind+" in group "+finding.Group+": "+finding.Text+" "+finding.Outcome+" "+strings.Join(finding.Objects, ", "))
	}
}

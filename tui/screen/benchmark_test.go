package screen

import (
	"fmt"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
)

// What is shown at the size that the screen is made for.
const manyPolicies, manyTransitions, manyNodes = 1000, 10000, 500

// crowded is a screen of 120 x 40 with all of them.
func crowded(b *testing.B) *Model {
	b.Helper()
	m := still(b, 120, 40, func(o *Options) { o.NoColor = false })
	tellOverview(m, overview())
	var allTransitions []*consolev1.Transition
	for i := range manyTransitions {
		one := transitions()[i%5]
		one.Name, one.Created = fmt.Sprintf("%s-%d", one.Name, i), ago(time.Duration(i)*time.Minute)
		allTransitions = append(allTransitions, one)
	}
	var allPolicies []*consolev1.Policy
	for i := range manyPolicies {
		one := policies()[i%3]
		one.Name = fmt.Sprintf("%s-%d", one.Name, i)
		allPolicies = append(allPolicies, one)
	}
	var allNodes []*consolev1.Node
	for i := range manyNodes {
		one := nodes()[i%14]
		one.Name = fmt.Sprintf("n%d", i+1)
		allNodes = append(allNodes, one)
	}
	press(m, ":po", "enter", ":no", "enter", ":tr", "enter")
	tellTransitions(m, allTransitions...)
	tellPolicies(m, allPolicies...)
	tellNodes(m, allNodes...)
	return m
}

// BenchmarkRedraw is one message and the screen after it, at 1,000 policies, 10,000 transitions and 500 nodes. The aim is
// less than 16 ms.
func BenchmarkRedraw(b *testing.B) {
	redraw := func(name string, prepare func(m *Model), message func(m *Model, i int) tea.Msg) {
		b.Run(name, func(b *testing.B) {
			m := crowded(b)
			prepare(m)
			for i := 0; b.Loop(); i++ {
				m.Update(message(m, i))
				if m.View().Content == "" {
					b.Fatal("nothing is drawn")
				}
			}
		})
	}
	nothing := func(*Model) {}
	down := func(*Model, int) tea.Msg { return tea.KeyPressMsg{Code: tea.KeyDown} }
	changed := func(m *Model, i int) tea.Msg {
		one := transitions()[0]
		one.Name, one.Created = fmt.Sprintf("%s-%d", one.Name, i%2000*5), ago(time.Duration(i%2000*5)*time.Minute)
		one.Progress.BytesDone = int64(i)
		return received[consolev1.TransitionList]{&pageOf[*transitionsPage](m).feed, nil, &consolev1.TransitionList{Transitions: []*consolev1.Transition{one}}}
	}
	redraw("transitions/key", nothing, down)
	redraw("transitions/one-changed", nothing, changed)
	redraw("transitions/one-changed-filtered", func(m *Model) { press(m, "/media", "enter") }, changed)
	redraw("transitions/all-changed", nothing, func(m *Model, i int) tea.Msg {
		page := pageOf[*transitionsPage](m)
		all := make([]*consolev1.Transition, 0, manyTransitions)
		for _, one := range page.table.sorted {
			all = append(all, one.value)
		}
		return received[consolev1.TransitionList]{&page.feed, nil, &consolev1.TransitionList{Whole: true, Transitions: all}}
	})
	redraw("transitions/filter-typed", func(m *Model) { press(m, "/") }, func(_ *Model, i int) tea.Msg {
		if i%2 == 1 {
			return tea.KeyPressMsg{Code: tea.KeyBackspace}
		}
		return tea.KeyPressMsg{Code: 'm', Text: "m"}
	})
	redraw("transitions/sorted-by-name", nothing, func(_ *Model, i int) tea.Msg { return tea.KeyPressMsg{Code: 'S', Text: "S"} })
	redraw("policies/key", func(m *Model) { press(m, ":po", "enter") }, down)
	redraw("nodes/key", func(m *Model) { press(m, ":no", "enter") }, down)
	redraw("overview/message", func(m *Model) { press(m, ":ov", "enter") }, func(m *Model, i int) tea.Msg {
		o := overview()
		o.Objects = int64(i)
		return received[consolev1.Overview]{&m.overview.feed, nil, o}
	})
}

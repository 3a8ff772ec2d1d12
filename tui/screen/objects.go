package screen

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"charm.land/bubbles/v2/key"

	tea "charm.land/bubbletea/v2"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/words"
)

// objectsPage lists objects by the beginning of their keys, a page at a time.
type objectsPage struct {
	session *session
	prefix  string
	table   table[*consolev1.Object]
	objects []*consolev1.Object
	next    []byte // empty: all are there
	seen    bool
	asking  int // which question is under way; an answer to another comes too late
	failure string
}

// objectsPageSize is how many objects are asked for at once.
const objectsPageSize = 200

func newObjectsPage(s *session) *objectsPage {
	p := &objectsPage{session: s}
	p.table = newTable(&s.look, func(one *consolev1.Object) string { return one.Backend + "\x00" + string(one.KeyBytes) }, nil,
		column[*consolev1.Object]{title: "KEY", name: true, text: func(one *consolev1.Object) string { return one.Key }},
		column[*consolev1.Object]{title: "BACKEND", width: 12, from: 100, text: func(one *consolev1.Object) string { return one.Backend }},
		column[*consolev1.Object]{title: "CLASS", width: 12, text: func(one *consolev1.Object) string { return one.Class }},
		column[*consolev1.Object]{title: "SCHEME", width: 8, text: func(one *consolev1.Object) string { return schemeText(one.Scheme) }},
		column[*consolev1.Object]{title: "SIZE", width: 9, right: true, text: func(one *consolev1.Object) string { return words.Bytes(one.Size) },
			number: func(one *consolev1.Object) float64 { return float64(one.Size) }},
		column[*consolev1.Object]{title: "MODIFIED", width: 8, right: true, text: func(one *consolev1.Object) string { return ageText(one.Modified, s.now()) },
			number: func(one *consolev1.Object) float64 { return -float64(one.Modified.GetSeconds()) }},
	)
	return p
}

func (p *objectsPage) Title() (name, aside string) {
	count := p.table.Count()
	if len(p.next) > 0 {
		count += ", more below"
	}
	return listTitle(p.session, count, p.prefix, "")
}

func (p *objectsPage) SetSize(width, height int) { p.table.SetSize(width, height) }
func (p *objectsPage) Init() tea.Cmd             { return p.search() }
func (p *objectsPage) Filter() string            { return p.prefix }

// SetFilter looks for other keys: there may be too many to have them all here.
func (p *objectsPage) SetFilter(text string) tea.Cmd {
	p.prefix, p.objects, p.next, p.seen = text, nil, nil, false
	return p.search()
}

// search asks for the next page.
func (p *objectsPage) search() tea.Cmd {
	p.asking++
	question := p.asking
	request := &consolev1.SearchObjectsRequest{Prefix: p.prefix, AfterKey: p.next, Limit: objectsPageSize}
	return ask(p.session, func(ctx context.Context) (*consolev1.SearchObjectsResponse, error) {
		return p.session.options.Client.SearchObjects(ctx, request)
	}, func(page *consolev1.SearchObjectsResponse, err error) tea.Cmd {
		if question != p.asking {
			return nil
		}
		if err != nil {
			p.failure = failureText(err, p.session.options.Address)
			return nil
		}
		p.failure, p.seen, p.next = "", true, page.NextKey
		p.objects = append(p.objects, page.Objects...)
		p.table.Replace(p.objects)
		return nil
	})
}

func (p *objectsPage) Keys() []keyGroup {
	return []keyGroup{{"The chosen object", []key.Binding{keys.Open, keys.Move, keys.Describe}}, {"Moving about", append(listKeys().keys, keys.Refresh)}}
}

func (p *objectsPage) Chosen() any {
	if one, is := p.table.Value(); is {
		return one
	}
	return nil
}

func (p *objectsPage) Update(message tea.Msg) tea.Cmd {
	pressed, is := message.(tea.KeyPressMsg)
	switch {
	case !is:
	case key.Matches(pressed, keys.Refresh):
		return p.SetFilter(p.prefix)
	case p.table.Update(pressed) && p.table.AtEnd() && len(p.next) > 0:
		return p.search()
	}
	return nil
}

func (p *objectsPage) View() string {
	if p.failure != "" {
		return p.session.look.paint(p.session.look.bad, wrappedText(p.session.look.glyphs.bad+" "+p.failure+"; r asks again", p.table.width))
	}
	if len(p.table.shown) == 0 || !p.seen {
		filter := ""
		if p.prefix != "" {
			filter = p.prefix
		}
		return emptyList(p.session, "", p.seen, filter, "object whose key begins so", "Nothing is stored. `restripe put FILE KEY` stores something.", p.table.width)
	}
	return p.table.View()
}

// openObject shows on which nodes the blocks of an object lie.
func openObject(s *session, one *consolev1.Object) tea.Cmd {
	var layout *consolev1.ObjectLayout
	failure := ""
	page := &textPage{session: s, name: one.Key, chosen: func() any { return one }, own: []keyGroup{{"The object", []key.Binding{keys.Move}}}}
	page.content = func(w *script) {
		w.Field("key", one.Key)
		w.Field("class", one.Class+" at "+one.Backend)
		w.Field("scheme", one.Scheme)
		w.Field("size", words.Bytes(one.Size))
		w.Field("revision", one.Revision)
		w.Field("modified", clockText(one.Modified, s.now()))
		if one.Expires != nil {
			w.Field("expires", clockText(one.Expires, s.now()))
		}
		for _, name := range slices.Sorted(maps.Keys(one.Metadata)) {
			w.Field("metadata", name+" = "+one.Metadata[name])
		}
		for _, revision := range one.Earlier {
			w.Field("kept", "revision "+revision)
		}
		switch {
		case failure != "":
			w.Text("Where it lies is not known: " + failure)
		case layout == nil:
			w.Text("Asking where it lies.")
		default:
			for _, group := range layout.Groups {
				writeGroup(w, group)
			}
		}
	}
	page.fetch = func() tea.Cmd {
		return ask(s, func(ctx context.Context) (*consolev1.ObjectLayout, error) {
			return s.options.Client.GetObjectLayout(ctx, &consolev1.GetObjectLayoutRequest{Backend: one.Backend, Key: one.KeyBytes})
		}, func(answer *consolev1.ObjectLayout, err error) tea.Cmd {
			if failure = ""; err != nil {
				failure = failureText(err, s.options.Address)
				return nil
			}
			layout = answer
			return nil
		})
	}
	return s.open(page)
}

// writeGroup draws the columns of a group, headed by its nodes.
func writeGroup(w *script, group *consolev1.Group) {
	l := w.look
	w.Head("Group", group.Id)
	w.Field("code", group.Scheme+" on the ladder "+group.Ladder)
	w.Field("array", fmt.Sprintf("%d x %s of %s", group.Rows, words.Count(int64(group.Columns), "column"), words.Bytes(group.CellBytes)))
	w.Field("of this object", words.Bytes(group.Bytes)+map[bool]string{true: "; other objects share the group", false: ""}[group.Packed])
	nodes, states := "", ""
	flush := func() {
		if nodes != "" {
			w.Raw(nodes, states)
		}
		nodes, states = "", ""
	}
	for i, slot := range group.Slots {
		if i > 0 && slot.Role == "parity" && group.Slots[i-1].Role == "data" {
			nodes, states = nodes+l.glyphs.column+" ", states+l.glyphs.column+" "
		}
		text := l.glyphs.good + " ok"
		style := l.good
		if slot.State != "ok" {
			text, style = l.glyphs.bad+" "+plain(slot.State), l.bad
		}
		wide := max(5, textWidth(plain(slot.Node)), textWidth(text)) + 1
		if textWidth(nodes)+wide > w.width {
			flush()
		}
		nodes += fit(plain(slot.Node), wide, false)
		states += l.paint(style, fit(text, wide, false))
	}
	flush()
}

func wrappedText(text string, width int) string {
	lines := wrapped(text, max(1, width))
	out := lines[0]
	for _, line := range lines[1:] {
		out += "\n" + line
	}
	return out
}

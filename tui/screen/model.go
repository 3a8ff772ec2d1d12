package screen

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"

	tea "charm.land/bubbletea/v2"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
)

// The smallest screen that everything fits on.
const leastWidth, leastHeight = 80, 24

// Model is the whole screen. New makes it; Close ends its calls.
type Model struct {
	*session
	stop     context.CancelFunc
	overview *overviewPage
	kinds    []kind
	current  int // of kinds
	laidOut  [3]int
}

// kind is a kind of things, and the page that lists them.
type kind struct {
	name    string
	aliases []string
	page    page
	begun   bool
}

// New returns a screen that has asked nothing yet.
func New(ctx context.Context, options Options) *Model {
	if options.Now == nil {
		options.Now = time.Now
	}
	ctx, stop := context.WithCancel(ctx)
	s := &session{options: options, ctx: ctx, look: newLook(options.NoColor, options.ASCII)}
	overview := newOverviewPage(s)
	return &Model{session: s, stop: stop, overview: overview, kinds: []kind{
		{"overview", []string{"ov"}, overview, false},
		{"transitions", []string{"tr"}, newTransitionsPage(s), false},
		{"policies", []string{"po"}, newPoliciesPage(s), false},
		{"nodes", []string{"no"}, newNodesPage(s), false},
		{"schemes", []string{"sc"}, newSchemesPage(s), false},
		{"backends", []string{"be"}, newBackendsPage(s), false},
		{"objects", []string{"ob"}, newObjectsPage(s), false},
		{"audit", []string{"au"}, newAuditPage(s), false},
		{"heat", []string{"he"}, newHeatPage(s), false},
	}}
}

// Close ends every call and watch.
func (m *Model) Close() { m.stop() }

func (m *Model) Init() tea.Cmd {
	return tea.Batch(m.beat(), m.identify(), m.show(0))
}

func (m *Model) beat() tea.Cmd {
	return tea.Tick(time.Second, func(at time.Time) tea.Msg { return tick(at) })
}

// identify asks who the person is to the console.
func (m *Model) identify() tea.Cmd {
	return ask(m.session, func(ctx context.Context) (*consolev1.WhoAmIResponse, error) {
		return m.options.Client.WhoAmI(ctx, &consolev1.WhoAmIRequest{})
	}, func(who *consolev1.WhoAmIResponse, err error) tea.Cmd {
		if err == nil {
			m.who = who
		}
		return nil // the watches say what is wrong, and since when
	})
}

// show goes to a kind.
func (m *Model) show(at int) tea.Cmd {
	m.current, m.stack = at, nil
	one := &m.kinds[at]
	if one.begun {
		return nil
	}
	one.begun = true
	return one.page.Init()
}

// top is the page that has the keys.
func (m *Model) top() page {
	if len(m.stack) > 0 {
		return m.stack[len(m.stack)-1]
	}
	return m.kinds[m.current].page
}

func (m *Model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	var command tea.Cmd
	switch message := message.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = message.Width, message.Height
	case tea.KeyPressMsg:
		command = m.press(message)
	case tea.PasteMsg:
		if m.prompt != nil {
			command, _ = m.prompt.Update(message)
		}
	case answer:
		command = message.apply()
	case tick:
		command = tea.Batch(m.beat(), m.tell(message))
		if m.who == nil && m.overview.overview != nil {
			command = tea.Batch(command, m.identify())
		}
	default:
		command = m.tell(message)
	}
	m.layOut()
	return m, command
}

// tell hands a message to every page that was begun.
func (m *Model) tell(message tea.Msg) tea.Cmd {
	var commands []tea.Cmd
	for i := range m.kinds {
		if m.kinds[i].begun {
			commands = append(commands, m.kinds[i].page.Update(message))
		}
	}
	for _, one := range m.stack {
		commands = append(commands, one.Update(message))
	}
	return tea.Batch(commands...)
}

// press takes a key: the prompt's first, then those that work everywhere, then those that change something, then those
// of the page.
func (m *Model) press(pressed tea.KeyPressMsg) tea.Cmd {
	m.note = note{}
	if asked := m.prompt; asked != nil {
		command, over := asked.Update(pressed)
		if over && m.prompt == asked {
			m.prompt = nil
		}
		return command
	}
	switch {
	case key.Matches(pressed, keys.Quit):
		return tea.Quit
	case key.Matches(pressed, keys.Kind):
		m.askKind()
	case key.Matches(pressed, keys.Filter):
		m.askFilter()
	case key.Matches(pressed, keys.Help):
		return m.help()
	case key.Matches(pressed, keys.Back):
		return m.back()
	default:
		if command, meant := m.act(pressed); meant {
			return command
		}
		return m.top().Update(pressed)
	}
	return nil
}

// back takes away, in this order: the filter, the page on top, the kind.
func (m *Model) back() tea.Cmd {
	if one, can := m.top().(filtered); can && one.Filter() != "" {
		return one.SetFilter("")
	}
	if len(m.stack) > 0 {
		m.stack = m.stack[:len(m.stack)-1]
		return nil
	}
	return m.show(0)
}

// askKind asks which kind to go to, with a filter behind it if one is wanted.
func (m *Model) askKind() {
	m.prompt = newPrompt("", ":", "", func(text string) tea.Cmd {
		name, filter, _ := strings.Cut(strings.TrimSpace(text), " ")
		switch name {
		case "":
			return nil
		case "q", "quit":
			return tea.Quit
		}
		at := m.kindNamed(name)
		if at < 0 {
			m.warn(fmt.Sprintf("there is no kind %q; kinds are %s", plain(name), strings.Join(m.kindNames(""), ", ")))
			return nil
		}
		command := m.show(at)
		if one, can := m.top().(filtered); can && filter != "" {
			command = tea.Batch(command, one.SetFilter(strings.TrimSpace(filter)))
		}
		return command
	})
	m.prompt.question = "kinds: " + strings.Join(m.kindNames(""), ", ")
	m.prompt.complete = func(text string) string {
		if names := m.kindNames(text); len(names) > 0 {
			return names[0]
		}
		return text
	}
}

// kindNames are the kinds whose names begin so.
func (m *Model) kindNames(prefix string) (names []string) {
	for i := range m.kinds {
		if strings.HasPrefix(m.kinds[i].name, prefix) {
			names = append(names, m.kinds[i].name)
		}
	}
	return names
}

// kindNamed is the kind of a name, an alias, or the only one that begins so; -1 for none.
func (m *Model) kindNamed(name string) int {
	at := slices.IndexFunc(m.kinds, func(k kind) bool { return k.name == name || slices.Contains(k.aliases, name) })
	if names := m.kindNames(name); at < 0 && len(names) == 1 {
		return m.kindNamed(names[0])
	}
	return at
}

// askFilter narrows the page down while it is typed.
func (m *Model) askFilter() {
	one, can := m.top().(filtered)
	if !can {
		m.warn("there is nothing to filter here")
		return
	}
	before := one.Filter()
	m.prompt = newPrompt("", "/", before, func(string) tea.Cmd { return nil })
	m.prompt.typed = one.SetFilter
	m.prompt.left = func() tea.Cmd { return one.SetFilter(before) }
}

// layOut gives the pages their sizes where they changed: what is said at the foot takes lines from them.
func (m *Model) layOut() {
	foot := len(m.footLines())
	if now := [3]int{m.width, m.height, foot}; now != m.laidOut || len(m.stack) > 0 {
		m.laidOut = now
		for i := range m.kinds {
			m.kinds[i].page.SetSize(m.width, m.height-2-foot)
		}
		for _, one := range m.stack {
			one.SetSize(m.width, m.height-2-foot)
		}
	}
}

func (m *Model) View() tea.View {
	view := tea.View{AltScreen: true, WindowTitle: "restripe"}
	if m.width < leastWidth || m.height < leastHeight {
		view.Content = strings.Join(wrapped(fmt.Sprintf("This terminal has %d x %d characters; restripe tui needs %d x %d. Make it larger, or q to quit.",
			m.width, m.height, leastWidth, leastHeight), max(1, m.width)), "\n")
		return view
	}
	foot := m.footLines()
	lines := append([]string{m.header(), m.titleLine()}, strings.Split(m.top().View(), "\n")...)
	body := m.height - len(foot)
	for len(lines) < body {
		lines = append(lines, "")
	}
	lines = append(lines[:body], foot...)
	view.Content = strings.Join(lines, "\n")
	if m.prompt != nil {
		if column, is := m.prompt.Cursor(); is {
			view.Cursor = tea.NewCursor(column, m.height-1)
		}
	}
	return view
}

// footLines are what is asked, or what is to be said, or the keys.
func (m *Model) footLines() []string {
	width := max(1, m.width)
	most := max(1, m.height-leastHeight+8)
	var lines []string
	switch {
	case m.prompt != nil:
		lines = m.prompt.Lines(width)
	case m.note.text != "":
		style, mark := m.look.good, m.look.glyphs.good
		if m.note.bad {
			style, mark = m.look.bad, m.look.glyphs.bad
		}
		for _, line := range wrapped(mark+" "+m.note.text, width) {
			lines = append(lines, m.look.paint(style, line))
		}
	default:
		lines = []string{m.hints(width)}
	}
	if len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	return lines
}

// hints are the keys of the page, as many as fit.
func (m *Model) hints(width int) string {
	always := m.hint(keys.Filter) + "  " + m.hint(keys.Kind) + "  " + m.hint(keys.Help) + "  " + m.hint(keys.Quit)
	line, left := "", width-textWidth(always)
	for _, group := range m.top().Keys() {
		for _, one := range group.keys {
			if slices.Contains(basicHelp, one.Help().Key) {
				continue
			}
			hint := m.hint(one) + "  "
			if textWidth(line)+textWidth(hint) > left {
				return m.look.paint(m.look.dim, line+always)
			}
			line += hint
		}
	}
	return m.look.paint(m.look.dim, line+always)
}

// basicHelp are keys that need no hint: everybody tries them.
var basicHelp = func() (shown []string) {
	for _, one := range append(keys.moving(), keys.Sort, keys.Reverse, keys.Refresh) {
		shown = append(shown, one.Help().Key)
	}
	return shown
}()

func (m *Model) hint(one key.Binding) string {
	shown := keyName(m.session, one)
	if len(shown) > 1 && shown[0] >= 'a' && shown[0] <= 'z' {
		shown = "<" + shown + ">"
	}
	return shown + " " + firstOf(one.Help().Desc)
}

// firstOf is the first of several things that a key does.
func firstOf(does string) string {
	for _, end := range []string{", ", " or ", " to "} {
		does, _, _ = strings.Cut(does, end)
	}
	return does
}

// keyText is the name of a key in characters that the terminal has.
func (m *Model) keyText(shown string) string {
	if !m.options.ASCII {
		return shown
	}
	return strings.NewReplacer("↑", "up", "↓", "down", "←", "left", "→", "right").Replace(shown)
}

// titleLine is where the person is.
func (m *Model) titleLine() string {
	name, aside := m.top().Title()
	left := strings.ToUpper(m.kinds[m.current].name)
	if len(m.stack) > 0 {
		for _, one := range m.stack {
			title, _ := one.Title()
			left += " > " + title
		}
	} else if name != "" {
		left += " " + name
	}
	room := m.width - textWidth(aside) - 1
	left = shortenEnd(plain(left), room, m.look.glyphs.more)
	return m.look.paint(m.look.title, fit(left, room, false)) + " " + aside
}

// help shows every key that works on the page.
func (m *Model) help() tea.Cmd {
	groups, name := m.top().Keys(), m.kinds[m.current].name
	if len(m.stack) > 0 {
		name, _ = m.top().Title()
	}
	return m.open(&textPage{session: m.session, name: "help", content: func(s *script) {
		s.Text("Keys of " + name + ".")
		for _, group := range append(groups, keyGroup{"Everywhere", keys.everywhere()}) {
			s.Head(group.title)
			for _, one := range group.keys {
				s.Field(m.keyText(one.Help().Key), one.Help().Desc+m.lacking(one))
			}
		}
		s.Head("Kinds")
		for i := range m.kinds {
			s.Field(":"+m.kinds[i].name, "or :"+m.kinds[i].aliases[0])
		}
		s.Text("A filter can follow, such as `:transitions media`.")
		s.Head("You")
		switch {
		case m.who == nil:
			s.Text("The console has not said yet who you are.")
		default:
			s.Text(fmt.Sprintf("%s at %s, known by %s, with the verbs %s.", m.who.User, m.options.Address, m.who.By, strings.Join(m.who.Verbs, ", ")))
		}
		if m.options.ReadOnly {
			s.Text("Read-only: every change is refused here.")
		}
	}})
}

package screen

import (
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"
	"github.com/charmbracelet/x/ansi"

	tea "charm.land/bubbletea/v2"
)

// textPage shows lines that are made anew whenever it is drawn, so that what they tell of is as it is now.
type textPage struct {
	session *session
	name    string
	content func(*script) // writes the text
	fetch   func() tea.Cmd
	chosen  func() any
	pressed func(tea.KeyPressMsg) (tea.Cmd, bool) // keys of its own; nil: none
	own     []keyGroup

	find          string
	top           int
	width, height int
}

func (p *textPage) Title() (name, aside string) {
	if p.find != "" {
		return p.name, fmt.Sprintf("lines with %q", p.find)
	}
	return p.name, ""
}

func (p *textPage) SetSize(width, height int) { p.width, p.height = width, height }

func (p *textPage) Init() tea.Cmd {
	if p.fetch == nil {
		return nil
	}
	return p.fetch()
}

func (p *textPage) Keys() []keyGroup {
	return append([]keyGroup{{"Reading", append(keys.moving(), keys.Refresh)}}, p.own...)
}

func (p *textPage) Chosen() any {
	if p.chosen == nil {
		return nil
	}
	return p.chosen()
}

func (p *textPage) Filter() string { return p.find }

func (p *textPage) SetFilter(text string) tea.Cmd {
	p.find, p.top = text, 0
	return nil
}

func (p *textPage) Update(message tea.Msg) tea.Cmd {
	pressed, is := message.(tea.KeyPressMsg)
	if !is {
		return nil
	}
	if p.pressed != nil {
		if command, meant := p.pressed(pressed); meant {
			return command
		}
	}
	switch {
	case key.Matches(pressed, keys.Up):
		p.top--
	case key.Matches(pressed, keys.Down):
		p.top++
	case key.Matches(pressed, keys.PageUp):
		p.top -= p.height
	case key.Matches(pressed, keys.PageDown):
		p.top += p.height
	case key.Matches(pressed, keys.Top):
		p.top = 0
	case key.Matches(pressed, keys.Bottom):
		p.top = 1 << 30
	case key.Matches(pressed, keys.Refresh):
		return p.Init()
	}
	return nil
}

func (p *textPage) View() string {
	s := &script{look: &p.session.look, width: p.width}
	p.content(s)
	lines := s.lines
	if p.find != "" {
		lines = nil
		for _, line := range s.lines {
			if strings.Contains(strings.ToLower(line), strings.ToLower(p.find)) {
				lines = append(lines, line)
			}
		}
	}
	if len(lines) <= p.height {
		p.top = 0
	} else {
		p.top = max(0, min(p.top, len(lines)-p.height+1)) // the last line says where this is
		last := p.top + p.height - 1
		more := fmt.Sprintf("%s line %d to %d of %d", p.session.look.glyphs.more, p.top+1, last, len(lines))
		return strings.Join(lines[p.top:last], "\n") + "\n" + p.session.look.paint(p.session.look.dim, more)
	}
	return strings.Join(lines, "\n")
}

// script is a text that is being written for a width. All but Raw takes texts from elsewhere.
type script struct {
	look  *look
	width int
	lines []string
}

// Raw adds lines that are drawn already.
func (s *script) Raw(lines ...string) { s.lines = append(s.lines, lines...) }

// Head begins a part, which may have a name.
func (s *script) Head(what string, name ...string) {
	if len(s.lines) > 0 {
		s.Raw("")
	}
	text := strings.TrimSpace(strings.ToUpper(what) + " " + plain(strings.Join(name, " ")))
	s.Raw(s.look.paint(s.look.title, shortenEnd(text, s.width, s.look.glyphs.more)))
}

// Field is a name and what is to be said of it; nothing is left out.
func (s *script) Field(name, text string) {
	const indent, gap = 18, 2
	if text == "" {
		return
	}
	for i, line := range wrapped(plain(text), s.width-indent) {
		label := strings.Repeat(" ", indent)
		if i == 0 {
			label = s.look.paint(s.look.dim, fit(name, indent-gap, false)+strings.Repeat(" ", gap))
		}
		s.Raw(label + line)
	}
}

// Text is a paragraph.
func (s *script) Text(text string) {
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		s.Raw(wrapped(plain(line), s.width)...)
	}
}

// Verbatim is a text whose lines are only broken where they are too long.
func (s *script) Verbatim(text string) {
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		line = plain(strings.ReplaceAll(line, "\t", "    "))
		s.Raw(strings.Split(ansi.Hardwrap(line, max(1, s.width), true), "\n")...)
	}
}

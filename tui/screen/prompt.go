package screen

import (
	"strings"

	"charm.land/bubbles/v2/textinput"
	"github.com/charmbracelet/x/ansi"

	tea "charm.land/bubbletea/v2"
)

// prompt asks for a line, or for y or n, at the foot of the screen. While it is there it has all keys.
type prompt struct {
	question string // above the line
	yesNo    bool
	input    textinput.Model

	typed    func(text string) tea.Cmd // at every change; nil: nothing
	complete func(text string) string  // for the tab key; nil: nothing
	done     func(text string) tea.Cmd // with enter, or with y
	left     func() tea.Cmd            // with esc; nil: nothing
}

// newPrompt asks for a line that begins with a value.
func newPrompt(question, label, value string, done func(text string) tea.Cmd) *prompt {
	input := textinput.New()
	input.Prompt = label
	input.SetVirtualCursor(false)
	input.SetStyles(textinput.Styles{})
	input.SetValue(value)
	input.CursorEnd()
	input.Focus()
	return &prompt{question: question, input: input, done: done}
}

// newQuestion asks for y or n.
func newQuestion(question string, done func() tea.Cmd) *prompt {
	return &prompt{question: question, yesNo: true, done: func(string) tea.Cmd { return done() }}
}

// Update takes a key, or what was pasted, and reports whether the prompt is over.
func (p *prompt) Update(message tea.Msg) (command tea.Cmd, over bool) {
	pressed, isKey := message.(tea.KeyPressMsg)
	if p.yesNo {
		switch {
		case isKey && pressed.String() == "y":
			return p.done(""), true
		case isKey:
			return p.leave(), true
		}
		return nil, false
	}
	if isKey {
		switch pressed.String() {
		case "esc", "ctrl+c":
			return p.leave(), true
		case "enter":
			return p.done(p.input.Value()), true
		case "tab":
			if p.complete != nil {
				p.input.SetValue(p.complete(p.input.Value()))
				p.input.CursorEnd()
			}
			return nil, false
		}
	}
	before := p.input.Value()
	p.input, command = p.input.Update(message)
	if after := p.input.Value(); after != before && p.typed != nil {
		command = tea.Batch(command, p.typed(after))
	}
	return command, false
}

func (p *prompt) leave() tea.Cmd {
	if p.left == nil {
		return nil
	}
	return p.left()
}

// Lines are what the prompt draws.
func (p *prompt) Lines(width int) []string {
	var lines []string
	if p.question != "" {
		lines = wrapped(p.question, width)
	}
	if !p.yesNo {
		p.input.SetWidth(max(1, width-textWidth(p.input.Prompt)-1))
		lines = append(lines, strings.TrimRight(p.input.View(), " "))
	}
	return lines
}

// Cursor is the column of the cursor in the last line; none where no line is asked for.
func (p *prompt) Cursor() (column int, is bool) {
	if p.yesNo {
		return 0, false
	}
	if cursor := p.input.Cursor(); cursor != nil {
		return cursor.X, true
	}
	return 0, false
}

// wrapped breaks a text into lines.
func wrapped(text string, width int) []string {
	return strings.Split(ansi.Wrap(text, max(1, width), ""), "\n")
}

package screen

import (
	"context"
	"errors"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
)

// errEnded is why a watch broke that ended without a word.
var errEnded = errors.New("the console ended the watch")

// page is one thing on the screen. Messages that are no keys go to every page that was begun; keys to the one on top.
type page interface {
	// Title is what the page is called, and what is said at the right of its name.
	Title() (name, aside string)
	SetSize(width, height int)
	Init() tea.Cmd
	Update(message tea.Msg) tea.Cmd
	View() string
	// Keys are those that mean something on the page.
	Keys() []keyGroup
}

// filtered is a page whose content can be narrowed down. Typing narrows it at once.
type filtered interface {
	Filter() string
	SetFilter(text string) tea.Cmd
}

// chooser is a page on which something is chosen: a *consolev1.Transition, *consolev1.Policy, *consolev1.Node, *consolev1.Object and so on, nil
// for nothing.
type chooser interface{ Chosen() any }

// session is what all pages share. It is touched by the program's loop alone.
type session struct {
	options Options
	ctx     context.Context
	look    look

	who    *consolev1.WhoAmIResponse // nil: not known yet
	stack  []page                    // opened over the page of a kind, the last on top
	prompt *prompt
	note   note
	width  int
	height int
}

// note is what the foot of the screen says until the next key.
type note struct {
	text string
	bad  bool
}

// tick comes every second.
type tick time.Time

// answer is the end of a call, which is told to the page in the program's loop.
type answer struct{ apply func() tea.Cmd }

func (s *session) now() time.Time { return s.options.Now() }

// say writes at the foot of the screen.
func (s *session) say(text string) { s.note = note{text: text} }

// fail writes at the foot of the screen what went wrong.
func (s *session) fail(err error) {
	s.note = note{text: failureText(err, s.options.Address), bad: true}
}

// warn writes at the foot of the screen why something is not done.
func (s *session) warn(text string) { s.note = note{text: text, bad: true} }

// open puts a page on top.
func (s *session) open(p page) tea.Cmd {
	s.stack = append(s.stack, p)
	return p.Init()
}

// close takes a page away, wherever in the stack it is.
func (s *session) close(p page) {
	s.stack = slices.DeleteFunc(s.stack, func(one page) bool { return one == p })
}

// ask makes a call beside the program's loop, and hands its answer to then within it.
func ask[T any](s *session, call func(ctx context.Context) (T, error), then func(value T, err error) tea.Cmd) tea.Cmd {
	return func() tea.Msg {
		ctx, stop := context.WithTimeout(s.ctx, callPatience)
		defer stop()
		value, err := call(ctx)
		return answer{func() tea.Cmd { return then(value, err) }}
	}
}

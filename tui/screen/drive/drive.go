package drive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	tea "charm.land/bubbletea/v2"

	"github.com/restripe/restripe/tui/screen"
)

// Screen is a running program.
type Screen struct {
	Width, Height int

	model   *watched
	program *tea.Program
	keys    *os.File
	typed   int64
	ended   chan struct{}
	failure error // after ended
}

// shot is what was on the screen after some keys.
type shot struct {
	content string
	keys    int64
}

// holds reports whether a text is there, wherever lines end.
func (s *shot) holds(text string) bool {
	return strings.Contains(strings.Join(strings.Fields(ansi.Strip(s.content)), " "), strings.Join(strings.Fields(text), " "))
}

// watched is the model of a screen that tells what it shows.
type watched struct {
	*screen.Model
	keys    int64
	shot    atomic.Pointer[shot]
	changed chan struct{} // holds something when there is a shot that nobody looked at
}

func (w *watched) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	if _, is := message.(tea.KeyPressMsg); is {
		w.keys++
	}
	_, command := w.Model.Update(message)
	return w, command
}

func (w *watched) View() tea.View {
	view := w.Model.View()
	w.shot.Store(&shot{view.Content, w.keys})
	select {
	case w.changed <- struct{}{}:
	default: // the one that is there is enough
	}
	return view
}

// Start runs a screen of a size and returns at once. What it would write to a terminal goes to output.
func Start(ctx context.Context, options screen.Options, width, height int, output io.Writer) (*Screen, error) {
	input, keys, err := os.Pipe() // a file: its reader can be given to an editor and taken back
	if err != nil {
		return nil, fmt.Errorf("making the input of the screen: %w", err)
	}
	s := &Screen{Width: width, Height: height, keys: keys, ended: make(chan struct{})}
	s.model = &watched{Model: screen.New(ctx, options), changed: make(chan struct{}, 1)}
	s.model.shot.Store(&shot{})
	s.program = tea.NewProgram(s.model, tea.WithContext(ctx), tea.WithInput(input), tea.WithOutput(output), tea.WithWindowSize(width, height),
		tea.WithColorProfile(colorprofile.TrueColor), tea.WithEnvironment([]string{"TERM=xterm-256color", "COLORTERM=truecolor"}), tea.WithoutSignalHandler())
	go func() {
		defer close(s.ended)
		_, s.failure = s.program.Run()
		s.model.Close()
		s.failure = errors.Join(s.failure, input.Close(), keys.Close())
	}()
	return s, nil
}

// Stop ends the program, if it has not ended, and returns why it failed.
func (s *Screen) Stop() error {
	s.program.Quit()
	<-s.ended
	return s.failure
}

// Ended is closed when the program has ended.
func (s *Screen) Ended() <-chan struct{} { return s.ended }

// Resize gives the screen another size.
func (s *Screen) Resize(width, height int) {
	s.Width, s.Height = width, height
	s.program.Send(tea.WindowSizeMsg{Width: width, Height: height})
}

// Content is what is on the screen, with its colours.
func (s *Screen) Content() string { return s.model.shot.Load().content }

// Text is what is on the screen, without colours.
func (s *Screen) Text() string { return ansi.Strip(s.Content()) }

// Type types keys: characters, and names such as <enter>, <esc> and <down>. It returns when the screen shows what came of
// them.
func (s *Screen) Type(ctx context.Context, text string) error {
	keys, err := parseKeys(text)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if _, err := s.keys.WriteString(key); err != nil {
			return fmt.Errorf("typing %q: %w", key, err)
		}
		s.typed++ // each is waited for, as what follows an escape too fast would become one key with it
		if err := s.until(ctx, func(now *shot) bool { return now.keys >= s.typed }); err != nil {
			if s.hasEnded() {
				return nil // it was the key that quits
			}
			return fmt.Errorf("typing %q: %w", key, err)
		}
	}
	return nil
}

func (s *Screen) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// Wait returns when the screen holds a text, be it on one line or broken over several.
func (s *Screen) Wait(ctx context.Context, text string) error {
	err := s.until(ctx, func(now *shot) bool { return now.holds(text) })
	if err != nil {
		return fmt.Errorf("waiting for %q: %w; the screen:\n%s", text, err, s.Text())
	}
	return nil
}

// WaitGone returns when the screen does not hold a text.
func (s *Screen) WaitGone(ctx context.Context, text string) error {
	err := s.until(ctx, func(now *shot) bool { return !now.holds(text) })
	if err != nil {
		return fmt.Errorf("waiting for the end of %q: %w; the screen:\n%s", text, err, s.Text())
	}
	return nil
}

// errQuit is why nothing more comes.
var errQuit = errors.New("the program has ended")

func (s *Screen) until(ctx context.Context, holds func(now *shot) bool) error {
	for {
		if holds(s.model.shot.Load()) {
			return nil
		}
		select {
		case <-s.model.changed:
		case <-s.ended:
			return errors.Join(errQuit, s.failure)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// named are the keys that are no characters, as a terminal sends them.
var named = map[string]string{
	"enter": "\r", "esc": "\x1b", "tab": "\t", "space": " ", "backspace": "\x7f", "ctrl+c": "\x03", "ctrl+u": "\x15",
	"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "pgup": "\x1b[5~", "pgdown": "\x1b[6~", "home": "\x1b[H", "end": "\x1b[F", "lt": "<",
}

// parseKeys splits a text into what is sent for each key.
func parseKeys(text string) (keys []string, err error) {
	for text != "" {
		if text[0] == '<' {
			name, rest, closed := strings.Cut(text[1:], ">")
			if !closed || named[name] == "" {
				return nil, fmt.Errorf("there is no key <%s>", name)
			}
			keys, text = append(keys, named[name]), rest
			continue
		}
		for _, r := range text {
			keys, text = append(keys, string(r)), text[len(string(r)):]
			break
		}
	}
	return keys, nil
}

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	tea "charm.land/bubbletea/v2"

	"github.com/restripe/restripe/tui/cli/program"
	"github.com/restripe/restripe/tui/progress"
	"github.com/restripe/restripe/tui/screen"
)

// consoleVariable names the environment variable with the console's address.
const consoleVariable = "RESTRIPE_CONSOLE"

// tuiFlags are the flags of tui.
type tuiFlags struct {
	console, tokenFile       string
	readOnly, noColor, ascii bool
}

func tuiCommand(s *session) *cobra.Command {
	var f tuiFlags
	command := &cobra.Command{
		Use: "tui", Short: "See and steer everything in a full-screen terminal",
		Long: "Show live, in a terminal of at least 80 x 24 characters, what is safe, what moves and why, policies, nodes, objects, heat and\n" +
			"the audit log, and steer them, through a console. ? has every key.\n\n" +
			"A console that serves --https is named as https://HOST:PORT; " + authoritiesVariable + " names a file of authorities to believe.\n" +
			"It works over ssh. NO_COLOR or --no-color turn colours off; nothing is said by colour alone. With --read-only nothing can\n" +
			"be changed.",
		Example: "  restripe tui\n  restripe tui --console 10.0.0.5:7482 --token-file ~/.restripe-token --read-only",
		Args:    cobra.NoArgs,
	}
	flags := command.Flags()
	flags.StringVar(&f.console, "console", "", "address of the console, host:port or a URL (default "+consoleVariable+", else "+defaultConsole+")")
	flags.StringVar(&f.tokenFile, "token-file", "", "file with the token that says who you are (default: the token in "+screen.TokenVariable+")")
	flags.BoolVar(&f.readOnly, "read-only", false, "refuse every change")
	flags.BoolVar(&f.noColor, "no-color", os.Getenv("NO_COLOR") != "", "without colours (default where NO_COLOR is set)")
	flags.BoolVar(&f.ascii, "ascii", !unicodeTerminal(), "draw with ASCII characters (default where the locale is not UTF-8)")
	command.RunE = func(command *cobra.Command, _ []string) error { return s.runTUI(command, &f) }
	return command
}

func (s *session) runTUI(command *cobra.Command, f *tuiFlags) error {
	keyboard, is := s.In.(*os.File)
	if !is || !term.IsTerminal(keyboard.Fd()) || !progress.IsTerminal(s.Out) {
		return errors.New("restripe tui needs a terminal to read keys from and to draw on; `restripe status` and `restripe get` print")
	}
	token, err := f.token()
	if err != nil {
		return err
	}
	address := cmp.Or(f.console, os.Getenv(consoleVariable), defaultConsole)
	authorities, err := believed()
	if err != nil {
		return err
	}
	client, connections, err := screen.Dial(address, token, authorities)
	if err != nil {
		return program.Misuse(command, "%w", err)
	}
	options := screen.Options{Client: client, Address: address, ReadOnly: f.readOnly, NoColor: f.noColor, ASCII: f.ascii, Edit: editorFor}
	return errors.Join(screen.Run(command.Context(), options, tea.WithInput(s.In), tea.WithOutput(s.Out)), connections.Close())
}

// token is what says to the console who the person is; empty: nothing does.
func (f *tuiFlags) token() (string, error) {
	if f.tokenFile == "" {
		return os.Getenv(screen.TokenVariable), nil
	}
	text, err := os.ReadFile(f.tokenFile)
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("the token in %s is not one word", f.tokenFile)
	}
	return token, nil
}

// unicodeTerminal reports whether the locale has all characters; one that is not set is today's.
func unicodeTerminal() bool {
	locale := strings.ToUpper(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG"), "UTF-8"))
	return strings.Contains(locale, "UTF-8") || strings.Contains(locale, "UTF8")
}

// editorFor is the person's editor with a file.
func editorFor(path string) (tea.ExecCommand, error) {
	words := strings.Fields(cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi"))
	if len(words) == 0 {
		return nil, errors.New("EDITOR names no program")
	}
	program, err := exec.LookPath(words[0])
	if err != nil {
		return nil, fmt.Errorf("finding an editor: %w; name one with EDITOR", err)
	}
	return editor{exec.Command(program, append(words[1:], path)...)}, nil
}

// editor is a process that is given the terminal.
type editor struct{ *exec.Cmd }

func (e editor) SetStdin(in io.Reader)   { e.Stdin = in }
func (e editor) SetStdout(out io.Writer) { e.Stdout = out }
func (e editor) SetStderr(out io.Writer) { e.Stderr = out }

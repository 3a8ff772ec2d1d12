package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/agent/serve"
)

// Exit codes of a program.
const (
	ExitDone   = 0
	ExitFailed = 1
	ExitUsage  = 2
)

// Streams are what the commands of one call read and write.
type Streams struct {
	In       io.Reader
	Out      io.Writer
	Messages io.Writer // standard error
}

// EndError ends a program with an exit code of its own. Without a cause nothing is said: it was said already.
type EndError struct {
	Code  int
	Cause error
}

// Error returns the cause's words.
func (e *EndError) Error() string {
	if e.Cause == nil {
		return ""
	}
	return e.Cause.Error()
}

// Unwrap returns the cause.
func (e *EndError) Unwrap() error { return e.Cause }

// UntilSignal returns a context that ends when the process is told to, by SIGINT or SIGTERM.
func UntilSignal() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}

// Run runs one command line under a root that MarkUsage has seen, and returns the exit code. Where a command fails, hint may say in
// a line what to do; it may be nil.
func Run(ctx context.Context, root *cobra.Command, arguments []string, streams Streams, hint func(error) string) int {
	root.SetArgs(arguments)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Messages)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitDone
	}
	name, messages := root.DisplayName(), streams.Messages
	spelled := func(text string) string { return Spelled(text, root.Name(), name) }
	code := ExitFailed
	var end *EndError
	if errors.As(err, &end) {
		if code = end.Code; end.Cause == nil {
			return code
		}
	}
	var wrong *UsageError
	if errors.As(err, &wrong) {
		fmt.Fprintf(messages, "%s: %s\nSee %s --help.\n", name, spelled(wrong.Error()), wrong.Command.CommandPath())
		return ExitUsage
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		fmt.Fprintf(messages, "%s: interrupted\n", name)
		return code
	}
	fmt.Fprintf(messages, "%s: %s\n", name, spelled(err.Error()))
	if hint != nil {
		if line := hint(err); line != "" {
			fmt.Fprintln(messages, spelled(line))
		}
	}
	return code
}

// Spelled is a text in which people are told to type commands of a program, for those who call it otherwise.
func Spelled(text, name, called string) string {
	return strings.NewReplacer("`"+name+" ", "`"+called+" ", "'"+name+" ", "'"+called+" ").Replace(text)
}

// WriteLines writes lines to where results go.
func WriteLines(out io.Writer, lines []string) error {
	for _, line := range lines {
		if _, err := fmt.Fprintln(out, line); err != nil {
			return fmt.Errorf("writing the output: %w", err)
		}
	}
	return nil
}

// Announce tells the person or the launcher at standard output where a server listens.
func (s *Streams) Announce(what, id, address string) error {
	return WriteLines(s.Out, []string{what + " " + id + launch.ListeningMark + address})
}

// Log returns the log of a server: text on standard error.
func (s *Streams) Log() *slog.Logger {
	return slog.New(serve.LimitLog(slog.NewTextHandler(s.Messages, nil)))
}

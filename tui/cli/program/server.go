package program

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// configFlag names the flag for a file with the others.
const configFlag = "config"

// Server is a command that runs until it is told to leave. Its flags may be in a file too.
type Server struct {
	Command *cobra.Command // with its flags

	// Check looks at the flags, and at the files that they name, and starts nothing.
	Check func(report *Report)

	// Serve runs with flags that Check has found nothing wrong with, until ctx ends.
	Serve func(ctx context.Context) error

	// OnlyTyped are flags that no file has.
	OnlyTyped []string
}

// Complete adds --config and what the command does, and returns the command.
func (s *Server) Complete() *cobra.Command {
	path := s.Command.Flags().String(configFlag, "", "YAML file with command: "+s.Command.Name()+" and any of these flags by their names; "+
		"what is typed goes before it")
	s.Command.RunE = func(command *cobra.Command, _ []string) error {
		report := &Report{command: command}
		if *path != "" {
			report.file, report.lines = *path, map[string]int{}
			if file := readFile(*path, report); file != nil {
				s.take(file, report)
			}
		}
		if !report.unread {
			s.Check(report)
		}
		if err := report.Err(); err != nil {
			return err
		}
		return s.Serve(command.Context())
	}
	return s.Command
}

// keys are the flags that a file may have, in the order of their names.
func (s *Server) keys() (names []string) {
	s.Command.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
		if flag.Name != configFlag && flag.Name != "help" && !slices.Contains(s.OnlyTyped, flag.Name) {
			names = append(names, flag.Name)
		}
	})
	return names
}

// Report collects what is wrong with the flags of a server.
type Report struct {
	command  *cobra.Command
	file     string         // that was read; empty: none
	lines    map[string]int // of the flags in it
	unread   bool           // the file could not be read
	problems []problem
}

type problem struct {
	flag string
	line int // of the file; 0: none, or the whole file
	text string
	err  error
}

// Misuse notes that a flag has a value that it cannot have. The text is a whole sentence; it may begin with the flag, as --NAME.
func (r *Report) Misuse(flag, format string, values ...any) {
	r.Add(flag, Misuse(r.command, format, values...))
}

// Add notes what a flag has wrong, unless err is nil. Of one flag the first problem is told.
func (r *Report) Add(flag string, err error) {
	if err == nil || slices.ContainsFunc(r.problems, func(other problem) bool { return other.flag == flag && flag != "" }) {
		return
	}
	text, line := err.Error(), r.lines[flag]
	if r.file != "" {
		if rest, named := strings.CutPrefix(text, "--"+flag); named && flag != "" {
			text = flag + rest
		} else if flag != "" {
			text = flag + ": " + text
		}
		text = at(r.file, line) + text
	}
	r.problems = append(r.problems, problem{flag: flag, line: line, text: text, err: err})
}

// addAt notes what is wrong at a line of the file.
func (r *Report) addAt(line int, flag, format string, values ...any) {
	err := Misuse(r.command, format, values...)
	r.problems = append(r.problems, problem{flag: flag, line: line, text: at(r.file, line) + err.Error(), err: err})
}

// Command is the command whose flags are looked at.
func (r *Report) Command() *cobra.Command { return r.command }

// Lines are all problems, one a line, in the order of the file.
func (r *Report) Lines() (lines []string) {
	slices.SortStableFunc(r.problems, func(one, other problem) int { return cmp.Compare(one.line, other.line) })
	for _, problem := range r.problems {
		lines = append(lines, problem.text)
	}
	return lines
}

// Err returns all problems as one error, nil where there is none: a UsageError if one of them is.
func (r *Report) Err() error {
	if len(r.problems) == 0 {
		return nil
	}
	together := &problemsError{text: strings.Join(r.Lines(), "\n")}
	for _, problem := range r.problems {
		together.errs = append(together.errs, problem.err)
	}
	var wrong *UsageError
	if errors.As(together, &wrong) {
		return &UsageError{r.command, together}
	}
	return together
}

type problemsError struct {
	text string
	errs []error
}

func (e *problemsError) Error() string   { return e.text }
func (e *problemsError) Unwrap() []error { return e.errs }

package program

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// UsageError is a wrong use of a command: exit code ExitUsage and a pointer to its help.
type UsageError struct {
	Command *cobra.Command
	Err     error
}

// Error says what is wrong.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *UsageError) Unwrap() error { return e.Err }

// Misuse is a UsageError found after the arguments were parsed.
func Misuse(command *cobra.Command, format string, values ...any) error {
	return &UsageError{command, fmt.Errorf(format, values...)}
}

// Family makes a command that only has subcommands: it prints its help.
func Family(command *cobra.Command, members ...*cobra.Command) *cobra.Command {
	command.Args = noSuchCommand
	command.RunE = func(command *cobra.Command, _ []string) error { return command.Help() }
	command.AddCommand(members...)
	return command
}

// noSuchCommand refuses arguments of a command that only has subcommands.
func noSuchCommand(command *cobra.Command, arguments []string) error {
	if len(arguments) == 0 {
		return nil
	}
	text := fmt.Sprintf("there is no command %q", command.CommandPath()+" "+arguments[0])
	if near := command.SuggestionsFor(arguments[0]); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return errors.New(text)
}

// MarkUsage makes every complaint about flags and arguments a UsageError of its command.
func MarkUsage(command *cobra.Command) {
	command.SetFlagErrorFunc(func(command *cobra.Command, err error) error { return &UsageError{command, err} })
	check := command.Args
	if check == nil {
		check = cobra.ArbitraryArgs
	}
	command.Args = func(command *cobra.Command, arguments []string) error {
		err := check(command, arguments)
		if err == nil {
			// The library looks at this later, too, but its complaint cannot be told from a failure of the command.
			err = command.ValidateFlagGroups()
		}
		if err != nil {
			return &UsageError{command, err}
		}
		return nil
	}
	command.SuggestionsMinimumDistance = 2
	for _, child := range command.Commands() {
		MarkUsage(child)
	}
}

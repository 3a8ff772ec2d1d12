package pools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Monitor carries out commands of a cluster's monitors.
type Monitor interface {
	// Command sends one command, in the JSON form of the monitors, and returns what it printed. A refusal is a
	// *CommandError; every other error means that it is not known whether the command was carried out.
	Command(ctx context.Context, command []byte) (output []byte, err error)
}

// Command is one command of the monitors: its prefix, such as "osd pool create", and its arguments by name.
type Command struct {
	Prefix    string
	Arguments map[string]any
}

// MarshalJSON returns the form that monitors take.
func (c Command) MarshalJSON() ([]byte, error) {
	all := map[string]any{"prefix": c.Prefix, "format": "json"}
	for name, value := range c.Arguments {
		all[name] = value
	}
	return json.Marshal(all)
}

// String shows the command about as one would type it after `ceph`, with the arguments in the order of their names.
func (c Command) String() string {
	words := []string{c.Prefix}
	for _, name := range sortedNames(c.Arguments) {
		words = append(words, fmt.Sprintf("%s=%v", name, c.Arguments[name]))
	}
	return strings.Join(words, " ")
}

func sortedNames(arguments map[string]any) []string {
	names := make([]string, 0, len(arguments))
	for name := range arguments {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// CommandError is a refusal by the monitors: a code of errno.h and their own words.
type CommandError struct {
	Code    int // positive
	Message string
}

// Error returns the monitors' words and the code.
func (e *CommandError) Error() string {
	return fmt.Sprintf("the monitors refused (error %d): %s", e.Code, e.Message)
}

// codeNotPermitted is EPERM of errno.h.
const codeNotPermitted = 1

// refusedWith reports whether err is a refusal with the code.
func refusedWith(err error, code int) bool {
	var refused *CommandError
	return errors.As(err, &refused) && refused.Code == code
}

// ask sends a command and decodes what it printed into output, where that is not nil.
func ask(ctx context.Context, m Monitor, command Command, output any) error {
	text, err := json.Marshal(command)
	if err != nil {
		return fmt.Errorf("ceph %s: %w", command.Prefix, err)
	}
	printed, err := m.Command(ctx, text)
	if err != nil {
		return fmt.Errorf("ceph %s: %w", command, err)
	}
	if output == nil {
		return nil
	}
	if err := json.Unmarshal(printed, output); err != nil {
		return fmt.Errorf("ceph %s: reading what it printed: %w", command.Prefix, err)
	}
	return nil
}

package program

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// commandKey is the key that says which command a file is for.
const commandKey = "command"

// file is a configuration file: YAML with the command that it is for, and flags of it by their names.
type file struct {
	command string
	entries []entry
}

// entry is one key and its value.
type entry struct {
	key   string
	line  int
	value *yaml.Node
}

// at names a line of a file, or the whole file by line 0, before what is wrong there.
func at(path string, line int) string {
	if line == 0 {
		return path + ": "
	}
	return fmt.Sprintf("%s:%d: ", path, line)
}

// readFile reads a file. What is wrong with it goes into the report; nil: nothing of it can be read.
func readFile(path string, report *Report) *file {
	text, err := os.ReadFile(path)
	if err != nil {
		report.unread = true
		report.problems = append(report.problems, problem{text: fmt.Sprintf("reading the configuration: %v", err), err: err})
		return nil
	}
	found := parseFile(text, report)
	report.unread = found == nil
	return found
}

// parseFile reads the text of a file.
func parseFile(text []byte, report *Report) *file {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, more yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		report.addAt(0, "", "the file is empty: begin it with %s: and one key a line, such as listen: 127.0.0.1:7480", commandKey)
		return nil
	case err != nil:
		report.addAt(0, "", "this is no YAML: %v", err)
		return nil
	}
	top := document.Content[0]
	if top.Kind != yaml.MappingNode {
		report.addAt(top.Line, "", "want keys and values, one a line, such as listen: 127.0.0.1:7480")
		return nil
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		report.addAt(more.Line, "", "a file is for one command: take out what begins with the second ---")
		return nil
	}
	found := &file{}
	first := map[string]int{}
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		switch line, twice := first[key.Value]; {
		case key.Kind != yaml.ScalarNode || key.Tag == "!!merge":
			report.addAt(key.Line, "", "a key is the name of a flag, without dashes")
		case twice:
			report.addAt(key.Line, key.Value, "%s: the key is in line %d, too: take one of them out", key.Value, line)
		case key.Value == commandKey && (value.Kind != yaml.ScalarNode || value.Tag != "!!str"):
			report.addAt(key.Line, commandKey, "%s: want the name of a command, such as agent", commandKey)
		case key.Value == commandKey:
			found.command = value.Value
		default:
			found.entries = append(found.entries, entry{key: key.Value, line: key.Line, value: value})
		}
		if _, is := first[key.Value]; !is {
			first[key.Value] = key.Line
		}
	}
	if _, is := first[commandKey]; !is {
		report.addAt(0, commandKey, "no line says which command this is for: begin the file with %s: NAME, such as %[1]s: agent", commandKey)
	}
	return found
}

// take sets the flags of a server that a file has and that were not typed.
func (s *Server) take(found *file, report *Report) {
	if found.command != "" && found.command != s.Command.Name() {
		report.addAt(0, commandKey, "this is for the command %s, not %s: name another file, or write %s: %[2]s",
			found.command, s.Command.Name(), commandKey)
		report.unread = true
		return
	}
	keys := s.keys()
	for _, entry := range found.entries {
		if !slices.Contains(keys, entry.key) {
			report.addAt(entry.line, entry.key, "%s: %s has no such key; it has %s", entry.key, s.Command.Name(), strings.Join(keys, ", "))
			continue
		}
		flag := s.Command.Flags().Lookup(entry.key)
		if flag.Changed {
			continue
		}
		values, err := valuesOf(flag, entry.value)
		for _, value := range values {
			if err == nil {
				err = set(s.Command.Flags(), entry.key, value)
			}
		}
		if err != nil {
			report.addAt(entry.line, entry.key, "%s: %w", entry.key, err)
			continue
		}
		report.lines[entry.key] = entry.line
	}
}

// set sets a flag; an error says what is wrong with the value alone.
func set(flags *pflag.FlagSet, name, value string) error {
	err := flags.Set(name, value)
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return errors.Unwrap(invalid)
	}
	return err
}

// valuesOf returns what a flag is set to by a value in a file, which has to be of its type.
func valuesOf(flag *pflag.Flag, value *yaml.Node) ([]string, error) {
	if value.Kind == yaml.ScalarNode && value.Tag == "!!null" {
		return nil, errors.New("the key has no value: give it one, or take the line out")
	}
	kind := flag.Value.Type()
	if _, several := flag.Value.(pflag.SliceValue); several {
		if value.Kind != yaml.SequenceNode {
			return nil, errors.New("want a list, one value a line after -")
		}
		var values []string
		for _, member := range value.Content {
			if member.Kind != yaml.ScalarNode || member.Tag != "!!str" {
				return nil, fmt.Errorf("line %d: want text in the list; put it in quotes", member.Line)
			}
			values = append(values, member.Value)
		}
		return values, nil
	}
	want, tag := "text", "!!str"
	switch kind {
	case "bool":
		want, tag = "true or false", "!!bool"
	case "int", "int32", "int64", "uint", "uint32", "uint64":
		want, tag = "a whole number", "!!int"
	case "float64":
		want, tag = "a number", "!!float"
	case "duration":
		want = "a time with its unit, such as 90s or 5m"
	}
	switch {
	case value.Kind != yaml.ScalarNode:
		return nil, fmt.Errorf("want %s", want)
	case value.Tag == tag || tag == "!!float" && value.Tag == "!!int":
		return []string{value.Value}, nil
	case flag.NoOptDefVal != "" && tag == "!!str" && value.Tag == "!!bool":
		return nil, fmt.Errorf("want a word, such as %s", flag.NoOptDefVal)
	case kind == "string":
		return nil, fmt.Errorf("want text: put %s in quotes", value.Value)
	}
	return nil, fmt.Errorf("want %s, not %s", want, value.Value)
}

// CheckConfig makes the command that checks configuration files of servers, which are given by the names of their commands. Each
// call of one returns another Server.
func CheckConfig(streams *Streams, servers map[string]func() *Server) *cobra.Command {
	var names []string
	for name := range servers {
		names = append(names, name)
	}
	slices.Sort(names)
	command := &cobra.Command{
		Use: "check-config FILE...", Short: "Find the mistakes in configuration files, without starting anything",
		Long: "Check files for the flag --config of " + strings.Join(names, ", ") + ": keys, values, and the files that they name, as\n" +
			"the command itself does when it starts. Every problem is a line file:line: key: what is wrong and what to do. Exit code 1 if there is one.",
		Example: "  restripe check-config /etc/restripe/gateway.yaml /etc/restripe/agent/*.yaml",
		Args:    cobra.MinimumNArgs(1),
	}
	command.RunE = func(command *cobra.Command, paths []string) error {
		var lines []string
		failed := false
		for _, path := range paths {
			report := &Report{command: command, file: path, lines: map[string]int{}}
			if found := readFile(path, report); found != nil {
				check(found, servers, names, report)
			}
			if problems := report.Lines(); len(problems) > 0 {
				lines, failed = append(lines, problems...), true
			} else {
				lines = append(lines, path+": nothing wrong")
			}
		}
		if err := WriteLines(streams.Out, lines); err != nil {
			return err
		}
		if failed {
			return &EndError{Code: ExitFailed}
		}
		return nil
	}
	return command
}

// check looks at one file by the server that it is for.
func check(found *file, servers map[string]func() *Server, names []string, report *Report) {
	if found.command == "" {
		return // it is in the report
	}
	server := servers[found.command]
	if server == nil {
		report.addAt(0, commandKey, "%s: there are no configuration files for %q; want one of %s",
			commandKey, found.command, strings.Join(names, ", "))
		return
	}
	one := server()
	report.command = one.Command
	one.take(found, report)
	one.Check(report)
}

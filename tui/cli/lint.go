package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/policies"
	"github.com/restripe/restripe/tui/cli/program"
)

// standardInput is how standard input is named among files.
const standardInput = "-"

// readDeclared reads files, directories and standard input and checks them beside what is known already.
func (s *session) readDeclared(paths []string, known []policies.Object) ([]policies.Object, policies.Findings) {
	var sources []policies.Source
	var unread policies.Findings
	for _, path := range paths {
		if path != standardInput {
			read, findings := policies.ReadPaths(path)
			sources, unread = append(sources, read...), append(unread, findings...)
			continue
		}
		// JSON is YAML.
		source, err := policies.ReadSource("<stdin>", policies.YAML, s.In)
		if err != nil {
			unread = append(unread, policies.Finding{Position: policies.Position{File: "<stdin>"}, Message: err.Error()})
			continue
		}
		sources = append(sources, source)
	}
	objects, findings := policies.Check(policies.Options{Known: known, Now: time.Now()}, sources...)
	return objects, append(unread, findings...)
}

// errLint ends a lint that found errors.
type errLint struct{ errors, warnings int }

// Error counts what was found.
func (e errLint) Error() string {
	text := words.Count(int64(e.errors), "error")
	if e.warnings > 0 {
		text += ", " + words.Count(int64(e.warnings), "warning")
	}
	return text
}

func lintCommand(s *session) *cobra.Command {
	command := &cobra.Command{
		Use: "lint FILE|DIRECTORY|-...", Short: "Find the mistakes in declared objects, before anything reaches a server",
		Long: "Check YAML, JSON and CUE files: syntax, unknown and missing fields, values, and what objects get wrong together.\n" +
			"Every finding is a line file:line:col: kind/name: path: message. Exit code 1 if there is an error; warnings are no\n" +
			"errors. Needs no server.",
		Example: "  restripe lint policies/\n  restripe lint cluster.cue more.yaml",
		Args:    cobra.MinimumNArgs(1),
	}
	format := outputFlag(command, "text", "json", "yaml")
	command.RunE = func(command *cobra.Command, paths []string) error {
		objects, findings := s.readDeclared(paths, nil)
		if err := s.showFindings(format, findings); err != nil {
			return err
		}
		wrong, warnings := len(findings.Errors()), len(findings.Warnings())
		if wrong > 0 {
			return errLint{wrong, warnings}
		}
		text := words.Count(int64(len(objects)), "object") + " checked, nothing wrong"
		if warnings > 0 {
			text = words.Count(int64(len(objects)), "object") + " checked, " + words.Count(int64(warnings), "warning")
		}
		return program.WriteLines(s.Messages, []string{text})
	}
	return command
}

// finding is a finding as programs read it.
type finding struct {
	File     string `json:"file"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Severity string `json:"severity"`
	Object   string `json:"object,omitempty"`
	Path     string `json:"path,omitempty"`
	Message  string `json:"message"`
}

func (s *session) showFindings(format *formatValue, findings policies.Findings) error {
	if format.chosen == "text" {
		return program.WriteLines(s.Out, findingLines(findings))
	}
	list := make([]finding, len(findings))
	for i, f := range findings {
		list[i] = finding{f.File, f.Line, f.Column, f.Severity.String(), f.Object, f.Path, f.Message}
	}
	return s.show(format, listing{value: list})
}

func findingLines(findings policies.Findings) []string {
	lines := make([]string, len(findings))
	for i, f := range findings {
		lines[i] = f.String()
	}
	return lines
}

func schemaCommand(s *session) *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the CUE schema of the declared objects",
		Long: "Print the CUE schema that `restripe lint` checks with. CUE files may import it as \"restripe.io/policies\", and the\n" +
			"ready classes as \"restripe.io/policies/library\".",
		Example: "  restripe schema > schema.cue",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return program.WriteLines(s.Out, []string{strings.TrimRight(policies.Schema(), "\n")})
		},
	}
}

// filesFlag adds -f and returns where its values will be.
func filesFlag(command *cobra.Command) *[]string {
	return command.Flags().StringArrayP("filename", "f", nil, "file, directory, or - for standard input; may be repeated")
}

// wantFiles refuses a command without files.
func wantFiles(command *cobra.Command, paths []string) error {
	if len(paths) == 0 {
		return program.Misuse(command, "say which files: -f FILE, -f DIRECTORY or -f - for standard input")
	}
	return nil
}

// lintedFiles reads what -f names as faultless does, beside what the server has.
func (s *session) lintedFiles(ctx context.Context, server *apiServer, paths []string) ([]policies.Object, error) {
	known, err := server.known(ctx)
	if err != nil {
		return nil, err
	}
	objects, err := s.faultless(paths, known)
	var wrong errLint
	if errors.As(err, &wrong) {
		return nil, fmt.Errorf("%w; nothing was sent to the server", wrong)
	}
	return objects, err
}

// faultless reads files, directories and standard input beside what is known already, prints what is worth saying, and refuses
// errors, with errLint, and files that declare nothing.
func (s *session) faultless(paths []string, known []policies.Object) ([]policies.Object, error) {
	objects, findings := s.readDeclared(paths, known)
	if err := program.WriteLines(s.Messages, findingLines(findings)); err != nil {
		return nil, err
	}
	if wrong := findings.Errors(); len(wrong) > 0 {
		return nil, errLint{len(wrong), len(findings.Warnings())}
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("the files declare nothing: %s", strings.Join(paths, ", "))
	}
	return objects, nil
}

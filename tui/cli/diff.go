package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/restripe/restripe/operator/diff"
	"github.com/restripe/restripe/tui/cli/program"
)

// Exit codes of diff.
const (
	diffDifferent = 1
	diffFailed    = 2
)

// objectDifference is what would change of one object.
type objectDifference struct {
	Object string       `json:"object"`
	Change string       `json:"change"` // create or change
	Fields []diff.Field `json:"fields"`
}

func diffCommand(s *session) *cobra.Command {
	how := sending{dryRun: true}
	command := &cobra.Command{
		Use: "diff -f FILE|DIRECTORY|-", Short: "Show what `restripe apply` would change",
		Long: "Have the API server work out what applying the files would change, and show it field by field. Nothing is kept.\n" +
			"Exit code 0: nothing would change; 1: something would; 2: it cannot be told.",
		Example: "  restripe diff -f policies/",
		Args:    cobra.NoArgs,
	}
	paths, where := filesFlag(command), s.serverFlags(command)
	command.Flags().BoolVar(&how.force, "force", false, "as if taking over fields that others have set")
	format := outputFlag(command, "text", "json", "yaml")
	command.RunE = func(command *cobra.Command, _ []string) error {
		if err := wantFiles(command, *paths); err != nil {
			return err
		}
		differences, err := s.diff(command.Context(), where, *paths, how)
		if err == nil {
			err = s.showDifferences(format, differences)
		}
		switch {
		case err != nil:
			return &program.EndError{Code: diffFailed, Cause: err}
		case len(differences) > 0:
			return &program.EndError{Code: diffDifferent}
		}
		return nil
	}
	return command
}

// diff asks the server what would change; objects that stay as they are are left out.
func (s *session) diff(ctx context.Context, where *serverFlags, paths []string, how sending) ([]objectDifference, error) {
	server, err := s.apiServer(where)
	if err != nil {
		return nil, err
	}
	objects, err := s.lintedFiles(ctx, server, paths)
	if err != nil {
		return nil, err
	}
	var differences []objectDifference
	var refused []error
	for _, object := range inApplyOrder(objects) {
		o, err := server.send(ctx, object, how)
		if err != nil {
			refused = append(refused, err)
			continue
		}
		if found := o.differences(); found != nil {
			differences = append(differences, *found)
		}
	}
	return differences, errors.Join(refused...)
}

// differences returns nil where nothing would change.
func (o *outcome) differences() *objectDifference {
	d := &objectDifference{Object: o.kind.String() + "/" + o.name, Change: "create"}
	before := map[string]any{}
	if o.before != nil {
		d.Change, before = "change", fieldsOf(o.before)
	}
	d.Fields = diff.Fields(before, fieldsOf(o.after))
	if o.before != nil && len(d.Fields) == 0 {
		return nil
	}
	return d
}

// fieldsOf returns the scalars of what people declare by their paths, such as spec.windows[0].schedule.
func fieldsOf(object *unstructured.Unstructured) map[string]any {
	object = object.DeepCopy()
	stripObserved(object)
	fields := map[string]any{}
	for _, field := range []string{"metadata", "spec"} {
		diff.Flatten(object.Object[field], field, fields)
	}
	delete(fields, "metadata.name")
	return fields
}

func (s *session) showDifferences(format *formatValue, differences []objectDifference) error {
	if format.chosen != "text" {
		return s.show(format, listing{value: append([]objectDifference{}, differences...)})
	}
	var lines []string
	for _, d := range differences {
		title := d.Object + " would change:"
		if d.Change == "create" {
			title = d.Object + " would be created:"
		}
		lines = append(lines, title)
		for _, field := range d.Fields {
			lines = append(lines, fieldLine(field))
		}
	}
	return program.WriteLines(s.Out, lines)
}

// fieldLine begins with what happens to the field: + added, - taken away, ~ changed.
func fieldLine(d diff.Field) string {
	switch {
	case d.Before == nil:
		return fmt.Sprintf("  + %s: %s", d.Path, diff.Text(d.After))
	case d.After == nil:
		return fmt.Sprintf("  - %s: %s", d.Path, diff.Text(d.Before))
	}
	return fmt.Sprintf("  ~ %s: %s -> %s", d.Path, diff.Text(d.Before), diff.Text(d.After))
}

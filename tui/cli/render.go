package cli

import (
	"github.com/spf13/cobra"

	"github.com/restripe/restripe/tui/cli/program"
)

func renderCommand(s *session) *cobra.Command {
	command := &cobra.Command{
		Use: "render FILE|DIRECTORY|-...", Short: "Print declared objects as plain YAML, for kubectl and what else knows no CUE",
		Long: "Check files as `restripe lint` does, and print what `restripe apply` would send, evaluated: a document of YAML for each\n" +
			"object, or a List in JSON, those first that others refer to. If there is an error nothing is printed but what is wrong, on\n" +
			"standard error. Needs no server.",
		Example: "  restripe render policies/ | kubectl apply -f -\n  restripe render cluster.cue -o json",
		Args:    cobra.MinimumNArgs(1),
	}
	format := outputFlag(command, "yaml", "json")
	command.RunE = func(_ *cobra.Command, paths []string) error {
		objects, err := s.faultless(paths, nil)
		if err != nil {
			return err
		}
		var items []any
		for _, object := range inApplyOrder(objects) {
			declared, err := body(object)
			if err != nil {
				return err
			}
			stripObserved(declared)
			items = append(items, declared.Object)
		}
		if format.chosen == "json" {
			return writeJSON(s.Out, map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
		}
		for i, item := range items {
			if i > 0 {
				if err := program.WriteLines(s.Out, []string{"---"}); err != nil {
					return err
				}
			}
			if err := writeYAML(s.Out, item); err != nil {
				return err
			}
		}
		return nil
	}
	return command
}

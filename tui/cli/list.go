package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/tui/cli/program"
)

var objectColumns = []column{
	{title: "KEY"}, {title: "CLASS"}, {title: "SCHEME"}, {title: "SIZE", right: true}, {title: "AGE", right: true},
	{title: "BYTES", wide: true, right: true}, {title: "REVISION", wide: true},
}

func objectListing(objects []api.Object, value any) listing {
	l := listing{value: value, columns: objectColumns, empty: "There are no objects here. Store one with `restripe put FILE`."}
	now := time.Now()
	for _, o := range objects {
		l.names = append(l.names, o.Key)
		l.rows = append(l.rows, []string{
			o.Key, o.Class, o.Scheme, words.Bytes(o.Size), words.About(now.Sub(o.Modified)), words.Number(o.Size), o.Revision.String(),
		})
	}
	return l
}

func listCommand(s *session) *cobra.Command {
	var prefix, after string
	var limit int
	command := &cobra.Command{
		Use: "ls [PREFIX]", Aliases: []string{"list"}, Short: "List objects",
		Example: "  restripe ls\n  restripe ls photos/ --limit 100\n  restripe ls --prefix logs/ -o json",
		Args:    cobra.MaximumNArgs(1),
	}
	format := outputFlag(command)
	command.Flags().StringVar(&prefix, "prefix", "", "only keys that begin with this")
	command.Flags().StringVar(&after, "after", "", "continue after this key")
	command.Flags().IntVar(&limit, "limit", 1000, "largest number of objects shown; 0: all")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		if len(arguments) == 1 {
			if prefix != "" {
				return program.Misuse(command, "the prefix is given twice: %q and --prefix %q", arguments[0], prefix)
			}
			prefix = arguments[0]
		}
		if limit < 0 {
			return program.Misuse(command, "--limit %d: want 0 or more", limit)
		}
		return s.withClient(func(c *client.Client) error {
			list := api.ObjectList{Objects: []api.Object{}}
			from := after
			for {
				page := 0
				if limit > 0 {
					page = limit - len(list.Objects)
				}
				part, err := c.List(command.Context(), prefix, from, page)
				if err != nil {
					return err
				}
				list.Objects, list.Next = append(list.Objects, part.Objects...), part.Next
				if part.Next == "" || (limit > 0 && len(list.Objects) >= limit) {
					break
				}
				if from, err = api.DecodeKey(part.Next); err != nil {
					return err
				}
			}
			if err := s.show(format, objectListing(list.Objects, list)); err != nil {
				return err
			}
			if list.Next != "" && format.chosen != "json" && format.chosen != "yaml" {
				last, err := api.DecodeKey(list.Next)
				if err != nil {
					return err
				}
				return program.WriteLines(s.Messages, []string{"There are more. Continue with --after '" + last + "', or show all with --limit 0."})
			}
			return nil
		})
	}
	return command
}

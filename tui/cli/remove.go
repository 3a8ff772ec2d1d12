package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/tui/cli/program"
)

func removeCommand(s *session) *cobra.Command {
	var prefix, confirmed string
	var force bool
	command := &cobra.Command{
		Use: "rm KEY...", Aliases: []string{"remove"}, Short: "Delete objects",
		Long: "Delete objects by key, or all that begin with a prefix. Deleting by prefix cannot be undone and needs the prefix\n" +
			"typed a second time in --yes-delete.",
		Example: "  restripe rm photos/a.jpg photos/b.jpg\n  restripe rm --prefix tmp/ --yes-delete tmp/",
	}
	command.Flags().StringVar(&prefix, "prefix", "", "delete every object whose key begins with this")
	command.Flags().StringVar(&confirmed, "yes-delete", "", "the prefix again, as confirmation")
	command.Flags().BoolVarP(&force, "force", "f", false, "an absent key is no error")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		byPrefix := command.Flags().Changed("prefix")
		if byPrefix == (len(arguments) > 0) {
			return program.Misuse(command, "give either keys or --prefix")
		}
		if byPrefix && (!command.Flags().Changed("yes-delete") || confirmed != prefix) {
			return program.Misuse(command, "this deletes every object that begins with %q: repeat the prefix in --yes-delete", prefix)
		}
		return s.withClient(func(c *client.Client) error {
			removed := int64(0)
			remove := func(key string) error {
				err := c.Delete(command.Context(), key)
				if errors.Is(err, api.ErrNotFound) && (force || byPrefix) {
					return nil
				}
				if err != nil {
					return fmt.Errorf("deleting %q: %w", key, err)
				}
				removed++
				return nil
			}
			for _, key := range arguments {
				if err := remove(key); err != nil {
					return err
				}
			}
			if !byPrefix {
				return nil
			}
			for object, err := range c.Objects(command.Context(), prefix) {
				if err != nil {
					return err
				}
				key, err := api.DecodeKey(object.Key64)
				if err != nil {
					return err
				}
				if err := remove(key); err != nil {
					return err
				}
			}
			return program.WriteLines(s.Messages, []string{words.Number(removed) + " objects deleted"})
		})
	}
	return command
}

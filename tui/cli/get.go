package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/gateway/client"
)

func getCommand(s *session) *cobra.Command {
	var span string
	command := &cobra.Command{
		Use: "get KEY [FILE]", Short: "Read an object to standard output or into a file",
		Long:    "Read an object. FILE appears only once every byte has arrived; without FILE, or with -, the bytes go to standard output.",
		Example: "  restripe get photos/a.jpg a.jpg\n  restripe get logs/today --range 0-1023",
		Args:    cobra.RangeArgs(1, 2),
	}
	command.Flags().StringVar(&span, "range", "", "bytes to read: first-last, first- or first+count")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		var wanted client.Range
		if span != "" {
			var err error
			if wanted.Offset, wanted.Length, err = parseSpan(span); err != nil {
				return misuse(command, "%w", err)
			}
		}
		return s.withClient(func(c *client.Client) (err error) {
			content, err := c.Get(command.Context(), arguments[0], wanted)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, content.Close()) }()
			if len(arguments) == 1 || arguments[1] == "-" {
				if _, err := io.Copy(s.out, content); err != nil {
					return fmt.Errorf("reading %q: %w", arguments[0], err)
				}
				return nil
			}
			return saveWhole(arguments[1], content)
		})
	}
	return command
}

// saveWhole writes content beside path and renames it into place once it is complete.
func saveWhole(path string, content io.Reader) (err error) {
	staged, err := os.CreateTemp(filepath.Dir(path), ".restripe-get-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = io.Copy(staged, content)
	if err == nil {
		err = staged.Chmod(0o644)
	}
	if err = errors.Join(err, staged.Close()); err == nil {
		err = os.Rename(staged.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), os.Remove(staged.Name()))
	}
	return nil
}

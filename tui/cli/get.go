package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/tui/cli/program"
)

func getCommand(s *session) *cobra.Command {
	var span, revision string
	var stored bool
	command := &cobra.Command{
		Use: "get KEY [FILE] | get KIND [NAME]", Short: "Read a stored object, or list declared ones",
		Long: "Read a stored object. FILE appears only once every byte has arrived; where it is a link, what the link names does. A device\n" +
			"or a pipe is written to as the bytes arrive, and without FILE, or with -, standard output is.\n\n" +
			"Where the first word is a kind, list the objects of that kind on the API server, or show the one of that NAME: " + kindWords() + "\n" +
			"(short: rp, tr, sb, rs). --stored reads a stored object that has one of these words for its key.",
		Example: "  restripe get photos/a.jpg a.jpg\n  restripe get logs/today --range 0-1023\n  restripe get policies -o wide\n  restripe get transition media-rs12-2-7 -o yaml",
		Args:    cobra.RangeArgs(1, 2),
	}
	command.Flags().StringVar(&span, "range", "", "bytes to read of a stored object: first-last, first- or first+count")
	command.Flags().StringVar(&revision, "revision", "", "of a stored object, which it has or had: stat shows those that are kept")
	command.Flags().BoolVar(&stored, "stored", false, "the word is the key of a stored object, whatever it is")
	format, where := outputFlag(command), s.serverFlags(command)
	command.RunE = func(command *cobra.Command, arguments []string) error {
		kind := kindNamed(arguments[0])
		if kind != nil && !stored {
			return s.getKind(command, where, kind, arguments[1:], format)
		}
		for _, flag := range []string{"output", "kubeconfig", "context"} {
			if command.Flags().Changed(flag) {
				return program.Misuse(command, "--%s is for kinds, and %q is none; there are %s", flag, arguments[0], kindWords())
			}
		}
		var wanted client.Range
		if span != "" {
			var err error
			if wanted.Offset, wanted.Length, err = parseSpan(span); err != nil {
				return program.Misuse(command, "%w", err)
			}
		}
		var at block.Stamp
		if revision != "" {
			var err error
			if at, err = block.ParseStamp(revision); err != nil {
				return program.Misuse(command, "--revision: %w", err)
			}
		}
		return s.withClient(func(c *client.Client) (err error) {
			content, err := getAt(command.Context(), c, arguments[0], at, wanted)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, content.Close()) }()
			to := "-"
			if len(arguments) > 1 {
				to = arguments[1]
			}
			return s.save(command.Context(), arguments[0], content, to)
		})
	}
	return command
}

// getAt opens a stored object as it is at a revision; the zero stamp is what it is now.
func getAt(ctx context.Context, c *client.Client, key string, revision block.Stamp, span client.Range) (*client.Content, error) {
	if revision.IsZero() {
		return c.Get(ctx, key, span)
	}
	return c.GetRevision(ctx, key, revision, span)
}

// getKind shows the objects of a kind, or the one that is named.
func (s *session) getKind(command *cobra.Command, where *serverFlags, kind *declaredKind, names []string, format *formatValue) error {
	for _, flag := range []string{"range", "revision"} {
		if command.Flags().Changed(flag) {
			return program.Misuse(command, "--%s is for stored objects; to read the one whose key is this word add --stored", flag)
		}
	}
	server, err := s.apiServer(where)
	if err != nil {
		return err
	}
	name := ""
	if len(names) > 0 {
		name = names[0]
	}
	return s.getDeclared(command.Context(), server, kind, name, format)
}

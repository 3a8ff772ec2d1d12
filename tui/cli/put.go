package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/tui/cli/program"
	"github.com/restripe/restripe/tui/progress"
	"github.com/restripe/restripe/tui/tree"
)

// defaultJobs is how many objects a tree is stored by at a time.
const defaultJobs = 8

func putCommand(s *session) *cobra.Command {
	var options client.PutOptions
	var jobs int
	var revision, expires string
	command := &cobra.Command{
		Use: "put PATH|- [KEY]", Short: "Store a file, standard input, or a whole directory",
		Long: "Store one object, or every file below a directory.\n\n" +
			"A file is stored under KEY, or under its name where KEY is left out. Standard input (-) needs a KEY.\n" +
			"For a directory KEY is the prefix of all keys (none if left out), and links and devices are skipped.",
		Example: "  restripe put photo.jpg photos/2026/photo.jpg\n  tar c . | restripe put - backup.tar --class archive\n  restripe put ~/photos photos/ --jobs 16",
		Args:    cobra.RangeArgs(1, 2),
	}
	flags := command.Flags()
	flags.StringVar(&options.Class, "class", "", "object class (default: the class with the longest matching prefix)")
	flags.StringVar(&options.Scheme, "scheme", "", "scheme to store under, such as 'rs(4,2)' (default: the class's)")
	flags.IntVar(&jobs, "jobs", defaultJobs, "objects of a directory stored at a time")
	flags.StringVar(&revision, "if-revision", "", "only if the object is at this revision")
	flags.StringVar(&expires, "expires", "", "when it is gone: how long from now, such as 90m, or a time such as 2027-01-31T12:00:00Z")
	flags.StringToStringVar(&options.Metadata, "meta", nil, "metadata to keep with it, NAME=VALUE, several with commas")
	flags.BoolVar(&options.IfAbsent, "if-absent", false, "only if there is no object of this key")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		if jobs < 1 || jobs > 1024 {
			return program.Misuse(command, "--jobs %d: want 1 to 1024", jobs)
		}
		if revision != "" {
			stamp, err := block.ParseStamp(revision)
			if err != nil {
				return program.Misuse(command, "--if-revision: %w; `restripe stat KEY` shows the present one", err)
			}
			options.IfRevision = &stamp
		}
		at, err := api.ParseExpires(expires, time.Now())
		if err != nil {
			return program.Misuse(command, "--expires: %w", err)
		}
		options.Expires = at
		return s.withClient(func(c *client.Client) error {
			path, key := arguments[0], ""
			if len(arguments) == 2 {
				key = arguments[1]
			}
			if path == "-" {
				if key == "" {
					return program.Misuse(command, "standard input has no name: give a KEY")
				}
				object, err := c.Put(command.Context(), key, s.In, options)
				if err != nil {
					return tree.PutError("standard input", key, options, err)
				}
				return program.WriteLines(s.Messages, []string{fmt.Sprintf("%s: %s, %s, revision %s", object.Key, words.Bytes(object.Size), object.Scheme, object.Revision)})
			}
			info, err := os.Stat(path)
			if err != nil {
				return fmt.Errorf("storing: %w", err)
			}
			if info.IsDir() {
				return s.putTree(command, c, path, key, options, jobs)
			}
			if len(arguments) == 1 {
				key = filepath.Base(path)
			} else if key == "" {
				return program.Misuse(command, "the KEY is empty: leave it out to store under the file's name, or give 1 to 4096 bytes")
			}
			return tree.PutFile(command.Context(), c, path, key, options)
		})
	}
	return command
}

func (s *session) putTree(command *cobra.Command, c *client.Client, root, prefix string, options client.PutOptions, jobs int) error {
	if options.IfRevision != nil {
		return program.Misuse(command, "--if-revision speaks of one object, %s is a directory", root)
	}
	files, err := tree.Read(root, prefix)
	if err != nil {
		return err
	}
	var done tree.Done
	begin := time.Now()
	m := progress.New(s.Messages)
	stop := m.Watch(func() string { return files.Line(&done, time.Since(begin)) })
	err = files.Put(command.Context(), c, options, jobs, &done)
	stop()
	elapsed := time.Since(begin)
	m.Say("%s of %s objects, %s stored in %s", words.Number(done.Objects.Load()), words.Number(int64(len(files.Files))), words.Bytes(done.Bytes.Load()), words.Span(elapsed))
	if files.Skipped > 0 {
		m.Say("%s links or devices were skipped", words.Number(int64(files.Skipped)))
	}
	return err
}

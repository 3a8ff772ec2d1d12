package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/operator/words"
)

// defaultJobs is how many objects a tree is stored by at a time.
const defaultJobs = 8

func putCommand(s *session) *cobra.Command {
	var options client.PutOptions
	var jobs int
	var revision string
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
	flags.BoolVar(&options.IfAbsent, "if-absent", false, "only if there is no object of this key")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		if jobs < 1 || jobs > 1024 {
			return misuse(command, "--jobs %d: want 1 to 1024", jobs)
		}
		if revision != "" {
			stamp, err := block.ParseStamp(revision)
			if err != nil {
				return misuse(command, "--if-revision: %w; `restripe stat KEY` shows the present one", err)
			}
			options.IfRevision = &stamp
		}
		return s.withClient(func(c *client.Client) error {
			path, key := arguments[0], ""
			if len(arguments) == 2 {
				key = arguments[1]
			}
			if path == "-" {
				if key == "" {
					return misuse(command, "standard input has no name: give a KEY")
				}
				object, err := c.Put(command.Context(), key, s.in, options)
				if err != nil {
					return putError("standard input", key, options, err)
				}
				return writeLines(s.messages, []string{fmt.Sprintf("%s: %s, %s, revision %s", object.Key, words.Bytes(object.Size), object.Scheme, object.Revision)})
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
				return misuse(command, "the KEY is empty: leave it out to store under the file's name, or give 1 to 4096 bytes")
			}
			return putFile(command.Context(), c, path, key, options)
		})
	}
	return command
}

// keyShown bounds how much of a key an error repeats.
const keyShown = 200

// putError says which of the caller's conditions a refused put did not meet, and how to see what is there.
func putError(source, key string, options client.PutOptions, err error) error {
	if len(key) > keyShown {
		key = key[:keyShown] + "..."
	}
	if errors.Is(err, api.ErrConflict) {
		switch {
		case options.IfAbsent:
			return fmt.Errorf("storing %s as %q: there is an object of this key already, and --if-absent was given; nothing was changed: %w", source, key, err)
		case options.IfRevision != nil:
			return fmt.Errorf("storing %s as %q: the object is not at revision %s; nothing was changed, `restripe stat KEY` shows the present one: %w", source, key, options.IfRevision, err)
		}
	}
	return fmt.Errorf("storing %s as %q: %w", source, key, err)
}

func (s *session) putTree(command *cobra.Command, c *client.Client, root, prefix string, options client.PutOptions, jobs int) error {
	if options.IfRevision != nil {
		return misuse(command, "--if-revision speaks of one object, %s is a directory", root)
	}
	files, err := readTree(root, prefix)
	if err != nil {
		return err
	}
	var done progress
	begin := time.Now()
	m := newMeter(s.messages)
	stop := m.watch(func() string { return files.line(&done, time.Since(begin)) })
	err = files.put(command.Context(), c, options, jobs, &done)
	stop()
	elapsed := time.Since(begin)
	m.say("%s of %s objects, %s stored in %s", words.Number(done.objects.Load()), words.Number(int64(len(files.files))), words.Bytes(done.bytes.Load()), words.Span(elapsed))
	if files.skipped > 0 {
		m.say("%s links or devices were skipped", words.Number(int64(files.skipped)))
	}
	return err
}

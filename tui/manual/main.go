// Command manual writes what comes with the programs: their manual pages, and what shells complete of them.
//
//	manual DIRECTORY
//
// Each program gets a folder in it, with pages in man1, and with what is for a shell in bash, zsh and fish.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/restripe/restripe/tui/cli"
	"github.com/restripe/restripe/tui/cli/daemon"
	"github.com/restripe/restripe/tui/cli/program"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "manual: %v\n", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 1 {
		return fmt.Errorf("name the directory that everything goes into")
	}
	date, err := sourceDate(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	quiet := program.Streams{In: strings.NewReader(""), Out: io.Discard, Messages: io.Discard}
	whole := cli.Root(&quiet)
	whole.Long += "\n\nCalled `" + plugin + "` it is a plugin of kubectl: `kubectl restripe` does what `restripe` does, at the API server\n" +
		"that kubectl asks, and kubectl completes what is typed."
	if err := write(whole, arguments[0], date, plugin); err != nil {
		return err
	}
	return write(daemon.Root(&quiet), arguments[0], date, "")
}

// plugin is the other name of the program restripe.
const plugin = "kubectl-restripe"

// alsoFor is what a shell completes of a program, for another name of it, too.
func alsoFor(shell string, text []byte, name, other string) []byte {
	switch {
	case other == "":
		return text
	case shell == "bash":
		return fmt.Appendf(text, "complete -o default -o nospace -F __start_%s %s\n", name, other)
	case shell == "zsh": // the first line is all that it reads before somebody completes
		return bytes.Replace(text, []byte("#compdef "+name+"\n"), []byte("#compdef "+name+" "+other+"\n"), 1)
	}
	return fmt.Appendf(text, "complete -c %s -w %s\n", other, name)
}

// sourceDate is the date that pages show: what SOURCE_DATE_EPOCH says, in seconds, so that the same sources make the same pages.
func sourceDate(epoch string) (time.Time, error) {
	if epoch == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q: want seconds since 1970", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// write writes the files of one program; what shells complete is for another name of it, too, unless that is empty.
func write(root *cobra.Command, directory string, date time.Time, other string) error {
	name := root.Name()
	directory = filepath.Join(directory, name)
	root.DisableAutoGenTag = true
	pages := filepath.Join(directory, "man1")
	if err := os.MkdirAll(pages, 0o755); err != nil {
		return fmt.Errorf("making the directory of the pages: %w", err)
	}
	header := &doc.GenManHeader{Section: "1", Date: &date, Source: "Restripe", Manual: "Restripe"}
	if err := doc.GenManTree(root, header, pages); err != nil {
		return fmt.Errorf("writing the pages of %s: %w", name, err)
	}
	for path, generate := range map[string]func(io.Writer) error{
		"bash/" + name:           func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"zsh/_" + name:           root.GenZshCompletion,
		"fish/" + name + ".fish": func(w io.Writer) error { return root.GenFishCompletion(w, true) },
	} {
		var text bytes.Buffer
		if err := generate(&text); err != nil {
			return fmt.Errorf("completing %s: %w", name, err)
		}
		shell, _, _ := strings.Cut(path, "/")
		completes := alsoFor(shell, text.Bytes(), name, other)
		path = filepath.Join(directory, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("making the directory of what a shell completes: %w", err)
		}
		if err := os.WriteFile(path, completes, 0o644); err != nil {
			return fmt.Errorf("writing what a shell completes: %w", err)
		}
	}
	return nil
}

package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/restripe/restripe/tui/cli/program"
)

// asked are the commands of the program in a runbook: at the beginning of an indented line, or in a sentence.
var asked = regexp.MustCompile("(?m)(?:^    |`)restripe ([^`\n#]*)")

// What a runbook tells people to type is there, with its flags.
func TestRunbooksNameCommands(t *testing.T) {
	pages, err := filepath.Glob("../../docs/runbooks/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	count := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range asked.FindAllStringSubmatch(string(text), -1) {
			count++
			words := strings.Fields(found[1])
			command, rest, err := Root(&program.Streams{}).Find(words)
			if err != nil || command.HasSubCommands() {
				t.Errorf("%s: there is no command restripe %s: %v", page, found[1], err)
				continue
			}
			for _, word := range rest {
				name, isFlag := strings.CutPrefix(word, "--")
				name, _, _ = strings.Cut(name, "=")
				if isFlag && command.Flags().Lookup(name) == nil && command.InheritedFlags().Lookup(name) == nil {
					t.Errorf("%s: restripe %s: there is no flag %s", page, found[1], word)
				}
			}
		}
	}
	if count < 40 {
		t.Errorf("only %d commands were found", count)
	}
}

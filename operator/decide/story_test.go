package decide

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the answers in testdata anew")

// tellStories runs the stories of a file. A story begins with a comment that says its intent; a block of commands is
// followed by a line of dashes and the answer to it; blocks are parted by empty lines. Commands of a block are given to
// answer one by one. Each story starts with a new answerer.
func tellStories(t *testing.T, file string, begin func(t *testing.T) (answer func(command string, arguments []string) string)) {
	t.Helper()
	path := filepath.Join("testdata", file)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var written strings.Builder
	var answer func(string, []string) string
	for i, block := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
		commands, want, _ := strings.Cut(block, "\n----")
		want = strings.TrimSpace(want)
		var got []string
		for _, line := range strings.Split(commands, "\n") {
			if strings.HasPrefix(line, "#") {
				answer = begin(t)
				continue
			}
			words := split(line)
			if answered := answer(words[0], words[1:]); answered != "" {
				got = append(got, answered)
			}
		}
		if i > 0 {
			written.WriteString("\n")
		}
		written.WriteString(commands + "\n")
		text := strings.Join(got, "\n")
		if text != "" {
			written.WriteString("----\n" + text + "\n")
		}
		if text != want && !*update {
			t.Errorf("%s, block %d:\n%s\n---- got\n%s\n---- want\n%s", file, i+1, commands, text, want)
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(written.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// split cuts a line at spaces; double quotes keep words together.
func split(line string) []string {
	var words []string
	quoted := false
	word := ""
	for _, r := range line + " " {
		switch {
		case r == '"':
			quoted = !quoted
		case r == ' ' && !quoted:
			if word != "" {
				words = append(words, word)
			}
			word = ""
		default:
			word += string(r)
		}
	}
	return words
}

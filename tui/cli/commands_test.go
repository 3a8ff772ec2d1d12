package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/tui/cli/program"
)

// quietSession is a session that reads nothing and whose words go nowhere.
func quietSession() *session {
	return &session{Streams: program.Streams{In: strings.NewReader(""), Out: &bytes.Buffer{}, Messages: &bytes.Buffer{}}}
}

// everyCommand calls visit with every command of the program, the hidden ones too.
func everyCommand(visit func(*cobra.Command)) {
	var walk func(*cobra.Command)
	walk = func(command *cobra.Command) {
		visit(command)
		for _, child := range command.Commands() {
			walk(child)
		}
	}
	walk(newRoot(quietSession()))
}

// shellWords splits a line as a shell does, as far as examples go: quotes, and no more than the first command.
func shellWords(line string) (words []string) {
	var word strings.Builder
	quote, open := rune(0), false
	end := func() {
		if open {
			words = append(words, word.String())
		}
		word.Reset()
		open = false
	}
	for _, letter := range line {
		switch {
		case quote != 0 && letter == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(letter)
		case letter == '\'' || letter == '"':
			quote, open = letter, true
		case unicode.IsSpace(letter):
			end()
		case strings.ContainsRune("|>;#", letter):
			end()
			return words
		default:
			word.WriteRune(letter)
			open = true
		}
	}
	end()
	return words
}

// understood finds the command of a line and parses its flags and arguments, without running it.
func understood(words []string) error {
	command, rest, err := newRoot(quietSession()).Find(words)
	if err != nil {
		return err
	}
	if err := command.ParseFlags(rest); err != nil {
		return err
	}
	if err := command.ValidateArgs(command.Flags().Args()); err != nil {
		return err
	}
	return command.ValidateFlagGroups()
}

// TestExamplesAreRightUse parses every example that a help text gives.
func TestExamplesAreRightUse(t *testing.T) {
	examples := 0
	everyCommand(func(command *cobra.Command) {
		for _, line := range strings.Split(command.Example, "\n") {
			if line == "" {
				continue
			}
			if !strings.HasPrefix(line, "  ") {
				t.Errorf("%s: the example %q is not indented like the others", command.CommandPath(), line)
			}
			_, typed, found := strings.Cut(line, "restripe ")
			if !found {
				t.Errorf("%s: the example %q does not run the program", command.CommandPath(), line)
				continue
			}
			examples++
			words := shellWords(typed)
			if err := understood(words); err != nil {
				t.Errorf("%s: the example %q: %v", command.CommandPath(), line, err)
			}
			if own := strings.Fields(command.CommandPath())[1]; !slices.Contains(words, own) {
				t.Errorf("%s: the example %q is about another command", command.CommandPath(), line)
			}
		}
	})
	if examples < 50 {
		t.Errorf("only %d examples were found", examples)
	}
}

// TestDocumentsNameCommandsThatAre parses every command line in the documents: in code that is indented or fenced, and
// between backquotes.
func TestDocumentsNameCommandsThatAre(t *testing.T) {
	documents, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	inBlock := regexp.MustCompile("(?m)^(?: {4,}|\t)?(?:[A-Z_]+=\\S+ )*(?:bin/|\\$ )?restripe ([a-z].*)$")
	inLine := regexp.MustCompile("`(?:bin/)?restripe ([a-z][^`]*)`")
	lines := 0
	for _, path := range append(documents, "../../README.md", "../README.md", "../../policies/README.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, pattern := range []*regexp.Regexp{inBlock, inLine} {
			for _, found := range pattern.FindAllStringSubmatch(string(text), -1) {
				lines++
				if err := named(shellWords(found[1])); err != nil {
					t.Errorf("%s: `restripe %s`: %v", path, found[1], err)
				}
			}
		}
	}
	if lines < 50 {
		t.Errorf("only %d command lines were found in the documents", lines)
	}
}

// named is understood for a line of prose, which may leave arguments out: the command and the flags have to be there.
func named(words []string) error {
	root := newRoot(quietSession())
	command, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	if command.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") && command.RunE != nil {
		if err := command.ValidateArgs(rest[:1]); err != nil {
			return err
		}
	}
	for _, word := range rest {
		name, is := strings.CutPrefix(word, "--")
		name, _, _ = strings.Cut(name, "=")
		if is && name != "" && command.Flags().Lookup(name) == nil && command.InheritedFlags().Lookup(name) == nil {
			return &program.UsageError{Command: command, Err: errUnknownFlag(name)}
		}
	}
	return nil
}

type errUnknownFlag string

func (e errUnknownFlag) Error() string { return "there is no flag --" + string(e) }

// TestCommandsSayWhatTheyDo holds the help of every command to one form.
func TestCommandsSayWhatTheyDo(t *testing.T) {
	commands := 0
	everyCommand(func(command *cobra.Command) {
		commands++
		path := command.CommandPath()
		switch short := command.Short; {
		case short == "":
			t.Errorf("%s: it does not say what it does", path)
		case strings.HasSuffix(short, "."), strings.ToUpper(short[:1]) != short[:1]:
			t.Errorf("%s: %q is not a heading: a capital and no full stop", path, short)
		}
		if !command.Runnable() {
			t.Errorf("%s: it cannot be run", path)
		}
		if command.HasParent() && command.Parent().Name() == "restripe" && command.GroupID == "" {
			t.Errorf("%s: it belongs to no group of the help", path)
		}
	})
	if commands < 60 {
		t.Errorf("only %d commands were found", commands)
	}
}

// TestFormatsAreOffered: where there is -o, a shell is offered its words, the first of them is the default, and no other
// word is taken.
func TestFormatsAreOffered(t *testing.T) {
	everyCommand(func(command *cobra.Command) {
		flag := command.Flags().Lookup("output")
		if flag == nil {
			return
		}
		words := strings.Split(flag.Usage, "|")
		if flag.DefValue != words[0] || flag.Shorthand != "o" {
			t.Errorf("%s: -%s is %q unless told otherwise, and offers %q", command.CommandPath(), flag.Shorthand, flag.DefValue, words)
		}
		for _, word := range words {
			if err := flag.Value.Set(word); err != nil || flag.Value.String() != word {
				t.Errorf("%s -o %s: %v, it is %s then", command.CommandPath(), word, err, flag.Value)
			}
		}
		if err := flag.Value.Set("picture"); err == nil || !strings.Contains(err.Error(), strings.Join(words, ", ")) {
			t.Errorf("%s -o picture: %v", command.CommandPath(), err)
		}
		complete, there := command.GetFlagCompletionFunc("output")
		if !there {
			t.Errorf("%s: no shell is told what -o takes", command.CommandPath())
			return
		}
		if offered, _ := complete(command, nil, ""); !slices.Equal(offered, words) {
			t.Errorf("%s: a shell is offered %q", command.CommandPath(), offered)
		}
	})
}

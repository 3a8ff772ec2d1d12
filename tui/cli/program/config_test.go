package program

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// fakeServer has a flag of each type. What it serves with is in served.
type fakeServer struct {
	name   string
	many   []string
	count  int
	on     bool
	wait   time.Duration
	word   string
	served bool
}

func (f *fakeServer) server() *Server {
	command := &cobra.Command{Use: "fake", Args: cobra.NoArgs, SilenceErrors: true, SilenceUsage: true}
	flags := command.Flags()
	flags.StringVar(&f.name, "name", "usual", "")
	flags.StringArrayVar(&f.many, "many", nil, "")
	flags.IntVar(&f.count, "count", 1, "")
	flags.BoolVar(&f.on, "on", false, "")
	flags.DurationVar(&f.wait, "wait", time.Minute, "")
	flags.StringVar(&f.word, "word", "", "")
	flags.Lookup("word").NoOptDefVal = "known"
	flags.Bool("tied", false, "")
	return &Server{
		Command: command, OnlyTyped: []string{"tied"},
		Check: func(report *Report) {
			if strings.Contains(f.name, " ") {
				report.Misuse("name", "--name %q: want no spaces", f.name)
			}
			if f.count > 9 {
				report.Misuse("count", "--count %d: want 9 at most", f.count)
			}
		},
		Serve: func(context.Context) error {
			f.served = true
			return nil
		},
	}
}

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fake.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func runFake(arguments ...string) (*fakeServer, error) {
	f := &fakeServer{}
	command := f.server().Complete()
	MarkUsage(command)
	command.SetArgs(arguments)
	return f, command.Execute()
}

func TestFilesSetFlags(t *testing.T) {
	path := written(t, `# all of them
command: fake
name: "7"
many: [a, b]
count: 3
on: true
wait: 5m
word: anybody
`)
	f, err := runFake("--config", path)
	want := fakeServer{name: "7", many: []string{"a", "b"}, count: 3, on: true, wait: 5 * time.Minute, word: "anybody", served: true}
	if err != nil || !reflect.DeepEqual(*f, want) {
		t.Errorf("the file sets %+v, want %+v: %v", f, want, err)
	}
}

// What is typed goes before what is in the file, wherever it is typed, and what is in neither stays as it is by default.
func TestTypedFlagsGoBefore(t *testing.T) {
	path := written(t, "command: fake\ncount: 3\nmany: [a]\n")
	for _, typed := range [][]string{{"--config", path, "--count", "4", "--many", "b"}, {"--many", "b", "--count", "4", "--config", path}} {
		f, err := runFake(typed...)
		if err != nil || f.count != 4 || !slices.Equal(f.many, []string{"b"}) || f.name != "usual" {
			t.Errorf("%q: %+v, %v", typed, f, err)
		}
	}
}

// Every mistake is told with its line, its key and what to do; nothing is served. check-config tells the same.
func TestMistakesInFiles(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                             {"FILE: the file is empty: begin it with command:"},
		"- command: fake\n":                            {"FILE:1: want keys and values"},
		"command: [\n":                                 {"FILE: this is no YAML: "},
		"command: fake\n---\ncommand: fake\n":          {"take out what begins with the second ---"},
		"name: a\n":                                    {"FILE: no line says which command this is for"},
		"command: fake\nnom: a\n":                      {"FILE:2: nom: fake has no such key; it has count, many, name, on, wait, word"},
		"command: fake\nconfig: a\ntied: true\n":       {"FILE:2: config: fake has no such key", "FILE:3: tied: fake has no such key"},
		"command: fake\nname: a\n\nname: b\n":          {"FILE:4: name: the key is in line 2, too"},
		"command: fake\ncommand: fake\n":               {"FILE:2: command: the key is in line 1, too"},
		"command: 1\n":                                 {"FILE:1: command: want the name of a command"},
		"command: fake\nname: 7\n":                     {"FILE:2: name: want text: put 7 in quotes"},
		"command: fake\nname:\n":                       {"FILE:2: name: the key has no value"},
		"command: fake\nname: {a: b}\n":                {"FILE:2: name: want text"},
		"command: fake\ncount: many\n":                 {"FILE:2: count: want a whole number, not many"},
		"command: fake\ncount: 99999999999999999999\n": {"FILE:2: count: "},
		"command: fake\non: \"true\"\n":                {"FILE:2: on: want true or false, not true"},
		"command: fake\nwait: 5\n":                     {"FILE:2: wait: want a time with its unit, such as 90s or 5m, not 5"},
		"command: fake\nwait: five\n":                  {"FILE:2: wait: time: invalid duration"},
		"command: fake\nword: true\n":                  {"FILE:2: word: want a word, such as known"},
		"command: fake\nmany: a\n":                     {"FILE:2: many: want a list"},
		"command: fake\nmany: [1]\n":                   {"FILE:2: many: line 2: want text in the list"},
		"command: fake\n? [a]\n: b\n":                  {"FILE:2: a key is the name of a flag"},
		"command: fake\ncount: 10\nname: a b\n": {
			"FILE:2: count 10: want 9 at most", `FILE:3: name "a b": want no spaces`,
		},
	} {
		path := written(t, text)
		f, err := runFake("--config", path)
		if err == nil || f.served {
			t.Errorf("%q is taken", text)
			continue
		}
		var out bytes.Buffer
		checking := CheckConfig(&Streams{Out: &out}, map[string]func() *Server{"fake": func() *Server { return (&fakeServer{}).server() }})
		checking.SetArgs([]string{path})
		checking.SilenceErrors, checking.SilenceUsage = true, true
		if err := checking.Execute(); err == nil {
			t.Errorf("check-config finds nothing wrong with %q", text)
		}
		for _, said := range []string{err.Error(), out.String()} {
			lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(said, path, "FILE")), "\n")
			if len(lines) != len(want) {
				t.Errorf("%q: %q, want %q", text, lines, want)
				continue
			}
			for i, line := range lines {
				if !strings.Contains(line, want[i]) {
					t.Errorf("%q: %q, want %q", text, line, want[i])
				}
			}
		}
	}
}

func TestFilesOfOthers(t *testing.T) {
	for path, want := range map[string]string{
		written(t, "command: other\nname: a\n"): "this is for the command other, not fake",
		filepath.Join(t.TempDir(), "absent"):    "reading the configuration",
	} {
		if _, err := runFake("--config", path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// check-config looks at all files, whatever is wrong with the first.
func TestCheckConfigTellsOfAllFiles(t *testing.T) {
	var out bytes.Buffer
	command := CheckConfig(&Streams{Out: &out}, map[string]func() *Server{"fake": func() *Server { return (&fakeServer{}).server() }})
	good, bad, foreign := written(t, "command: fake\n"), written(t, "command: fake\ncount: 10\n"), written(t, "command: other\n")
	command.SetArgs([]string{bad, foreign, filepath.Join(t.TempDir(), "absent"), good})
	command.SilenceErrors, command.SilenceUsage = true, true
	if err := command.Execute(); err == nil {
		t.Error("nothing is wrong")
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{bad + ":2: count 10", foreign + `: command: there are no configuration files for "other"; want one of fake`,
		"reading the configuration: ", good + ": nothing wrong"} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Fatalf("it tells\n%s\nline %d is to begin with %s", out.String(), i+1, want)
		}
	}
}

func FuzzParseFile(f *testing.F) {
	for _, text := range []string{"command: fake\nname: a\n", "a: &x b\nc: *x\n", "<<: {a: b}\n", "? [a]\n: b\n", "\x00", "- a\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		report := &Report{command: &cobra.Command{Use: "fake"}, file: "FILE", lines: map[string]int{}}
		found := parseFile([]byte(text), report)
		if found == nil {
			if report.Err() == nil {
				t.Fatal("it cannot be read, and nothing is wrong with it")
			}
			return
		}
		(&fakeServer{}).server().take(found, report)
	})
}

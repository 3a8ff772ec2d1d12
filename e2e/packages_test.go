package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// What setup.sh asks apt-get for, with a list of three programs of which the first is there.
func TestRunOfSetup(t *testing.T) {
	const list = `# a list
there         | bring-there      | setup       | a test
absent-one    | bring-one shared | setup other | a test
absent-two    | bring-two shared | other       | a test
/no/such/file | bring-file       | -           | a test
`
	cases := []struct {
		name, arguments, apt string
		says, asked          string // lines of what it says, and of what apt-get was asked
	}{
		{"by default", "", "", "setup: installing bring-one shared", "install -y --no-install-recommends bring-one shared"},
		{"for a script", "other", "", "setup: installing bring-one bring-two shared", "install -y --no-install-recommends bring-one bring-two shared"},
		{"everything", "all", "", "setup: installing bring-file bring-one bring-two shared", "install -y --no-install-recommends bring-file bring-one bring-two shared"},
		{"for a program that is there", "there", "", "setup: installed are bring-there", ""},
		{"with lists of packages that are too old", "absent-one", "[ -e updated ] || { [ $1 = update ] && touch updated; }", "setup: installing bring-one shared",
			"install -y --no-install-recommends bring-one shared\nupdate\ninstall -y --no-install-recommends bring-one shared"},
		{"where it fails", "absent-one", "exit 100", "setup: installing bring-one shared\nsetup: could not install all of: bring-one shared",
			"install -y --no-install-recommends bring-one shared\nupdate"},
		{"for nothing known", "nothing", "", "setup: e2e/packages.txt has nothing for: nothing", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			command := fakeRepository(t, "setup.sh", map[string]string{
				"e2e/setup.sh": contents(t, "e2e/setup.sh"), "e2e/packages.sh": contents(t, "e2e/packages.sh"), "e2e/packages.txt": list,
				"bin/there": "#!/usr/bin/env bash\n", "bin/id": "#!/usr/bin/env bash\necho 0\n", "asked": "",
				"bin/apt-get": "#!/usr/bin/env bash\necho \"$*\" >>asked\n" + c.apt + "\n",
			})
			command.Args = append(command.Args, strings.Fields(c.arguments)...)
			output, err := command.CombinedOutput()
			if (err == nil) != (c.arguments != "nothing") {
				t.Errorf("it ends with %v", err)
			}
			if got := strings.TrimSpace(string(output)); got != c.says {
				t.Errorf("it says %q, want %q", got, c.says)
			}
			want := strings.ReplaceAll(c.asked, "install -y", "-o DPkg::Lock::Timeout=600 install -y") // so that it waits for its turn
			if got := strings.TrimSpace(readFile(t, filepath.Join(command.Dir, "asked"))); got != want {
				t.Errorf("apt-get was asked %q, want %q", got, want)
			}
		})
	}
}

// Every line of the list says what is missing, what brings it, who installs it, and why.
func TestRunOfSetupKnowsEveryLine(t *testing.T) {
	scripts := append(phonyTargets(t), "setup", "-")
	known := map[string]bool{}
	for _, script := range scripts {
		known[script] = true
	}
	for line := range strings.Lines(contents(t, "e2e/packages.txt")) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "|")
		if len(fields) != 4 {
			t.Errorf("%q has %d fields, not 4", line, len(fields))
			continue
		}
		for i, field := range fields {
			if strings.TrimSpace(field) == "" {
				t.Errorf("%q: field %d is empty", line, i+1)
			}
		}
		for _, script := range strings.Fields(fields[2]) {
			if !known[script] {
				t.Errorf("%q: %s is no target of the Makefile", line, script)
			}
		}
	}
}

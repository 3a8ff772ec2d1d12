package e2e

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestContributingNamesEveryTarget(t *testing.T) {
	page := contents(t, "CONTRIBUTING.md")
	for _, target := range phonyTargets(t) {
		if !regexp.MustCompile("make " + regexp.QuoteMeta(target) + `($|[^-\w])`).MatchString(page) {
			t.Errorf("CONTRIBUTING.md does not say what `make %s` does", target)
		}
	}
}

// make help lists the targets by itself, but for those that stand at the top of the Makefile.
func TestEveryTargetIsInTheHelp(t *testing.T) {
	makefile := contents(t, "Makefile")
	listed := regexp.MustCompile(`@echo "make ([^"]*)"`).FindStringSubmatch(makefile)
	if listed == nil {
		t.Fatal("make help does not list the targets")
	}
	for _, target := range phonyTargets(t) {
		if !slices.Contains(strings.Split(listed[1], "|"), target) && !regexp.MustCompile(`(?m)^# make `+target+` `).MatchString(makefile) {
			t.Errorf("make help does not name %s", target)
		}
	}
}

var (
	quoted = regexp.MustCompile("`([^`\n]+)`")
	aPath  = regexp.MustCompile(`^[\w.@-]+(/[\w.@-]+)*/?$`)
)

// quotedPaths are the files and folders that stand in back-quotes in a page, alone or in a command: words with a slash that
// hold nothing but letters of names. Patterns of packages, which end in ..., are none.
func quotedPaths(page string) (paths []string) {
	for _, match := range quoted.FindAllStringSubmatch(page, -1) {
		for _, word := range strings.Fields(match[1]) {
			if strings.Contains(word, "/") && aPath.MatchString(word) && !strings.HasSuffix(word, "...") {
				paths = append(paths, strings.TrimSuffix(word, "/"))
			}
		}
	}
	return paths
}

func TestContributingPathsExist(t *testing.T) {
	paths := quotedPaths(contents(t, "CONTRIBUTING.md"))
	for _, name := range paths {
		if !exists(name) {
			t.Errorf("CONTRIBUTING.md names `%s`, which is not there", name)
		}
	}
	if len(paths) < 10 {
		t.Errorf("only %q are paths: the test looks at the wrong things", paths)
	}
}

func TestContributingPathsAreFound(t *testing.T) {
	page := "`a/b.go` `make x` `go test -run X ./c/` `go test ./d/...` `./e/...` `f` `g/*.go`\n`h/.i`"
	if got, want := quotedPaths(page), []string{"a/b.go", "./c", "h/.i"}; !slices.Equal(got, want) {
		t.Errorf("the paths of %q are %q, want %q", page, got, want)
	}
}

// The versions of Go and Node.js are those of go.mod and web/package.json wherever else they stand.
func TestContributingVersionsAgree(t *testing.T) {
	version := func(name, pattern string) string {
		match := regexp.MustCompile(pattern).FindStringSubmatch(contents(t, name))
		if match == nil {
			t.Fatalf("%s has no %s", name, pattern)
		}
		return match[1]
	}
	goVersion := version("go.mod", `(?m)^go (\d+\.\d+)`)
	for _, name := range []string{
		"agent/kernel/_bench/go.mod", "agent/kernel/_gen/go.mod", "e2e/kube/_build/go.mod", "e2e/kube/_certificates/go.mod",
		"e2e/kind/_build/go.mod", "e2e/clients/_versitygw/go.mod", "playbooks/images/_build/go.mod",
	} {
		if got := version(name, `(?m)^go (\d+\.\d+)`); got != goVersion {
			t.Errorf("%s has Go %s, go.mod %s", name, got, goVersion)
		}
	}
	nodeVersion := version("web/package.json", `"node": ">=(\d+)`)
	for name, patterns := range map[string][2]string{
		"CONTRIBUTING.md":          {`Go (\d+\.\d+)`, `Node\.js (\d+)`},
		".devcontainer/Dockerfile": {`golang:(\d+\.\d+)-`, `node:(\d+)-`},
		".github/workflows/ci.yml": {`golang:(\d+\.\d+)-`, `node-version: "?(\d+)`},
	} {
		if got := version(name, patterns[0]); got != goVersion {
			t.Errorf("%s has Go %s, go.mod %s", name, got, goVersion)
		}
		if got := version(name, patterns[1]); got != nodeVersion {
			t.Errorf("%s has Node.js %s, web/package.json %s", name, got, nodeVersion)
		}
	}
}

// Each question of "Where to change what" has one answer, a file that is there.
func TestContributingAnswersWhereToChangeWhat(t *testing.T) {
	text, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, is := strings.Cut(string(text), "## Where to change what\n")
	if !is {
		t.Fatal("CONTRIBUTING.md does not say where to change what")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	answers := regexp.MustCompile("(?m)^\\| (.+) \\| `([^`]+)` \\|$").FindAllStringSubmatch(section, -1)
	if rows := strings.Count(section, "\n|") - 2; len(answers) < 20 || len(answers) != rows {
		t.Errorf("%d of %d questions have one answer; 20 are wanted", len(answers), rows)
	}
	for _, answer := range answers {
		if info, err := os.Stat("../" + answer[2]); err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s: %s is no file", answer[1], answer[2])
		}
	}
}

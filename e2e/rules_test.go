package e2e

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// module is the import path of this module.
const module = "github.com/restripe/restripe"

// source is one file of the repository.
type source struct {
	path string // from the root, with slashes
	text string
	tree *ast.File // of a Go file
	set  *token.FileSet
}

func (s *source) isGo() bool     { return strings.HasSuffix(s.path, ".go") }
func (s *source) isTest() bool   { return strings.HasSuffix(s.path, "_test.go") }
func (s *source) folder() string { return path.Dir(s.path) }

// within reports whether the file lies in the folder or below it.
func (s *source) within(folder string) bool {
	return s.folder() == folder || strings.HasPrefix(s.folder(), folder+"/")
}

// rule looks at one file and returns what breaks it.
type rule func(s *source) []string

var rules = map[string]rule{
	"import directions":        importDirections,
	"imports of pure packages": pureImports,
	"imports of processes":     processImports,
	"imports of stores":        backendImports,
	"imports of tests":         testImports,
	"imports of the gateway":   gatewayImports,
	"banned calls":             bannedCalls,
	"clocks":                   ownClocks,
	"errors thrown away":       thrownErrors,
	"file size":                fileSize,
	"unfinished business":      unfinished,
	"names that say nothing":   emptyNames,
	"packages of the system":   otherPackages,
	"links":                    func(s *source) []string { return brokenLinks(s, exists) },
}

func TestRules(t *testing.T) {
	sources := repository(t)
	for name, check := range rules {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			for i := range sources {
				for _, breach := range check(&sources[i]) {
					t.Errorf("%s: %s", sources[i].path, breach)
				}
			}
		})
	}
}

func TestEveryPackageHasADocComment(t *testing.T) {
	documented, packages := map[string]bool{}, map[string]string{}
	sources := repository(t)
	for i := range sources {
		s := &sources[i]
		if !s.isGo() || s.isTest() {
			continue
		}
		packages[s.folder()] = s.tree.Name.Name
		if s.tree.Doc != nil && strings.HasPrefix(s.tree.Doc.Text(), docStart(s.tree.Name.Name)) {
			documented[s.folder()] = true
		}
	}
	for folder, name := range packages {
		if !documented[folder] {
			t.Errorf("%s: no file has a doc comment that begins with %q", folder, docStart(name))
		}
	}
}

func docStart(name string) string {
	if name == "main" {
		return "Command "
	}
	return "Package " + name + " "
}

func TestReadmeNamesTheCommands(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"make run", "make test"} {
		if !strings.Contains(string(text), command) {
			t.Errorf("README.md does not name `%s`", command)
		}
	}
}

// Folders with nothing of ours in them.
var foreign = map[string]bool{".git": true, "bin": true, "node_modules": true, "dist": true, ".cache": true, "testdata": true}

// repository reads every text file of the repository.
func repository(t *testing.T) []source {
	t.Helper()
	var sources []source
	err := filepath.WalkDir("..", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if foreign[entry.Name()] {
				return filepath.SkipDir
			}
			return nil
		}
		below, err := filepath.Rel("..", name)
		if err != nil {
			return err
		}
		if !slices.Contains([]string{".go", ".md", ".sh", ".yml", ".yaml", ".ts", ".tsx", ".css", ""}, filepath.Ext(name)) || !entry.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		s, err := newSource(filepath.ToSlash(below), string(text))
		if err != nil {
			return err
		}
		sources = append(sources, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) < 50 {
		t.Fatalf("only %d files found: the rules look at the wrong place", len(sources))
	}
	return sources
}

func newSource(name, text string) (source, error) {
	s := source{path: name, text: text, set: token.NewFileSet()}
	if !s.isGo() {
		return s, nil
	}
	var err error
	s.tree, err = parser.ParseFile(s.set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	return s, err
}

// imports returns what a Go file imports: standard packages by their path, ours from the root of the module.
func (s *source) imports() []string {
	if s.tree == nil {
		return nil
	}
	var list []string
	for _, spec := range s.tree.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			name = spec.Path.Value
		}
		list = append(list, name)
	}
	return list
}

// own returns the path of one of our packages from the root, or "" for a foreign one.
func own(imported string) string {
	below, is := strings.CutPrefix(imported, module+"/")
	if !is {
		return ""
	}
	return below
}

func under(name, folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }

// importDirections: arrows point one way, faces -> operator -> agent.
func importDirections(s *source) (breaches []string) {
	above := map[string][]string{
		"agent":    {"operator", "tui", "web", "policies", "e2e"},
		"operator": {"tui", "web", "policies", "e2e"},
		"policies": {"tui", "web", "operator/apiserver", "operator/controller", "e2e"},
		"tui":      {"e2e"},
	}
	for folder, forbidden := range above {
		if !s.within(folder) {
			continue
		}
		for _, name := range s.imports() {
			for _, upper := range forbidden {
				if under(own(name), upper) {
					breaches = append(breaches, fmt.Sprintf("%s may not import %s: arrows point from the faces to the agent", folder, name))
				}
			}
		}
	}
	return breaches
}

// pureImports: what decides knows no outside world.
func pureImports(s *source) (breaches []string) {
	allowed, pure := map[string][]string{
		"agent/stripe": {},
		"agent/block":  {"github.com/fxamacker/cbor/v2"},
		"agent/parity": {module + "/agent/block", module + "/agent/kernel", module + "/agent/stripe"},
		"operator/decide": {
			"github.com/robfig/cron/v3", "k8s.io/apimachinery/pkg/api/meta",
			"k8s.io/apimachinery/pkg/api/resource", "k8s.io/apimachinery/pkg/apis/meta/v1",
			module + "/agent/gateway/api", module + "/agent/heat/shadow", module + "/agent/stripe",
			module + "/operator/api/v1alpha1", module + "/operator/words",
		},
		"agent/heat/shadow":     {module + "/agent/gateway/api"},
		"agent/heat/sketch":     {},
		"agent/gateway/arrange": {module + "/agent/block", module + "/agent/heat/sketch"},
		"agent/gateway/api":     {"github.com/dustin/go-humanize", "sigs.k8s.io/yaml", module + "/agent/block", module + "/agent/stripe"},
		"operator/reliability": {"k8s.io/apimachinery/pkg/api/resource",
			module + "/agent/stripe", module + "/operator/api/v1alpha1", module + "/operator/words"},
		"operator/price": {"k8s.io/apimachinery/pkg/api/resource",
			module + "/agent/gateway/api", module + "/agent/stripe", module + "/operator/api/v1alpha1", module + "/operator/words"},
		"operator/replay": {module + "/agent/heat/shadow", module + "/operator/decide"},
		"operator/words":  {"github.com/dustin/go-humanize"},
	}[s.folder()]
	if !pure || s.isTest() {
		return nil
	}
	for _, name := range s.imports() {
		if first, _, _ := strings.Cut(name, "/"); strings.Contains(first, ".") && !slices.Contains(allowed, name) {
			breaches = append(breaches, fmt.Sprintf("%s is pure and may not import %s", s.folder(), name))
		}
		if name == "time" && slices.Contains(timeless, s.folder()) {
			continue // as a value; ownClocks looks after the rest
		}
		if slices.Contains([]string{"os", "net", "net/http", "time", "math/rand", "math/rand/v2", "crypto/rand", "os/exec"}, name) {
			breaches = append(breaches, fmt.Sprintf("%s is pure and may not import %s: no I/O, no clock, no randomness", s.folder(), name))
		}
	}
	return breaches
}

// processImports: few places start processes.
func processImports(s *source) []string {
	allowed := []string{"agent/launch", "tui/cli", "e2e", "agent/sim/host", "agent/store/storetest/server", "agent/store/ceph/cephtest",
		"agent/catalog/postgres/postgrestest"}
	if s.isTest() || slices.ContainsFunc(allowed, s.within) || !slices.Contains(s.imports(), "os/exec") {
		return nil
	}
	return []string{"only " + strings.Join(allowed, ", ") + " and tests start processes (os/exec)"}
}

// backendImports: backends and engines are behind their interfaces; one place each chooses.
func backendImports(s *source) (breaches []string) {
	if s.isTest() {
		return nil
	}
	for _, name := range s.imports() {
		below := own(name)
		for _, backend := range []string{"file", "mem", "memcached", "redis", "ceph"} {
			if under(below, "agent/store/"+backend) && below != "agent/store/ceph/pools" && // which makes what a store opens
				!s.within("agent/store") && !s.within("agent/sim") && !s.within("operator/operatortest") && !s.within("e2e") {
				breaches = append(breaches, "imports the backend "+below+"; open stores through agent/store/open")
			}
		}
		for _, engine := range []string{"sqlite", "redis", "etcd", "postgres", "mem"} {
			if under(below, "agent/catalog/"+engine) && !s.within("agent/catalog") && !s.within("agent/sim") && !s.within("operator/operatortest") && !s.within("e2e") {
				breaches = append(breaches, "imports the engine "+below+"; take a *catalog.Catalog, or open one through agent/catalog/open")
			}
		}
	}
	return breaches
}

// gatewayImports: who calls gateways knows their contract and their client, and not how they work; few places put a gateway
// together.
func gatewayImports(s *source) (breaches []string) {
	composing := []string{"tui/cli", "agent/sim", "operator/operatortest", "e2e"}
	if s.isTest() || s.within("agent/gateway") || slices.ContainsFunc(composing, s.within) {
		return nil
	}
	for _, name := range s.imports() {
		if below := own(name); under(below, "agent/gateway") && below != "agent/gateway/api" && below != "agent/gateway/client" {
			breaches = append(breaches, "imports "+below+"; take what is needed from agent/gateway/api, and call through agent/gateway/client")
		}
	}
	return breaches
}

// A program that wants to read and write objects links neither kernels nor a catalog nor a registry of metrics.
func TestTheClientOfAGatewayIsSmall(t *testing.T) {
	imports := map[string][]string{}
	sources := repository(t)
	for i := range sources {
		if s := &sources[i]; s.isGo() && !s.isTest() {
			imports[s.folder()] = append(imports[s.folder()], s.imports()...)
		}
	}
	allowed := []string{"agent/block", "agent/stripe", "agent/gateway/api", "agent/gateway/client"}
	seen, next := map[string]bool{}, []string{"agent/gateway/client"}
	for len(next) > 0 {
		folder := next[0]
		next = next[1:]
		if seen[folder] {
			continue
		}
		seen[folder] = true
		for _, name := range imports[folder] {
			if below := own(name); below != "" {
				next = append(next, below)
				if !slices.Contains(allowed, below) {
					t.Errorf("%s imports %s, so every client of a gateway links it", folder, below)
				}
			} else if strings.Contains(name, "prometheus") {
				t.Errorf("%s imports %s, so every client of a gateway links it", folder, name)
			}
		}
	}
	if len(seen) != len(allowed) {
		t.Errorf("%d packages were looked at, want %d", len(seen), len(allowed))
	}
}

// testImports: product code does not link the testing package.
func testImports(s *source) []string {
	for _, folder := range []string{"agent/store/storetest", "agent/catalog/catalogtest", "agent/catalog/postgres/postgrestest",
		"operator/api/apitest", "operator/operatortest", "operator/gateways/gatewaystest"} {
		if s.within(folder) {
			return nil
		}
	}
	if s.isTest() || !slices.Contains(s.imports(), "testing") {
		return nil
	}
	return []string{"imports testing outside a test"}
}

// sleepers may sleep, for the reason given.
var sleepers = map[string]string{}

// bannedCalls: no sleeping, no global logger, no panic but for broken invariants, no exit but from main.
func bannedCalls(s *source) (breaches []string) {
	if s.tree == nil {
		return nil
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if !is {
			return true
		}
		line := s.set.Position(call.Pos()).Line
		breach := func(format string, values ...any) {
			breaches = append(breaches, fmt.Sprintf("line %d: ", line)+fmt.Sprintf(format, values...))
		}
		switch function := call.Fun.(type) {
		case *ast.Ident:
			if function.Name == "panic" && !s.isTest() && !s.explained(call.Pos(), "panic", "mistake", "invariant") && !abortsHandler(call) {
				breach("panic without a comment that says which invariant is broken")
			}
		case *ast.SelectorExpr:
			from, is := function.X.(*ast.Ident)
			if !is {
				return true
			}
			switch {
			case from.Name == "time" && function.Sel.Name == "Sleep" && sleepers[s.path] == "":
				breach("time.Sleep; wait for what is waited for")
			case from.Name == "log" && slices.Contains(s.imports(), "log"):
				breach("log.%s; take a *slog.Logger", function.Sel.Name)
			case from.Name == "os" && function.Sel.Name == "Exit" && !s.isTest() && s.functionAround(call.Pos()) != "main":
				breach("os.Exit outside main; return an error")
			}
		}
		return true
	})
	return breaches
}

// timeless folders are given the time.
var timeless = []string{"agent/gateway/api", "agent/gateway/arrange", "agent/heat", "agent/heat/shadow", "agent/heat/sketch",
	"operator/decide", "operator/words", "operator/replay"}

// ownClocks: what is given the time does not look at a clock.
func ownClocks(s *source) (breaches []string) {
	if s.tree == nil || s.isTest() || !slices.ContainsFunc(timeless, s.within) {
		return nil
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		selector, is := n.(*ast.SelectorExpr)
		if !is {
			return true
		}
		if from, is := selector.X.(*ast.Ident); is && from.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "After", "NewTimer", "NewTicker"}, selector.Sel.Name) {
			breaches = append(breaches, fmt.Sprintf("line %d: time.%s; the time is passed in", s.set.Position(n.Pos()).Line, selector.Sel.Name))
		}
		return true
	})
	return breaches
}

// explained reports whether a comment on the line of pos or on the line above says why, or the doc comment of the
// function around it has one of the words.
func (s *source) explained(pos token.Pos, words ...string) bool {
	line := s.set.Position(pos).Line
	for _, group := range s.tree.Comments {
		if first, last := s.set.Position(group.Pos()).Line, s.set.Position(group.End()).Line; first <= line && last >= line-1 {
			return true
		}
	}
	for _, declaration := range s.tree.Decls {
		function, is := declaration.(*ast.FuncDecl)
		if !is || pos < function.Pos() || pos >= function.End() {
			continue
		}
		doc := strings.ToLower(function.Doc.Text())
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(doc, word) })
	}
	return false
}

// functionAround returns the name of the function declared around pos.
func (s *source) functionAround(pos token.Pos) string {
	for _, declaration := range s.tree.Decls {
		if function, is := declaration.(*ast.FuncDecl); is && pos >= function.Pos() && pos < function.End() {
			return function.Name.Name
		}
	}
	return ""
}

// abortsHandler reports whether a call is net/http's way of breaking a connection.
func abortsHandler(call *ast.CallExpr) bool {
	if len(call.Args) != 1 {
		return false
	}
	selector, is := call.Args[0].(*ast.SelectorExpr)
	return is && selector.Sel.Name == "ErrAbortHandler"
}

// cleanups are the calls whose errors are easily forgotten.
var cleanups = []string{"Close", "Remove", "RemoveAll", "Write", "Flush", "Sync", "Rename"}

// thrownErrors: an error of cleaning up is an error; where it truly has no one to go to, a comment says so.
func thrownErrors(s *source) (breaches []string) {
	if s.tree == nil || s.isTest() {
		return nil
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		assignment, is := n.(*ast.AssignStmt)
		if !is || len(assignment.Rhs) != 1 || !isBlank(assignment.Lhs[len(assignment.Lhs)-1]) {
			return true
		}
		call, is := assignment.Rhs[0].(*ast.CallExpr)
		if !is {
			return true
		}
		if selector, is := call.Fun.(*ast.SelectorExpr); is && slices.Contains(cleanups, selector.Sel.Name) && !s.explained(call.Pos(), "error") {
			breaches = append(breaches, fmt.Sprintf("line %d throws the error of %s away without a word", s.set.Position(call.Pos()).Line, selector.Sel.Name))
		}
		return true
	})
	return breaches
}

func isBlank(expression ast.Expr) bool {
	name, is := expression.(*ast.Ident)
	return is && name.Name == "_"
}

// longestFile is the largest number of lines of a Go file.
const longestFile = 700

func fileSize(s *source) []string {
	if lines := strings.Count(s.text, "\n"); s.isGo() && lines > longestFile && !ast.IsGenerated(s.tree) {
		return []string{fmt.Sprintf("%d lines; split it, %d is the limit", lines, longestFile)}
	}
	return nil
}

// longestLine is how many columns a line of Go may have, a tab counting as one. Lines that were longer when the rule came are
// counted, and their number only shrinks: a new one fails, wherever it is.
const (
	longestLine = 140
	longLines   = 1396
	longLinesBy = 25 // so many may go before the number has to be written down
)

func TestNoLineGrowsLong(t *testing.T) {
	count := 0
	var last string
	sources := repository(t)
	for i := range sources {
		s := &sources[i]
		if !s.isGo() || ast.IsGenerated(s.tree) {
			continue
		}
		for number, line := range strings.Split(s.text, "\n") {
			if utf8.RuneCountInString(line) > longestLine {
				count++
				last = fmt.Sprintf("%s:%d", s.path, number+1)
			}
		}
	}
	switch {
	case count > longLines:
		t.Errorf("%d lines of Go have more than %d columns, %d are allowed; break those that you added (git diff shows them), such as %s",
			count, longestLine, longLines, last)
	case count < longLines-longLinesBy:
		t.Errorf("only %d lines of Go have more than %d columns: write that down in place of %d", count, longestLine, longLines)
	}
}

// The words are put together here so that this file does not hold them.
var unfinishedWords = regexp.MustCompile(`\b(` + strings.Join([]string{"TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"}, "|") + `)\b`)

func unfinished(s *source) (breaches []string) {
	for i, line := range strings.Split(s.text, "\n") {
		if word := unfinishedWords.FindString(line); word != "" {
			breaches = append(breaches, fmt.Sprintf("line %d: %s; finish it, or write the limit down in SCOPE.md", i+1, word))
		}
	}
	return breaches
}

var emptyName = regexp.MustCompile(`(^|/)(utils?|helpers?|common|misc)(_[a-z]+)*(\.[a-z]+|/)`)

func emptyNames(s *source) []string {
	if emptyName.MatchString(s.path) {
		return []string{"a name that says nothing; name it after what is in it"}
	}
	return nil
}

// otherPackages: what is installed with apt-get is in one list, and one script installs it.
func otherPackages(s *source) (breaches []string) {
	if s.isGo() || strings.HasSuffix(s.path, ".md") || s.path == "e2e/packages.sh" {
		return nil
	}
	for i, line := range strings.Split(s.text, "\n") {
		if strings.Contains(line, "apt-get install -") || strings.Contains(line, "apt install -") {
			breaches = append(breaches, fmt.Sprintf("line %d installs packages by itself; list them in e2e/packages.txt and use e2e/packages.sh", i+1))
		}
	}
	return breaches
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// brokenLinks: links to files of the repository lead somewhere.
func brokenLinks(s *source, exists func(name string) bool) (breaches []string) {
	if !strings.HasSuffix(s.path, ".md") {
		return nil
	}
	for _, match := range link.FindAllStringSubmatch(s.text, -1) {
		target, _, _ := strings.Cut(match[1], "#")
		if target == "" || strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
			continue
		}
		if name := path.Join(s.folder(), target); !exists(name) {
			breaches = append(breaches, "links to "+match[1]+", which is not there")
		}
	}
	return breaches
}

func exists(name string) bool {
	_, err := os.Stat(filepath.Join("..", filepath.FromSlash(name)))
	return err == nil
}

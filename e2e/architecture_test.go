package e2e

import (
	"go/ast"
	"go/types"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// row is a line of the tables in docs/architecture.md: a package, and what it knows.
var row = regexp.MustCompile(`(?m)^\| \[([^\]]+)\]\(\.\./([^)]+)\) \| ([^|]+) \| ([^|]+) \|$`)

// The tables of docs/architecture.md have every package, and say of each exactly which others it imports.
func TestArchitectureIsAsTheTablesSay(t *testing.T) {
	real := map[string]map[string]bool{}
	sources := repository(t)
	for i := range sources {
		s := &sources[i]
		if !s.isGo() || s.isTest() || strings.Contains(s.path, "/_") {
			continue
		}
		folder := s.folder()
		if real[folder] == nil {
			real[folder] = map[string]bool{}
		}
		for _, name := range s.imports() {
			if below := own(name); below != "" && below != folder {
				real[folder][below] = true
			}
		}
	}
	text, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for _, match := range row.FindAllStringSubmatch(string(text), -1) {
		folder := match[1]
		if folder == "main.go" {
			folder = "."
		}
		if said[folder] {
			t.Errorf("docs/architecture.md has two rows for %s", folder)
		}
		said[folder] = true
		imports, is := real[folder]
		if !is {
			t.Errorf("docs/architecture.md has a row for %s, which is no package", folder)
			continue
		}
		var knows []string
		switch known := strings.TrimSpace(match[4]); known {
		case "everything":
			continue
		case "nothing of ours":
		default:
			knows = strings.Split(known, ", ")
		}
		for name := range imports {
			if !slices.Contains(knows, name) {
				t.Errorf("%s imports %s, which its row in docs/architecture.md does not allow", folder, name)
			}
		}
		for _, name := range knows {
			if !imports[name] {
				t.Errorf("docs/architecture.md says that %s knows %s, and it does not import it", folder, name)
			}
		}
	}
	for folder := range real {
		if !said[folder] {
			t.Errorf("%s has no row in docs/architecture.md: say what it does and what it may know", folder)
		}
	}
}

// The largest number of lines of Go that one folder may have, tests and what is generated apart, and of methods that a
// struct may have.
const (
	longestFolder = 5000
	mostMethods   = 40
)

// No folder of the data plane or the control plane grows into a house of one room. Assembly of kernels that is generated
// from a description counts as generated.
func TestFoldersAndStructsStaySmall(t *testing.T) {
	lines, methods := map[string]int{}, map[string]int{}
	sources := repository(t)
	for i := range sources {
		s := &sources[i]
		if !s.isGo() || s.isTest() || !s.within("agent") && !s.within("operator") || ast.IsGenerated(s.tree) {
			continue
		}
		lines[s.folder()] += strings.Count(s.text, "\n")
		for _, declaration := range s.tree.Decls {
			if function, is := declaration.(*ast.FuncDecl); is && function.Recv != nil {
				methods[s.folder()+"."+strings.TrimPrefix(types.ExprString(function.Recv.List[0].Type), "*")]++
			}
		}
	}
	for folder, count := range lines {
		if count > longestFolder {
			t.Errorf("%s has %d lines; cut a room out of it, %d is the limit", folder, count, longestFolder)
		}
	}
	for name, count := range methods {
		if count > mostMethods {
			t.Errorf("%s has %d methods; %d is the limit", name, count, mostMethods)
		}
	}
	if len(lines) < 30 || len(methods) < 100 {
		t.Fatalf("only %d folders and %d types were looked at", len(lines), len(methods))
	}
}

// namedInCode is a word in back quotes that looks like a name of the code; ellipses stand for the rest of a name.
var namedInCode = regexp.MustCompile("`([A-Za-z][A-Za-z0-9]*(?:\\.[A-Za-z][A-Za-z0-9]*)?)(…?)`")

// What the pages about the protocol name in back quotes is there: in Go, in the specification, or as a file of it.
func TestPagesOfTheProtocolNameWhatIsThere(t *testing.T) {
	declared := map[string]bool{}
	word := regexp.MustCompile(`[A-Za-z][A-Za-z0-9]*`)
	sources := repository(t)
	for i := range sources {
		s := &sources[i]
		if s.tree == nil {
			continue
		}
		ast.Inspect(s.tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				declared[n.Name.Name] = true
			case *ast.TypeSpec:
				declared[n.Name.Name] = true
			case *ast.ValueSpec:
				for _, name := range n.Names {
					declared[name.Name] = true
				}
			}
			return true
		})
	}
	modules, err := os.ReadDir("../docs/spec")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range modules {
		for _, name := range word.FindAllString(file.Name(), -1) {
			declared[name] = true
		}
		if path.Ext(file.Name()) == ".tla" {
			text, err := os.ReadFile(path.Join("../docs/spec", file.Name()))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range word.FindAllString(string(text), -1) {
				declared[name] = true
			}
		}
	}
	names := slices.Sorted(maps.Keys(declared))
	for _, page := range []string{"docs/protocol.md", "docs/spec/README.md"} {
		text, err := os.ReadFile(path.Join("..", page))
		if err != nil {
			t.Fatal(err)
		}
		found := namedInCode.FindAllStringSubmatch(string(text), -1)
		if len(found) < 20 {
			t.Fatalf("only %d names were found in %s", len(found), page)
		}
		for _, match := range found {
			name := match[1][strings.LastIndex(match[1], ".")+1:]
			is := declared[name]
			if match[2] != "" {
				is = slices.ContainsFunc(names, func(other string) bool { return strings.HasPrefix(other, name) })
			}
			if !is {
				t.Errorf("%s names `%s`, which is not there", page, match[1])
			}
		}
	}
}

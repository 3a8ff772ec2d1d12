package e2e

import (
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// logging are the methods of a logger, and where the keys begin among their arguments.
var logging = map[string]int{
	"Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "With": 0,
	"DebugContext": 2, "InfoContext": 2, "WarnContext": 2, "ErrorContext": 2,
}

// logKeys are the keys of log lines in a Go file.
func (s *source) logKeys() (keys []string) {
	if s.tree == nil {
		return nil
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if !is {
			return true
		}
		method, is := call.Fun.(*ast.SelectorExpr)
		if !is {
			return true
		}
		first, logs := logging[method.Sel.Name]
		if !logs {
			return true
		}
		for i := first; i+1 < len(call.Args); i += 2 {
			if literal, is := call.Args[i].(*ast.BasicLit); is && literal.Kind == token.STRING {
				if key, err := strconv.Unquote(literal.Value); err == nil {
					keys = append(keys, key)
				}
			}
		}
		return true
	})
	return keys
}

// TestLogKeysAreInTheVocabulary holds log lines to the keys of docs/logs.md, and that page to what is logged.
func TestLogKeysAreInTheVocabulary(t *testing.T) {
	page, err := os.ReadFile("../docs/logs.md")
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, line := range regexp.MustCompile("(?m)^\\| (`.*) \\|").FindAllString(string(page), -1) {
		for _, found := range regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(line, -1) {
			known = append(known, found[1])
		}
	}
	used := map[string]bool{}
	sources := repository(t)
	for i := range sources {
		s := &sources[i]
		if !s.isGo() || s.isTest() || s.within("e2e") {
			continue
		}
		for _, key := range s.logKeys() {
			used[key] = true
			if !slices.Contains(known, key) {
				t.Errorf("%s: the key %q of a log line is not in docs/logs.md: use one that is, or say there what it is", s.path, key)
			}
		}
	}
	for _, key := range known {
		if !used[key] {
			t.Errorf("docs/logs.md has the key %q, which no log line has", key)
		}
	}
}

func TestLogKeysAreFound(t *testing.T) {
	s, err := newSource("agent/node/a.go", `package node
func a() { l.Warn("words", "node", id, "cause", err); l.With("group", g).Info("more"); l.Info("none"); strings.Cut("a", "b") }`)
	if err != nil {
		t.Fatal(err)
	}
	if keys := s.logKeys(); !slices.Equal(keys, []string{"node", "cause", "group"}) {
		t.Errorf("found are %q", keys)
	}
}

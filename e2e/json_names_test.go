package e2e

import (
	"go/ast"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// jsonNames returns the names that the fields of a Go file have in JSON.
func (s *source) jsonNames() (names []string) {
	if s.tree == nil || ast.IsGenerated(s.tree) {
		return nil
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		field, is := n.(*ast.Field)
		if !is || field.Tag == nil {
			return true
		}
		tag, err := strconv.Unquote(field.Tag.Value)
		if err != nil {
			return true
		}
		if name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
		return true
	})
	return names
}

// isCamelCase reports whether a name is spelled as all JSON of this repository is: blocksSent, not blocks_sent.
func isCamelCase(name string) bool {
	return !strings.ContainsAny(name, "_-") && strings.ToLower(name[:1]) == name[:1]
}

// TestEveryJSONNameIsCamelCase holds all that is printed, served and declared to one spelling. What Ceph prints has its own.
func TestEveryJSONNameIsCamelCase(t *testing.T) {
	sources, checked := repository(t), 0
	for i := range sources {
		s := &sources[i]
		if s.within("agent/store/ceph") {
			continue
		}
		for _, name := range s.jsonNames() {
			checked++
			if !isCamelCase(name) {
				t.Errorf("%s: the JSON name %q is not in camelCase", s.path, name)
			}
		}
	}
	if checked < 500 {
		t.Errorf("only %d names were found: the test looks at the wrong place", checked)
	}
}

func TestEverySpellingIsTold(t *testing.T) {
	fields := "B int `cbor:\"1,keyasint\" json:\"blocks_sent,omitempty\"`; C int `json:\"-\"`; D int `json:\",omitempty\"`; E int"
	s, err := newSource("agent/node/a.go", "package node\ntype a struct {"+fields+"}")
	if err != nil {
		t.Fatal(err)
	}
	if names := s.jsonNames(); len(names) != 1 || names[0] != "blocks_sent" {
		t.Errorf("the names are %q", names)
	}
	for name, want := range map[string]bool{
		"blocksSent": true, "id": true, "storageGiBMonth": true, "blocks_sent": false, "blocks-sent": false, "BlocksSent": false,
	} {
		if isCamelCase(name) != want {
			t.Errorf("%q: %t", name, !want)
		}
	}
}

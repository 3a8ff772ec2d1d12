package catalogtest

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What is taken for granted of an engine is written where its author looks, and has its tests.
func TestEveryPromiseHasItsTest(t *testing.T) {
	text, err := os.ReadFile("../kv/kv.go")
	if err != nil {
		t.Fatal(err)
	}
	var promised, tested []string
	for _, match := range regexp.MustCompile(`(?m)^//   - ([A-Za-z, ]+): `).FindAllStringSubmatch(string(text), -1) {
		promised = append(promised, strings.Split(match[1], ", ")...)
	}
	for _, test := range engineTests {
		tested = append(tested, test.name)
	}
	slices.Sort(promised)
	slices.Sort(tested)
	if !slices.Equal(promised, tested) {
		t.Errorf("promised are %q, tested are %q", promised, tested)
	}
}

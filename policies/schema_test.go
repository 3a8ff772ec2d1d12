package policies

import (
	"strings"
	"testing"

	"cuelang.org/go/cue"
)

// TestSchemaAloneRefuses checks that the published schema, without the checks in Go, refuses what concerns several
// fields; the words are others, see testdata/errors.
func TestSchemaAloneRefuses(t *testing.T) {
	const policy = "kind: RedundancyPolicy\nmetadata: {name: a}\nspec: {backendRef: b, selector: {prefixes: ['']}, "
	cases := []struct{ what, text string }{
		{"two spellings", "kind: RedundancyScheme\nmetadata: {name: a}\nspec: {replicas: 3, k: 4, m: 2}"},
		{"no spelling", "kind: RedundancyScheme\nmetadata: {name: a}\nspec: {}"},
		{"k without m", "kind: RedundancyScheme\nmetadata: {name: a}\nspec: {k: 4}"},
		{"m without k", "kind: RedundancyScheme\nmetadata: {name: a}\nspec: {replicas: 4, m: 1}"},
		{"dataChunks without codingChunks", "kind: RedundancyScheme\nmetadata: {name: a}\nspec: {dataChunks: 4}"},
		{"a node twice", "kind: StorageBackend\nmetadata: {name: a}\nspec: {type: file, gateways: ['http://a'], nodes: [{name: n1}, {name: n1}]}"},
		{"a gateway twice", "kind: StorageBackend\nmetadata: {name: a}\nspec: {type: file, gateways: ['http://a', 'http://a']}"},
		{"ladder and target", policy + "ladder: [rep(3)], reliability: {nines: 3}}"},
		{"neither ladder nor target", policy + "}"},
		{"an empty ladder", policy + "ladder: []}"},
		{"a step twice", policy + "ladder: [rep(3), rep(3)]}"},
		{"default off the ladder", policy + "ladder: [rep(3)], default: rep(2)}"},
		{"a rule off the ladder", policy + "ladder: [rep(3)], temperature: {rules: [{scheme: rep(2), below: 3}]}}"},
		{"a pin off the ladder", policy + "ladder: [rep(3)], temperature: {rules: [{scheme: rep(3), below: 3}]}, pin: {scheme: rep(2), until: 2026-01-01T00:00:00Z}}"},
		{"a pin without temperature", policy + "ladder: [rep(3)], pin: {scheme: rep(3), until: 2026-01-01T00:00:00Z}}"},
		{"a pin without end", policy + "ladder: [rep(3)], temperature: {rules: [{scheme: rep(3), below: 3}]}, pin: {scheme: rep(3)}}"},
		{"a rule without bounds", policy + "ladder: [rep(3)], temperature: {rules: [{scheme: rep(3)}]}}"},
		{"a bound without number", policy + "ladder: [rep(3)], approval: {mode: ManualAbove}}"},
		{"a long window", policy + "ladder: [rep(3)], windows: [{schedule: '@daily', duration: 169h}]}"},
		{"a long wait", policy + "ladder: [rep(3)], packing: {delay: 61s}}"},
		{"less than may be dead", policy + "ladder: [rep(3)], packing: {deadAtMostPercent: 4}}"},
		{"more than may be dead", policy + "ladder: [rep(3)], packing: {deadAtMostPercent: 1001}}"},
		{"a part of a percent", policy + "ladder: [rep(3)], packing: {deadAtMostPercent: 15.5}}"},
		{"a hot key that nobody reads", policy + "ladder: [rep(3)], packing: {hotKeys: {scheme: rep(3), reads: 0}}}"},
		{"hot keys that are colder than others", policy + "ladder: [rep(3), rep(2)], packing: {hotKeys: {scheme: rep(2), reads: 9}}}"},
		{"hot keys off the ladder", policy + "ladder: [rep(3)], packing: {hotKeys: {scheme: rep(4), reads: 9}}}"},
		{"no mode of packing", policy + "ladder: [rep(3)], packing: {mode: never}}"},
		{"no way to repair", policy + "ladder: [rep(3)], repairOnRead: first}"},
		{"more versions than are kept", policy + "ladder: [rep(3)], keepVersions: 65}"},
		{"versions by no word", policy + "ladder: [rep(3)], keepVersions: all}"},
		{"an object that is gone at once", policy + "ladder: [rep(3)], expireAfter: 10ms}"},
		{"from and to alike", "kind: Transition\nmetadata: {name: a}\nspec: {backendRef: b, class: c, from: rep(3), to: rep(3)}"},
		{"an unknown field", policy + "ladder: [rep(3)], laddr: 3}"},
		{"no name", "kind: RedundancyScheme\nmetadata: {}\nspec: {replicas: 3}"},
		{"no spec", "kind: RedundancyScheme\nmetadata: {name: a}"},
	}
	e := newEvaluator()
	for _, c := range cases {
		documents, findings := readYAML(Source{Name: "a.yaml", Text: []byte("apiVersion: restripe.io/v1alpha1\n" + c.text)})
		if len(documents) != 1 || len(findings) > 0 {
			t.Fatalf("%s: %v", c.what, findings)
		}
		kind, _ := documents[0].get("kind").text()
		plain, _ := documents[0].plain(nil)
		if err := e.kind(kind).Unify(e.context.Encode(plain)).Validate(cue.Concrete(true), cue.Final()); err == nil {
			t.Errorf("%s: accepted by the schema", c.what)
		}
		l := loader{evaluator: e}
		if l.object(documents[0]); len(l.findings.Errors()) == 0 {
			t.Errorf("%s: accepted by the checks", c.what)
		}
	}
}

// TestSchemaSaysWhatItWants: every field of a spec that can be wrong has words for what it must be.
func TestSchemaSaysWhatItWants(t *testing.T) {
	e := newEvaluator()
	for _, kind := range Kinds {
		wanting(t, kind+".spec", member(e.kind(kind), "spec"))
	}
}

func wanting(t *testing.T, path string, schema cue.Value) {
	t.Helper()
	switch schema.IncompleteKind() {
	case cue.StructKind:
		all, _ := members(schema)
		for _, name := range all {
			wanting(t, path+"."+name, member(schema, name))
		}
		return
	case cue.ListKind:
		wanting(t, path+"[]", element(schema))
	}
	if words := want(schema); strings.ContainsAny(words, "|&_") || words == "" || strings.HasPrefix(words, "text;") {
		t.Errorf("%s wants %q; give it an attribute @want", path, words)
	}
}

package policies

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// Object is one declared object.
type Object struct {
	Kind  string
	Name  string
	Value runtime.Object // *v1alpha1.StorageBackend, *RedundancyScheme, *RedundancyPolicy or *Transition, defaults not filled in
	Position

	tree *node // as it was written; nil for an object that does not come from a file
}

// String returns kind/name.
func (o Object) String() string { return o.Kind + "/" + o.Name }

// At returns where a field was written, or the nearest thing around it; path is such as spec.ladder[1], as an API server
// names fields.
func (o Object) At(path string) Position {
	if o.tree == nil {
		return o.Position
	}
	return o.tree.at(path)
}

// Spec returns the spec as it was written, without the fields that are given nothing; nil for an object that does not come from
// a file. Value reads it: there the quantity 100 is as good as "100", while to whoever sets fields on an API server they differ.
func (o Object) Spec() map[string]any {
	spec := o.tree.get("spec")
	if spec == nil || spec.kind != mappingNode {
		return nil
	}
	written, _ := spec.plain(nil)
	text, err := json.Marshal(written)
	var plain map[string]any
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(text, &plain)
	}
	if err != nil {
		panic("a spec that was decoded cannot be encoded: " + err.Error()) // invariant: Value was made of it
	}
	withoutNulls(plain)
	return plain
}

// withoutNulls takes the fields of mappings out that are null.
func withoutNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			if field == nil {
				delete(value, name)
			}
			withoutNulls(field)
		}
	case []any:
		for i := range value {
			withoutNulls(value[i])
		}
	}
}

// Options change what is checked.
type Options struct {
	// Known are objects that exist already, on the API server for instance: names may refer to them, and prefixes may
	// conflict with theirs. One that the sources declare as well is replaced by it.
	Known []Object
	// Sandbox is where CUE is evaluated; nil: in this process, for as long as it takes.
	Sandbox Sandbox
	// Now is what pins that end are held against; zero: they are not.
	Now time.Time
}

// Load reads files and directories, as ReadPaths does, and returns the objects in them, in order. If anything is wrong
// the error is Findings with every error there is, and the objects are those that can be read nevertheless. Warnings are
// left out: Lint returns them.
func Load(paths ...string) ([]Object, error) {
	objects, findings := Lint(Options{}, paths...)
	if wrong := findings.Errors(); len(wrong) > 0 {
		return objects, wrong
	}
	return objects, nil
}

// Lint reads files and directories, as ReadPaths does, and returns the objects and all findings, warnings among them.
func Lint(options Options, paths ...string) ([]Object, Findings) {
	sources, unread := ReadPaths(paths...)
	objects, findings := Check(options, sources...)
	return objects, append(unread, findings...)
}

// Check is Lint for sources that were read. It never panics, whatever is in them; but CUE is a language, and without a
// sandbox evaluating it takes as long, and as much memory, as what it says.
func Check(options Options, sources ...Source) ([]Object, Findings) {
	names := make([]string, len(sources))
	for i, source := range sources {
		names[i] = source.Name
	}
	l := loader{evaluator: newEvaluator(), sandbox: options.Sandbox, now: options.Now}
	for _, source := range joinPackages(sources) {
		l.source(source)
	}
	l.together(options.Known)
	return l.objects, l.findings.sort(names)
}

type loader struct {
	evaluator *evaluator
	sandbox   Sandbox
	now       time.Time
	objects   []Object
	findings  Findings
}

func (l *loader) source(source Source) {
	var documents []*node
	var findings Findings
	switch {
	case len(source.Text) > maxFileBytes:
		findings = Findings{{Position: Position{File: source.Name}, Message: fmt.Sprintf("is larger than %d MiB; split it", maxFileBytes>>20)}}
	case source.Format == CUE && l.sandbox != nil:
		documents, findings = l.sandbox.readCUE(source)
	case source.Format == CUE:
		documents, findings = l.evaluator.readCUE(source)
	case source.Format == JSON:
		documents, findings = readJSON(source)
	default:
		documents, findings = readYAML(source)
	}
	l.findings = append(l.findings, findings...)
	if len(documents) == 0 && len(findings) == 0 {
		l.findings = append(l.findings, Finding{Position: Position{File: source.Name}, Severity: Warning, Message: "declares nothing"})
	}
	for _, document := range documents {
		l.document(document)
	}
}

// document takes an object, or the objects of a List as kubectl prints it.
func (l *loader) document(n *node) {
	kind, _ := n.get("kind").text()
	if version, _ := n.get("apiVersion").text(); version == "v1" && kind == "List" {
		items := n.get("items")
		for i := 0; items != nil && i < len(items.items); i++ {
			l.object(items.items[i])
		}
		return
	}
	l.object(n)
}

func (l *loader) object(n *node) {
	kind, _ := n.get("kind").text()
	name, _ := n.get("metadata", "name").text()
	object := Object{Kind: kind, Name: name, Position: n.position, tree: n}
	if !l.ours(object) {
		return
	}
	c := &checker{evaluator: l.evaluator, now: l.now, kind: kind, object: strings.TrimSuffix(object.String(), "/"), wrong: make(map[*node]bool)}
	schema := l.evaluator.kind(kind)
	c.check(n, schema, "")
	value, err := decode(n, kind, c.wrong)
	if err == nil {
		c.rules(n, value)
		if len(c.findings.Errors()) == 0 {
			c.whole(n, schema)
		}
	} else if len(c.findings) == 0 {
		c.report(n, n.position, "", "does not fit the API: %v", err)
	}
	l.findings = append(l.findings, c.findings...)
	if err == nil && name != "" {
		object.Value = value
		l.objects = append(l.objects, object)
	}
}

// ours reports whether an object has one of our kinds and the right apiVersion.
func (l *loader) ours(object Object) bool {
	n := object.tree
	wrong := func(at Position, path, format string, values ...any) bool {
		l.findings = append(l.findings, Finding{Position: at, Object: strings.Trim(object.String(), "/"), Path: path, Message: fmt.Sprintf(format, values...)})
		return false
	}
	if n.kind != mappingNode {
		return wrong(n.position, "", "is %s; an object has apiVersion, kind, metadata and spec", n.describe())
	}
	kinds := "; there are " + enumerate(Kinds, "and")
	switch version := n.get("apiVersion"); {
	case version == nil:
		return wrong(n.position, "apiVersion", "is missing; give %s", APIVersion)
	case version.scalar != APIVersion:
		return wrong(version.position, "apiVersion", "is %s; give %s", version.describe(), APIVersion)
	}
	switch kind := n.get("kind"); {
	case kind == nil:
		return wrong(n.position, "kind", "is missing%s", kinds)
	case !known(object.Kind):
		return wrong(kind.position, "kind", "there is no kind %s%s%s", kind.describe(), suggest(object.Kind, Kinds), kinds)
	}
	return true
}

// newValue returns an empty object of a kind.
func newValue(kind string) runtime.Object {
	switch kind {
	case "StorageBackend":
		return &v1alpha1.StorageBackend{}
	case "RedundancyScheme":
		return &v1alpha1.RedundancyScheme{}
	case "Transition":
		return &v1alpha1.Transition{}
	}
	return &v1alpha1.RedundancyPolicy{}
}

// decode returns the typed value of a tree without the nodes in wrong, decoding strictly.
func decode(n *node, kind string, wrong map[*node]bool) (runtime.Object, error) {
	plain, _ := n.plain(wrong)
	text, err := json.Marshal(plain)
	if err != nil {
		return nil, err
	}
	value := newValue(kind)
	strict, err := kjson.UnmarshalStrict(text, value)
	if err == nil && len(strict) > 0 {
		err = strict[0]
	}
	if err != nil {
		return nil, err
	}
	return value, nil
}

// merge returns known objects with those of the same kind and name in objects replaced, and the others of objects added.
func merge(known, objects []Object) []Object {
	merged := slices.Clone(objects)
	for _, one := range known {
		if !slices.ContainsFunc(objects, func(o Object) bool { return o.Kind == one.Kind && o.Name == one.Name }) {
			merged = append(merged, one)
		}
	}
	return merged
}

package policies

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/errors"
)

// checker walks a tree beside the schema.
type checker struct {
	evaluator *evaluator
	now       time.Time // zero: not told
	kind      string
	object    string
	findings  Findings
	wrong     map[*node]bool // nodes with a finding of their own
}

func (c *checker) report(n *node, at Position, path, format string, values ...any) {
	c.findings = append(c.findings, Finding{Position: at, Object: c.object, Path: path, Message: fmt.Sprintf(format, values...)})
	if n != nil {
		c.wrong[n] = true
	}
}

// check compares a node with what the schema says of it.
func (c *checker) check(n *node, schema cue.Value, path string) {
	kind := schema.IncompleteKind()
	switch {
	case n.kind == mappingNode && kind&cue.StructKind != 0:
		c.mapping(n, schema, path)
	case n.kind == listNode && kind&cue.ListKind != 0:
		c.list(n, schema, path)
	case n.kind == nullNode && kind&cue.NullKind == 0:
		c.report(n, n.position, path, "there is no value; give %s, or take the field out", want(schema))
	case n.kind == nullNode:
	case n.kind == scalarNode && kind&(cue.StructKind|cue.ListKind) == 0:
		c.scalar(n, schema, path)
	default:
		c.report(n, n.position, path, "is %s; give %s", n.describe(), want(schema))
	}
}

func (c *checker) mapping(n *node, schema cue.Value, path string) {
	all, required := members(schema)
	for _, f := range n.fields {
		below := member(schema, f.name)
		if !below.Exists() {
			if c.wrong[f.value] = true; len(all) > 0 {
				c.report(nil, f.position, join(path, f.name), "there is no such field%s%s", suggest(f.name, all), listing(all))
			}
			continue
		}
		c.check(f.value, below, join(path, f.name))
	}
	for _, name := range required {
		if n.field(name) == nil {
			c.report(nil, n.position, join(path, name), "is missing; give %s", want(member(schema, name)))
		}
	}
}

// listing names the fields there are if they are few.
func listing(all []string) string {
	const most = 8
	if len(all) > most {
		return ""
	}
	return "; there are " + enumerate(all, "and")
}

// enumerate joins words for people.
func enumerate(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + last + " " + words[len(words)-1]
}

func (c *checker) list(n *node, schema cue.Value, path string) {
	before := len(c.findings)
	of := element(schema)
	for i, item := range n.items {
		c.check(item, of, index(path, i))
	}
	if len(c.findings) > before || c.listFits(n, schema) {
		return
	}
	if i := repeated(n); i >= 0 {
		c.report(n, n.items[i].position, index(path, i), "is in the list already; give %s", want(schema))
		return
	}
	c.report(n, n.position, path, "has %s; give %s", count(len(n.items), "element"), want(schema))
}

// listFits checks the list as such, its length and repetitions, not what is within its elements.
func (c *checker) listFits(n *node, schema cue.Value) bool {
	outline := make([]any, len(n.items))
	for i, item := range n.items {
		if outline[i] = item.scalar; item.kind != scalarNode {
			outline[i] = map[string]any{}
		}
	}
	return schema.Unify(c.evaluator.context.Encode(outline)).Validate() == nil
}

func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// repeated returns the first element of a list of texts that is there before, or -1.
func repeated(n *node) int {
	seen := make(map[string]bool)
	for i, item := range n.items {
		text, is := item.text()
		if is && seen[text] {
			return i
		}
		seen[text] = is
	}
	return -1
}

// cutCode is what is left of rs(4,2) between the brackets of a list or mapping.
var cutCode = regexp.MustCompile(`^rs\([0-9]+$`)

func (c *checker) scalar(n *node, schema cue.Value, path string) {
	if c.evaluator.fits(c.kind, path, n.scalar, schema) {
		return
	}
	message := fmt.Sprintf("is %s; give %s", n.describe(), want(schema))
	if text, is := n.text(); is {
		message += suggest(text, choices(schema))
		if cutCode.MatchString(text) {
			message += "; quote the code, as its comma ends the value here"
		}
	}
	c.report(n, n.position, path, "%s", message)
}

// whole checks an object as a whole: what the schema says of several fields together. It is for objects that have no
// other finding, and the words are CUE's, as the checks in Go are expected to have said it better before.
func (c *checker) whole(n *node, schema cue.Value) {
	plain, _ := n.plain(nil)
	err := schema.Unify(c.evaluator.context.Encode(plain)).Validate(cue.Concrete(true), cue.Final())
	for _, one := range errors.Errors(err) {
		path := cuePath(one.Path())
		format, values := one.Msg()
		c.report(n, n.at(path), path, "does not fit the schema: %s", fmt.Sprintf(format, values...))
	}
}

// cuePath turns CUE's path of an error into one of ours; definitions are left out, and it ends at a hidden field.
func cuePath(selectors []string) string {
	path := ""
	for _, selector := range selectors {
		switch {
		case strings.HasPrefix(selector, "_"):
			return path
		case strings.HasPrefix(selector, "#"):
		case selector != "" && strings.Trim(selector, "0123456789") == "":
			path += "[" + selector + "]"
		default:
			path = join(path, strings.Trim(selector, `"`))
		}
	}
	return path
}

// known reports whether kind is one of ours.
func known(kind string) bool { return slices.Contains(Kinds, kind) }

// verdicts remembers which scalars fit where: the same ones come again and again, and CUE takes its time.
type verdicts map[verdictKey]bool

type verdictKey struct {
	kind, path string // without places in lists
	scalar     any
}

// maxVerdicts bounds what is remembered.
const maxVerdicts = 10_000

var places = regexp.MustCompile(`\[[0-9]+\]`)

func (e *evaluator) fits(kind, path string, scalar any, schema cue.Value) bool {
	key := verdictKey{kind, places.ReplaceAllLiteralString(path, "[]"), scalar}
	fits, known := e.known[key]
	if !known {
		fits = schema.Unify(e.context.Encode(scalar)).Validate(cue.Concrete(true)) == nil
		if len(e.known) < maxVerdicts {
			e.known[key] = fits
		}
	}
	return fits
}

package policies

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"
)

// joinPackages makes one source of the CUE files of one package in one directory, as CUE itself does.
func joinPackages(sources []Source) []Source {
	first := make(map[string]int)
	var joined []Source
	for _, source := range sources {
		if source.Format == CUE && len(source.Text) <= maxFileBytes {
			file, err := parser.ParseFile(source.Name, source.Text, parser.PackageClauseOnly)
			if err == nil && file.PackageName() != "" {
				key := filepath.Dir(source.Name) + "\x00" + file.PackageName()
				if at, found := first[key]; found {
					joined[at].rest = append(joined[at].rest, source)
					continue
				}
				first[key] = len(joined)
			}
		}
		joined = append(joined, source)
	}
	return joined
}

// readCUE evaluates CUE and returns the objects in it: the values with a kind or an apiVersion, wherever they are below
// the top, except in definitions and hidden fields.
func (e *evaluator) readCUE(source Source) (objects []*node, findings Findings) {
	c := compiler{evaluator: e, file: source.Name, own: map[string]bool{}, left: maxNodes}
	defer func() {
		// CUE's evaluator has its own broken invariants; a policy file must not end the program.
		if problem := recover(); problem != nil {
			objects = nil
			findings = append(c.findings, Finding{Position: Position{File: source.Name}, Message: fmt.Sprintf("CUE cannot evaluate it: %v", problem)})
		}
	}()
	instance := e.builds.NewInstance(filepath.Dir(source.Name), e.load)
	for _, file := range append([]Source{source}, source.rest...) {
		c.own[file.Name] = true
		tree, err := parser.ParseFile(file.Name, file.Text, parser.ParseComments)
		if err != nil {
			c.failed("not CUE: ", err)
			continue
		}
		if err := instance.AddSyntax(tree); err != nil {
			c.failed("", err)
		}
	}
	if len(c.findings) > 0 {
		return nil, c.findings
	}
	if err := instance.Complete(); err != nil {
		c.failed("", err)
		return nil, c.findings
	}
	c.root = e.context.BuildInstance(instance)
	c.find(c.root, 0)
	if err := c.root.Validate(); err != nil && len(c.findings) == 0 {
		c.failed("", err) // outside of the objects
	}
	return c.objects, c.findings
}

type compiler struct {
	evaluator *evaluator
	file      string
	own       map[string]bool // the files of the user
	root      cue.Value
	left      int // nodes that may still be made
	objects   []*node
	findings  Findings
}

// failed reports an error of CUE, each of its parts once, at the best place that is in a file of the user. Of parts
// about the same field the first is enough: the others are where the schema says so.
func (c *compiler) failed(before string, err error) {
	seen := make(map[string]bool)
	for _, one := range errors.Errors(err) {
		finding := Finding{Position: c.place(one), Message: before + words(one) + rule(one.Path())}
		object, path := c.split(one.Path())
		finding.Path = path
		if object.Exists() {
			kind, _ := c.word(object, "kind")
			name, _ := c.word(object.LookupPath(cue.ParsePath("metadata")), "name")
			finding.Object = strings.Trim(kind+"/"+name, "/")
			if schema := c.lookup(kind, path); rule(one.Path()) != "" {
				finding.Path = path
			} else if schema.Exists() {
				finding.Message += "; give " + want(schema)
			} else if all, _ := members(c.lookup(kind, path[:max(0, strings.LastIndex(path, "."))])); len(all) > 0 {
				finding.Message += suggest(path[strings.LastIndex(path, ".")+1:], all) + listing(all)
			}
		}
		if key := strings.Join(one.Path(), "."); key == "" || !seen[key] {
			seen[key] = true
			c.findings = append(c.findings, finding)
		}
	}
}

// words are what an error says, without its path, which findings have apart.
func words(err errors.Error) string {
	format, values := err.Msg()
	message := fmt.Sprintf(format, values...)
	var inner errors.Error
	if errors.As(errors.Unwrap(err), &inner) {
		return strings.TrimPrefix(message+": "+words(inner), ": ")
	}
	return message
}

// rule says the rule of the schema that a path names: rules are hidden fields, called after what has to hold.
func rule(selectors []string) string {
	for _, selector := range selectors {
		if name, hidden := strings.CutPrefix(selector, "_"); hidden {
			return "; the schema wants: " + strings.ToLower(capitals.ReplaceAllString(name, " $0"))
		}
	}
	return ""
}

var capitals = regexp.MustCompile(`[A-Z]`)

// split parts the path of an error into the object and the field in it.
func (c *compiler) split(selectors []string) (object cue.Value, path string) {
	for i, selector := range selectors {
		if selector == "spec" || selector == "metadata" || selector == "status" {
			return c.root.LookupPath(selectorPath(selectors[:i])), cuePath(selectors[i:])
		}
	}
	return cue.Value{}, cuePath(selectors)
}

func selectorPath(names []string) cue.Path {
	selectors := make([]cue.Selector, len(names))
	for i, name := range names {
		place, err := strconv.Atoi(name)
		switch path := cue.ParsePath(name); {
		case err == nil:
			selectors[i] = cue.Index(place)
		case path.Err() == nil && len(path.Selectors()) == 1:
			selectors[i] = path.Selectors()[0]
		default:
			selectors[i] = cue.Str(name)
		}
	}
	return cue.MakePath(selectors...)
}

// near returns the place of the innermost value of a path that is in a file of the user.
func (c *compiler) near(selectors []string) Position {
	at := Position{File: c.file}
	for i := range selectors {
		at = c.where(c.root.LookupPath(selectorPath(selectors[:i+1])), at)
	}
	return at
}

// lookup finds what the schema says of a path.
func (c *compiler) lookup(kind, path string) cue.Value {
	schema := c.evaluator.kind(kind)
	for _, name := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' }) {
		if strings.HasSuffix(name, "]") {
			schema = element(schema)
		} else {
			schema = member(schema, name)
		}
	}
	return schema
}

// place returns the first position of an error that is in a file of the user.
func (c *compiler) place(err errors.Error) Position {
	for _, at := range append([]token.Pos{err.Position()}, errors.Positions(err)...) {
		if at.IsValid() && c.own[at.Filename()] {
			return position(at)
		}
	}
	return c.near(err.Path())
}

func position(at token.Pos) Position {
	p := at.Position()
	return Position{File: p.Filename, Line: p.Line, Column: p.Column}
}

// find looks for objects.
func (c *compiler) find(value cue.Value, depth int) {
	if depth > maxDepth {
		return
	}
	if value.IncompleteKind() == cue.ListKind {
		items, err := value.List()
		for err == nil && items.Next() {
			c.find(items.Value(), depth+1)
		}
		return
	}
	_, isKind := c.word(value, "kind")
	_, isVersion := c.word(value, "apiVersion")
	if isKind || isVersion {
		c.object(value)
		return
	}
	fields, err := value.Fields()
	if err != nil {
		return // no mapping, and so no object
	}
	for fields.Next() {
		c.find(fields.Value(), depth+1)
	}
}

func (c *compiler) word(value cue.Value, name string) (string, bool) {
	text, err := value.LookupPath(cue.MakePath(cue.Str(name))).String()
	return text, err == nil
}

// object turns a value into a tree, or reports why it cannot be one.
func (c *compiler) object(value cue.Value) {
	if err := value.Validate(cue.Concrete(true), cue.Final()); err != nil {
		c.failed("", err)
		return
	}
	at := c.where(value, Position{File: c.file})
	if n := c.node(value, at, 0); c.left >= 0 {
		c.objects = append(c.objects, n)
		return
	}
	c.findings = append(c.findings, Finding{Position: at, Message: fmt.Sprintf("has more than %d values or %d levels; split the file", maxNodes, maxDepth)})
}

// where returns the place of a value in the files of the user, or else that of what it is in.
func (c *compiler) where(value cue.Value, parent Position) Position {
	places := []token.Pos{value.Pos()}
	_, parts := value.Expr()
	for _, part := range parts {
		places = append(places, part.Pos())
	}
	if syntax := value.Source(); syntax != nil {
		places = append(places, syntax.Pos())
		if f, is := syntax.(*ast.Field); is {
			places = append([]token.Pos{f.Value.Pos()}, places...)
		}
	}
	for _, at := range places {
		if at.IsValid() && c.own[at.Filename()] {
			return position(at)
		}
	}
	return parent
}

func (c *compiler) node(value cue.Value, at Position, depth int) *node {
	n := &node{position: at}
	value, _ = value.Default()
	if c.left--; c.left < 0 || depth > maxDepth {
		c.left = -1
		return n
	}
	switch value.Kind() {
	case cue.StructKind:
		n.kind = mappingNode
		fields, err := value.Fields()
		for err == nil && fields.Next() {
			below := c.where(fields.Value(), at)
			n.add(&property{name: fields.Selector().Unquoted(), position: below, value: c.node(fields.Value(), below, depth+1)})
		}
	case cue.ListKind:
		n.kind = listNode
		items, err := value.List()
		for err == nil && items.Next() {
			n.items = append(n.items, c.node(items.Value(), c.where(items.Value(), at), depth+1))
		}
	case cue.NullKind:
	case cue.BoolKind:
		n.kind = scalarNode
		n.scalar, _ = value.Bool()
	case cue.IntKind:
		n.kind = scalarNode
		if whole, err := value.Int64(); err == nil {
			n.scalar = whole
		} else {
			n.scalar, _ = value.Float64()
		}
	case cue.FloatKind, cue.NumberKind:
		n.kind = scalarNode
		n.scalar, _ = value.Float64()
	default:
		n.kind = scalarNode
		n.scalar, _ = value.String()
	}
	return n
}

package policies

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"
)

//go:embed schema.cue
var schemaText string

//go:embed library/*.cue
var libraryFiles embed.FS

// Examples are whole small clusters, as files: see the directory of the same name.
//
//go:embed examples
var Examples embed.FS

// Schema returns the CUE schema of the four kinds.
func Schema() string { return schemaText }

// Library returns the ready classes: CUE files.
func Library() fs.FS {
	files, err := fs.Sub(libraryFiles, "library")
	if err != nil {
		panic(err) // invariant: the directory is embedded
	}
	return files
}

// The import paths that CUE files may use, besides CUE's own.
const (
	schemaPackage  = "restripe.io/policies"
	libraryPackage = "restripe.io/policies/library"
)

// APIVersion is the apiVersion of every object.
const APIVersion = "restripe.io/v1alpha1"

// Kinds are the kinds there are.
var Kinds = []string{"RedundancyPolicy", "RedundancyScheme", "StorageBackend", "Transition"}

// evaluator is a CUE context with the schema in it. It is for one goroutine.
type evaluator struct {
	context *cue.Context
	builds  *build.Context
	schema  cue.Value
	known   verdicts
}

func newEvaluator() *evaluator {
	e := &evaluator{context: cuecontext.New(), known: make(verdicts)}
	e.builds = build.NewContext(build.Loader(e.load))
	e.schema = e.context.BuildInstance(e.load(token.NoPos, schemaPackage))
	if err := e.schema.Err(); err != nil {
		panic("the embedded schema: " + errors.Details(err, nil)) // invariant: tested, and constant
	}
	return e
}

// load makes the packages that files may import. CUE asks it for its own packages as well, for which nil is the answer.
func (e *evaluator) load(at token.Pos, path string) *build.Instance {
	instance := e.builds.NewInstance(path, e.load)
	instance.ImportPath = path
	files := map[string]string{}
	switch first, _, _ := strings.Cut(path, "/"); {
	case path == schemaPackage:
		files["schema.cue"] = schemaText
	case path == libraryPackage:
		if err := fs.WalkDir(Library(), ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := fs.ReadFile(Library(), name)
			files[name] = string(text)
			return err
		}); err != nil {
			panic(err) // invariant: the files are embedded
		}
	case !strings.Contains(first, "."):
		return nil
	default:
		instance.Err = errors.Newf(at, "there is no package %q; %s, %s and the packages of CUE itself can be imported",
			path, schemaPackage, libraryPackage)
		return instance
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file, err := parser.ParseFile(path+"/"+name, files[name], parser.ParseComments)
		if err == nil {
			err = instance.AddSyntax(file)
		}
		if err != nil {
			panic("an embedded CUE file: " + err.Error()) // invariant: tested, and constant
		}
	}
	if err := instance.Complete(); err != nil {
		instance.Err = errors.Promote(err, "loading "+path)
	}
	return instance
}

// kind returns the definition of a kind.
func (e *evaluator) kind(kind string) cue.Value {
	return e.schema.LookupPath(cue.MakePath(cue.Def(kind)))
}

// member returns what the schema of a mapping says of one field; it does not exist if the field may not be there.
func member(schema cue.Value, name string) cue.Value {
	for _, selector := range []cue.Selector{cue.Str(name), cue.Str(name).Optional(), cue.Str(name).Required()} {
		if value := schema.LookupPath(cue.MakePath(selector)); value.Exists() {
			return value
		}
	}
	return schema.LookupPath(cue.MakePath(cue.AnyString))
}

// element returns what the schema of a list says of its elements.
func element(schema cue.Value) cue.Value { return schema.LookupPath(cue.MakePath(cue.AnyIndex)) }

// members returns the names of the fields that a mapping may have, and of them those that it must.
func members(schema cue.Value) (all, required []string) {
	fields, err := schema.Fields(cue.Optional(true))
	if err != nil {
		return nil, nil
	}
	for fields.Next() {
		name := fields.Selector().Unquoted()
		all = append(all, name)
		if fields.FieldType()&cue.RequiredConstraint != 0 {
			required = append(required, name)
		}
	}
	slices.Sort(all)
	return all, required
}

// want says in words what a value must be: the attribute @want of the field, or of the definition that it refers to.
func want(schema cue.Value) string {
	for range maxDepth {
		for _, attribute := range schema.Attributes(cue.ValueAttr) {
			if attribute.Name() == "want" {
				if text, err := attribute.String(0); err == nil {
					return text
				}
			}
		}
		root, path := schema.ReferencePath()
		if len(path.Selectors()) == 0 {
			break
		}
		schema = root.LookupPath(path)
	}
	return wantKind(schema.IncompleteKind())
}

func wantKind(kind cue.Kind) string {
	switch kind {
	case cue.StringKind:
		return "text; quote numbers and true or false"
	case cue.BoolKind:
		return "true or false"
	case cue.IntKind:
		return "a whole number"
	case cue.ListKind:
		return "a list"
	case cue.StructKind:
		return "a mapping"
	}
	return fmt.Sprint(kind)
}

// choices returns the texts that a value may be, where it may only be some.
func choices(schema cue.Value) []string {
	operator, values := schema.Expr()
	if operator != cue.OrOp {
		return nil
	}
	var texts []string
	for _, value := range values {
		text, err := value.String()
		if err != nil {
			return nil
		}
		texts = append(texts, text)
	}
	return texts
}

package policies

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readYAML returns the documents of a YAML file; empty ones are left out. What comes after a mistake in the syntax is
// not read.
func readYAML(source Source) ([]*node, Findings) {
	r := yamlReader{file: source.Name, text: source.Text, left: maxNodes}
	decoder := yaml.NewDecoder(bytes.NewReader(source.Text))
	var documents []*node
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return documents, r.findings
		}
		if err != nil {
			r.findings = append(r.findings, r.syntax(err))
			return documents, r.findings
		}
		if len(document.Content) != 1 {
			continue
		}
		before := len(r.findings)
		n := r.node(document.Content[0], 0)
		r.findings[before:].of(n)
		if n.kind != nullNode {
			documents = append(documents, n)
		}
		if r.left < 0 {
			return documents, r.findings
		}
	}
}

type yamlReader struct {
	file     string
	text     []byte
	left     int // nodes that may still be made
	findings Findings
}

func (r *yamlReader) wrong(at Position, format string, values ...any) {
	r.findings = append(r.findings, Finding{Position: at, Message: fmt.Sprintf(format, values...)})
}

// yamlLine is how the YAML package says where a syntax error is, roughly; it has no type for it.
var yamlLine = regexp.MustCompile(`^yaml: (?:line [0-9]+: )?`)

// syntax places an error of the YAML package at the first character of the line that cannot be read.
func (r *yamlReader) syntax(err error) Finding {
	lines := bytes.SplitAfter(r.text, []byte("\n"))
	line := readable(lines)
	text := lines[min(line, len(lines)-1)]
	at := Position{File: r.file, Line: min(line, len(lines)-1) + 1, Column: 1 + len(text) - len(bytes.TrimLeft(text, " \t"))}
	message := strings.TrimPrefix(err.Error(), yamlLine.FindString(err.Error()))
	return Finding{Position: at, Message: "not YAML: " + message + "; look at the indentation, colons and quotes of this line and the one above"}
}

// readable returns how many lines can be read before the first that cannot. Where the first lines are no YAML by
// themselves, as in the middle of a quoted text, some more may be; so a few more are tried.
func readable(lines [][]byte) int {
	more := 16
	if len(lines) > 1000 {
		more = 2
	}
	good, bad := 0, len(lines)
	for bad-good > 1 {
		middle := (good + bad) / 2
		at := middle
		for at < min(bad, middle+more) && !parses(bytes.Join(lines[:at], nil)) {
			at++
		}
		if at < min(bad, middle+more) {
			good = at
		} else {
			bad = middle
		}
	}
	return good
}

func parses(text []byte) bool {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var document yaml.Node
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return true
		case err != nil:
			return false
		}
	}
}

func (r *yamlReader) node(y *yaml.Node, depth int) *node {
	at := Position{File: r.file, Line: y.Line, Column: y.Column}
	n := &node{position: at}
	if r.left--; r.left < 0 {
		if r.left == -1 {
			r.wrong(at, "more than %d values, aliases expanded; split the file", maxNodes)
		}
		return n
	}
	if depth > maxDepth {
		r.wrong(at, "more than %d levels deep; nothing here is", maxDepth)
		return n
	}
	switch y.Kind {
	case yaml.AliasNode:
		n = r.node(y.Alias, depth+1)
		n.position = at
	case yaml.SequenceNode:
		n.kind = listNode
		for _, item := range y.Content {
			n.items = append(n.items, r.node(item, depth+1))
			if r.left < 0 {
				break
			}
		}
	case yaml.MappingNode:
		n.kind = mappingNode
		r.mapping(n, y, depth)
	case yaml.ScalarNode:
		r.scalar(n, y)
	}
	return n
}

func (r *yamlReader) mapping(n *node, y *yaml.Node, depth int) {
	for i := 0; i+1 < len(y.Content) && r.left >= 0; i += 2 {
		key, value := y.Content[i], y.Content[i+1]
		at := Position{File: r.file, Line: key.Line, Column: key.Column}
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			r.wrong(at, "a key that is not a word; write name: value")
			continue
		}
		if key.ShortTag() == "!!merge" {
			r.wrong(at, "merge keys (<<) are not read the same way everywhere; write the fields out")
			continue
		}
		if n.field(key.Value) != nil {
			r.wrong(at, "the key %s is here twice; keep one", key.Value)
			continue
		}
		n.add(&property{name: key.Value, position: at, value: r.node(value, depth+1)})
	}
}

// ambiguous are plain words that YAML 1.1 reads as true or false and YAML 1.2 as words.
var ambiguous = regexp.MustCompile(`^(y|Y|yes|Yes|YES|n|N|no|No|NO|on|On|ON|off|Off|OFF)$`)

func (r *yamlReader) scalar(n *node, y *yaml.Node) {
	plain := y.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	if plain && ambiguous.MatchString(y.Value) {
		r.wrong(n.position, "some programs read %s as true or false and others as a word; write true or false, or quote it", y.Value)
	}
	n.kind = scalarNode
	var err error
	switch y.ShortTag() {
	case "!!null":
		n.kind = nullNode
	case "!!bool", "!!int", "!!float":
		err = y.Decode(&n.scalar)
		switch number := n.scalar.(type) {
		case int:
			n.scalar = int64(number)
		case float64:
			if math.IsInf(number, 0) || math.IsNaN(number) {
				err = errors.New("not a number that can be stored")
			}
		}
	case "!!binary":
		err = errors.New("binary values are not used here")
	default:
		// A time is a word to whom the schema asks.
		n.scalar = strings.ToValidUTF8(y.Value, "\uFFFD")
	}
	if err != nil {
		n.scalar = y.Value
		r.wrong(n.position, "%s: %v; quote it if it is text", n.describe(), err)
	}
}

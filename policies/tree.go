package policies

import (
	"fmt"
	"strconv"
	"strings"
)

// Position is a place in a file; Line and Column count from 1 and are 0 where a problem has no place within the file.
type Position struct {
	File   string
	Line   int
	Column int
}

// String returns file:line:col, or the file alone.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Limits of what is read.
const (
	maxFileBytes = 1 << 20
	maxNodes     = 200_000 // per file, aliases expanded
	maxDepth     = 64
)

type nodeKind int

const (
	nullNode nodeKind = iota
	scalarNode
	listNode
	mappingNode
)

// node is a value in a file.
type node struct {
	kind     nodeKind
	scalar   any // string, bool, int64, uint64 or float64
	items    []*node
	fields   []*property
	names    map[string]*property
	position Position
}

// property is a key of a mapping with its value.
type property struct {
	name     string
	position Position
	value    *node
}

// field returns the field of a mapping, or nil.
func (n *node) field(name string) *property {
	if n == nil {
		return nil
	}
	return n.names[name]
}

// add adds a field to a mapping.
func (n *node) add(f *property) {
	if n.names == nil {
		n.names = make(map[string]*property)
	}
	n.fields, n.names[f.name] = append(n.fields, f), f
}

// get follows names through mappings; nil where one is missing.
func (n *node) get(names ...string) *node {
	for _, name := range names {
		f := n.field(name)
		if f == nil {
			return nil
		}
		n = f.value
	}
	return n
}

// text returns a scalar of text.
func (n *node) text() (string, bool) {
	if n == nil || n.kind != scalarNode {
		return "", false
	}
	text, is := n.scalar.(string)
	return text, is
}

// at returns where path is, or where the deepest part of it is that exists. A path is such as
// spec.temperature.rules[1].scheme; a mapping's place is its key's.
func (n *node) at(path string) Position {
	place := n.position
	for path != "" && n != nil {
		var name string
		if strings.HasPrefix(path, "[") {
			name, path, _ = strings.Cut(path[1:], "]")
			path = strings.TrimPrefix(path, ".")
			index, err := strconv.Atoi(name)
			if err != nil || index < 0 || index >= len(n.items) {
				return place
			}
			n = n.items[index]
			place = n.position
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		name, path = path[:end], strings.TrimPrefix(path[end:], ".")
		f := n.field(name)
		if f == nil {
			return place
		}
		place, n = f.position, f.value
		if path == "" && n.kind == scalarNode && n.position.File == place.File {
			place = n.position
		}
	}
	return place
}

// plain returns the value as encoding/json would decode it, without the nodes in left: a list that holds one of them is
// left out whole, so that places in lists stay what they are.
func (n *node) plain(left map[*node]bool) (value any, whole bool) {
	switch n.kind {
	case scalarNode:
		return n.scalar, true
	case listNode:
		list := make([]any, 0, len(n.items))
		for _, item := range n.items {
			value, _ := item.plain(left)
			if left[item] {
				return nil, false
			}
			list = append(list, value)
		}
		return list, true
	case mappingNode:
		mapping := make(map[string]any, len(n.fields))
		for _, f := range n.fields {
			if left[f.value] {
				continue
			}
			if value, whole := f.value.plain(left); whole {
				mapping[f.name] = value
			}
		}
		return mapping, true
	}
	return nil, true
}

// describe shows a value in a message.
func (n *node) describe() string {
	switch n.kind {
	case listNode:
		return "a list"
	case mappingNode:
		return "a mapping"
	case nullNode:
		return "nothing"
	}
	switch value := n.scalar.(type) {
	case string:
		const longest = 60
		if runes := []rune(value); len(runes) > longest {
			return strconv.Quote(string(runes[:longest])) + "..."
		}
		return strconv.Quote(value)
	default:
		return fmt.Sprint(value)
	}
}

// join appends a name to a path.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

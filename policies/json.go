package policies

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"unicode/utf8"
)

// readJSON returns the values of a JSON file, one after the other.
func readJSON(source Source) ([]*node, Findings) {
	r := jsonReader{source: source, decoder: json.NewDecoder(bytes.NewReader(source.Text))}
	r.decoder.UseNumber()
	r.lines = append(r.lines, 0)
	for i, character := range source.Text {
		if character == '\n' {
			r.lines = append(r.lines, i+1)
		}
	}
	var documents []*node
	for {
		before := len(r.findings)
		n, err := r.value(0)
		r.findings[before:].of(n)
		switch {
		case errors.Is(err, io.EOF) && n == nil:
			return documents, r.findings
		case err != nil:
			return documents, append(r.findings, r.syntax(err))
		case n.kind != nullNode:
			documents = append(documents, n)
		}
	}
}

type jsonReader struct {
	source   Source
	decoder  *json.Decoder
	lines    []int // offset of each line
	findings Findings
}

// position turns an offset in bytes into a place.
func (r *jsonReader) position(offset int64) Position {
	end := min(int(offset), len(r.source.Text))
	line := sort.SearchInts(r.lines, end+1)
	return Position{File: r.source.Name, Line: line, Column: 1 + utf8.RuneCount(r.source.Text[r.lines[line-1]:end])}
}

// next returns the place of the next token.
func (r *jsonReader) next() Position {
	offset := r.decoder.InputOffset()
	for offset < int64(len(r.source.Text)) && bytes.IndexByte([]byte(" \t\r\n,:"), r.source.Text[offset]) >= 0 {
		offset++
	}
	return r.position(offset)
}

func (r *jsonReader) syntax(err error) Finding {
	at := r.next()
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) && syntax.Offset > 0 {
		at = r.position(syntax.Offset - 1)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		at, err = r.position(int64(len(r.source.Text))), errors.New("the file ends in the middle of a value")
	}
	return Finding{Position: at, Message: fmt.Sprintf("not JSON: %v; look for a missing comma, quote or brace", err)}
}

// value reads one value. A nil node with io.EOF is the end of the file.
func (r *jsonReader) value(depth int) (*node, error) {
	n := &node{position: r.next()}
	if depth > maxDepth {
		return n, fmt.Errorf("more than %d levels deep", maxDepth)
	}
	token, err := r.decoder.Token()
	if err != nil {
		if depth == 0 && errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		return n, err
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '[' {
			n.kind = listNode
			return n, r.list(n, depth)
		}
		n.kind = mappingNode
		return n, r.mapping(n, depth)
	case json.Number:
		n.kind, n.scalar = scalarNode, jsonNumber(token)
	case nil:
		n.kind = nullNode
	default:
		n.kind, n.scalar = scalarNode, token
	}
	return n, nil
}

// jsonNumber returns a number as the smallest type that holds it; one beyond all of them stays text, which no field of
// numbers takes.
func jsonNumber(number json.Number) any {
	if whole, err := number.Int64(); err == nil {
		return whole
	}
	if decimal, err := number.Float64(); err == nil {
		return decimal
	}
	return number.String()
}

func (r *jsonReader) list(n *node, depth int) error {
	for r.decoder.More() {
		item, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	_, err := r.decoder.Token()
	return err
}

func (r *jsonReader) mapping(n *node, depth int) error {
	for r.decoder.More() {
		at := r.next()
		token, err := r.decoder.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		value, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		if n.field(name) != nil {
			r.findings = append(r.findings, Finding{Position: at, Message: fmt.Sprintf("the key %s is here twice; keep one", name)})
			continue
		}
		n.add(&property{name: name, position: at, value: value})
	}
	_, err := r.decoder.Token()
	return err
}

package policies

import (
	"bytes"
	"cmp"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
)

// Sandbox has another process, with limits, do ServeSandbox: it hands the request on and returns the reply. CUE is a
// language: a few characters may ask for all memory there is, or for a day's work, and neither can be stopped from within.
// A program that serves others needs one. The error is what a person is told.
type Sandbox func(request []byte) (reply []byte, err error)

// What goes to the other process and comes back, as gob.
type (
	sandboxRequest struct {
		Files []sandboxFile // of one package
	}
	sandboxFile struct {
		Name string
		Text []byte
	}
	sandboxReply struct {
		Objects  []*sandboxNode
		Findings Findings
	}
	sandboxNode struct {
		Kind     nodeKind
		Scalar   any
		Items    []*sandboxNode
		Fields   []sandboxField
		Position Position
	}
	sandboxField struct {
		Name     string
		Position Position
		Value    *sandboxNode
	}
)

// ServeSandbox is the other process: it evaluates what one request says.
func ServeSandbox(in io.Reader, out io.Writer) error {
	var request sandboxRequest
	if err := gob.NewDecoder(in).Decode(&request); err != nil || len(request.Files) == 0 {
		return fmt.Errorf("reading what to evaluate: %w", cmp.Or(err, errors.New("there is nothing")))
	}
	var source Source
	for i, file := range request.Files {
		if one := (Source{Name: file.Name, Format: CUE, Text: file.Text}); i == 0 {
			source = one
		} else {
			source.rest = append(source.rest, one)
		}
	}
	objects, findings := newEvaluator().readCUE(source)
	if err := gob.NewEncoder(out).Encode(sandboxReply{Objects: outward(objects), Findings: findings}); err != nil {
		return fmt.Errorf("writing what came out: %w", err)
	}
	return nil
}

// readCUE is that of an evaluator, in the other process.
func (s Sandbox) readCUE(source Source) ([]*node, Findings) {
	var request sandboxRequest
	for _, file := range append([]Source{source}, source.rest...) {
		request.Files = append(request.Files, sandboxFile{Name: file.Name, Text: file.Text})
	}
	var in bytes.Buffer
	err := gob.NewEncoder(&in).Encode(request)
	var out []byte
	if err == nil {
		out, err = s(in.Bytes())
	}
	var reply sandboxReply
	if err == nil {
		err = gob.NewDecoder(bytes.NewReader(out)).Decode(&reply)
	}
	if err != nil {
		return nil, Findings{{Position: Position{File: source.Name}, Message: err.Error()}}
	}
	return inward(reply.Objects), reply.Findings
}

func outward(nodes []*node) []*sandboxNode {
	var out []*sandboxNode
	for _, n := range nodes {
		made := &sandboxNode{Kind: n.kind, Scalar: n.scalar, Items: outward(n.items), Position: n.position}
		for _, f := range n.fields {
			made.Fields = append(made.Fields, sandboxField{Name: f.name, Position: f.position, Value: outward([]*node{f.value})[0]})
		}
		out = append(out, made)
	}
	return out
}

func inward(nodes []*sandboxNode) []*node {
	var in []*node
	for _, n := range nodes {
		made := &node{kind: n.Kind, scalar: n.Scalar, items: inward(n.Items), position: n.Position}
		for _, f := range n.Fields {
			made.add(&property{name: f.Name, position: f.Position, value: inward([]*sandboxNode{f.Value})[0]})
		}
		in = append(in, made)
	}
	return in
}

package policies

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Sandbox evaluates CUE in another process, with limits. CUE is a language: a few characters may ask for all memory there
// is, or for a day's work, and neither can be stopped from within. A program that serves others needs one.
type Sandbox struct {
	Program   string        // path
	Arguments []string      // of it, with its name; it has to call ServeSandbox with its standard input and output
	Time      time.Duration // for one package of files
	Bytes     int64         // of memory
}

// What goes to the other process and comes back, as gob.
type (
	sandboxRequest struct {
		Files []sandboxFile // of one package
		Bytes int64
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

// maxSandboxReply bounds what comes back, bytes.
const maxSandboxReply = 64 << 20

// ServeSandbox is the other process: it evaluates what one request says, and ends.
func ServeSandbox(in io.Reader, out io.Writer) error {
	var request sandboxRequest
	if err := gob.NewDecoder(in).Decode(&request); err != nil || len(request.Files) == 0 {
		return fmt.Errorf("reading what to evaluate: %w", cmp.Or(err, errors.New("there is nothing")))
	}
	limit := unix.Rlimit{Cur: uint64(request.Bytes), Max: uint64(request.Bytes)}
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &limit); err != nil {
		return fmt.Errorf("limiting memory: %w", err)
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
	buffered := bufio.NewWriter(out)
	if err := gob.NewEncoder(buffered).Encode(sandboxReply{Objects: outward(objects), Findings: findings}); err != nil {
		return fmt.Errorf("writing what came out: %w", err)
	}
	return buffered.Flush()
}

// readCUE is that of an evaluator, in the other process.
func (s *Sandbox) readCUE(source Source) ([]*node, Findings) {
	failed := func(format string, values ...any) ([]*node, Findings) {
		return nil, Findings{{Position: Position{File: source.Name}, Message: fmt.Sprintf(format, values...)}}
	}
	request := sandboxRequest{Bytes: s.Bytes}
	for _, file := range append([]Source{source}, source.rest...) {
		request.Files = append(request.Files, sandboxFile{Name: file.Name, Text: file.Text})
	}
	var in bytes.Buffer
	if err := gob.NewEncoder(&in).Encode(request); err != nil {
		return failed("cannot be handed on: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.Time)
	defer cancel()
	var complaint bytes.Buffer
	command := exec.CommandContext(ctx, s.Program)
	command.Args, command.Stdin, command.Stderr = s.Arguments, &in, &complaint
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return failed("there is no process to evaluate it in: %v", err)
	}
	var reply sandboxReply
	bounded := &io.LimitedReader{R: out, N: maxSandboxReply}
	unread := gob.NewDecoder(bufio.NewReader(bounded)).Decode(&reply)
	late := ctx.Err() != nil
	cancel() // it has said what it has to say, or is not to go on
	// Nothing that it came to matters beside what it said.
	_ = command.Wait()
	switch {
	case unread == nil:
		return inward(reply.Objects), reply.Findings
	case late:
		return failed("takes more than %v to evaluate; make its lists and loops smaller, or give what it makes as YAML", s.Time)
	case bounded.N <= 0:
		return failed("becomes larger than %d MiB; make its lists and loops smaller", maxSandboxReply>>20)
	}
	// The first line of a Go program that dies says why.
	reason, _, _ := strings.Cut(strings.TrimSpace(complaint.String()), "\n")
	if strings.Contains(reason, "cannot allocate memory") || strings.Contains(reason, "out of memory") {
		return failed("takes more than %d MiB of memory to evaluate; make its lists and loops smaller, or give what it makes as YAML", s.Bytes>>20)
	}
	return failed("CUE cannot evaluate it: %s", cmp.Or(reason, unread.Error()))
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

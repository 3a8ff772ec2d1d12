package console

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"sigs.k8s.io/controller-runtime/pkg/client"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// Compiler reads declared objects out of texts, and writes them. Implementations are safe for concurrent use.
type Compiler interface {
	// Compile returns the objects of a text, and what is wrong with them. known are objects that exist already: names may
	// refer to them, and prefixes may conflict with theirs.
	Compile(document *consolev1.Document, known []client.Object) ([]Declared, []*consolev1.Finding)
	// Render returns an object as a person would write it, without status.
	Render(object client.Object) (string, error)
}

// Declared is an object that a text declares.
type Declared struct {
	Object client.Object  // *v1alpha1.StorageBackend, *RedundancyScheme, *RedundancyPolicy or *Transition
	Spec   map[string]any // as it was written: what is sent
	// Finding returns what is wrong with a field at the place where it was written; path is such as spec.ladder[1].
	Finding func(path, message string) *consolev1.Finding
}

// severityError is the severity of a finding for which an object would be refused.
const severityError = "error"

// texts finds out what texts declare, of which some are compiled at once.
type texts struct {
	*sources
	compiler Compiler
	compiles chan struct{} // a place for each text that is compiled at once
}

// compile reads a text beside what is declared already.
func (s *texts) compile(ctx context.Context, document *consolev1.Document) ([]Declared, []*consolev1.Finding, error) {
	if strings.TrimSpace(document.GetText()) == "" {
		return nil, nil, refuse(connect.CodeInvalidArgument, "there is no text; give document.text")
	}
	select {
	case s.compiles <- struct{}{}:
		defer func() { <-s.compiles }()
	case <-ctx.Done():
		return nil, nil, refusalOf(ctx.Err())
	}
	document = &consolev1.Document{Name: cmp.Or(document.Name, "policy"), Text: document.Text, Format: document.Format}
	objects, findings := s.compiler.Compile(document, s.world.known())
	return objects, findings, nil
}

// known returns copies of what is declared and what texts may refer to: reading quantities changes how they are kept.
func (w *world) known() (objects []client.Object) {
	for _, object := range w.backends.all() {
		objects = append(objects, object.DeepCopy())
	}
	for _, object := range w.schemes.all() {
		objects = append(objects, object.DeepCopy())
	}
	for _, object := range w.policies.all() {
		objects = append(objects, object.DeepCopy())
	}
	return objects
}

// wrong reports whether findings have an error among them.
func wrong(findings []*consolev1.Finding) bool {
	return slices.ContainsFunc(findings, func(f *consolev1.Finding) bool { return f.Severity == severityError })
}

func nameOf(object client.Object) string { return v1alpha1.KindOf(object) + "/" + object.GetName() }

// LintPolicy finds mistakes in a text.
func (s *texts) LintPolicy(ctx context.Context, request *consolev1.LintPolicyRequest) (*consolev1.LintPolicyResponse, error) {
	objects, findings, err := s.compile(ctx, request.Document)
	if err != nil {
		return nil, err
	}
	answer := &consolev1.LintPolicyResponse{Findings: findings, Sources: s.freshness("")}
	for _, declared := range objects {
		answer.Objects = append(answer.Objects, nameOf(declared.Object))
	}
	return answer, nil
}

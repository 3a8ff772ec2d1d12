// Package compile lets a console read and write declared objects as the command line does: it is the console's compiler, made of
// what package policies checks and renders.
package compile

import (
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/console"
	"github.com/restripe/restripe/policies"
)

// Compiler is a console.Compiler. It is safe for concurrent use if its fields are.
type Compiler struct {
	Sandbox policies.Sandbox // evaluates CUE; nil: in this process
	Now     func() time.Time // nil: time.Now
}

var _ console.Compiler = Compiler{}

// Compile returns the objects of a text, and what is wrong with them.
func (c Compiler) Compile(document *consolev1.Document, known []client.Object) ([]console.Declared, []*consolev1.Finding) {
	format := policies.YAML
	if document.Format == consolev1.Format_FORMAT_CUE {
		format = policies.CUE
	}
	source, err := policies.ReadSource(document.Name, format, strings.NewReader(document.Text))
	if err != nil {
		return nil, []*consolev1.Finding{{File: document.Name, Severity: policies.Error.String(), Message: err.Error()}}
	}
	var there []policies.Object
	for _, object := range known {
		there = append(there, policies.Object{
			Kind: v1alpha1.KindOf(object), Name: object.GetName(), Value: object, Position: policies.Position{File: "on the server"},
		})
	}
	now := c.Now
	if now == nil {
		now = time.Now
	}
	objects, findings := policies.Check(policies.Options{Known: there, Sandbox: c.Sandbox, Now: now()}, source)
	var declared []console.Declared
	for _, object := range objects {
		value, is := object.Value.(client.Object)
		if !is {
			continue
		}
		declared = append(declared, console.Declared{Object: value, Spec: object.Spec(), Finding: func(path, message string) *consolev1.Finding {
			return messageOf(policies.Finding{Position: object.At(path), Object: object.String(), Path: path, Message: message})
		}})
	}
	var messages []*consolev1.Finding
	for _, finding := range findings {
		messages = append(messages, messageOf(finding))
	}
	return declared, messages
}

// Render returns an object as a person would write it, without status.
func (c Compiler) Render(object client.Object) (string, error) {
	text, err := policies.Render(policies.Object{Kind: v1alpha1.KindOf(object), Name: object.GetName(), Value: object})
	return string(text), err
}

// messageOf returns a finding as the console's contract has it.
func messageOf(f policies.Finding) *consolev1.Finding {
	return &consolev1.Finding{
		File: f.File, Line: int32(f.Line), Column: int32(f.Column), Severity: f.Severity.String(), Object: f.Object, Path: f.Path, Message: f.Message,
	}
}

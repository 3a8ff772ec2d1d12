package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/agent/access"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/diff"
)

// fieldOwner is the name under which the console applies and changes declared objects.
const fieldOwner = "restripe-console"

// applyOrder puts what others refer to first.
var applyOrder = []string{"StorageBackend", "RedundancyScheme", "RedundancyPolicy"}

// resourceOf is the resource whose rights an object needs.
var resourceOf = map[string]access.Resource{
	"StorageBackend": access.Backends, "RedundancyScheme": access.Schemes, "RedundancyPolicy": access.Policies,
}

// sendable returns the objects in the order in which they are to be sent. Transitions are not among what can be declared
// here: their fields are steered by calls that need other verbs.
func sendable(objects []Declared) ([]Declared, error) {
	for _, declared := range objects {
		if _, is := resourceOf[v1alpha1.KindOf(declared.Object)]; !is {
			return nil, refuse(connect.CodeInvalidArgument, "%s cannot be applied here: policies make transitions, and the calls that approve, pause and cancel change them", nameOf(declared.Object))
		}
	}
	return slices.SortedStableFunc(slices.Values(objects), func(a, b Declared) int {
		return cmp.Compare(slices.Index(applyOrder, v1alpha1.KindOf(a.Object)), slices.Index(applyOrder, v1alpha1.KindOf(b.Object)))
	}), nil
}

// applying declares what a text says.
type applying struct {
	*texts
	*auditing
}

// outcome is an object as it was and as it is, or would be; before is nil for a new one.
type outcome struct{ before, after *unstructured.Unstructured }

// body is an object as it is sent: what was declared, without status.
func body(sent Declared) (*unstructured.Unstructured, error) {
	object := sent.Object
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", nameOf(object), err)
	}
	declared := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &declared.Object); err != nil {
		return nil, fmt.Errorf("encoding %s: %w", nameOf(object), err)
	}
	declared.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KindOf(object)))
	unstructured.RemoveNestedField(declared.Object, "status")
	unstructured.RemoveNestedField(declared.Object, "metadata", "creationTimestamp")
	if sent.Spec != nil {
		declared.Object["spec"] = sent.Spec
	}
	return declared, nil
}

// current returns an object as the API server has it, nil if it has none.
func (s *applying) current(ctx context.Context, object client.Object) (*unstructured.Unstructured, error) {
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KindOf(object)))
	err := s.world.client.Get(ctx, client.ObjectKeyFromObject(object), there)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return there, err
}

// send applies an object, or has the API server work out what that would do.
func (s *applying) send(ctx context.Context, declared Declared, force, dryRun bool) (*unstructured.Unstructured, error) {
	object, err := body(declared)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", nameOf(declared.Object), err)
	}
	options := []client.PatchOption{client.FieldOwner(fieldOwner)}
	if force {
		options = append(options, client.ForceOwnership)
	}
	if dryRun {
		options = append(options, client.DryRunAll)
	}
	return object, s.world.client.Patch(ctx, object, client.RawPatch(types.ApplyPatchType, text), options...)
}

// findingsOf puts what the API server has against an object at its places in the text; none where it says something else.
func findingsOf(declared Declared, err error) (findings []*consolev1.Finding) {
	var status *apierrors.StatusError
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	for _, cause := range status.Status().Details.Causes {
		message, taken := cause.Message, cause.Type == metav1.CauseTypeFieldManagerConflict
		if taken {
			message = "somebody else has set it (" + message + "): leave it out, or take it over with force"
		}
		finding := declared.Finding(strings.TrimPrefix(cause.Field, "."), message)
		finding.Taken = taken
		findings = append(findings, finding)
	}
	return findings
}

// DiffPolicy says what applying a text would change.
func (s *applying) DiffPolicy(ctx context.Context, request *consolev1.DiffPolicyRequest) (*consolev1.DiffPolicyResponse, error) {
	objects, findings, err := s.compile(ctx, request.Document)
	if err != nil || wrong(findings) {
		return &consolev1.DiffPolicyResponse{Findings: findings}, err
	}
	if objects, err = sendable(objects); err != nil {
		return nil, err
	}
	answer := &consolev1.DiffPolicyResponse{Findings: findings}
	for _, declared := range objects {
		o := outcome{}
		if o.before, err = s.current(ctx, declared.Object); err != nil {
			return nil, refusalOf(err)
		}
		if o.after, err = s.send(ctx, declared, request.Force, true); err != nil {
			refused := findingsOf(declared, err)
			if len(refused) == 0 {
				return nil, refusalOf(err)
			}
			answer.Findings = append(answer.Findings, refused...)
			continue
		}
		if fields := o.fields(); o.before == nil || len(fields) > 0 {
			change := "change"
			if o.before == nil {
				change = "create"
			}
			answer.Differences = append(answer.Differences, &consolev1.ObjectDifference{Object: nameOf(declared.Object), Change: change, Fields: fields})
		}
	}
	return answer, nil
}

// ApplyPolicy makes the declared objects as a text says.
func (s *applying) ApplyPolicy(ctx context.Context, request *consolev1.ApplyPolicyRequest) (*consolev1.ApplyPolicyResponse, error) {
	objects, findings, err := s.compile(ctx, request.Document)
	if err != nil || wrong(findings) {
		return &consolev1.ApplyPolicyResponse{Findings: findings}, err
	}
	if objects, err = sendable(objects); err != nil {
		return nil, err
	}
	if len(objects) == 0 {
		return nil, refuse(connect.CodeInvalidArgument, "the text declares nothing")
	}
	for _, declared := range objects {
		if err := s.require(ctx, access.Right{Verb: access.Apply, Resource: resourceOf[v1alpha1.KindOf(declared.Object)]}); err != nil {
			return nil, err
		}
	}
	answer := &consolev1.ApplyPolicyResponse{Findings: findings}
	for _, declared := range objects {
		applied, refused, err := s.applyOne(ctx, declared, request)
		if err != nil && len(refused) == 0 {
			return nil, err
		}
		if answer.Findings = append(answer.Findings, refused...); applied != nil {
			answer.Applied = append(answer.Applied, applied)
		}
	}
	return answer, nil
}

// applyOne applies one object and records it.
func (s *applying) applyOne(ctx context.Context, declared Declared, request *consolev1.ApplyPolicyRequest) (*consolev1.Applied, []*consolev1.Finding, error) {
	var o outcome
	var err error
	if o.before, err = s.current(ctx, declared.Object); err != nil {
		return nil, nil, refusalOf(err)
	}
	what := subject{object: nameOf(declared.Object), planHash: request.PlanHash}
	if o.before != nil {
		what.before = o.before.Object["spec"]
	}
	var refused []*consolev1.Finding
	err = s.act(ctx, what, func(ctx context.Context) (any, error) {
		if o.after, err = s.send(ctx, declared, request.Force, false); err != nil {
			refused = findingsOf(declared, err)
			return nil, err
		}
		return o.after.Object["spec"], nil
	})
	if err != nil {
		return nil, refused, err
	}
	if policy := (&v1alpha1.RedundancyPolicy{}); v1alpha1.KindOf(declared.Object) == "RedundancyPolicy" && typed(o.after, policy) == nil {
		s.world.policies.put(policy)
	}
	applied := &consolev1.Applied{Object: nameOf(declared.Object), Outcome: "created", Fields: o.fields()}
	if o.before != nil {
		if applied.Outcome = "configured"; len(applied.Fields) == 0 {
			applied.Outcome = "unchanged"
		}
	}
	return applied, nil, nil
}

func typed(object *unstructured.Unstructured, into client.Object) error {
	text, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// fields are the fields that people declare and that differ, or would.
func (o *outcome) fields() (differences []*consolev1.FieldDifference) {
	before := map[string]any{}
	if o.before != nil {
		before = fieldsOf(o.before)
	}
	for _, field := range diff.Fields(before, fieldsOf(o.after)) {
		differences = append(differences, &consolev1.FieldDifference{Path: field.Path, Before: diff.Text(field.Before), After: diff.Text(field.After)})
	}
	return differences
}

// fieldsOf returns the scalars of what people declare by their paths, such as spec.windows[0].schedule.
func fieldsOf(object *unstructured.Unstructured) map[string]any {
	fields := map[string]any{}
	diff.Flatten(object.Object["spec"], "spec", fields)
	for _, name := range []string{"labels", "annotations"} {
		if value, found, err := unstructured.NestedFieldNoCopy(object.Object, "metadata", name); found && err == nil {
			diff.Flatten(value, "metadata."+name, fields)
		}
	}
	return fields
}

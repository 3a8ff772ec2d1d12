package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/policies"
	"github.com/restripe/restripe/tui/cli/program"
)

// known returns what the server has and what files may refer to.
func (a *apiServer) known(ctx context.Context) ([]policies.Object, error) {
	var backends v1alpha1.StorageBackendList
	var schemes v1alpha1.RedundancySchemeList
	var declared v1alpha1.RedundancyPolicyList
	for _, list := range []client.ObjectList{&backends, &schemes, &declared} {
		if err := a.List(ctx, list); err != nil {
			return nil, a.explain(err)
		}
	}
	var known []policies.Object
	add := func(kind, name string, value runtime.Object) {
		known = append(known, policies.Object{Kind: kind, Name: name, Value: value, Position: policies.Position{File: "on the server"}})
	}
	for i := range backends.Items {
		add("StorageBackend", backends.Items[i].Name, &backends.Items[i])
	}
	for i := range schemes.Items {
		add("RedundancyScheme", schemes.Items[i].Name, &schemes.Items[i])
	}
	for i := range declared.Items {
		add("RedundancyPolicy", declared.Items[i].Name, &declared.Items[i])
	}
	return known, nil
}

// applyOrder puts what others refer to first.
var applyOrder = []string{"StorageBackend", "RedundancyScheme", "RedundancyPolicy", "Transition"}

func inApplyOrder(objects []policies.Object) []policies.Object {
	return slices.SortedStableFunc(slices.Values(objects), func(a, b policies.Object) int {
		return cmp.Compare(slices.Index(applyOrder, a.Kind), slices.Index(applyOrder, b.Kind))
	})
}

// body is an object as it is sent: what was declared, without status. The spec is as it was written, so that whoever applies the
// same file with another program sets the same values.
func body(object policies.Object) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(object.Value)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", object, err)
	}
	declared := kindOf(object.Kind).object()
	if err := json.Unmarshal(text, &declared.Object); err != nil {
		return nil, fmt.Errorf("encoding %s: %w", object, err)
	}
	unstructured.RemoveNestedField(declared.Object, "status")
	if spec := object.Spec(); spec != nil {
		declared.Object["spec"] = spec
	}
	return declared, nil
}

// sending is how objects are sent.
type sending struct {
	force  bool // take fields over that others have set
	dryRun bool // the server checks and answers, and keeps nothing
}

// outcome is an object as it was and as it is, or would be. before is nil for a new one.
type outcome struct {
	kind          *declaredKind
	name          string
	before, after *unstructured.Unstructured
}

// send applies one object on the server.
func (a *apiServer) send(ctx context.Context, object policies.Object, how sending) (*outcome, error) {
	o := &outcome{kind: kindOf(object.Kind), name: object.Name, before: kindOf(object.Kind).object()}
	err := a.Get(ctx, client.ObjectKey{Name: object.Name}, o.before)
	if apierrors.IsNotFound(err) {
		o.before = nil
	} else if err != nil {
		return nil, a.explain(err)
	}
	declared, err := body(object)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(declared)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", object, err)
	}
	options := []client.PatchOption{client.FieldOwner(fieldOwner)}
	if how.force {
		options = append(options, client.ForceOwnership)
	}
	if how.dryRun {
		options = append(options, client.DryRunAll)
	}
	o.after = declared
	if err := a.Patch(ctx, o.after, client.RawPatch(types.ApplyPatchType, text), options...); err != nil {
		return nil, a.refusal(object, err)
	}
	return o, nil
}

// refusal puts what the server has against an object into lines with places in the files.
func (a *apiServer) refusal(object policies.Object, err error) error {
	var status *apierrors.StatusError
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return fmt.Errorf("%s: %w", object, a.explain(err))
	}
	var lines []string
	for _, cause := range status.Status().Details.Causes {
		path, message := strings.TrimPrefix(cause.Field, "."), cause.Message
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			message = "somebody else has set it (" + message + "): leave it out, or take it over with --force"
		}
		lines = append(lines, policies.Finding{Position: object.At(path), Object: object.String(), Path: path, Message: message}.String())
	}
	return errors.New(strings.Join(lines, "\n"))
}

// verb says what applying did.
func (o *outcome) verb() string {
	switch {
	case o.before == nil:
		return "created"
	case o.before.GetResourceVersion() == o.after.GetResourceVersion():
		return "unchanged"
	}
	if before, after := o.before.DeepCopy(), o.after.DeepCopy(); sameDeclaration(before, after) {
		return "unchanged"
	}
	return "configured"
}

// sameDeclaration compares what people declare; it changes both.
func sameDeclaration(a, b *unstructured.Unstructured) bool {
	stripObserved(a)
	stripObserved(b)
	textA, errA := json.Marshal(a)
	textB, errB := json.Marshal(b)
	return errA == nil && errB == nil && bytes.Equal(textA, textB)
}

// stripObserved leaves of an object what people declare.
func stripObserved(object *unstructured.Unstructured) {
	delete(object.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
}

func applyCommand(s *session) *cobra.Command {
	how := sending{}
	command := &cobra.Command{
		Use: "apply -f FILE|DIRECTORY|-", Short: "Declare objects: create them, or make them as the files say",
		Long: "Check files as `restripe lint` does, and make the objects on the API server as they say, by server-side apply. What a\n" +
			"file said before and says no longer goes away; what others have set stays, and where both set a field it is refused\n" +
			"unless --force is given. What an object says does not happen at once: `restripe get policies` shows how far it is.",
		Example: "  restripe apply -f policies/\n  restripe apply -f cluster.cue --force",
		Args:    cobra.NoArgs,
	}
	paths, where := filesFlag(command), s.serverFlags(command)
	command.Flags().BoolVar(&how.force, "force", false, "take over fields that others have set")
	command.RunE = func(command *cobra.Command, _ []string) error {
		if err := wantFiles(command, *paths); err != nil {
			return err
		}
		server, err := s.apiServer(where)
		if err != nil {
			return err
		}
		objects, err := s.lintedFiles(command.Context(), server, *paths)
		if err != nil {
			return err
		}
		return s.apply(command.Context(), server, objects, how)
	}
	return command
}

// apply sends every object, also after one was refused, and says what became of each.
func (s *session) apply(ctx context.Context, server *apiServer, objects []policies.Object, how sending) error {
	var refused []error
	for _, object := range inApplyOrder(objects) {
		o, err := server.send(ctx, object, how)
		if err != nil {
			refused = append(refused, err)
			if ctx.Err() != nil {
				break
			}
			continue
		}
		if err := program.WriteLines(s.Out, []string{fmt.Sprintf("%s/%s %s", o.kind, o.name, o.verb())}); err != nil {
			return err
		}
	}
	return errors.Join(refused...)
}

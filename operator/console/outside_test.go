package console

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// What others declare is in the audit log with their field manager, once for each change of what is declared; what the console
// itself declares is there once, as its own.
func TestChangesPastTheConsoleAreRecorded(t *testing.T) {
	s := newStage(t)
	policy := &v1alpha1.RedundancyPolicy{}
	policy.Name = "outside"
	policy.Spec = v1alpha1.RedundancyPolicySpec{
		BackendRef: "real", Selector: v1alpha1.Selector{Prefixes: []string{"outside/"}}, Ladder: []v1alpha1.SchemeName{"rep(3)", "rs(4,2)"},
	}
	s.seen()
	if err := s.declared.Create(t.Context(), policy, client.FieldOwner("kubectl-create")); err != nil {
		t.Fatal(err)
	}
	changed := policy.DeepCopy()
	changed.Spec.StopPolicy = v1alpha1.StopHold
	actions := func() []*consolev1.AuditAction {
		filter := &consolev1.AuditFilter{Object: "RedundancyPolicy/outside"}
		list, err := s.client.ListAudit(t.Context(), &consolev1.ListAuditRequest{Filter: filter})
		if err != nil {
			t.Fatal(err)
		}
		return list.Actions
	}
	s.eventually("the creation is recorded", func() bool { return len(actions()) == 1 })
	if err := s.declared.Patch(t.Context(), changed, client.MergeFrom(policy), client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatal(err)
	}
	s.eventually("the change is recorded", func() bool { return len(actions()) == 2 })
	goOn := &consolev1.HoldPolicyRequest{Name: "outside", Hold: consolev1.Hold_HOLD_NONE}
	if _, err := s.client.HoldPolicy(t.Context(), goOn); err != nil {
		t.Fatal(err)
	}
	limit := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"historyLimit":3}}`))
	if err := s.declared.Patch(t.Context(), changed.DeepCopy(), limit, client.FieldOwner("kubectl-patch")); err != nil {
		t.Fatal(err)
	}
	s.eventually("the last change is recorded", func() bool { return len(actions()) == 4 })
	var before, after v1alpha1.RedundancyPolicySpec
	list := actions() // newest first
	edit := list[2]
	if json.Unmarshal([]byte(edit.Before), &before) != nil || json.Unmarshal([]byte(edit.After), &after) != nil {
		t.Fatal(edit)
	}
	if edit.User != "kubectl-edit" || edit.Action != "DeclaredElsewhere" || edit.From == "" || edit.Result != "done" ||
		before.StopPolicy != v1alpha1.StopNone || after.StopPolicy != v1alpha1.StopHold {
		t.Errorf("the edit is recorded as %v", edit)
	}
	if list[3].User != "kubectl-create" || list[1].Action != "HoldPolicy" || list[0].User != "kubectl-patch" {
		t.Errorf("recorded are %v", list)
	}
}

package console

import (
	"os"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/api/resource"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/console/v1/consolev1connect"
	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// TestNothingChangesUnrecorded makes every change while the audit log cannot be written: each is refused, and nothing is
// other than before. Then each works.
func TestNothingChangesUnrecorded(t *testing.T) {
	s := newStage(t)
	s.create(&v1alpha1.RedundancyPolicy{Spec: v1alpha1.RedundancyPolicySpec{
		BackendRef: "real", Selector: v1alpha1.Selector{Prefixes: []string{"x/"}}, Ladder: []v1alpha1.SchemeName{"rep(2)"},
		Temperature: &v1alpha1.Temperature{Rules: []v1alpha1.TemperatureRule{{Scheme: "rep(2)", Below: resource.NewQuantity(1, resource.DecimalSI)}}},
	}}, "there")
	for _, name := range []string{"one", "two"} {
		s.create(&v1alpha1.Transition{Spec: v1alpha1.TransitionSpec{BackendRef: "real", Class: "default", From: "rep(3)", To: "rs(4,2)", NeedsApproval: true}}, name)
	}
	s.seen()
	s.put("a/", 30, 100<<10) // so that there is something to move to another node
	fresh, address, slow := &consolev1.NodeName{Backend: "real", Name: "fresh"}, s.cluster.StartAgent("fresh"), int64(1)
	ctx, c := t.Context(), s.client
	node := &consolev1.NodeName{Backend: "real", Name: "n2"}
	document := &consolev1.Document{Text: "apiVersion: restripe.io/v1alpha1\nkind: RedundancyScheme\nmetadata: {name: fresh}\nspec: {replicas: 2}\n"}
	last := func(_ any, err error) error { return err }
	domain := "rack"
	changes := []struct {
		procedure string
		call      func() error
	}{
		{consolev1connect.ConsoleApplyPolicyProcedure, func() error { return last(c.ApplyPolicy(ctx, &consolev1.ApplyPolicyRequest{Document: document})) }},
		{consolev1connect.ConsoleHoldPolicyProcedure, func() error {
			return last(c.HoldPolicy(ctx, &consolev1.HoldPolicyRequest{Name: "there", Hold: consolev1.Hold_HOLD_DRAIN}))
		}},
		{consolev1connect.ConsolePinPolicyProcedure, func() error {
			return last(c.PinPolicy(ctx, &consolev1.PinPolicyRequest{Name: "there", Scheme: "rep(2)", Until: timestamppb.New(time.Now().Add(time.Hour))}))
		}},
		{consolev1connect.ConsoleUnpinPolicyProcedure, func() error { return last(c.UnpinPolicy(ctx, &consolev1.UnpinPolicyRequest{Name: "there"})) }},
		{consolev1connect.ConsoleApproveTransitionProcedure, func() error { return last(c.ApproveTransition(ctx, &consolev1.ApproveTransitionRequest{Name: "one"})) }},
		{consolev1connect.ConsolePauseTransitionProcedure, func() error { return last(c.PauseTransition(ctx, &consolev1.PauseTransitionRequest{Name: "one"})) }},
		{consolev1connect.ConsoleResumeTransitionProcedure, func() error { return last(c.ResumeTransition(ctx, &consolev1.ResumeTransitionRequest{Name: "one"})) }},
		{consolev1connect.ConsoleThrottleTransitionProcedure, func() error {
			return last(c.ThrottleTransition(ctx, &consolev1.ThrottleTransitionRequest{Name: "one", BytesPerSecond: 7}))
		}},
		{consolev1connect.ConsoleCancelTransitionProcedure, func() error { return last(c.CancelTransition(ctx, &consolev1.CancelTransitionRequest{Name: "one"})) }},
		{consolev1connect.ConsoleRollbackTransitionProcedure, func() error {
			return last(c.RollbackTransition(ctx, &consolev1.RollbackTransitionRequest{Name: "two"}))
		}},
		{consolev1connect.ConsoleMoveObjectProcedure, func() error {
			return last(c.MoveObject(ctx, &consolev1.MoveObjectRequest{Key: []byte("a/0"), To: "rs(4,2)"}))
		}},
		{consolev1connect.ConsolePlaceNodeProcedure, func() error {
			return last(c.PlaceNode(ctx, &consolev1.PlaceNodeRequest{Node: node, FailureDomain: &domain}))
		}},
		{consolev1connect.ConsoleDrainNodeProcedure, func() error { return last(c.DrainNode(ctx, &consolev1.DrainNodeRequest{Node: node})) }},
		{consolev1connect.ConsoleUndrainNodeProcedure, func() error { return last(c.UndrainNode(ctx, &consolev1.UndrainNodeRequest{Node: node})) }},
		{consolev1connect.ConsoleReplaceNodeProcedure, func() error { return last(c.ReplaceNode(ctx, &consolev1.ReplaceNodeRequest{Node: node})) }},
		{consolev1connect.ConsoleDownNodeProcedure, func() error { return last(c.DownNode(ctx, &consolev1.DownNodeRequest{Node: node})) }},
		{consolev1connect.ConsoleUpNodeProcedure, func() error { return last(c.UpNode(ctx, &consolev1.UpNodeRequest{Node: node})) }},
		{consolev1connect.ConsoleRemoveNodeProcedure, func() error { return last(c.RemoveNode(ctx, &consolev1.RemoveNodeRequest{Node: node, Confirm: "n2"})) }},
		{consolev1connect.ConsoleStartCompactionProcedure, func() error {
			return last(c.StartCompaction(ctx, &consolev1.StartCompactionRequest{Backend: "real", Everything: true}))
		}},
		{consolev1connect.ConsolePauseCompactionProcedure, func() error {
			return last(c.PauseCompaction(ctx, &consolev1.PauseCompactionRequest{}))
		}},
		{consolev1connect.ConsoleResumeCompactionProcedure, func() error {
			return last(c.ResumeCompaction(ctx, &consolev1.ResumeCompactionRequest{}))
		}},
		{consolev1connect.ConsoleAddNodeProcedure, func() error {
			return last(c.AddNode(ctx, &consolev1.AddNodeRequest{Node: fresh, Address: address}))
		}},
		{consolev1connect.ConsoleStartBalanceProcedure, func() error {
			return last(c.StartBalance(ctx, &consolev1.StartBalanceRequest{Backend: "real", BytesPerSecond: &slow}))
		}},
		{consolev1connect.ConsolePauseBalanceProcedure, func() error {
			return last(c.PauseBalance(ctx, &consolev1.PauseBalanceRequest{}))
		}},
		{consolev1connect.ConsoleResumeBalanceProcedure, func() error {
			return last(c.ResumeBalance(ctx, &consolev1.ResumeBalanceRequest{}))
		}},
		{consolev1connect.ConsoleCancelBalanceProcedure, func() error {
			return last(c.CancelBalance(ctx, &consolev1.CancelBalanceRequest{}))
		}},
		{consolev1connect.ConsoleDeletePolicyProcedure, func() error {
			return last(c.DeletePolicy(ctx, &consolev1.DeletePolicyRequest{Name: "there", Confirm: "there"}))
		}},
	}
	tried := map[string]bool{}
	before := s.everything()
	if err := os.Rename(s.audit, s.audit+".away"); err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		tried[change.procedure] = true
		if err := change.call(); connect.CodeOf(err) != connect.CodeUnavailable || !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("%s without an audit log: %v", change.procedure, err)
		}
	}
	for procedure, rule := range rules {
		if rule.changes && !tried[procedure] {
			t.Errorf("%s is not tried", procedure)
		}
	}
	if after := s.everything(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if err := os.Rename(s.audit+".away", s.audit); err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		// The gateway may have reasons of its own, such as blocks that lie on a node; that is an answer as well.
		if err := change.call(); err != nil && connect.CodeOf(err) != connect.CodeFailedPrecondition && connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%s: %v", change.procedure, err)
		}
	}
	if report, err := c.VerifyAudit(ctx, &consolev1.VerifyAuditRequest{}); err != nil || !report.Intact {
		t.Error(report, err)
	}
	list, err := c.ListAudit(ctx, &consolev1.ListAuditRequest{})
	done := 0
	for _, action := range list.GetActions() {
		if action.Result == "done" {
			done++
		}
	}
	if err != nil || done < len(changes)-3 {
		t.Errorf("only %d of %d changes are recorded as done: %v, %v", done, len(changes), list, err)
	}
}

// everything is what is declared and what the nodes are, as text.
func (s *stage) everything() string {
	s.t.Helper()
	var text strings.Builder
	for _, list := range []any{&v1alpha1.RedundancyPolicyList{}, &v1alpha1.RedundancySchemeList{}, &v1alpha1.TransitionList{}} {
		switch list := list.(type) {
		case *v1alpha1.RedundancyPolicyList:
			if err := s.declared.List(s.t.Context(), list); err != nil {
				s.t.Fatal(err)
			}
			for _, one := range list.Items {
				text.WriteString("policy " + one.Name + " " + one.ResourceVersion + "\n")
			}
		case *v1alpha1.RedundancySchemeList:
			if err := s.declared.List(s.t.Context(), list); err != nil {
				s.t.Fatal(err)
			}
			for _, one := range list.Items {
				text.WriteString("scheme " + one.Name + " " + one.ResourceVersion + "\n")
			}
		case *v1alpha1.TransitionList:
			if err := s.declared.List(s.t.Context(), list); err != nil {
				s.t.Fatal(err)
			}
			for _, one := range list.Items {
				text.WriteString("transition " + one.Name + " " + one.ResourceVersion + "\n")
			}
		}
	}
	nodes, err := s.client.ListNodes(s.t.Context(), &consolev1.ListNodesRequest{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, node := range nodes.Nodes {
		text.WriteString("node " + node.Name + " " + node.Declared + " " + node.FailureDomain + "\n")
	}
	stat, err := s.gateway.Transitions(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, job := range stat {
		text.WriteString("job " + job.ID + "\n")
	}
	return text.String()
}

// TestTransitionsAreNotApplied: what needs other verbs does not come in by a text.
func TestTransitionsAreNotApplied(t *testing.T) {
	s := newStage(t)
	text := "apiVersion: restripe.io/v1alpha1\nkind: Transition\nmetadata: {name: sly}\nspec: {backendRef: real, class: default, from: rep(3), to: 'rs(4,2)', approved: true}\n"
	_, err := s.client.ApplyPolicy(t.Context(), &consolev1.ApplyPolicyRequest{Document: &consolev1.Document{Text: text}})
	if connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), "Transition/sly") {
		t.Error(err)
	}
	wrong, err := s.client.ApplyPolicy(t.Context(), &consolev1.ApplyPolicyRequest{Document: &consolev1.Document{Text: "kind: Cow"}})
	if err != nil || len(wrong.Findings) != 1 || len(wrong.Applied) != 0 {
		t.Error(wrong, err)
	}
	// What only the API server finds wrong comes back with its place.
	text = "apiVersion: restripe.io/v1alpha1\nkind: RedundancyScheme\nmetadata: {name: odd}\nspec: {replicas: 2, k: 3, m: 1}\n"
	wrong, err = s.client.ApplyPolicy(t.Context(), &consolev1.ApplyPolicyRequest{Document: &consolev1.Document{Text: text}})
	if err != nil || len(wrong.Findings) == 0 || len(wrong.Applied) != 0 {
		t.Error(wrong, err)
	}
	lint, err := s.client.LintPolicy(t.Context(), &consolev1.LintPolicyRequest{Document: &consolev1.Document{Text: text}})
	if err != nil || len(lint.Findings) != 0 || len(lint.Objects) != 1 {
		t.Error(lint, err)
	}
}

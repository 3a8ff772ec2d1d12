package console

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/console/drawing"
)

// cooling is a policy under which all that is not used goes to rs(6,2), when a person approves.
const cooling = `apiVersion: restripe.io/v1alpha1
kind: RedundancyPolicy
metadata: {name: cooling}
spec:
  backendRef: real
  selector: {prefixes: [cool/]}
  ladder: [rep(3), 'rs(6,2)']
  packing: {groupBytes: 64Ki, below: 1Ki}
  approval: {mode: Manual}
  temperature: {halfLife: 1s, dwell: 1s, rules: [{scheme: 'rs(6,2)', below: 1}]}
  budget: {bytesPerSecond: 16Ki, foregroundLatency: 10s}
  prices: {storageGiBMonth: '0.5'}
`

// TestTheWholeWay declares a policy, plans it, approves what it makes, watches it move, steers it, takes it back and
// finds it all in the audit log, through the console alone, with the real operator, gateway and agents.
func TestTheWholeWay(t *testing.T) {
	s := newStage(t, func(o *Options) { o.Intervals.Sample = 100 * time.Millisecond })
	s.operate()
	s.seen()
	ctx, c := t.Context(), s.client
	document := &consolev1.Document{Text: cooling}

	diff, err := c.DiffPolicy(ctx, &consolev1.DiffPolicyRequest{Document: document})
	if err != nil || len(diff.Differences) != 1 || diff.Differences[0].Change != "create" || len(diff.Differences[0].Fields) < 5 {
		t.Fatal(diff, err)
	}
	applied, err := c.ApplyPolicy(ctx, &consolev1.ApplyPolicyRequest{Document: document})
	if err != nil || len(applied.Applied) != 1 || applied.Applied[0].Outcome != "created" {
		t.Fatal(applied, err)
	}
	again, err := c.ApplyPolicy(ctx, &consolev1.ApplyPolicyRequest{Document: document})
	if err != nil || again.Applied[0].Outcome != "unchanged" {
		t.Fatal(again, err)
	}
	s.eventually("the class is declared", func() bool {
		for _, class := range s.gateway.Classes() {
			if class.Name == "cooling" {
				return true
			}
		}
		return false
	})
	s.put("cool/", 20, 100<<10)

	var plan *consolev1.PolicyPlan
	s.eventually("there is something to plan, or a transition for it", func() bool {
		answer, err := c.PlanPolicy(ctx, &consolev1.PlanPolicyRequest{Document: document})
		if err != nil {
			t.Fatal(err)
		}
		plan = answer.Plans[0]
		return len(plan.Moves) > 0 || len(plan.Moving) > 0
	})
	if !plan.Feasible {
		t.Errorf("the plan: %v", plan)
	}
	for _, move := range plan.Moves {
		checkMove(t, move)
	}

	var waiting *consolev1.Transition
	s.eventually("a transition waits for approval", func() bool {
		list, err := c.ListTransitions(ctx, &consolev1.ListTransitionsRequest{Filter: &consolev1.TransitionFilter{Policy: "cooling", Active: true}})
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range list.Transitions {
			// Before all groups have cooled it is for some, and an approval of it for no more than those.
			if one.State == "Unapproved" && one.PlanHash != "" && strings.Contains(one.StateWhy, "; 40 groups: ") {
				waiting = one
				return true
			}
		}
		return false
	})
	if waiting.From != "rep(3)" || waiting.To != "rs(6,2)" || waiting.StateWhy == "" || waiting.Reason == "" || waiting.Cost == nil {
		t.Errorf("a transition that waits: %v", waiting)
	}
	s.watchItMove(waiting)
	s.takeItBack(waiting.Name)
	s.checkAudit()
	s.checkViews()
}

func checkMove(t *testing.T, move *consolev1.PlannedMove) {
	t.Helper()
	ways := map[string]*consolev1.Comparison{}
	for _, one := range move.Comparisons {
		ways[one.Way] = one
	}
	if move.From != "rep(3)" || move.Traffic.BytesSent != 0 || move.Fate != "approval" || move.Explanation == "" || move.GetBudgetSeconds() <= 0 {
		t.Errorf("a planned move: %v", move)
	}
	if bound := ways[drawing.LowerBound]; bound == nil || bound.BytesSent != 0 {
		t.Errorf("the lower bound of a merge: %v", bound)
	}
	if pool, again := ways["copy-pool"], ways["reencode"]; pool == nil || again == nil || pool.BytesSent <= again.BytesSent || again.BytesSent <= 0 {
		t.Errorf("copying costs %v, re-encoding %v", pool, again)
	}
	if ers := ways["ers2-proxy"]; ers == nil || ers.Applies {
		t.Errorf("ERS-2 does not start from copies: %v", ers)
	}
}

// watchItMove approves a transition and steers it while a watch is told of it.
func (s *stage) watchItMove(waiting *consolev1.Transition) {
	t, ctx, c := s.t, s.t.Context(), s.client
	name := waiting.Name
	stream, err := s.grpcClient().WatchTransitions(ctx, &consolev1.WatchTransitionsRequest{Filter: &consolev1.TransitionFilter{Policy: "cooling"}})
	if err != nil {
		t.Fatal(err)
	}
	until := func(what string, holds func(*consolev1.Transition) bool) *consolev1.Transition {
		t.Helper()
		for stream.Receive() {
			for _, one := range stream.Msg().Transitions {
				if one.Name == name && holds(one) {
					return one
				}
				if one.Name == name && one.Ended != nil {
					t.Fatalf("the transition has ended before %s: %v", what, one)
				}
			}
		}
		t.Fatalf("the watch ended before %s: %v", what, stream.Err())
		return nil
	}
	until("the whole picture came", func(one *consolev1.Transition) bool { return one.State == "Unapproved" })
	if _, err := c.ApproveTransition(ctx, &consolev1.ApproveTransitionRequest{Name: name, PlanHash: "another"}); connect.CodeOf(err) != connect.CodeAborted {
		t.Errorf("approving another plan: %v", err)
	}
	change, err := c.ApproveTransition(ctx, &consolev1.ApproveTransitionRequest{Name: name, PlanHash: waiting.PlanHash})
	if err != nil || !change.Transition.Approved || !strings.Contains(change.Said, "approved") {
		t.Fatal(change, err)
	}
	until("it ran", func(one *consolev1.Transition) bool { return one.State == "Running" })
	if _, err := c.PauseTransition(ctx, &consolev1.PauseTransitionRequest{Name: name}); err != nil {
		t.Fatal(err)
	}
	paused := until("it was paused", func(one *consolev1.Transition) bool { return one.State == "Paused" })
	if paused.StateWhy == "" {
		t.Error("nobody says why it is paused")
	}
	if _, err := c.ThrottleTransition(ctx, &consolev1.ThrottleTransitionRequest{Name: name, BytesPerSecond: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	// The budget of the policy is wide from now on, so that the test ends soon.
	wide := strings.Replace(cooling, "16Ki", "256Mi", 1)
	if applied, err := c.ApplyPolicy(ctx, &consolev1.ApplyPolicyRequest{Document: &consolev1.Document{Text: wide}}); err != nil || applied.Applied[0].Outcome != "configured" ||
		len(applied.Applied[0].Fields) != 1 || applied.Applied[0].Fields[0].After != "256Mi" {
		t.Fatal(applied, err)
	}
	if _, err := c.ResumeTransition(ctx, &consolev1.ResumeTransitionRequest{Name: name}); err != nil {
		t.Fatal(err)
	}
	done := until("it was done", func(one *consolev1.Transition) bool { return one.State == "Done" })
	if p := done.Progress; p == nil || p.GroupsDone != p.GroupsTotal || p.GroupsDone == 0 || p.Measured.BytesSent != 0 || done.Ended == nil {
		t.Errorf("a transition that is done: %v", done)
	}
	if err := stream.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.PauseTransition(ctx, &consolev1.PauseTransitionRequest{Name: name}); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("pausing what has ended: %v", err)
	}
	detail, err := c.GetTransition(ctx, &consolev1.GetTransitionRequest{Name: name})
	if err != nil || detail.Explanation == "" || len(detail.Comparisons) < 3 || len(detail.Conditions) == 0 || !strings.Contains(detail.Yaml, "cooling") {
		t.Error(detail, err)
	}
}

// takeItBack rolls a transition back, and cancels that.
func (s *stage) takeItBack(name string) {
	t, ctx, c := s.t, s.t.Context(), s.client
	would, err := c.PlanRollback(ctx, &consolev1.PlanRollbackRequest{Name: name})
	if err != nil || len(would.Lines) < 3 || !strings.Contains(would.Lines[0], "would take") {
		t.Errorf("what taking %s back would cost: %v, %v", name, would, err)
	}
	back, err := c.RollbackTransition(ctx, &consolev1.RollbackTransitionRequest{Name: name, Reason: "for the test"})
	if err != nil || back.Transition.RollbackOf != name || back.Transition.From != "rs(6,2)" || back.Transition.To != "rep(3)" {
		t.Fatal(back, err)
	}
	if _, err := c.RollbackTransition(ctx, &consolev1.RollbackTransitionRequest{Name: name}); connect.CodeOf(err) != connect.CodeAlreadyExists {
		t.Errorf("taking it back twice: %v", err)
	}
	s.eventually("the policy is on hold", func() bool {
		policy, err := c.GetPolicy(ctx, &consolev1.GetPolicyRequest{Name: "cooling"})
		if err != nil {
			t.Fatal(err)
		}
		return policy.Policy.StopPolicy == "Hold"
	})
	if _, err := c.CancelTransition(ctx, &consolev1.CancelTransitionRequest{Name: back.Transition.Name}); err != nil && connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Fatal(err) // it may have ended by then
	}
	s.eventually("taking back has ended", func() bool {
		one, err := c.GetTransition(ctx, &consolev1.GetTransitionRequest{Name: back.Transition.Name})
		return err == nil && one.Transition.Ended != nil
	})
	if held, err := c.HoldPolicy(ctx, &consolev1.HoldPolicyRequest{Name: "cooling", Hold: consolev1.Hold_HOLD_NONE}); err != nil || held.Policy.StopPolicy != "None" {
		t.Fatal(held, err)
	}
}

// checkAudit looks for what was done in the audit log.
func (s *stage) checkAudit() {
	t, ctx, c := s.t, s.t.Context(), s.client
	list, err := c.ListAudit(ctx, &consolev1.ListAuditRequest{})
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, action := range list.Actions {
		counts[action.Action+" "+action.Result]++
		known := action.Method != "" || action.Action == actionChanged // whose field manager is known
		if action.User == "" || !known || action.From == "" || action.Object == "" || action.Ended == nil {
			t.Errorf("an action without who, where, what or when: %v", action)
		}
	}
	for _, want := range []string{
		"ApplyPolicy done", "ApproveTransition refused", "ApproveTransition done", "PauseTransition done", "PauseTransition refused", "ThrottleTransition done",
		"ResumeTransition done", "RollbackTransition done", "RollbackTransition refused", "HoldPolicy done",
	} {
		if counts[want] == 0 {
			t.Errorf("not in the audit log: %s; there are %v", want, counts)
		}
	}
	approvals, err := c.ListAudit(ctx, &consolev1.ListAuditRequest{Filter: &consolev1.AuditFilter{Verb: "approve"}, Limit: 1})
	if err != nil || len(approvals.Actions) != 1 || approvals.Next == 0 {
		t.Fatal(approvals, err)
	}
	one := approvals.Actions[0]
	var before, after struct{ Approved bool }
	if json.Unmarshal([]byte(one.Before), &before) != nil || json.Unmarshal([]byte(one.After), &after) != nil || before.Approved || !after.Approved || one.PlanHash == "" {
		t.Errorf("an approval: %v", one)
	}
	if report, err := c.VerifyAudit(ctx, &consolev1.VerifyAuditRequest{}); err != nil || !report.Intact || report.Records != 2*int64(len(list.Actions)) {
		t.Error(report, err)
	}
	for format, first := range map[consolev1.ExportFormat]string{consolev1.ExportFormat_EXPORT_FORMAT_UNSPECIFIED: `{"sequence":1,`, consolev1.ExportFormat_EXPORT_FORMAT_CSV: "sequence,begun,"} {
		stream, err := c.ExportAudit(ctx, &consolev1.ExportAuditRequest{Format: format})
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		for stream.Receive() {
			text.Write(stream.Msg().Chunk)
		}
		if stream.Err() != nil || !strings.HasPrefix(text.String(), first) {
			t.Errorf("exported as %v: %.40q, %v", format, text.String(), stream.Err())
		}
	}
}

// checkViews looks at what the other views say of the same.
func (s *stage) checkViews() {
	t, ctx, c := s.t, s.t.Context(), s.client
	var overview *consolev1.Overview
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the overview at last: %v", overview)
		}
	})
	s.eventually("the overview knows of everything", func() bool {
		var err error
		if overview, err = c.GetOverview(ctx, &consolev1.GetOverviewRequest{}); err != nil {
			t.Fatal(err)
		}
		return overview.Safety == consolev1.Safety_SAFETY_SAFE && overview.Objects == 20 && overview.ProtectedBytes == 20*100<<10
	})
	if overview.SafetyLine != "All 20 objects can lose 2 nodes." || overview.GetCanLose() != 2 || overview.Overhead < 1.3 || overview.Nodes.ByState["up"] != stageNodes {
		t.Errorf("the overview: %v", overview)
	}
	for _, source := range overview.Sources {
		if source.StaleSince != nil || source.Answered == nil {
			t.Errorf("a source: %v", source)
		}
	}
	found := false
	for _, class := range overview.Classes {
		found = found || class.Class == "cooling" && class.Policy == "cooling" && len(class.Rungs) >= 2
	}
	heat, err := c.GetHeat(ctx, &consolev1.GetHeatRequest{Class: "cooling"})
	if err != nil || !found || len(heat.Classes) != 1 || len(heat.Classes[0].Rules) != 1 || len(heat.Classes[0].Rungs) < 2 {
		t.Errorf("the class in the overview: %v; its heat: %v, %v", found, heat, err)
	}
	then, err := c.WhatIf(ctx, &consolev1.WhatIfRequest{Policy: "cooling", Rules: []*consolev1.TemperatureRule{{Scheme: "rep(3)", AtLeast: proto.Float64(1e6)}}})
	if err != nil || len(then.Rungs) < 2 || then.Then == nil || then.Now == nil {
		t.Error(then, err)
	}
	if _, err := c.WhatIf(ctx, &consolev1.WhatIfRequest{Policy: "cooling", Rules: []*consolev1.TemperatureRule{{Scheme: "rep(3)", AtLeast: proto.Float64(-1)}}}); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("a threshold below 0: %v", err)
	}
	s.eventually("there is a history", func() bool {
		history, err := c.GetHistory(ctx, &consolev1.GetHistoryRequest{Class: "cooling"})
		if err != nil {
			t.Fatal(err)
		}
		class := history.Classes
		return len(class) == 1 && len(class[0].Samples) >= 3 && history.Error == "" && class[0].Policy == "cooling" && class[0].Hottest == "rep(3)" &&
			class[0].Prices.GetStorageGibMonth() == 0.5 && class[0].Prices.GetPaybackMonths() == 6
	})
	page, err := c.SearchObjects(ctx, &consolev1.SearchObjectsRequest{Prefix: "cool/", Limit: 3})
	if err != nil || len(page.Objects) != 3 || len(page.NextKey) == 0 {
		t.Fatal(page, err)
	}
	layout, err := c.GetObjectLayout(ctx, &consolev1.GetObjectLayoutRequest{Key: page.Objects[0].KeyBytes})
	if err != nil || len(layout.Groups) == 0 || len(layout.Groups[0].Slots) < 8 || layout.Groups[0].Slots[0].Node == "" {
		t.Error(layout, err)
	}
	moved, err := c.MoveObject(ctx, &consolev1.MoveObjectRequest{Key: page.Objects[0].KeyBytes, To: "rs(6,2)"})
	if err != nil || !moved.Transition.ByHand || !strings.HasPrefix(moved.Transition.Name, "real/") {
		t.Error(moved, err)
	}
	if _, err := c.DeletePolicy(ctx, &consolev1.DeletePolicyRequest{Name: "cooling"}); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("deleting without the name again: %v", err)
	}
	if _, err := c.DeletePolicy(ctx, &consolev1.DeletePolicyRequest{Name: "cooling", Confirm: "cooling"}); err != nil {
		t.Error(err)
	}
}

package console

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// TestPinning pins a policy through the console, sees beforehand what that moves, has the operator move it, and takes the
// pin out again.
func TestPinning(t *testing.T) {
	s := newStage(t)
	s.operate()
	s.seen()
	ctx, c := t.Context(), s.client
	text := strings.NewReplacer("approval: {mode: Manual}", "stopPolicy: Hold", "16Ki", "256Mi").Replace(cooling)
	if _, err := c.ApplyPolicy(ctx, &consolev1.ApplyPolicyRequest{Document: &consolev1.Document{Text: text}}); err != nil {
		t.Fatal(err)
	}
	s.eventually("the class is declared", func() bool {
		for _, class := range s.gateway.Classes() {
			if class.Name == "cooling" {
				return true
			}
		}
		return false
	})
	s.put("cool/", 5, 100<<10)
	s.eventually("a class that is new has a sample, though the next is due in an hour", func() bool {
		history, err := c.GetHistory(ctx, &consolev1.GetHistoryRequest{Class: "cooling"})
		if err != nil {
			t.Fatal(err)
		}
		return len(history.Classes) == 1 && len(history.Classes[0].Samples) == 1
	})
	until := timestamppb.New(time.Now().Add(time.Hour).Truncate(time.Second))

	for _, wrong := range []struct {
		request *consolev1.PinPolicyRequest
		code    connect.Code
		says    string
	}{
		{&consolev1.PinPolicyRequest{Name: "cooling", Scheme: "rs(4,2)", Until: until}, connect.CodeInvalidArgument, "not on the ladder"},
		{&consolev1.PinPolicyRequest{Name: "cooling", Scheme: "rs(6,2)"}, connect.CodeInvalidArgument, "until is missing"},
		{&consolev1.PinPolicyRequest{Name: "cooling", Scheme: "rs(6,2)", Until: timestamppb.New(time.Now().Add(-time.Minute))}, connect.CodeInvalidArgument, "give a time in the future"},
		{&consolev1.PinPolicyRequest{Name: "cooling", Scheme: "rs(6,2)", Until: timestamppb.New(time.Now().Add(367 * 24 * time.Hour))}, connect.CodeInvalidArgument, "a year at most"},
		{&consolev1.PinPolicyRequest{Name: "other", Scheme: "rs(6,2)", Until: until}, connect.CodeNotFound, "no policy"},
	} {
		if _, err := c.PinPolicy(ctx, wrong.request); connect.CodeOf(err) != wrong.code || !strings.Contains(err.Error(), wrong.says) {
			t.Errorf("pinning %v: %v, want %s", wrong.request, err, wrong.says)
		}
	}
	if _, err := c.UnpinPolicy(ctx, &consolev1.UnpinPolicyRequest{Name: "cooling"}); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("unpinning what is not pinned: %v", err)
	}

	var what *consolev1.WhatIfResponse
	s.eventually("what the pin would move is known", func() bool {
		var err error
		what, err = c.WhatIf(ctx, &consolev1.WhatIfRequest{Policy: "cooling", Pin: &consolev1.WhatIfPin{Scheme: "rs(6,2)", Until: until}})
		if err != nil {
			t.Fatal(err)
		}
		return len(what.Then.Moves) == 1 && what.Then.Moves[0].To == "rs(6,2)" && what.Then.Moves[0].Heat == "however often"
	})
	if !strings.Contains(what.Then.Pinned, "rs(6,2) until ") || what.Now.Pinned != "" {
		t.Errorf("what if it were pinned: %v", what)
	}

	answer, err := c.PinPolicy(ctx, &consolev1.PinPolicyRequest{Name: "cooling", Scheme: "rs(6,2)", Until: until, Reason: "the audit"})
	if err != nil || !strings.Contains(answer.Said, "cooling is pinned to rs(6,2) until ") {
		t.Fatal(answer, err)
	}
	pin := answer.Policy.Pin
	if pin.GetScheme() != "rs(6,2)" || !proto.Equal(pin.Until, until) || pin.Reason != "the audit" || pin.By == "" || pin.Ended {
		t.Errorf("the pin: %v", pin)
	}
	if _, err := c.HoldPolicy(ctx, &consolev1.HoldPolicyRequest{Name: "cooling", Hold: consolev1.Hold_HOLD_NONE}); err != nil {
		t.Fatal(err)
	}
	s.eventually("all of it is where it is pinned", func() bool {
		policy, err := c.GetPolicy(ctx, &consolev1.GetPolicyRequest{Name: "cooling"})
		if err != nil {
			t.Fatal(err)
		}
		pinned, elsewhere := int64(0), int64(0)
		for _, rung := range policy.Policy.Rungs {
			if rung.Scheme == "rs(6,2)" {
				pinned += rung.Groups
			} else {
				elsewhere += rung.Groups
			}
		}
		return pinned > 0 && elsewhere == 0
	})
	heat, err := c.GetHeat(ctx, &consolev1.GetHeatRequest{Class: "cooling"})
	if err != nil || len(heat.Classes) != 1 || !proto.Equal(heat.Classes[0].Pin, pin) {
		t.Errorf("the heat of what is pinned: %v, %v", heat, err)
	}
	back, err := c.WhatIf(ctx, &consolev1.WhatIfRequest{Policy: "cooling", Pin: &consolev1.WhatIfPin{}})
	if err != nil || back.Then.Pinned != "" || back.Now.Pinned == "" {
		t.Errorf("what if it were not pinned: %v, %v", back, err)
	}
	if answer, err := c.UnpinPolicy(ctx, &consolev1.UnpinPolicyRequest{Name: "cooling"}); err != nil || answer.Policy.Pin != nil {
		t.Fatal(answer, err)
	}
	s.checkPinAudit()
}

// checkPinAudit looks for the pin in the audit log: what was before it and what after.
func (s *stage) checkPinAudit() {
	t := s.t
	list, err := s.client.ListAudit(t.Context(), &consolev1.ListAuditRequest{Filter: &consolev1.AuditFilter{Object: "RedundancyPolicy/cooling"}})
	if err != nil {
		t.Fatal(err)
	}
	type record struct{ Pin *v1alpha1.Pin }
	seen := map[string]bool{}
	for _, action := range list.Actions {
		var before, after record
		if action.Verb != "apply" || action.Result != "done" || action.Action == "ApplyPolicy" {
			continue
		}
		if err := json.Unmarshal([]byte(action.Before), &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(action.After), &after); err != nil {
			t.Fatal(err)
		}
		switch action.Action {
		case "PinPolicy":
			seen[action.Action] = before.Pin == nil && after.Pin != nil && after.Pin.Reason == "the audit" && after.Pin.By == action.User
		case "UnpinPolicy":
			seen[action.Action] = before.Pin != nil && after.Pin == nil
		}
	}
	if !seen["PinPolicy"] || !seen["UnpinPolicy"] {
		t.Errorf("the audit log: %v", list.Actions)
	}
}

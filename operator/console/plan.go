package console

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/restripe/restripe/agent/stripe"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/console/contract"
	"github.com/restripe/restripe/operator/console/drawing"
	"github.com/restripe/restripe/operator/controller"
	"github.com/restripe/restripe/operator/decide"
	"github.com/restripe/restripe/operator/gateways"
	"github.com/restripe/restripe/operator/words"
)

// plans says what policies would move, as they are written or as they would be otherwise.
type plans struct {
	*sources
	*texts
	*heats
}

// PlanPolicy says what the policies of a text would move now, and what that would cost.
func (s *plans) PlanPolicy(ctx context.Context, request *consolev1.PlanPolicyRequest) (*consolev1.PlanPolicyResponse, error) {
	objects, findings, err := s.compile(ctx, request.Document)
	if err != nil {
		return nil, err
	}
	answer := &consolev1.PlanPolicyResponse{Findings: findings, Sources: s.freshness("")}
	if wrong(findings) {
		return answer, nil
	}
	scene := s.world.scene(objects)
	for _, declared := range objects {
		policy, is := declared.Object.(*v1alpha1.RedundancyPolicy)
		if !is {
			continue
		}
		plan, _, err := s.plan(ctx, scene, policy)
		if err != nil {
			return nil, err
		}
		answer.Plans = append(answer.Plans, plan)
	}
	if len(answer.Plans) == 0 {
		return nil, refuse(connect.CodeInvalidArgument, "the text declares no policy to plan")
	}
	return answer, nil
}

// scene is what policies are planned in: what is declared, with what a text declares in its place.
type scene struct {
	backends map[string]*v1alpha1.StorageBackend
	codes    decide.Schemes
}

func (w *world) scene(objects []Declared) *scene {
	now := &scene{backends: map[string]*v1alpha1.StorageBackend{}, codes: decide.Schemes{}}
	for _, backend := range w.backends.all() {
		now.backends[backend.Name] = backend
	}
	for _, scheme := range w.schemes.all() {
		now.enter(scheme)
	}
	for _, declared := range objects {
		switch object := declared.Object.(type) {
		case *v1alpha1.StorageBackend:
			if there := now.backends[object.Name]; there != nil {
				changed := there.DeepCopy()
				changed.Spec = object.Spec
				object = changed
			}
			now.backends[object.Name] = object
		case *v1alpha1.RedundancyScheme:
			now.enter(object)
		}
	}
	return now
}

func (n *scene) enter(scheme *v1alpha1.RedundancyScheme) {
	if code, wrong := decide.Code(scheme.Spec); wrong == nil {
		n.codes[scheme.Name] = code
	}
}

// plan asks the gateways what a policy would move.
func (s *plans) plan(ctx context.Context, scene *scene, policy *v1alpha1.RedundancyPolicy) (*consolev1.PolicyPlan, *controller.Forecast, error) {
	plan := &consolev1.PolicyPlan{Policy: policy.Name, Backend: policy.Spec.BackendRef, Class: decide.ClassName(policy)}
	if there, found := s.world.policies.get(policy.Name); found {
		// What the API server has chosen and knows of it, with what the text says.
		changed := there.DeepCopy()
		changed.Spec = *policy.Spec.DeepCopy()
		changed.Generation = 0
		policy = changed
	}
	var moving []v1alpha1.Transition
	for _, t := range s.world.transitions.all() {
		if t.Status.CompletionTime == nil && t.Spec.BackendRef == plan.Backend && t.Spec.Class == plan.Class {
			moving = append(moving, *t.DeepCopy())
			plan.Moving = append(plan.Moving, t.Name)
		}
	}
	within, stop := context.WithTimeout(ctx, actPatience)
	defer stop()
	dial := gateways.Dial(s.backends.credentials)
	foreseen, err := controller.Preview(within, s.now(), dial, policy, scene.backends[plan.Backend], scene.codes, moving)
	if err != nil {
		return nil, nil, refusalOf(err)
	}
	s.tellPlan(plan, foreseen)
	return plan, foreseen, nil
}

// tellPlan fills a plan with what was foreseen.
func (s *plans) tellPlan(plan *consolev1.PolicyPlan, f *controller.Forecast) {
	plan.Feasible = f.Refusal == nil
	if f.Refusal != nil {
		plan.Feasibility = append(plan.Feasibility, &consolev1.Feasibility{Severity: severityError, Reason: f.Refusal.Reason, Message: f.Refusal.Message})
	}
	for _, warning := range f.Warnings {
		plan.Feasibility = append(plan.Feasibility, &consolev1.Feasibility{Severity: "warning", Reason: warning.Reason, Message: warning.Message})
	}
	if f.Unknown != nil {
		plan.Unknown = f.Unknown.Message
	}
	plan.HeatAt, plan.Ending = contract.Time(f.HeatAt), f.Ending
	plan.Total = &consolev1.Traffic{}
	if f.Declaration != nil {
		for _, scheme := range f.Declaration.Class.Ladder {
			plan.Ladder = append(plan.Ladder, scheme.String())
		}
		if f.Declaration.Pinned {
			plan.Pinned = f.Declaration.Pin.String()
		}
		s.tellMoves(plan, f)
	}
	plan.Line = planLine(plan) + laterText(f)
}

func (s *plans) tellMoves(plan *consolev1.PolicyPlan, f *controller.Forecast) {
	mode := stripe.ModeFree
	if seen := s.backends.at(plan.Backend); seen != nil {
		mode = seen.mode(plan.Class)
	}
	layout, err := stripe.NewLayout(f.Declaration.Class.Ladder, 0, mode)
	if err != nil {
		layout = nil // the comparisons and the words are missing then; the moves are what the gateways say
	}
	hash := sha256.New()
	for _, chosen := range f.Choice.Create {
		move := moveView(f, &chosen.Candidate, &chosen.Verdict, layout)
		if move.Fate, move.Why = "automatic", chosen.Reason; chosen.NeedsApproval {
			move.Fate, move.Why = "approval", chosen.ApprovalWhy
		}
		plan.Total.BytesRead += move.Traffic.BytesRead
		plan.Total.BytesSent += move.Traffic.BytesSent
		plan.Total.BytesWritten += move.Traffic.BytesWritten
		// A hash takes everything there is without an error.
		_, _ = fmt.Fprintf(hash, "%s %s %s %d %s\n", move.From, move.To, move.Heat, move.Groups, move.PlanHash)
		plan.Moves = append(plan.Moves, move)
	}
	if len(plan.Moves) > 0 {
		plan.PlanHash = hex.EncodeToString(hash.Sum(nil))
	}
	for _, refused := range f.Choice.Refused {
		move := moveView(f, &decide.Candidate{Move: refused.Move}, &refused.Verdict, layout)
		move.Fate, move.Why = "refused", refused.Verdict.Message
		plan.Moves = append(plan.Moves, move)
	}
}

func moveView(f *controller.Forecast, c *decide.Candidate, verdict *decide.Verdict, layout *stripe.Layout) *consolev1.PlannedMove {
	e := &c.Estimate
	move := &consolev1.PlannedMove{
		From: c.From.String(), To: c.To.String(), Heat: c.Heat.String(), Groups: cmp.Or(e.Groups, c.Groups), Bytes: cmp.Or(e.Bytes, c.Bytes),
		Traffic: &consolev1.Traffic{BytesRead: e.BytesRead, BytesSent: e.BytesSent, BytesWritten: e.BytesWritten}, PeakBytes: e.PeakBytes,
		StoredBefore: e.StoredBefore, StoredAfter: e.StoredAfter, Price: verdict.Price, SavingPerMonth: verdict.SavingPerMonth, PlanHash: e.PlanHash,
	}
	if limit := f.Declaration.Limits.Total; limit != decide.Unlimited && limit > 0 {
		seconds := float64(e.BytesRead+e.BytesSent+e.BytesWritten) / float64(limit)
		move.BudgetSeconds = &seconds
	}
	if layout != nil {
		move.Comparisons = comparisons(layout, c.From, c.To, move.Bytes)
		move.Explanation = explanation(layout, c.From, c.To)
	}
	return move
}

// GetPicture returns one group as an array of cells, and step by step what a plan does to it.
func (s *plans) GetPicture(_ context.Context, request *consolev1.GetPictureRequest) (*consolev1.Picture, error) {
	return drawing.Picture(request)
}

// comparisons are what other ways to move so many bytes would read and send, and the least that any way must.
func comparisons(layout *stripe.Layout, from, to stripe.Scheme, bytes int64) []*consolev1.Comparison {
	scale := func(blocks int) int64 { return int64(float64(blocks) * float64(bytes) / float64(layout.Cells())) }
	bound := stripe.LowerBound(layout, from, to)
	list := []*consolev1.Comparison{{Way: drawing.LowerBound, Applies: true, BytesRead: scale(bound.BlocksRead), BytesSent: scale(bound.BlocksSent)}}
	baselines := stripe.Baselines(layout, from, to)
	for _, way := range slices.Sorted(maps.Keys(baselines)) {
		c := &consolev1.Comparison{Way: way}
		if cost := baselines[way]; cost != nil {
			c.Applies, c.BytesRead, c.BytesSent = true, scale(cost.BlocksRead), scale(cost.BlocksSent)
		}
		list = append(list, c)
	}
	return list
}

// explanation says what a plan does to one group; empty where there is no plan.
func explanation(layout *stripe.Layout, from, to stripe.Scheme) string {
	plan, err := stripe.NewPlan(layout, from, to, "", "")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(stripe.Explain(plan))
}

// laterText says how much would move besides when it has been under its scheme for the dwell; empty: nothing.
func laterText(f *controller.Forecast) string {
	var groups, bytes int64
	var within time.Duration
	for i := range f.Later {
		groups, bytes, within = groups+f.Later[i].Groups, bytes+f.Later[i].Bytes, max(within, f.Later[i].Settled)
	}
	if groups == 0 {
		return ""
	}
	return fmt.Sprintf(" Later, within %s, %s with %s, if they are used as often as now.",
		words.Span(within), words.Count(groups, "group"), words.Bytes(bytes))
}

// planLine says in a sentence what a plan comes to.
func planLine(plan *consolev1.PolicyPlan) string {
	var groups, bytes, refused int64
	for _, move := range plan.Moves {
		if move.Fate == "refused" {
			refused++
			continue
		}
		groups += move.Groups
		bytes += move.Bytes
	}
	switch {
	case !plan.Feasible && len(plan.Moves) == 0:
		return "It would not be carried out."
	case plan.Unknown != "":
		return "What would move cannot be told yet."
	case groups == 0 && refused == 0 && plan.Pinned != "":
		return "Nothing would move: it is pinned to " + plan.Pinned + "."
	case groups == 0 && refused == 0 && len(plan.Moving) > len(plan.Ending):
		return "Nothing more would move."
	case groups == 0 && refused == 0:
		return "Nothing would move."
	case groups == 0:
		return "Nothing would move: it does not pay."
	}
	return fmt.Sprintf("%s with %s would move, sending %s over the network.", words.Count(groups, "group"), words.Bytes(bytes), words.Bytes(plan.Total.BytesSent))
}

// WhatIf says what would move if a policy had other thresholds, were pinned or were not.
func (s *plans) WhatIf(ctx context.Context, request *consolev1.WhatIfRequest) (*consolev1.WhatIfResponse, error) {
	policy, found := s.world.policies.get(request.Policy)
	if !found {
		return nil, noPolicy(request.Policy)
	}
	changed, err := s.changedAs(policy, request)
	if err != nil {
		return nil, err
	}
	scene := s.world.scene(nil)
	answer := &consolev1.WhatIfResponse{Sources: s.freshness(policy.Spec.BackendRef)}
	if answer.Now, _, err = s.plan(ctx, scene, policy); err != nil {
		return nil, err
	}
	if answer.Then, _, err = s.plan(ctx, scene, changed); err != nil {
		return nil, err
	}
	answer.Rungs = s.rungsThen(answer.Then)
	return answer, nil
}

// rungsThen are the rungs of a class before and after a plan.
func (s *plans) rungsThen(plan *consolev1.PolicyPlan) (rungs []*consolev1.WhatIfRung) {
	moved := map[string]int64{}
	for _, move := range plan.Moves {
		if move.Fate != "refused" {
			moved[move.From] -= move.Bytes
			moved[move.To] += move.Bytes
		}
	}
	for _, class := range s.heat(plan.Backend, plan.Class).Classes {
		for _, rung := range class.Rungs {
			rungs = append(rungs, &consolev1.WhatIfRung{Scheme: rung.Scheme, BytesNow: rung.Bytes, BytesThen: max(0, rung.Bytes+moved[rung.Scheme])})
			delete(moved, rung.Scheme)
		}
	}
	for _, scheme := range slices.Sorted(maps.Keys(moved)) {
		rungs = append(rungs, &consolev1.WhatIfRung{Scheme: scheme, BytesThen: max(0, moved[scheme])})
	}
	return rungs
}

// changedAs returns a copy of a policy that has the thresholds and the pin asked for.
func (s *plans) changedAs(policy *v1alpha1.RedundancyPolicy, request *consolev1.WhatIfRequest) (*v1alpha1.RedundancyPolicy, error) {
	changed := policy.DeepCopy()
	if pin := request.Pin; pin != nil && pin.Scheme == "" {
		changed.Spec.Pin = nil
	} else if pin != nil {
		if _, err := withPin(changed, pin.Scheme, pin.Until, s.world.scene(nil).codes, s.now()); err != nil {
			return nil, err
		}
	}
	if changed.Spec.Temperature == nil {
		if len(request.Rules) == 0 {
			return nil, refuse(connect.CodeFailedPrecondition, "policy %s has no temperature rules; give some", policy.Name)
		}
		changed.Spec.Temperature = &v1alpha1.Temperature{}
	}
	t := changed.Spec.Temperature
	if len(request.Rules) > 0 {
		t.Mode, t.Rules = v1alpha1.TemperatureRules, nil
	}
	for _, rule := range request.Rules {
		one := v1alpha1.TemperatureRule{Scheme: v1alpha1.SchemeName(rule.Scheme)}
		var err error
		if one.AtLeast, err = quantityOf(rule.AtLeast); err != nil {
			return nil, err
		}
		if one.Below, err = quantityOf(rule.Below); err != nil {
			return nil, err
		}
		t.Rules = append(t.Rules, one)
	}
	if request.HysteresisPercent != nil {
		t.HysteresisPercent = request.HysteresisPercent
	}
	if request.DwellSeconds != nil {
		t.Dwell.Duration = words.Seconds(*request.DwellSeconds)
	}
	return changed, nil
}

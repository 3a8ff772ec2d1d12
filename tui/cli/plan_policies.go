package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/controller"
	"github.com/restripe/restripe/operator/decide"
	"github.com/restripe/restripe/operator/gateways"
	"github.com/restripe/restripe/operator/price"
	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/policies"
	"github.com/restripe/restripe/tui/cli/program"
)

// policyPlan is what one policy would move.
type policyPlan struct {
	Policy   string        `json:"policy"`
	Backend  string        `json:"backend"`
	Class    string        `json:"class,omitempty"`
	Ladder   []string      `json:"ladder,omitempty"`
	Refused  string        `json:"refused,omitempty"` // why the policy would not be carried out
	Unknown  string        `json:"unknown,omitempty"` // why nothing can be said yet
	Warnings []string      `json:"warnings,omitempty"`
	Moving   []string      `json:"moving,omitempty"` // transitions that have not ended, whose groups are not in Moves
	HeatAt   *time.Time    `json:"heatAt,omitempty"`
	Moves    []plannedMove `json:"moves"`
	Later    []laterMove   `json:"later,omitempty"` // what would move besides when it has been under its scheme for the dwell
}

// laterMove is what a policy would move later, if it is used as often as now then.
type laterMove struct {
	From          string  `json:"from"`
	To            string  `json:"to"`
	Groups        int64   `json:"groups"`
	Bytes         int64   `json:"bytes"`
	WithinSeconds float64 `json:"withinSeconds"` // at the latest
}

// plannedMove is one transition that a policy would make.
type plannedMove struct {
	From              string  `json:"from"`
	To                string  `json:"to"`
	Heat              string  `json:"heat"`
	Fate              string  `json:"fate"` // automatic, approval or refused
	Why               string  `json:"why"`
	Groups            int64   `json:"groups"`
	Bytes             int64   `json:"bytes"`
	BytesRead         int64   `json:"bytesRead"`
	BytesSent         int64   `json:"bytesSent"`
	BytesWritten      int64   `json:"bytesWritten"`
	PeakBytes         int64   `json:"peakBytes"`
	ReencodeBytesSent int64   `json:"reencodeBytesSent"`
	StoredBefore      int64   `json:"storedBefore"`
	StoredAfter       int64   `json:"storedAfter"`
	Price             float64 `json:"price"`
	SavingPerMonth    float64 `json:"savingPerMonth"`
	BudgetSeconds     float64 `json:"budgetSeconds,omitempty"` // under the budget's bytes per second; absent without one
	PlanHash          string  `json:"planHash"`
}

// The fates of a planned move.
const (
	fateAutomatic = "automatic"
	fateApproval  = "approval"
	fateRefused   = "refused"
)

// planPolicies shows what the policies of files would move, by the heat the gateways report. Nothing is written.
func (s *session) planPolicies(command *cobra.Command, where *serverFlags, paths []string, format *formatValue) error {
	server, err := s.apiServer(where)
	if err != nil {
		return err
	}
	objects, err := s.lintedFiles(command.Context(), server, paths)
	if err != nil {
		return err
	}
	world, err := server.world(command.Context(), objects)
	if err != nil {
		return err
	}
	plans := []policyPlan{}
	for _, object := range objects {
		if policy, is := object.Value.(*v1alpha1.RedundancyPolicy); is {
			plan, err := world.plan(command.Context(), policy)
			if err != nil {
				return fmt.Errorf("policy/%s: %w", policy.Name, err)
			}
			plans = append(plans, *plan)
		}
	}
	if len(plans) == 0 {
		return fmt.Errorf("there is no policy in %s", strings.Join(paths, ", "))
	}
	if format.chosen != "table" {
		return s.show(format, listing{value: plans})
	}
	var lines []string
	for i := range plans {
		lines = append(lines, plans[i].lines(time.Now())...)
	}
	return program.WriteLines(s.Out, lines)
}

// world is what policies are planned in: what the server has, with what the files declare in its place.
type world struct {
	backends    map[string]*v1alpha1.StorageBackend
	codes       decide.Schemes
	policies    map[string]*v1alpha1.RedundancyPolicy // of the server
	transitions []v1alpha1.Transition                 // that have not ended
}

func (a *apiServer) world(ctx context.Context, objects []policies.Object) (*world, error) {
	known, err := a.known(ctx)
	if err != nil {
		return nil, err
	}
	var list v1alpha1.TransitionList
	if err := a.List(ctx, &list); err != nil {
		return nil, a.explain(err)
	}
	w := &world{backends: map[string]*v1alpha1.StorageBackend{}, codes: decide.Schemes{}, policies: map[string]*v1alpha1.RedundancyPolicy{}}
	w.transitions = slices.DeleteFunc(list.Items, func(t v1alpha1.Transition) bool { return t.Status.CompletionTime != nil })
	for _, object := range known {
		w.enter(object)
		if policy, is := object.Value.(*v1alpha1.RedundancyPolicy); is {
			w.policies[policy.Name] = policy
		}
	}
	for _, object := range objects {
		w.enter(object)
	}
	return w, nil
}

func (w *world) enter(object policies.Object) {
	switch value := object.Value.(type) {
	case *v1alpha1.StorageBackend:
		if there := w.backends[value.Name]; there != nil {
			declared := there.DeepCopy()
			declared.Spec = value.Spec
			value = declared
		}
		w.backends[value.Name] = value
	case *v1alpha1.RedundancyScheme:
		if code, wrong := decide.Code(value.Spec); wrong == nil {
			w.codes[value.Name] = code
		}
	}
}

// plan asks the gateways what a policy would move.
func (w *world) plan(ctx context.Context, policy *v1alpha1.RedundancyPolicy) (*policyPlan, error) {
	p := &policyPlan{Policy: policy.Name, Backend: policy.Spec.BackendRef, Class: decide.ClassName(policy), Moves: []plannedMove{}}
	if there := w.policies[policy.Name]; there != nil {
		// What the server has chosen and knows of it, with what the file says.
		declared := there.DeepCopy()
		declared.Spec = policy.Spec
		declared.Generation = 0
		policy = declared
	}
	moving := slices.DeleteFunc(slices.Clone(w.transitions), func(t v1alpha1.Transition) bool {
		return t.Spec.BackendRef != p.Backend || t.Spec.Class != p.Class
	})
	for i := range moving {
		p.Moving = append(p.Moving, moving[i].Name)
	}
	who, err := credentials()
	if err != nil {
		return nil, err
	}
	foreseen, err := controller.Preview(ctx, time.Now(), gateways.Dial(who), policy, w.backends[p.Backend], w.codes, moving)
	if err != nil {
		return nil, err
	}
	p.take(foreseen)
	return p, nil
}

func (p *policyPlan) take(f *controller.Forecast) {
	if f.Refusal != nil {
		p.Refused = f.Refusal.Message
	}
	if f.Unknown != nil {
		p.Unknown = f.Unknown.Message
	}
	for _, warning := range f.Warnings {
		p.Warnings = append(p.Warnings, warning.Message)
	}
	if !f.HeatAt.IsZero() {
		p.HeatAt = &f.HeatAt
	}
	if f.Declaration == nil {
		return
	}
	for _, scheme := range f.Declaration.Class.Ladder {
		p.Ladder = append(p.Ladder, scheme.String())
	}
	for _, m := range f.Later {
		p.Later = append(p.Later, laterMove{m.From.String(), m.To.String(), m.Groups, m.Bytes, m.Settled.Seconds()})
	}
	for _, chosen := range f.Choice.Create {
		fate, why := fateAutomatic, ""
		if chosen.NeedsApproval {
			fate, why = fateApproval, chosen.ApprovalWhy
		}
		p.Moves = append(p.Moves, newPlannedMove(f, &chosen.Candidate, &chosen.Verdict, fate, why))
	}
	for _, refused := range f.Choice.Refused {
		p.Moves = append(p.Moves, newPlannedMove(f, &decide.Candidate{Move: refused.Move}, &refused.Verdict, fateRefused, refused.Verdict.Message))
	}
}

func newPlannedMove(f *controller.Forecast, c *decide.Candidate, verdict *decide.Verdict, fate, why string) plannedMove {
	e := &c.Estimate
	m := plannedMove{
		From: c.From.String(), To: c.To.String(), Heat: c.Heat.String(), Fate: fate, Why: cmp.Or(why, c.Reason),
		Groups: c.Groups, Bytes: c.Bytes, BytesRead: e.BytesRead, BytesSent: e.BytesSent, BytesWritten: e.BytesWritten, PeakBytes: e.PeakBytes,
		ReencodeBytesSent: e.ReencodeBytesSent, StoredBefore: e.StoredBefore, StoredAfter: e.StoredAfter,
		Price: verdict.Price, SavingPerMonth: verdict.SavingPerMonth, PlanHash: e.PlanHash,
	}
	if fate != fateRefused {
		m.Groups, m.Bytes = e.Groups, e.Bytes
	}
	if limit := f.Declaration.Limits.Total; limit != decide.Unlimited && limit > 0 {
		m.BudgetSeconds = float64(e.BytesRead+e.BytesSent+e.BytesWritten) / float64(limit)
	}
	return m
}

// lines says what a policy would do, the moves most urgent first.
func (p *policyPlan) lines(now time.Time) []string {
	lines := []string{fmt.Sprintf("policy/%s: class %s on backend %s, %s", p.Policy, p.Class, p.Backend, strings.Join(p.Ladder, " > "))}
	if p.Refused != "" {
		lines = append(lines, "  would not be carried out: "+p.Refused)
	}
	for _, warning := range p.Warnings {
		lines = append(lines, "  warning: "+warning)
	}
	for _, name := range p.Moving {
		lines = append(lines, "  has not ended yet, and is not counted below: "+name)
	}
	switch {
	case p.Unknown != "":
		return append(lines, "  cannot be told yet: "+p.Unknown)
	case len(p.Moves) == 0 && p.Refused == "" && len(p.Later) > 0:
		lines = append(lines, "  nothing would move now")
	case len(p.Moves) == 0 && p.Refused == "":
		return append(lines, "  nothing would move")
	}
	for i := range p.Moves {
		lines = append(lines, p.Moves[i].lines()...)
	}
	for _, m := range p.Later {
		lines = append(lines, fmt.Sprintf("  later, within %s: %s -> %s: %s, %s, if they are used as often as now", words.Left(m.WithinSeconds), m.From, m.To,
			words.Count(m.Groups, "group"), words.Bytes(m.Bytes)))
	}
	if p.HeatAt != nil {
		lines = append(lines, fmt.Sprintf("  by the heat of %s ago", words.About(now.Sub(*p.HeatAt))))
	}
	return lines
}

func (m *plannedMove) lines() []string {
	lines := []string{fmt.Sprintf("  %s -> %s: %s, %s, used %s", m.From, m.To, words.Count(m.Groups, "group"), words.Bytes(m.Bytes), m.Heat)}
	if m.Fate == fateRefused {
		return append(lines, "    would not be moved: "+m.Why)
	}
	lines = append(lines,
		fmt.Sprintf("    sends %s (re-encoding %s), reads %s, writes %s; at most %s more stored meanwhile", words.Bytes(m.BytesSent),
			words.Bytes(m.ReencodeBytesSent), words.Bytes(m.BytesRead), words.Bytes(m.BytesWritten), words.Bytes(m.PeakBytes)),
		fmt.Sprintf("    stored %s before, %s after; costs %s, saves %s a month", words.Bytes(m.StoredBefore), words.Bytes(m.StoredAfter),
			price.Amount(m.Price), price.Amount(m.SavingPerMonth)))
	if m.BudgetSeconds > 0 {
		lines = append(lines, "    "+words.Left(m.BudgetSeconds)+" under the budget")
	}
	if m.Fate == fateApproval {
		lines = append(lines, "    waits for `restripe approve`: "+m.Why)
	}
	return lines
}

package decide

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/words"
)

// Estimate is what a move will cost, by the gateways' proved plan.
type Estimate struct {
	Groups, Bytes                      int64
	GroupsOffLadder                    int64 // written for a ladder without the target; more than Groups where gateways do not move them
	GroupsCopied                       int64 // of those, the ones whose objects are written into new groups
	GroupsReshaped                     int64 // of those, the ones that get or give back columns of others, or are dissolved into them
	BytesRead, BytesSent, BytesWritten int64
	PeakBytes                          int64 // stored beyond what is stored now, at the worst moment
	StoredBefore, StoredAfter          int64
	ReencodeBytesSent                  int64
	PlanHash                           string
}

// Verdict is what the cost-benefit check says of a move.
type Verdict struct {
	Refused         bool
	Stuck           bool   // nothing but people can make it move
	Message         string // why, in words: "costs 4.10, saves 0.30 a month, pays back in 13.7 months, limit 6"
	Price           float64
	SavingPerMonth  float64 // negative for a move that costs
	PriceText       string  // Price and SavingPerMonth for people
	SavingMonthText string
}

// Judge weighs a move: what it costs against what it saves.
type Judge func(move Move, estimate Estimate) Verdict

// Candidate is a move with its estimate.
type Candidate struct {
	Move
	Estimate Estimate
}

// Selected is a move that becomes a Transition.
type Selected struct {
	Candidate
	Verdict       Verdict
	NeedsApproval bool
	ApprovalWhy   string
}

// Refused is a move that does not pay.
type Refused struct {
	Move    Move
	Verdict Verdict
}

// Choice is what Select says.
type Choice struct {
	Create  []Selected
	Refused []Refused
	Later   []Candidate // beyond the concurrency
}

// Select judges moves, most urgent first. No more than concurrency transitions of the policy are to be active at once;
// those that wait for approval do not count, nor do moves that need it.
func Select(moves []Candidate, judge Judge, consent Consent, concurrency, active int) Choice {
	var choice Choice
	for _, move := range moves {
		verdict := Verdict{}
		if move.Estimate.Groups == 0 {
			choice.Refused = append(choice.Refused, Refused{move.Move, immovable(&move)})
			continue
		}
		if judge != nil {
			verdict = judge(move.Move, move.Estimate)
		}
		if verdict.Refused {
			choice.Refused = append(choice.Refused, Refused{move.Move, verdict})
			continue
		}
		selected := Selected{Candidate: move, Verdict: verdict}
		selected.NeedsApproval, selected.ApprovalWhy = consent.Needed(move.Estimate, verdict)
		switch {
		case selected.NeedsApproval:
		case active >= max(1, concurrency):
			choice.Later = append(choice.Later, move)
			continue
		default:
			active++
		}
		choice.Create = append(choice.Create, selected)
	}
	return choice
}

// immovable is why nothing of a move would move.
func immovable(move *Candidate) Verdict {
	if move.Estimate.GroupsOffLadder == 0 {
		return Verdict{Refused: true, Message: "the gateways find no such groups any more"}
	}
	return Verdict{Refused: true, Stuck: true, Message: fmt.Sprintf("%s were written for a ladder without %s and cannot take it; rewrite their objects", words.Count(move.Estimate.GroupsOffLadder, "group"), move.To)}
}

// Consent is what a policy leaves to people.
type Consent struct {
	Approval *v1alpha1.Approval
	Rechosen bool // its ladder was chosen in place of another one, and it has not converged since
}

// ConsentOf returns what a policy leaves to people. declaration is nil where it is not accepted.
func ConsentOf(policy *v1alpha1.RedundancyPolicy, declaration *Declaration) Consent {
	c := Consent{Approval: policy.Spec.Approval}
	c.Rechosen = declaration != nil && declaration.Choice != nil && declaration.Choice.Replaces
	return c
}

// Needed reports whether a person must approve a move, and why.
func (c Consent) Needed(estimate Estimate, verdict Verdict) (needed bool, why string) {
	approval := c.Approval
	switch {
	case c.Rechosen:
		return true, "the ladder was chosen anew for the reliability target"
	case approval == nil:
		return false, ""
	}
	switch approval.Mode {
	case v1alpha1.ApprovalManual:
		return true, "every transition of the policy needs approval"
	case v1alpha1.ApprovalManualAbove:
		if limit, touched := approval.AboveBytes, estimate.Touched(); limit != nil && touched > limit.Value() {
			return true, fmt.Sprintf("it touches %s, more than %s", words.Bytes(touched), words.Bytes(limit.Value()))
		}
		if limit := approval.AboveCost; limit != nil && verdict.Price > limit.AsApproximateFloat64() {
			return true, fmt.Sprintf("it costs %s, more than %s", verdict.priceText(), limit)
		}
	}
	return false, ""
}

func (v Verdict) priceText() string {
	if v.PriceText != "" {
		return v.PriceText
	}
	return strconv.FormatFloat(v.Price, 'f', 2, 64)
}

// NewTransition is the object for a selected move: named after the policy, where it goes and how many there were. names
// are those of the policy's transitions that still exist; asked twice with the same, it gives the same name.
func NewTransition(policy *v1alpha1.RedundancyPolicy, selected *Selected, names []string) *v1alpha1.Transition {
	bounds := v1alpha1.HeatBounds{}
	if selected.Heat.AtLeast > 0 {
		bounds.AtLeast = heatQuantity(selected.Heat.AtLeast)
	}
	if !math.IsInf(selected.Heat.Below, 1) {
		bounds.Below = heatQuantity(selected.Heat.Below)
	}
	if selected.Settled > 0 {
		bounds.Settled = &metav1.Duration{Duration: selected.Settled}
	}
	transition := &v1alpha1.Transition{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Transition"},
		ObjectMeta: metav1.ObjectMeta{Name: transitionName(policy.Name, selected.To.String(), names)},
		Spec: v1alpha1.TransitionSpec{
			PolicyRef: policy.Name, BackendRef: selected.Backend, Class: selected.Class,
			From: v1alpha1.SchemeName(selected.From.String()), To: v1alpha1.SchemeName(selected.To.String()),
			Reason: clip(selected.Reason, longestReason), NeedsApproval: selected.NeedsApproval,
			Pinned: selected.Pinned,
		},
	}
	if bounds != (v1alpha1.HeatBounds{}) {
		transition.Spec.Heat = &bounds
	}
	return transition
}

// longestReason is the API's limit.
const longestReason = 512

func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most-3] + "..."
}

// heatQuantity is exact for the edges of heat buckets, which are powers of two from 2^-6.
func heatQuantity(rate float64) *resource.Quantity {
	if rate >= 1 && rate == math.Trunc(rate) {
		return resource.NewQuantity(int64(rate), resource.DecimalSI)
	}
	quantity := resource.NewScaledQuantity(int64(math.Round(rate*1e6)), resource.Micro)
	return quantity
}

// transitionName is "media-rs12-2-7".
func transitionName(policy, to string, names []string) string {
	code := strings.NewReplacer("(", "", ")", "", ",", "-").Replace(to)
	number := 0
	for _, name := range names {
		last := name[strings.LastIndexByte(name, '-')+1:]
		if n, err := strconv.Atoi(last); err == nil && strings.HasPrefix(name, policy+"-") {
			number = max(number, n)
		}
	}
	return fmt.Sprintf("%s-%s-%d", policy, code, number+1)
}

// Reverse is the transition that takes another one back: the same range of heat of what lies under its target now,
// whoever brought it there.
func Reverse(original *v1alpha1.Transition, reason string) *v1alpha1.Transition {
	transition := &v1alpha1.Transition{
		TypeMeta:   original.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{Name: original.Name + "-back"},
		Spec: v1alpha1.TransitionSpec{
			PolicyRef: original.Spec.PolicyRef, BackendRef: original.Spec.BackendRef, Class: original.Spec.Class,
			From: original.Spec.To, To: original.Spec.From, Planner: original.Spec.Planner,
			Reason: clip(reason, longestReason), RollbackOf: original.Name, BytesPerSecond: original.Spec.BytesPerSecond,
		},
	}
	if heat := original.Spec.Heat; heat != nil && (heat.AtLeast != nil || heat.Below != nil) {
		transition.Spec.Heat = &v1alpha1.HeatBounds{AtLeast: heat.AtLeast, Below: heat.Below}
	}
	return transition
}

// SelectionOf is what a transition may touch.
func SelectionOf(spec *v1alpha1.TransitionSpec, schemes Schemes) (Selection, *Problem) {
	from, wrong := schemes.Resolve(spec.From)
	if wrong != nil {
		return Selection{}, wrong
	}
	selection := Selection{Backend: spec.BackendRef, Class: spec.Class, From: from, Heat: Everything()}
	if spec.Heat != nil && spec.Heat.AtLeast != nil {
		selection.Heat.AtLeast = spec.Heat.AtLeast.AsApproximateFloat64()
	}
	if spec.Heat != nil && spec.Heat.Below != nil {
		selection.Heat.Below = spec.Heat.Below.AsApproximateFloat64()
	}
	return selection, nil
}

// defaultHistory is the default of the API.
const defaultHistory = 10

// Surplus returns the names of the ended transitions of a policy that are beyond its history limit, oldest first.
func Surplus(policy *v1alpha1.RedundancyPolicy, transitions []v1alpha1.Transition) []string {
	limit := defaultHistory
	if policy.Spec.HistoryLimit != nil {
		limit = int(*policy.Spec.HistoryLimit)
	}
	type ended struct {
		name string
		at   time.Time
	}
	var all []ended
	for i := range transitions {
		if t := &transitions[i]; t.Spec.PolicyRef == policy.Name && t.Status.CompletionTime != nil && t.DeletionTimestamp == nil {
			all = append(all, ended{t.Name, t.Status.CompletionTime.Time})
		}
	}
	slices.SortFunc(all, func(a, b ended) int {
		if order := a.at.Compare(b.at); order != 0 {
			return order
		}
		return strings.Compare(a.name, b.name)
	})
	var names []string
	for _, old := range all[:max(0, len(all)-limit)] {
		names = append(names, old.name)
	}
	return names
}

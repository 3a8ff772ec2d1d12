package decide

import (
	"cmp"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// Unlimited is the rate without a limit. At the gateways it is written 0, which here means that nothing may move.
const Unlimited int64 = math.MaxInt64

// Limits are a policy's budget in bytes per second; what is not limited is Unlimited.
type Limits struct {
	Total, Node, Domain int64
	Concurrency         int
	Latency             time.Duration // of clients, above which transitions give way; 0: they never do
}

// NewLimits reads a budget; nil limits nothing but runs one transition at a time.
func NewLimits(budget *v1alpha1.Budget) (Limits, *Problem) {
	limits := Limits{Total: Unlimited, Node: Unlimited, Domain: Unlimited, Concurrency: 1}
	if budget == nil {
		return limits, nil
	}
	for _, field := range []struct {
		name  string
		value *resource.Quantity
		limit *int64
	}{
		{"bytesPerSecond", budget.BytesPerSecond, &limits.Total},
		{"nodeBytesPerSecond", budget.NodeBytesPerSecond, &limits.Node},
		{"failureDomainBytesPerSecond", budget.FailureDomainBytesPerSecond, &limits.Domain},
	} {
		if field.value == nil {
			continue
		}
		if *field.limit = field.value.Value(); *field.limit <= 0 {
			return Limits{}, problem(ReasonInvalidBudget, "budget.%s %s lets nothing move; give a positive rate such as 100Mi, or stop the policy with stopPolicy: Hold", field.name, field.value)
		}
	}
	if budget.Concurrency != nil {
		limits.Concurrency = max(1, int(*budget.Concurrency))
	}
	if budget.ForegroundLatency != nil {
		limits.Latency = max(0, budget.ForegroundLatency.Duration)
	}
	return limits, nil
}

// Under lowers the total to a ceiling.
func (l Limits) Under(ceiling int64) Limits {
	l.Total = min(l.Total, ceiling)
	return l
}

// Grant is what one transition may use, in bytes per second. The zero Grant stops it.
type Grant struct{ Total, Node, Domain int64 }

// Runs reports whether anything may move.
func (g Grant) Runs() bool { return g.Total > 0 && g.Node > 0 && g.Domain > 0 }

// Runner is a transition that shares a budget.
type Runner struct {
	Name     string
	Created  time.Time
	Weight   int   // of its share; less than 1 counts as 1
	Throttle int64 // its own limit of the total; Unlimited where it has none
	Wants    bool  // nothing but the budget keeps it from running
	Applied  Grant // what the gateway has been told; the zero Grant while it does not run
}

// Weights of shares: what a person takes back goes first, then what clients wait for.
const (
	weightPlain   = 1
	weightHeating = 2
	weightBack    = 4
)

// RunnerOf is a transition as a runner, by its last conditions. The one being decided on wants what its
// TransitionDecision says.
func RunnerOf(t *v1alpha1.Transition, applied Grant) Runner {
	runner := Runner{Name: t.Name, Created: t.CreationTimestamp.Time, Weight: weightPlain, Throttle: Unlimited, Applied: applied}
	from, wrongFrom := stripe.ParseScheme(t.Status.From)
	to, wrongTo := stripe.ParseScheme(t.Status.To)
	switch {
	case t.Spec.RollbackOf != "":
		runner.Weight = weightBack
	case wrongFrom == nil && wrongTo == nil && to.Overhead() > from.Overhead():
		runner.Weight = weightHeating
	}
	if throttle := t.Spec.BytesPerSecond; throttle != nil {
		runner.Throttle = max(1, throttle.Value())
	}
	if t.Status.CompletionTime == nil {
		paused := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionPaused)
		runner.Wants = meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionProgressing) ||
			paused != nil && paused.Status == metav1.ConditionTrue && paused.Reason == ReasonBudgetUsedUp
	}
	return runner
}

// Allocate gives every runner its grant. Grants may be applied in any order, and some of them not at all: as raises come
// only from what nobody has been told yet, the sum at the gateways stays within the limits all the time; what a smaller
// grant frees is given away the next time. No more than Concurrency runners get any: those that run already first, then
// by weight, age and name. A runner that could get less than half its share starts the next time.
func Allocate(limits Limits, runners []Runner) map[string]Grant {
	grants := make(map[string]Grant, len(runners))
	chosen := choose(limits.Concurrency, runners)
	totals := divide(limits.Total, runners, chosen, func(r Runner) (applied, most int64) { return r.Applied.Total, r.Throttle })
	nodes := divide(limits.Node, runners, chosen, func(r Runner) (applied, most int64) { return r.Applied.Node, Unlimited })
	domains := divide(limits.Domain, runners, chosen, func(r Runner) (applied, most int64) { return r.Applied.Domain, Unlimited })
	for i, runner := range runners {
		grant := Grant{Total: totals[i], Node: nodes[i], Domain: domains[i]}
		if !grant.Runs() {
			grant = Grant{}
		}
		grants[runner.Name] = grant
	}
	return grants
}

// choose marks the runners that get a share.
func choose(concurrency int, runners []Runner) []bool {
	order := make([]int, 0, len(runners))
	for i, runner := range runners {
		if runner.Wants {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(compareTrue(runners[a].Applied.Runs(), runners[b].Applied.Runs()), cmp.Compare(runners[b].Weight, runners[a].Weight),
			runners[a].Created.Compare(runners[b].Created), cmp.Compare(runners[a].Name, runners[b].Name))
	})
	chosen := make([]bool, len(runners))
	for _, i := range order[:min(max(1, concurrency), len(order))] {
		chosen[i] = true
	}
	return chosen
}

// compareTrue orders true before false.
func compareTrue(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// divide shares one limit among the chosen and holds raises to what is free now.
func divide(limit int64, runners []Runner, chosen []bool, of func(Runner) (applied, most int64)) []int64 {
	shares := fairShares(limit, runners, chosen, of)
	if limit == Unlimited {
		return shares
	}
	free := limit
	for _, runner := range runners {
		applied, _ := of(runner)
		free -= min(applied, free) // what is applied may be over a limit that was lowered
	}
	for i, runner := range runners {
		applied, _ := of(runner)
		if shares[i] <= applied {
			continue
		}
		raise := min(shares[i]-applied, free)
		if !runner.Applied.Runs() && raise < (shares[i]+1)/2 {
			shares[i] = applied
			continue
		}
		free -= raise
		shares[i] = applied + raise
	}
	return shares
}

// fairShares is weighted max-min fairness: nobody gets more than its own limit, and what it leaves goes to the others.
func fairShares(limit int64, runners []Runner, chosen []bool, of func(Runner) (applied, most int64)) []int64 {
	shares := make([]int64, len(runners))
	var open []int
	for i := range runners {
		if chosen[i] {
			open = append(open, i)
		}
	}
	if limit == Unlimited {
		for _, i := range open {
			_, shares[i] = of(runners[i])
		}
		return shares
	}
	for left := limit; len(open) > 0; {
		weights := 0
		for _, i := range open {
			weights += max(1, runners[i].Weight)
		}
		fair := func(i int) int64 {
			return int64(float64(left) / float64(weights) * float64(max(1, runners[i].Weight)))
		}
		capped := slices.IndexFunc(open, func(i int) bool { _, most := of(runners[i]); return most <= fair(i) })
		if capped < 0 {
			for _, i := range open {
				shares[i] = fair(i)
			}
			break
		}
		i := open[capped]
		_, shares[i] = of(runners[i])
		left -= shares[i]
		open = slices.Delete(open, capped, capped+1)
	}
	return shares
}

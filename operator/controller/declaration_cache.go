package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/decide"
	"github.com/restripe/restripe/operator/reliability"
)

// declarationCache remembers how policies read, as cutting layouts and parsing windows takes longer than all the rest of a look.
type declarationCache struct {
	mutex sync.Mutex
	all   map[types.UID]cachedDeclaration
}

type cachedDeclaration struct {
	generation  int64
	codes       decide.Schemes
	ladder      string                 // chosen for a reliability target
	choice      *v1alpha1.LadderChoice // of the ladder
	declaration *decide.Declaration
	wrong       *decide.Problem
}

// read returns a policy read and resolved, or what is wrong with it.
func (c *declarationCache) read(
	ctx context.Context,
	b *base,
	policy *v1alpha1.RedundancyPolicy,
	backend *v1alpha1.StorageBackend,
) (*decide.Declaration, *decide.Problem, error) {
	codes, err := b.schemes(ctx, namesOn(policy)...)
	if err != nil {
		return nil, nil, err
	}
	ladder, choice, wrong := targetLadder(policy, backend)
	if wrong != nil {
		return nil, wrong, nil
	}
	c.mutex.Lock()
	known, found := c.all[policy.UID]
	c.mutex.Unlock()
	if found && known.generation == policy.Generation && known.ladder == ladder.String() && equal(known.choice, choice) &&
		maps.Equal(known.codes, codes) {
		return known.declaration, known.wrong, nil
	}
	made := cachedDeclaration{generation: policy.Generation, codes: codes, ladder: ladder.String(), choice: choice}
	made.declaration, made.wrong = decide.Declare(policy, codes, func(v1alpha1.Reliability) (stripe.Ladder, error) { return ladder, nil })
	if made.declaration != nil {
		made.declaration.Choice = choice
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.all == nil {
		c.all = map[types.UID]cachedDeclaration{}
	}
	c.all[policy.UID] = made
	return made.declaration, made.wrong, nil
}

func (c *declarationCache) forget(policy types.UID) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.all, policy)
}

// namesOn returns every scheme that a policy names.
func namesOn(policy *v1alpha1.RedundancyPolicy) []v1alpha1.SchemeName {
	names := append([]v1alpha1.SchemeName{policy.Spec.Default}, policy.Spec.Ladder...)
	if policy.Spec.Pin != nil {
		names = append(names, policy.Spec.Pin.Scheme)
	}
	if policy.Spec.Temperature != nil {
		for _, rule := range policy.Spec.Temperature.Rules {
			names = append(names, rule.Scheme)
		}
	}
	return names
}

// targetLadder works out the ladder of a policy with a reliability target, and what it is chosen for; nil without one. What
// was chosen for a target stays chosen until the target is another one or a person asks for another choice: a ladder that
// changed with every lost node, or every edit of something else, would move everything.
func targetLadder(
	policy *v1alpha1.RedundancyPolicy, backend *v1alpha1.StorageBackend,
) (stripe.Ladder, *v1alpha1.LadderChoice, *decide.Problem) {
	if policy.Spec.Reliability == nil || len(policy.Spec.Ladder) > 0 {
		return nil, nil, nil
	}
	choice := &v1alpha1.LadderChoice{Target: targetText(*policy.Spec.Reliability), Request: policy.Annotations[v1alpha1.ChooseLadder]}
	before, there := policy.Status.LadderChoice, parseLadder(policy.Status.Ladder)
	if there != nil && before != nil && before.Target == choice.Target {
		if choice.Request == "" || choice.Request == before.Request {
			return there, before, nil
		}
		if backend == nil || backend.Status.LastSeen == nil {
			return there, before, nil // a choice that cannot be made yet ends no other
		}
	}
	ladder, wrong := chooseLadder(policy, backend)
	if wrong != nil {
		return nil, nil, wrong
	}
	choice.Replaces = there != nil && (!slices.Equal(there, ladder) || before != nil && before.Replaces)
	return ladder, choice, nil
}

// targetText is a target with its defaults.
func targetText(declared v1alpha1.Reliability) string {
	t := reliability.TargetOf(declared, 0, 0)
	return fmt.Sprintf("%g nines, at most %g bytes stored per byte, where %g %% of the nodes fail in a year and %g bytes a second rebuild one",
		t.Nines, t.MaxOverhead, t.Environment.FailurePercent, t.Environment.RepairBandwidth)
}

// chooseLadder works a ladder out for the nodes there are.
func chooseLadder(policy *v1alpha1.RedundancyPolicy, backend *v1alpha1.StorageBackend) (stripe.Ladder, *decide.Problem) {
	if backend == nil || backend.Status.LastSeen == nil {
		return nil, &decide.Problem{
			Reason:  decide.ReasonTargetOutOfReach,
			Message: "the ladder is worked out when the nodes of backend " + policy.Spec.BackendRef + " are known; see its conditions",
		}
	}
	nodes, domains := len(backend.Status.Nodes), map[string]bool{}
	var capacity int64
	for _, node := range backend.Status.Nodes {
		capacity = max(capacity, node.CapacityBytes)
		if node.FailureDomain != "" {
			domains[node.FailureDomain] = true
		}
	}
	if n := len(domains); n > 0 {
		nodes = min(nodes, n)
	}
	choice, err := reliability.Choose(reliability.TargetOf(*policy.Spec.Reliability, nodes, capacity))
	if err != nil {
		return nil, &decide.Problem{Reason: decide.ReasonTargetOutOfReach, Message: oneLine(err)}
	}
	return choice.Ladder, nil
}

// parseLadder reads the ladder of a status; nil where there is none.
func parseLadder(codes []string) stripe.Ladder {
	var ladder stripe.Ladder
	for _, code := range codes {
		scheme, err := stripe.ParseScheme(code)
		if err != nil {
			return nil
		}
		ladder = append(ladder, scheme)
	}
	return ladder
}

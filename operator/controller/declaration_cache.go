package controller

import (
	"context"
	"maps"
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
	ladder      string // chosen for a reliability target
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
	ladder, wrong := targetLadder(policy, backend)
	if wrong != nil {
		return nil, wrong, nil
	}
	c.mutex.Lock()
	known, found := c.all[policy.UID]
	c.mutex.Unlock()
	if found && known.generation == policy.Generation && known.ladder == ladder.String() && maps.Equal(known.codes, codes) {
		return known.declaration, known.wrong, nil
	}
	made := cachedDeclaration{generation: policy.Generation, codes: codes, ladder: ladder.String()}
	made.declaration, made.wrong = decide.Declare(policy, codes, func(v1alpha1.Reliability) (stripe.Ladder, error) { return ladder, nil })
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

// targetLadder works out the ladder of a policy with a reliability target; nil without one. What was chosen for this
// generation stays chosen: a ladder that changed with every lost node would move everything.
func targetLadder(policy *v1alpha1.RedundancyPolicy, backend *v1alpha1.StorageBackend) (stripe.Ladder, *decide.Problem) {
	if policy.Spec.Reliability == nil || len(policy.Spec.Ladder) > 0 {
		return nil, nil
	}
	if policy.Status.ObservedGeneration == policy.Generation && len(policy.Status.Ladder) > 0 {
		if ladder, err := parseLadder(policy.Status.Ladder); err == nil {
			return ladder, nil
		}
	}
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

func parseLadder(codes []string) (stripe.Ladder, error) {
	var ladder stripe.Ladder
	for _, code := range codes {
		scheme, err := stripe.ParseScheme(code)
		if err != nil {
			return nil, err
		}
		ladder = append(ladder, scheme)
	}
	return ladder, nil
}

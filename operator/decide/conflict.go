package decide

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// Claim is what a policy claims on a backend.
type Claim struct {
	Policy   string
	Created  time.Time
	Backend  string
	Class    string
	Prefixes []string
}

// NewClaim returns the claim of a policy.
func NewClaim(policy *v1alpha1.RedundancyPolicy) Claim {
	return Claim{
		Policy: policy.Name, Created: policy.CreationTimestamp.Time, Backend: policy.Spec.BackendRef,
		Class: ClassName(policy), Prefixes: policy.Spec.Selector.Prefixes,
	}
}

// before is the order of precedence: the older policy, of equally old ones the lesser name.
func (c Claim) before(other Claim) int {
	return cmp.Or(c.Created.Compare(other.Created), cmp.Compare(c.Policy, other.Policy))
}

// Conflicts returns what is wrong with the claims that cannot stand beside older ones, by policy. On one backend a
// prefix and a class belong to one policy each: the older one keeps them (creationTimestamp, then name), the other is
// refused as a whole and claims nothing. Prefixes of different length do not conflict: the longest match wins, see
// Match. Leave out policies that are not accepted for reasons of their own; they claim nothing either.
func Conflicts(claims []Claim) map[string]*Problem {
	type place struct{ backend, name string }
	classes, prefixes := map[place]string{}, map[place]string{}
	refused := map[string]*Problem{}
	for _, claim := range slices.SortedFunc(slices.Values(claims), Claim.before) {
		if wrong := claim.conflict(func(name string) string { return classes[place{claim.Backend, name}] },
			func(prefix string) string { return prefixes[place{claim.Backend, prefix}] }); wrong != nil {
			refused[claim.Policy] = wrong
			continue
		}
		classes[place{claim.Backend, claim.Class}] = claim.Policy
		for _, prefix := range claim.Prefixes {
			prefixes[place{claim.Backend, prefix}] = claim.Policy
		}
	}
	return refused
}

func (c Claim) conflict(classOf, prefixOf func(string) string) *Problem {
	if other := classOf(c.Class); other != "" {
		return problem(ReasonConflict, "class %s of backend %s belongs to the older policy %s; choose another selector.class, or delete one of the two", c.Class, c.Backend, other)
	}
	for _, prefix := range c.Prefixes {
		if other := prefixOf(prefix); other != "" {
			return problem(ReasonConflict, "prefix %q on backend %s belongs to the older policy %s; choose a longer prefix, or delete one of the two", prefix, c.Backend, other)
		}
	}
	return nil
}

// Match returns the policy that a key of a backend falls under: the one with the longest matching prefix among those
// that Conflicts does not refuse.
func Match(claims []Claim, backend, key string) (policy string, found bool) {
	refused, longest := Conflicts(claims), -1
	for _, claim := range claims {
		if claim.Backend != backend || refused[claim.Policy] != nil {
			continue
		}
		for _, prefix := range claim.Prefixes {
			if strings.HasPrefix(key, prefix) && len(prefix) > longest {
				policy, longest = claim.Policy, len(prefix)
			}
		}
	}
	return policy, longest >= 0
}

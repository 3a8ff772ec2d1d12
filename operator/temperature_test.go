package operator_test

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/heat/shadow"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/gateways/gatewaysfake"
	"github.com/restripe/restripe/operator/price"
)

const automatic = `apiVersion: restripe.io/v1alpha1
kind: RedundancyPolicy
metadata: {name: media}
spec:
  backendRef: disks
  selector: {prefixes: [media/]}
  ladder: [rep(3), 'rs(4,2)', 'rs(12,2)']
  temperature: {}
`

// Under mode auto the gateways have the prices of the ladder and what the leader counts by; another candidate leads when the
// books that the gateways keep say so, once a day; and rules end that, with books of their own.
func TestTheCandidateThatCostsLeastLeads(t *testing.T) {
	w := newWorld(t)
	g := w.gateway("disks")
	w.apply(backend("disks"), automatic)
	w.operator()
	w.eventually("the first candidate leads", func() bool {
		policy := w.policy("media")
		return policy != nil && policy.Status.Temperature != nil
	})
	candidates := shadow.Candidates(3)
	class := classOf(t, g, "media")
	ladder := stripe.Ladder{stripe.Replicas(3), stripe.RS(4, 2), stripe.RS(12, 2)}
	prices, err := price.Default().Rungs(ladder, api.DefaultGroupBytes)
	if err != nil {
		t.Fatal(err)
	}
	first := candidates[shadow.First]
	if !reflect.DeepEqual(class.Prices, &prices) || class.HalfLife != first.HalfLife.String() || class.Dwell != first.Dwell.String() {
		t.Errorf("the class at the gateways is %+v", class)
	}
	status := w.policy("media").Status.Temperature
	if status.Candidate != candidates[shadow.First].Name() || status.LookedAt != nil || len(status.Candidates) != len(candidates) {
		t.Errorf("the status is %+v", status)
	}

	const better = 4
	books := func(days float64) *api.Shadows {
		shadows := &api.Shadows{Since: w.clock.Now().Add(-time.Hour).Truncate(time.Second), Days: days, Followed: 10, Groups: 10, Done: 11 * days * (1 << 30)}
		for i, candidate := range candidates {
			cost := 10 * days * (1 << 30)
			if i == better {
				cost /= 2
			}
			shadows.Candidates = append(shadows.Candidates, api.ShadowCost{Name: candidate.Name(), Cost: cost})
		}
		return shadows
	}
	began := books(0)
	gatewaysfake.SetShadows(g, "media", began)
	w.eventually("the books are opened", func() bool { return w.policy("media").Status.Temperature.LookedAt != nil })
	const days = 4 // until another one may lead
	for day := range days {
		after := books(float64(day + 1))
		after.Since = began.Since
		gatewaysfake.SetShadows(g, "media", after)
		w.converged("media") // looks without a comparison: it is the same day
		policy := w.policy("media")
		now := policy.Status.Temperature
		if now.Candidate != candidates[shadow.First].Name() {
			t.Fatalf("another one leads on day %d: %+v", day+1, now)
		}
		earlier := now.LookedAt.Add(-25 * time.Hour)
		now.LookedAt.Time = earlier
		if err := w.client.Status().Update(t.Context(), policy); err != nil {
			t.Fatal(err)
		}
		w.eventually("candidates are compared", func() bool { return w.policy("media").Status.Temperature.LookedAt.After(earlier) })
	}
	w.eventually("another one leads", func() bool { return w.policy("media").Status.Temperature.Candidate == candidates[better].Name() })
	status = w.policy("media").Status.Temperature
	// Half as much, of which what is longer ago counts less: how much less depends on how long each look took to come.
	costs := regexp.MustCompile(`would have cost (\d+\.\d+) since .* cost (\d+\.\d+);`).FindStringSubmatch(status.Reason)
	if costs == nil || status.Paid != "44.00" {
		t.Fatalf("it leads as %q; paid %s", status.Reason, status.Paid)
	}
	its, err := strconv.ParseFloat(costs[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	others, err := strconv.ParseFloat(costs[2], 64)
	if err != nil {
		t.Fatal(err)
	}
	if its < 18 || its > 20 || math.Abs(others-2*its) > 0.02 {
		t.Errorf("it leads as %q", status.Reason)
	}
	w.eventually("the gateways count as it does", func() bool {
		return classOf(t, g, "media").HalfLife == candidates[better].HalfLife.String()
	})

	w.patch(w.policy("media"), `{"spec":{"temperature":{"halfLife":"1h","dwell":"1h","rules":[{"scheme":"rs(12,2)","below":1}]}}}`)
	w.eventually("rules rule", func() bool {
		class := classOf(t, g, "media")
		status := w.policy("media").Status.Temperature
		return status != nil && status.Candidate == "rules" && class.Prices != nil && !class.Expected && class.HalfLife == "1h0m0s"
	})
	unbroken(t, g)
}

// What is cold gets colder from the first hour on, and nothing is sent before anything is known.
func TestTheFirstDayUnderModeAuto(t *testing.T) {
	w := newWorld(t)
	g := w.gateway("disks")
	w.apply(backend("disks"), automatic)
	w.operator()
	w.eventually("the class is known", func() bool { return len(must(g.Classes(t.Context()))) > 0 })
	w.fill(g, "media", "rep(3)", 0, 100)
	w.fill(g, "media", "rs(12,2)", 500, 100)
	w.eventually("what is cold is on the coldest step", func() bool { return g.Groups("media")["rs(12,2)"] == 200 })
	w.converged("media")
	for _, transition := range w.transitions() {
		if transition.Spec.To != "rs(12,2)" {
			t.Errorf("on the first day there is %+v", transition.Spec)
		}
	}
	unbroken(t, g)
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(fmt.Sprint(err))
	}
	return value
}

package operator

import (
	"context"
	"flag"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/playbooks/monitoring"
)

var updateMetrics = flag.Bool("update-metrics", false, "write the table of docs/metrics.md anew")

// onePolicy is a cache with one policy and nothing else.
type onePolicy struct {
	client.Reader
	policy v1alpha1.RedundancyPolicy
}

// List implements client.Reader.
func (o onePolicy) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if policies, is := list.(*v1alpha1.RedundancyPolicyList); is {
		policies.Items = []v1alpha1.RedundancyPolicy{o.policy}
	}
	return nil
}

// What an operator shows is in the table, and keeps to the rules of Prometheus; conditions are 1, 0 or not there.
func TestMetricsAreInTheTable(t *testing.T) {
	cache := onePolicy{}
	cache.policy.Name = "photos"
	cache.policy.Status.Savings = &v1alpha1.Savings{SavedBytes: 7}
	cache.policy.Status.Temperature = &v1alpha1.TemperatureStatus{
		Candidate: "always 0", Done: "3221225472", Candidates: []v1alpha1.TemperatureCandidate{
			{Name: "72h", Text: "by use", Cost: "1073741824"}, {Name: "always 0", Text: "everything on rep(3)", Cost: "2147483648"},
		},
	}
	cache.policy.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionFeasible, Status: metav1.ConditionFalse, Reason: "TooFewNodes"},
		{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: "Accepted"},
		{Type: v1alpha1.ConditionPlanned, Status: metav1.ConditionUnknown, Reason: "NotPlanned"},
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(&declared{reader: cache, log: slog.New(slog.DiscardHandler)})
	problems, err := monitoring.Problems(registry, "../docs/metrics.md", "Operator", *updateMetrics)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Error(problem)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			values[name] = metric.GetGauge().GetValue()
		}
	}
	want := map[string]float64{
		"restripe_condition Feasible RedundancyPolicy photos TooFewNodes": 0,
		"restripe_condition Accepted RedundancyPolicy photos Accepted":    1,
		"restripe_policy_saved_bytes photos":                              7,
		"restripe_policy_temperature_paid photos":                         3,
		"restripe_policy_temperature_cost by use photos":                  1,
		"restripe_policy_temperature_cost everything on rep(3) photos":    2,
		"restripe_policy_temperature_leader everything on rep(3) photos":  1,
	}
	for name, value := range want {
		if have, found := values[name]; !found || have != value {
			t.Errorf("%s is %v (%v), want %v", name, have, found, value)
		}
	}
	if len(values) != len(want) {
		t.Errorf("shown are %v", values)
	}
}

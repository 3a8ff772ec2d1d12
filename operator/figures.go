package operator

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/price"
)

// declared shows what is declared and what became of it, as the operator's caches have it.
type declared struct {
	reader client.Reader
	log    *slog.Logger
}

// figuresPatience bounds what figures wait for caches that are not filled yet.
const figuresPatience = 5 * time.Second

var conditionFigure = prometheus.NewDesc("restripe_condition",
	"1 for a condition of a declared object that is true, 0 for one that is false; absent where it is unknown.",
	[]string{"kind", "name", "condition", "reason"}, nil)

var savedFigure = prometheus.NewDesc("restripe_policy_saved_bytes",
	"Bytes that a policy spares beside keeping everything on the first step of its ladder.", []string{"policy"}, nil)

var paidFigure = prometheus.NewDesc("restripe_policy_temperature_paid",
	"What a class with temperature cost so far where its groups really were, in the currency of the price table.",
	[]string{"policy"}, nil)

var candidateFigure = prometheus.NewDesc("restripe_policy_temperature_cost",
	"What each way to choose the steps of the groups of a class would have cost over the same time.", []string{"policy", "candidate"}, nil)

var leaderFigure = prometheus.NewDesc("restripe_policy_temperature_leader",
	"1 for the candidate of temperature mode auto that leads.", []string{"policy", "candidate"}, nil)

// Describe implements prometheus.Collector.
func (f *declared) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- conditionFigure
	descriptions <- savedFigure
	descriptions <- paidFigure
	descriptions <- candidateFigure
	descriptions <- leaderFigure
}

// collectRegret shows what was paid beside what others would have cost.
func collectRegret(metrics chan<- prometheus.Metric, policy string, regret price.Regret) {
	metrics <- prometheus.MustNewConstMetric(paidFigure, prometheus.GaugeValue, regret.Paid, policy)
	for _, way := range regret.Ways {
		metrics <- prometheus.MustNewConstMetric(candidateFigure, prometheus.GaugeValue, way.Paid, policy, way.Text)
		if way.Leads {
			metrics <- prometheus.MustNewConstMetric(leaderFigure, prometheus.GaugeValue, 1, policy, way.Text)
		}
	}
}

// Collect implements prometheus.Collector.
func (f *declared) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), figuresPatience)
	defer cancel()
	show := func(kind, name string, conditions []metav1.Condition) {
		for _, condition := range conditions {
			value := 0.0
			switch condition.Status {
			case metav1.ConditionTrue:
				value = 1
			case metav1.ConditionUnknown:
				continue
			}
			labels := []string{kind, name, condition.Type, condition.Reason}
			metrics <- prometheus.MustNewConstMetric(conditionFigure, prometheus.GaugeValue, value, labels...)
		}
	}
	list := func(of client.ObjectList) bool {
		err := f.reader.List(ctx, of)
		if err != nil {
			f.log.Warn("figures lack what is declared", "cause", err)
		}
		return err == nil
	}
	var policies v1alpha1.RedundancyPolicyList
	if list(&policies) {
		for i := range policies.Items {
			policy := &policies.Items[i]
			show("RedundancyPolicy", policy.Name, policy.Status.Conditions)
			if savings := policy.Status.Savings; savings != nil {
				metrics <- prometheus.MustNewConstMetric(savedFigure, prometheus.GaugeValue, float64(savings.SavedBytes), policy.Name)
			}
			if temperature := policy.Status.Temperature; temperature != nil {
				collectRegret(metrics, policy.Name, price.RegretOf(temperature))
			}
		}
	}
	var transitions v1alpha1.TransitionList
	if list(&transitions) {
		for i := range transitions.Items {
			show("Transition", transitions.Items[i].Name, transitions.Items[i].Status.Conditions)
		}
	}
	var backends v1alpha1.StorageBackendList
	if list(&backends) {
		for i := range backends.Items {
			show("StorageBackend", backends.Items[i].Name, backends.Items[i].Status.Conditions)
		}
	}
}

package decide

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// conditions are those of one kind, being built. Every type of the kind is there from the beginning.
type conditions struct {
	list       []metav1.Condition
	generation int64
}

// Types of conditions of each kind, in the order they are shown.
var (
	movingTypes = []string{
		v1alpha1.ConditionAccepted, v1alpha1.ConditionFeasible, v1alpha1.ConditionPlanned, v1alpha1.ConditionAwaitingApproval,
		v1alpha1.ConditionProgressing, v1alpha1.ConditionPaused, v1alpha1.ConditionDegraded, v1alpha1.ConditionConverged,
		v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled,
	}
	policyTypes  = slices.Insert(slices.Clone(movingTypes), slices.Index(movingTypes, v1alpha1.ConditionDegraded), v1alpha1.ConditionPinned)
	backendTypes = []string{
		v1alpha1.ConditionAccepted, v1alpha1.ConditionCatalogBehind, v1alpha1.ConditionDegraded, v1alpha1.ConditionManaged,
		v1alpha1.ConditionNodesAdded, v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled,
	}
	schemeTypes = []string{
		v1alpha1.ConditionAccepted, v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled,
	}
)

func newConditions(types []string, generation int64) *conditions {
	c := conditions{generation: generation}
	for _, name := range types {
		c.set(name, metav1.ConditionUnknown, ReasonNotChecked, "not looked at yet")
	}
	return &c
}

func (c *conditions) set(name string, status metav1.ConditionStatus, reason, message string) {
	condition := metav1.Condition{Type: name, Status: status, ObservedGeneration: c.generation, Reason: reason, Message: clip(message, longestMessage)}
	if i := slices.IndexFunc(c.list, func(old metav1.Condition) bool { return old.Type == name }); i >= 0 {
		c.list[i] = condition
		return
	}
	c.list = append(c.list, condition)
}

// longestMessage keeps objects small; the API's limit is 32 KiB.
const longestMessage = 1024

func (c *conditions) yes(name, reason, message string) {
	c.set(name, metav1.ConditionTrue, reason, message)
}

func (c *conditions) no(name, reason, message string) {
	c.set(name, metav1.ConditionFalse, reason, message)
}

func (c *conditions) unknown(name, reason, message string) {
	c.set(name, metav1.ConditionUnknown, reason, message)
}

// when sets a condition that is true because of a problem, and false without.
func (c *conditions) when(name string, why *Problem, otherwise, message string) {
	if why != nil {
		c.yes(name, why.Reason, why.Message)
		return
	}
	c.no(name, otherwise, message)
}

// unless sets a condition that is false because of a problem, and true without.
func (c *conditions) unless(name string, why *Problem, otherwise, message string) {
	if why != nil {
		c.no(name, why.Reason, why.Message)
		return
	}
	c.yes(name, otherwise, message)
}

// kstatus sets the three conditions of kstatus: stalled, else reconciling, else ready.
func (c *conditions) kstatus(stalled, reconciling *Problem, ready string) {
	c.when(v1alpha1.ConditionStalled, stalled, ReasonNotStalled, "")
	if stalled != nil {
		c.no(v1alpha1.ConditionReady, stalled.Reason, stalled.Message)
		c.no(v1alpha1.ConditionReconciling, stalled.Reason, "")
		return
	}
	c.when(v1alpha1.ConditionReconciling, reconciling, ReasonSettled, "")
	c.unless(v1alpha1.ConditionReady, reconciling, ReasonReady, ready)
}

// since returns the conditions with the times of the earlier ones where the status did not change. Earlier conditions of
// other types are left out.
func (c *conditions) since(earlier []metav1.Condition, now time.Time) []metav1.Condition {
	for i := range c.list {
		condition := &c.list[i]
		condition.LastTransitionTime = metav1.Time{Time: now.Truncate(time.Second)}
		if old := meta.FindStatusCondition(earlier, condition.Type); old != nil && old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
		}
	}
	return c.list
}

// observedAgain returns conditions that hold for a newer generation as they are.
func observedAgain(list []metav1.Condition, generation int64) []metav1.Condition {
	list = slices.Clone(list)
	for i := range list {
		list[i].ObservedGeneration = generation
	}
	return list
}

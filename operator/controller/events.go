package controller

import (
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// announcer tells of changes of conditions: once each, as an Event where the API server has them, and in the log.
type announcer struct {
	events events.EventRecorder // nil: the API server has none
	log    *slog.Logger
}

// troubles are the conditions that are bad news when true; the others are when false.
var troubles = map[string]bool{v1alpha1.ConditionCatalogBehind: true, v1alpha1.ConditionDegraded: true, v1alpha1.ConditionStalled: true}

// told are the conditions whose changes are announced. The others follow from them.
var told = []string{
	v1alpha1.ConditionAccepted, v1alpha1.ConditionFeasible, v1alpha1.ConditionAwaitingApproval, v1alpha1.ConditionProgressing,
	v1alpha1.ConditionPaused, v1alpha1.ConditionDegraded, v1alpha1.ConditionNodesAdded, v1alpha1.ConditionConverged,
}

// changed announces each condition that has another status or reason than before. The first visit announces only what
// is wrong: that everything is well is no news.
func (a *announcer) changed(object client.Object, was, is []metav1.Condition) {
	for _, kind := range told {
		now := meta.FindStatusCondition(is, kind)
		if now == nil {
			continue
		}
		before := meta.FindStatusCondition(was, kind)
		if before != nil && before.Status == now.Status && before.Reason == now.Reason {
			continue
		}
		bad := isBad(now)
		if before == nil && !bad {
			continue
		}
		a.log.Info(now.Message, "object", object.GetName(), "condition", kind, "status", now.Status, "reason", now.Reason)
		if a.events == nil {
			continue
		}
		level := corev1.EventTypeNormal
		if bad {
			level = corev1.EventTypeWarning
		}
		a.events.Eventf(object, nil, level, now.Reason, kind, "%s", now.Message)
	}
}

// added announces that a node was made a member, and with what.
func (a *announcer) added(backend *v1alpha1.StorageBackend, node *v1alpha1.BackendNode, isBalanced bool) {
	a.log.Info("a node was added", "object", backend.Name, "node", node.Name, "address", node.Address)
	if a.events == nil {
		return
	}
	then := ""
	if isBalanced {
		then = "; blocks are moved to it until every node holds about its share"
	}
	a.events.Eventf(backend, nil, corev1.EventTypeNormal, "NodeAdded", "Add",
		"node %s at %s was added to the cluster%s", node.Name, node.Address, then)
}

// led announces that another candidate leads a class, and why.
func (a *announcer) led(policy *v1alpha1.RedundancyPolicy, was, is *v1alpha1.TemperatureStatus) {
	if was == nil || is == nil || was.Candidate == is.Candidate || was.Ladder != is.Ladder || is.LookedAt == nil {
		return // nobody took the lead: another ladder, or other rules
	}
	a.log.Info("another way to choose the steps of groups leads", "object", policy.Name, "leader", is.Leader, "reason", is.Reason)
	if a.events != nil {
		a.events.Eventf(policy, nil, corev1.EventTypeNormal, "LeaderChanged", "Temperature", "%s leads: %s", is.Leader, is.Reason)
	}
}

func isBad(condition *metav1.Condition) bool {
	switch condition.Type {
	case v1alpha1.ConditionAccepted, v1alpha1.ConditionFeasible, v1alpha1.ConditionNodesAdded:
		return condition.Status == metav1.ConditionFalse
	}
	return troubles[condition.Type] && condition.Status == metav1.ConditionTrue
}

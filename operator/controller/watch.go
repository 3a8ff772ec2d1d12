package controller

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// requests are for objects by their names, each once.
func requests(names ...string) []reconcile.Request {
	list := make([]reconcile.Request, 0, len(names))
	seen := map[string]bool{}
	for _, name := range names {
		if name != "" && !seen[name] {
			seen[name] = true
			list = append(list, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		}
	}
	return list
}

// leaves passes everything but what begins to be.
var leaves = predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false }}

// backendTurns passes changes of a backend that policies and transitions depend on: not how full it is.
var backendTurns = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	was, is := e.ObjectOld.(*v1alpha1.StorageBackend), e.ObjectNew.(*v1alpha1.StorageBackend)
	return was.Generation != is.Generation || (was.Status.LastSeen == nil) != (is.Status.LastSeen == nil) ||
		turned(was.Status.Conditions, is.Status.Conditions) || was.Status.Summary.Nodes != is.Status.Summary.Nodes ||
		len(was.Status.Nodes) != len(is.Status.Nodes) || was.Status.Capabilities != is.Status.Capabilities
}}

// transitionTurns passes changes of a transition that its policy and other transitions depend on: not how far it is.
var transitionTurns = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	was, is := e.ObjectOld.(*v1alpha1.Transition), e.ObjectNew.(*v1alpha1.Transition)
	return was.Generation != is.Generation || (was.Status.CompletionTime == nil) != (is.Status.CompletionTime == nil) ||
		(was.Status.StartTime == nil) != (is.Status.StartTime == nil) || turned(was.Status.Conditions, is.Status.Conditions)
}}

// policyTurns passes changes of a policy that its transitions depend on.
var policyTurns = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	was, is := e.ObjectOld.(*v1alpha1.RedundancyPolicy), e.ObjectNew.(*v1alpha1.RedundancyPolicy)
	return was.Generation != is.Generation ||
		meta.IsStatusConditionTrue(was.Status.Conditions, v1alpha1.ConditionAccepted) != meta.IsStatusConditionTrue(is.Status.Conditions, v1alpha1.ConditionAccepted)
}}

// turned reports whether a condition has another status or reason.
func turned(was, is []metav1.Condition) bool {
	if len(was) != len(is) {
		return true
	}
	for i := range is {
		before := meta.FindStatusCondition(was, is[i].Type)
		if before == nil || before.Status != is[i].Status || before.Reason != is[i].Reason {
			return true
		}
	}
	return false
}

// keepMessages gives conditions the messages that they had, where they say the same for programs.
func keepMessages(is, was []metav1.Condition) {
	for i := range is {
		if before := meta.FindStatusCondition(was, is[i].Type); before != nil && before.Reason == is[i].Reason {
			is[i].Message = before.Message
		}
	}
}

// byAge orders transitions: the older first, of equally old ones the lesser name.
func byAge(a, b *v1alpha1.Transition) int {
	return cmp.Or(a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

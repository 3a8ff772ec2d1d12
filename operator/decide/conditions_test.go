package decide

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// verdicts are the statuses of conditions, T, F or U, in the order of their types.
func verdicts(list []metav1.Condition, types []string) string {
	text := ""
	for _, name := range types {
		if condition := meta.FindStatusCondition(list, name); condition != nil {
			text += string(condition.Status[0])
		}
	}
	return text
}

func TestPolicyConditions(t *testing.T) {
	now := time.Unix(1000, 0)
	transition := func(condition string, status metav1.ConditionStatus, reason string) v1alpha1.Transition {
		return v1alpha1.Transition{ObjectMeta: metav1.ObjectMeta{Name: "media-rs12-2-1"}, Spec: v1alpha1.TransitionSpec{PolicyRef: "media"},
			Status: v1alpha1.TransitionStatus{Conditions: []metav1.Condition{{Type: condition, Status: status, Reason: reason, Message: "so"}}}}
	}
	selected := Selected{Candidate: cold(312, 1<<30, stripe.RS(4, 2))}
	refused := []Refused{{Move: cold(1, 1, stripe.RS(4, 2)).Move, Verdict: Verdict{Refused: true, Message: "pays back in 13.7 months, limit 6"}}}
	stuck := []Refused{{Move: cold(1, 1, stripe.RS(4, 2)).Move, Verdict: Verdict{Refused: true, Stuck: true, Message: "cannot"}}}
	// Accepted Feasible Planned AwaitingApproval Progressing Paused Degraded Converged Ready Reconciling Stalled
	for _, c := range []struct {
		intent string
		change func(v *PolicyView)
		want   string
		says   string // by Converged
	}{
		{"nothing to move", func(*PolicyView) {}, "TTTFFFFTTFF", "everything is where the policy wants it"},
		{"declined", func(v *PolicyView) { v.Declaration, v.Declined = nil, problem(ReasonConflict, "taken") }, "FUUFFFFFFFT", "taken"},
		{"not feasible", func(v *PolicyView) { v.Refusal = problem(ReasonTooFewNodes, "13 of 14") }, "TFFFFFFFFFT", "13 of 14"},
		{"backend not seen yet", func(v *PolicyView) { v.Refusal = problem(ReasonBackendUnknown, "wait") }, "TFFFFFFFFTF", "wait"},
		{"class not at the gateways yet", func(v *PolicyView) { v.NotPushed = problem(ReasonClassNotPushed, "soon") }, "TTFFFFFFFTF", "soon"},
		{"heat unknown", func(v *PolicyView) { v.Unknown = problem(ReasonHeatUnknown, "soon") }, "TTUFFFFFFTF", "soon"},
		{"about to move", func(v *PolicyView) { v.Choice.Create = []Selected{selected} }, "TTTFFFFFFTF", "has to move: cold"},
		{"moving", func(v *PolicyView) {
			v.Transitions = []v1alpha1.Transition{transition(v1alpha1.ConditionProgressing, metav1.ConditionTrue, ReasonMoving)}
		}, "TTTFTFFFFTF", "1 transition to go: media-rs12-2-1"},
		{"paused", func(v *PolicyView) {
			v.Transitions = []v1alpha1.Transition{transition(v1alpha1.ConditionPaused, metav1.ConditionTrue, ReasonWindowClosed)}
		}, "TTTFFTFFFTF", "1 transition"},
		{"trouble", func(v *PolicyView) {
			v.Transitions = []v1alpha1.Transition{transition(v1alpha1.ConditionDegraded, metav1.ConditionTrue, ReasonRetrying)}
		}, "TTTFFFTFFTF", "1 transition"},
		{"waiting for approval", func(v *PolicyView) {
			v.Transitions = []v1alpha1.Transition{transition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, ReasonApprovalNeeded)}
			v.Transitions[0].Spec.NeedsApproval = true
		}, "TTTTFFFFFTF", "1 transition"},
		{"an ended transition is history", func(v *PolicyView) {
			v.Transitions = []v1alpha1.Transition{transition(v1alpha1.ConditionDegraded, metav1.ConditionTrue, ReasonFailed)}
			v.Transitions[0].Status.CompletionTime = &metav1.Time{Time: now}
		}, "TTTFFFFTTFF", "everything"},
		{"not worthwhile counts as where it should be", func(v *PolicyView) { v.Choice.Refused = refused }, "TTTFFFFTTFF", "13.7 months"},
		{"what cannot move does not", func(v *PolicyView) { v.Choice.Refused = stuck }, "TTTFFFFFFFT", "cannot"},
		{"on hold with something to move", func(v *PolicyView) {
			v.Policy.Spec.StopPolicy, v.Choice.Later = v1alpha1.StopHold, []Candidate{selected.Candidate}
		}, "TTTFFTFFFTF", "has to move"},
		{"a closed window with something to move", func(v *PolicyView) {
			v.Permission, v.Choice.Later = Permission{Why: problem(ReasonWindowClosed, "night"), Next: now.Add(time.Hour)}, []Candidate{selected.Candidate}
		}, "TTTFFTFFFTF", "has to move"},
		{"a closed window with nothing to move", func(v *PolicyView) {
			v.Permission = Permission{Why: problem(ReasonWindowClosed, "night"), Next: now.Add(time.Hour)}
		}, "TTTFFFFTTFF", "everything"},
		{"nodes missing", func(v *PolicyView) { v.Degraded = problem(ReasonNodesMissing, "n3 down") }, "TTTFFFTTFTF", "everything is where"},
		{"no gateway answers any more", func(v *PolicyView) {
			v.Policy.Status = PolicyStatus(*v)
			v.Degraded = problem(ReasonGatewayDown, "refused")
			v.Unknown = v.Degraded
		}, "TTUFFFTTFTF", "everything was where the policy wants it when"},
		{"objects of another class", func(v *PolicyView) {
			v.Elsewhere = &Elsewhere{At: now, Current: true, Others: []ClassCount{{"default", 40, 1 << 20}, {"old", 2, 1 << 10}}}
		}, "TTTFFFFFFFT", "objects under its prefixes are of class default (40 objects, 1.0 MiB), class old (2 objects, 1.0 KiB), as counted at"},
		{"not counted for its prefixes yet", func(v *PolicyView) { v.Elsewhere = &Elsewhere{} }, "TTTFFFFFFTF", "being counted"},
		{"groups of another ladder", func(v *PolicyView) {
			v.Heat = &ClassHeat{Rungs: []RungHeat{{Scheme: stripe.Replicas(3), Groups: 9, OffLadder: 4}, {Scheme: stripe.RS(12, 2), Groups: 9, OffLadder: 3}}}
		}, "TTTFFFFTTFF", "everything is where the policy wants it; 7 groups of another ladder come under this one when they have to move"},
		{"objects that its prefixes do not select", func(v *PolicyView) {
			v.Elsewhere = &Elsewhere{Current: true, Kept: []ClassCount{{"default", 1, 1 << 10}}}
		}, "TTTFFFFTTFF", "everything is where the policy wants it; with 1 object (1.0 KiB) that its prefixes do not select"},
		{"being deleted", func(v *PolicyView) { v.Policy.DeletionTimestamp = &metav1.Time{Time: now} }, "TTTFFFFTFTF", "everything"},
	} {
		v := PolicyView{Now: now, Policy: mediaPolicy("rep(3) rs(4,2) rs(12,2)", "rs(12,2)<0.5"), Permission: Permission{Start: true, Run: true}}
		v.Policy.Generation = 3
		v.Declaration = mustDeclare(t, v.Policy)
		c.change(&v)
		status := PolicyStatus(v)
		checkConditions(t, c.intent, status.Conditions, policyTypes, 3)
		converged := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionConverged)
		if got := verdicts(status.Conditions, movingTypes); got != c.want || !strings.Contains(converged.Message, c.says) {
			t.Errorf("%s: %s %q, want %s %q", c.intent, got, converged.Message, c.want, c.says)
		}
	}
}

// Without temperature, what converged stays converged, whatever a person moves, until the next edit.
func TestConvergedWithoutTemperatureUntilAsked(t *testing.T) {
	v := PolicyView{Now: time.Unix(1000, 0), Policy: mediaPolicy("rep(3) rs(12,2)"), Permission: Permission{Start: true, Run: true}}
	v.Declaration = mustDeclare(t, v.Policy)
	if !Asked(v.Policy) {
		t.Error("a new policy asks for nothing")
	}
	v.Policy.Status = PolicyStatus(v)
	if Asked(v.Policy) {
		t.Error("a converged policy asks")
	}
	v.Unknown = problem(ReasonHeatUnknown, "the gateways were restarted")
	v.Policy.Status = PolicyStatus(v)
	if Asked(v.Policy) {
		t.Error("asks because the heat is unknown for a while")
	}
	v.Unknown, v.Elsewhere = nil, &Elsewhere{Current: true, Others: []ClassCount{{"default", 1, 1}}}
	v.Policy.Status = PolicyStatus(v)
	converged := meta.FindStatusCondition(v.Policy.Status.Conditions, v1alpha1.ConditionConverged)
	if converged.Reason != ReasonObjectsElsewhere || Asked(v.Policy) {
		t.Errorf("objects of another class: %+v, which must not bring back what a person moved", converged)
	}
	v.Unknown, v.Elsewhere = problem(ReasonHeatUnknown, "the gateways were restarted"), nil
	v.Policy.Generation++
	if !Asked(v.Policy) {
		t.Error("an edited policy asks for nothing")
	}
	v.Policy.Status = PolicyStatus(v)
	if !Asked(v.Policy) {
		t.Error("converged by an edit alone, with the heat unknown")
	}
}

func TestPolicyStatusSummary(t *testing.T) {
	v := PolicyView{Now: time.Unix(1000, 0), Policy: mediaPolicy("rep(3) rs(12,2)"), Permission: Permission{Next: time.Unix(5000, 0), Why: problem(ReasonWindowClosed, "night")}}
	v.Declaration = mustDeclare(t, v.Policy)
	v.Heat = &ClassHeat{Complete: true, Bytes: 13 << 28, Rungs: []RungHeat{ // and 3/4 GiB fill the last cells up
		{Scheme: stripe.Replicas(3), Groups: 1, Bytes: 1 << 30, StoredBytes: 3 << 30}, {Scheme: stripe.RS(12, 2), Groups: 2, Bytes: 3 << 30, StoredBytes: 7 << 29},
	}}
	status := PolicyStatus(v)
	if status.Class != "media" || status.Summary.Ladder != "rep(3) > rs(12,2)" || status.Summary.Stored != "6.5 GiB, 2.00x" || len(status.Rungs) != 2 ||
		!status.NextWindow.Time.Equal(time.Unix(5000, 0)) || strings.Join(status.Ladder, " ") != "rep(3) rs(12,2)" {
		t.Errorf("%+v", status)
	}
}

func TestBackendConditions(t *testing.T) {
	// Accepted CatalogBehind Degraded Managed NodesAdded Ready Reconciling Stalled
	for _, c := range []struct {
		intent string
		change func(v *BackendView)
		want   string
		says   string // by Degraded
	}{
		{"well", func(*BackendView) {}, "TFFTTTFF", "3 of 3 nodes up; every object survives the loss of 2 more nodes"},
		{"empty", func(v *BackendView) { v.CanLose = nil }, "TFFTTTFF", "nothing is stored"},
		{"a node is down", func(v *BackendView) { v.Nodes[0].State = "down" }, "TFTTTTFF", "n1 down; every"},
		{"a declared node is missing", func(v *BackendView) {
			v.Nodes = WithMissing([]v1alpha1.BackendNode{{Name: "n2"}, {Name: "n9"}}, v.Nodes)
		}, "TFTTTTFF", "n9 missing"},
		{"draining is meant", func(v *BackendView) { v.Nodes[0].State = nodeDraining }, "TFFTTTFF", "2 of 3 nodes up, n1 draining; every"},
		{"a suspect has missed little", func(v *BackendView) { v.Nodes[1].State = nodeSuspect }, "TFFTTTFF", "2 of 3 nodes up, n2 suspect; every"},
		{"a node was given up", func(v *BackendView) { v.Nodes[2].State = nodeOut }, "TFTTTTFF", "n3 out; every"},
		{"one down and one draining", func(v *BackendView) { v.Nodes[0].State, v.Nodes[1].State = "down", nodeDraining }, "TFTTTTFF", "n1 down; every"},
		{"blocks are missing", func(v *BackendView) { v.NotWhole, v.CanLose = 1, number[int32](1) }, "TFTTTFTF", "1 group misses blocks; every object survives the loss of 1 more node"},
		{"a node went down since the count", func(v *BackendView) {
			v.Nodes[0].State, v.Counted, v.CanLose = "down", false, nil
		}, "TFTTTTFF", "n1 down; how many more nodes may be lost is being counted"},
		{"not counted yet", func(v *BackendView) { v.Counted, v.CanLose = false, nil }, "TFFTTTFF", "3 of 3 nodes up; how many more"},
		{"not counted yet, and blocks were missing before", func(v *BackendView) {
			v.Counted, v.CanLose = false, nil
			v.Backend.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: ReasonRedundancyMissing, Message: "2 groups miss blocks", LastTransitionTime: metav1.Unix(1, 0)}}
		}, "TFTTTFTF", "2 groups miss blocks"},
		{"no gateway answers", func(v *BackendView) { v.Unreachable = problem(ReasonGatewayDown, "refused") }, "TUUUUFTF", "refused"},
		{"the gateways do not take what is declared of a node", func(v *BackendView) { v.Untold = problem(ReasonNodesNotPlaced, "n1: removed") }, "TFFTTFTF", "3 of 3"},
		{"a declared node cannot be added", func(v *BackendView) {
			v.Backend.Spec.Nodes = []v1alpha1.BackendNode{{Name: "n9", Address: "a:1"}}
			v.NotAdded = problem(ReasonNodesNotAdded, "not added: node n9: no agent")
		}, "TFFTFFTF", "3 of 3"},
		{"a member is elsewhere than declared", func(v *BackendView) {
			v.Backend.Spec.Nodes = []v1alpha1.BackendNode{{Name: "n1", Address: "a:1"}}
			v.Moved = MovedNodes(v.Backend.Spec.Nodes, v.Nodes)
		}, "TFFTFTFF", "3 of 3"},
		{"what is declared of repair cannot be", func(v *BackendView) { v.Declined = problem(ReasonInvalidWindow, "repair.windows[0]") }, "FFFTTFFT", "3 of 3"},
		{"repair waits", func(v *BackendView) {
			v.NotWhole, v.CanLose = 4, number[int32](1)
			v.Repair = RepairSight{DeferredUntil: time.Unix(3600, 0), DeferredBy: "somebody", Waiting: 3}
		}, "TFTTTFTF", "loss of 1 more node; 3 groups that can wait will be rebuilt after 1970-01-01 01:00 UTC, as somebody says"},
		{"a class without a policy", func(v *BackendView) { v.Unmanaged = []ClassCount{{"pics", 47, 1 << 20}} }, "TFFFTTFF", "3 of 3"},
		{"objects not counted yet", func(v *BackendView) { v.Unmanaged = nil }, "TFFUTTFF", "3 of 3"},
		{"the catalog went back", func(v *BackendView) { v.Behind = "node n1 has seen more" }, "TTFTTFFT", "3 of 3"},
		{"deleted and in use", func(v *BackendView) {
			v.Backend.DeletionTimestamp, v.InUse = &metav1.Time{}, "policy media"
		}, "TFFTTFTF", "3 of 3"},
	} {
		v := BackendView{Now: time.Unix(1000, 0), Backend: backendOf(3, 0), CanLose: number[int32](2), Counted: true, Unmanaged: []ClassCount{}}
		v.Nodes = v.Backend.Status.Nodes
		c.change(&v)
		list := BackendConditions(v)
		checkConditions(t, c.intent, list, backendTypes, 1)
		degraded := meta.FindStatusCondition(list, v1alpha1.ConditionDegraded)
		if got := verdicts(list, backendTypes); got != c.want || !strings.Contains(degraded.Message, c.says) {
			t.Errorf("%s: %s %q, want %s %q", c.intent, got, degraded.Message, c.want, c.says)
		}
	}
	if text := UsedSummary(1<<30, 4<<40); text != "1.0 GiB of 4.0 TiB" {
		t.Error(text)
	}
}

func TestNodePlaces(t *testing.T) {
	yes, no := true, false
	known := []v1alpha1.NodeStatus{{Name: "n1", FailureDomain: "r1"}, {Name: "n2", FailureDomain: "node/n2", Spare: true}}
	for _, c := range []struct {
		intent   string
		declared v1alpha1.BackendNode
		want     string
	}{
		{"as it is", v1alpha1.BackendNode{Name: "n1", FailureDomain: "r1", Spare: &no}, ""},
		{"nothing is said", v1alpha1.BackendNode{Name: "n2"}, ""},
		{"another domain", v1alpha1.BackendNode{Name: "n2", FailureDomain: "r2"}, "n2 r2"},
		{"a spare", v1alpha1.BackendNode{Name: "n1", FailureDomain: "r1", Spare: &yes}, "n1 true"},
		{"no spare any more", v1alpha1.BackendNode{Name: "n2", FailureDomain: "r1", Spare: &no}, "n2 r1 false"},
		{"a node that nobody knows", v1alpha1.BackendNode{Name: "n3", FailureDomain: "r1"}, ""},
	} {
		text := ""
		for _, place := range NodePlaces([]v1alpha1.BackendNode{c.declared}, known) {
			text = place.Node
			if place.FailureDomain != nil {
				text += " " + *place.FailureDomain
			}
			if place.Spare != nil {
				text += fmt.Sprint(" ", *place.Spare)
			}
		}
		if text != c.want {
			t.Errorf("%s: %q, want %q", c.intent, text, c.want)
		}
	}
}

func TestNewAndMovedNodes(t *testing.T) {
	known := []v1alpha1.NodeStatus{
		{Name: "n1", Address: "a:1", State: nodeUp}, {Name: "n2", Address: "b:1", State: "down"}, {Name: "n9", State: nodeMissing},
	}
	for _, c := range []struct {
		intent   string
		declared v1alpha1.BackendNode
		isNew    bool
		moved    string
	}{
		{"as it is", v1alpha1.BackendNode{Name: "n1", Address: "a:1"}, false, ""},
		{"without an address", v1alpha1.BackendNode{Name: "n1"}, false, ""},
		{"down, and elsewhere", v1alpha1.BackendNode{Name: "n2", Address: "c:1"}, false, "n2 is at b:1 and declared at c:1"},
		{"new", v1alpha1.BackendNode{Name: "n3", Address: "c:1"}, true, ""},
		{"new, to be added by others", v1alpha1.BackendNode{Name: "n3"}, false, ""},
	} {
		declared := []v1alpha1.BackendNode{c.declared}
		if got := len(NewNodes(declared, known)) == 1; got != c.isNew {
			t.Errorf("%s: is new %v, want %v", c.intent, got, c.isNew)
		}
		if got := strings.Join(MovedNodes(declared, known), ", "); got != c.moved {
			t.Errorf("%s: %q, want %q", c.intent, got, c.moved)
		}
	}
	if missing := []v1alpha1.BackendNode{{Name: "n9", Address: "c:1"}}; MovedNodes(missing, known) != nil {
		t.Error("a missing node has moved")
	}
}

func TestSchemeStatus(t *testing.T) {
	scheme := &v1alpha1.RedundancyScheme{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: v1alpha1.RedundancySchemeSpec{K: number[int32](4), M: number[int32](2)}}
	status := SchemeStatus(scheme, 3, time.Unix(1000, 0))
	checkConditions(t, "good", status.Conditions, schemeTypes, 2)
	if status.Code != "rs(4,2)" || status.Overhead != "1.50x" || status.CanLose != 2 || status.Policies != 3 || verdicts(status.Conditions, schemeTypes) != "TTFF" {
		t.Errorf("%+v", status)
	}
	scheme.DeletionTimestamp = &metav1.Time{}
	if status = SchemeStatus(scheme, 1, time.Unix(1000, 0)); verdicts(status.Conditions, schemeTypes) != "TFTF" {
		t.Errorf("deleted: %+v", status)
	}
	scheme.Spec = v1alpha1.RedundancySchemeSpec{K: number[int32](4)}
	if status = SchemeStatus(scheme, 0, time.Unix(1000, 0)); verdicts(status.Conditions, schemeTypes) != "FFFT" {
		t.Errorf("bad: %+v", status)
	}
}

// A transition that runs and cannot go on says what it waits for, as the gateways do.
func TestARunningTransitionSaysWhatItWaitsFor(t *testing.T) {
	for _, why := range []string{"", "waiting with 62 groups: node n9 does not answer"} {
		d, c := &TransitionDecision{}, newConditions(movingTypes, 1)
		d.moving(&TransitionView{Job: &Job{Error: why}}, c, stateRunning, nil)
		said := meta.FindStatusCondition(c.list, v1alpha1.ConditionProgressing)
		if said.Status != metav1.ConditionTrue || !strings.HasSuffix(said.Message, cmp.Or(why, "starting")) {
			t.Errorf("%q: %+v", why, said)
		}
	}
}

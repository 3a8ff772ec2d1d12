package console

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/console/contract"
	"github.com/restripe/restripe/operator/words"
)

// transitionMost is how many transitions a page has.
const transitionMost = 1000

// transitions shows transitions and steers them.
type transitions struct {
	*sources
	*auditing
	*watching
	compiler Compiler
	views    transitionViews
}

// ListTransitions lists transitions, newest first.
func (s *transitions) ListTransitions(_ context.Context, request *consolev1.ListTransitionsRequest) (*consolev1.TransitionList, error) {
	views := s.transitionViews(request.Filter)
	list := &consolev1.TransitionList{Whole: true, Total: int64(len(views)), Sources: s.freshness(request.GetFilter().GetBackend())}
	if request.After != "" {
		at := slices.IndexFunc(views, func(t *consolev1.Transition) bool { return t.Name == request.After })
		if at < 0 {
			return nil, refuse(connect.CodeAborted, "transition %q, after which the page was to begin, is gone; begin anew", request.After)
		}
		views = views[at+1:]
	}
	limit := int(cmp.Or(max(0, request.Limit), transitionMost))
	if limit = min(limit, transitionMost); len(views) > limit {
		views = views[:limit]
		list.Next = views[limit-1].Name
	}
	list.Transitions = views
	return list, nil
}

// WatchTransitions sends transitions whenever one changes.
func (s *transitions) WatchTransitions(ctx context.Context, request *consolev1.WatchTransitionsRequest, stream *connect.ServerStream[consolev1.TransitionList]) error {
	take := func() (now picture[*consolev1.Transition]) {
		now.sources = s.freshness(request.GetFilter().GetBackend())
		for _, view := range s.transitionViews(request.Filter) {
			now.items = append(now.items, item[*consolev1.Transition]{view.Name, view})
		}
		return now
	}
	total := map[string]struct{}{}
	return watchList(ctx, s.watching, take, func(d delta[*consolev1.Transition]) error {
		for _, view := range d.items {
			total[view.Name] = struct{}{}
		}
		for _, name := range d.removed {
			delete(total, name)
		}
		return stream.Send(&consolev1.TransitionList{
			Whole: d.whole, Partial: d.partial, Transitions: d.items, Removed: d.removed, Total: int64(len(total)), Sources: d.sources,
		})
	})
}

// transitionViews keeps the views of transitions for as long as what they are made of stays: there may be thousands of
// them, of which few change.
type transitionViews struct {
	mutex sync.Mutex
	kept  map[string]*keptView
}

type keptView struct {
	object *v1alpha1.Transition // the mirror never changes one
	live   *api.Transition
	view   *consolev1.Transition
}

// transitionViews returns the transitions that match, newest first. They are shared, and must not be changed.
func (s *transitions) transitionViews(filter *consolev1.TransitionFilter) []*consolev1.Transition {
	live := map[string]map[string]*api.Transition{} // by backend and job
	for _, seen := range s.backends.all("") {
		status, _, _ := seen.observer.Status.Get()
		jobs := map[string]*api.Transition{}
		for i := range status.Transitions {
			jobs[status.Transitions[i].ID] = &status.Transitions[i]
		}
		live[seen.name] = jobs
	}
	var views []*consolev1.Transition
	add := func(view *consolev1.Transition) {
		if matches(filter, view) {
			views = append(views, view)
		}
	}
	for _, view := range s.views.declared(s.world.transitions.all(), live) {
		add(view)
	}
	for backend, jobs := range live {
		for _, job := range jobs {
			add(handView(backend, job))
		}
	}
	slices.SortFunc(views, func(a, b *consolev1.Transition) int {
		return cmp.Or(b.Created.AsTime().Compare(a.Created.AsTime()), cmp.Compare(len(b.Name), len(a.Name)), cmp.Compare(b.Name, a.Name))
	})
	return views
}

// declared are the views of Transition objects. The jobs they have are taken out of live.
func (v *transitionViews) declared(objects []*v1alpha1.Transition, live map[string]map[string]*api.Transition) []*consolev1.Transition {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	kept := make(map[string]*keptView, len(objects))
	views := make([]*consolev1.Transition, len(objects))
	for i, object := range objects {
		job := live[object.Spec.BackendRef][object.Status.Job]
		if object.Status.Job != "" {
			delete(live[object.Spec.BackendRef], object.Status.Job)
		}
		before := v.kept[object.Name]
		if before == nil || before.object != object || before.live != job {
			view := transitionView(object, job)
			if before != nil && proto.Equal(before.view, view) {
				view = before.view
			}
			before = &keptView{object, job, view}
		}
		kept[object.Name], views[i] = before, before.view
	}
	v.kept = kept
	return views
}

func matches(filter *consolev1.TransitionFilter, t *consolev1.Transition) bool {
	return (filter.GetBackend() == "" || filter.GetBackend() == t.Backend) && (filter.GetPolicy() == "" || filter.GetPolicy() == t.Policy) &&
		(filter.GetClass() == "" || filter.GetClass() == t.Class) && (!filter.GetActive() || t.Ended == nil)
}

// transitionView is a Transition object with what its job at the gateways says, if that is under way.
func transitionView(t *v1alpha1.Transition, job *api.Transition) *consolev1.Transition {
	view := &consolev1.Transition{
		Name: t.Name, Policy: t.Spec.PolicyRef, Backend: t.Spec.BackendRef, Class: t.Spec.Class,
		From: cmp.Or(t.Status.From, string(t.Spec.From)), To: cmp.Or(t.Status.To, string(t.Spec.To)), Heat: heatText(t.Spec.Heat),
		Reason: t.Spec.Reason, State: cmp.Or(t.Status.Summary.State, "Waiting"), StateWhy: stateWhy(t),
		NeedsApproval: t.Spec.NeedsApproval, Approved: t.Spec.Approved, RollbackOf: t.Spec.RollbackOf, PlanHash: t.Status.PlanHash,
		Created: contract.Time(t.CreationTimestamp.Time), Started: stampOf(t.Status.StartTime), Ended: stampOf(t.Status.CompletionTime),
		Retries: t.Status.Retries, Deleting: t.DeletionTimestamp != nil,
	}
	if t.Spec.BytesPerSecond != nil {
		view.BytesPerSecondLimit = t.Spec.BytesPerSecond.Value()
	}
	if c := t.Status.Cost; c != nil {
		view.Cost = &consolev1.Cost{
			Groups: c.Groups, Traffic: &consolev1.Traffic{BytesRead: c.BytesRead, BytesSent: c.BytesSent, BytesWritten: c.BytesWritten}, PeakBytes: c.PeakBytes,
			ReencodeBytesSent: c.ReencodeBytesSent, Price: c.Price, SavingPerMonth: c.SavingPerMonth,
		}
	}
	if p := t.Status.Progress; p != nil {
		view.Progress = &consolev1.Progress{
			GroupsTotal: p.GroupsTotal, GroupsDone: p.GroupsDone, BytesTotal: p.BytesTotal, BytesDone: p.BytesDone, BytesPerSecond: p.BytesPerSecond,
			EtaSeconds: secondsFloat(p.ETASeconds), EtaSecondsLow: secondsFloat(p.ETASecondsLow), EtaSecondsHigh: secondsFloat(p.ETASecondsHigh),
			Predicted: &consolev1.Traffic{BytesSent: p.BytesSentPredicted}, Measured: &consolev1.Traffic{BytesSent: p.BytesSentMeasured},
		}
	}
	// What the gateways said last may be older than what the operator has written since.
	if job != nil && view.Ended == nil && job.BytesDone >= view.Progress.GetBytesDone() {
		if view.Progress == nil {
			view.Progress = &consolev1.Progress{}
		}
		if job.BytesTotal != view.Progress.BytesTotal { // what was estimated was of less, or of more
			view.Progress.EtaSeconds, view.Progress.EtaSecondsLow, view.Progress.EtaSecondsHigh = nil, nil, nil
		}
		tellJob(view.Progress, job)
	}
	return view
}

// tellJob adds what a job says of itself.
func tellJob(p *consolev1.Progress, job *api.Transition) {
	p.GroupsTotal, p.GroupsDone, p.BytesTotal, p.BytesDone = job.GroupsTotal, job.GroupsDone, job.BytesTotal, job.BytesDone
	p.GroupsSkipped, p.GroupsOffLadder, p.GroupsReshaped, p.Attempts = job.GroupsSkipped, job.GroupsOffLadder, job.GroupsReshaped, job.Attempts
	p.Predicted, p.Measured, p.OtherWaysBytesSent = trafficView(&job.Predicted), trafficView(&job.Measured), job.Baselines
}

func trafficView(t *api.Traffic) *consolev1.Traffic {
	return &consolev1.Traffic{BytesRead: t.BytesRead, BytesSent: t.BytesSent, BytesWritten: t.BytesWritten}
}

func secondsFloat(seconds *int64) *float64 {
	if seconds == nil {
		return nil
	}
	return proto.Float64(float64(*seconds))
}

// handStates are the states of transitions started at a gateway, in the words of those that policies make.
var handStates = map[api.TransitionState]string{
	api.TransitionRunning: "Running", api.TransitionPaused: "Paused", api.TransitionCancelled: "Cancelled",
	api.TransitionDone: "Done", api.TransitionFailed: "Failed",
}

// handName is the name of a transition that somebody started at a gateway.
func handName(backend, id string) string { return backend + "/" + id }

// handView is a transition that somebody started at a gateway.
func handView(backend string, job *api.Transition) *consolev1.Transition {
	view := &consolev1.Transition{
		Name: handName(backend, job.ID), Backend: backend, Class: job.Selector.Class, From: job.From, To: job.To, Reason: "started by hand at a gateway",
		State: cmp.Or(handStates[job.State], string(job.State)), StateWhy: job.Error, ByHand: true, BytesPerSecondLimit: job.BytesPerSecond,
		Created: contract.Time(job.Started), Started: contract.Time(job.Started), Progress: &consolev1.Progress{},
	}
	if key, err := api.DecodeKey(job.Selector.Key64); err == nil && key != "" {
		view.Heat = "the object " + key
	}
	if job.Finished != nil {
		view.Ended = contract.Time(*job.Finished)
	}
	tellJob(view.Progress, job)
	if !job.State.Final() {
		view.Progress.EtaSeconds = contract.Seconds(job.ETASeconds)
	}
	if job.ElapsedSeconds > 0 {
		view.Progress.BytesPerSecond = int64(float64(job.BytesDone) / job.ElapsedSeconds)
	}
	return view
}

func heatText(bounds *v1alpha1.HeatBounds) string {
	if bounds == nil || bounds.AtLeast == nil && bounds.Below == nil {
		return "any"
	}
	var parts []string
	if bounds.AtLeast != nil {
		parts = append(parts, "at least "+plainNumber(*bounds.AtLeast))
	}
	if bounds.Below != nil {
		parts = append(parts, "less than "+plainNumber(*bounds.Below))
	}
	return strings.Join(parts, " and ") + " times a day"
}

// plainNumber writes a quantity without suffixes. Writing one changes how it is kept, and those of the mirror are shared:
// so it is done to a copy.
func plainNumber(quantity resource.Quantity) string {
	own := quantity.DeepCopy()
	return words.Decimal(own.AsApproximateFloat64())
}

// stateWhy is the condition that explains the state of a transition.
func stateWhy(t *v1alpha1.Transition) string {
	for _, kind := range []string{
		v1alpha1.ConditionStalled, v1alpha1.ConditionAwaitingApproval, v1alpha1.ConditionPaused, v1alpha1.ConditionDegraded, v1alpha1.ConditionProgressing,
	} {
		if c := meta.FindStatusCondition(t.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			return c.Message
		}
	}
	if c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return c.Message
	}
	return "The operator has not looked at it yet."
}

// GetTransition returns a transition with what there is to know of it.
func (s *transitions) GetTransition(_ context.Context, request *consolev1.GetTransitionRequest) (*consolev1.TransitionDetail, error) {
	views := s.transitionViews(nil)
	at := slices.IndexFunc(views, func(t *consolev1.Transition) bool { return t.Name == request.Name })
	if at < 0 {
		return nil, noTransition(request.Name)
	}
	view := views[at]
	detail := &consolev1.TransitionDetail{Transition: view, Sources: s.freshness(view.Backend)}
	if object, found := s.world.transitions.get(request.Name); found && !view.ByHand {
		text, err := s.compiler.Render(object.DeepCopy())
		if err != nil {
			return nil, refuse(connect.CodeInternal, "writing the transition: %w", err)
		}
		detail.Yaml, detail.Conditions = text, conditionViews(object.Status.Conditions)
	}
	s.tellWays(detail)
	return detail, nil
}

func noTransition(name string) error {
	return refuse(connect.CodeNotFound, "there is no transition %q", name)
}

// tellWays adds what the plan does to a group, and what other ways would cost.
func (s *transitions) tellWays(detail *consolev1.TransitionDetail) {
	view := detail.Transition
	seen := s.backends.at(view.Backend)
	if seen == nil {
		return
	}
	ladder := seen.ladder(view.Class)
	detail.Ladder = ladder.String()
	from, errFrom := stripe.ParseScheme(view.From)
	to, errTo := stripe.ParseScheme(view.To)
	if ladder == nil || errFrom != nil || errTo != nil || !ladder.Contains(from) || !ladder.Contains(to) {
		return
	}
	layout, err := stripe.NewLayout(ladder, 0, seen.mode(view.Class))
	if err != nil {
		return
	}
	detail.Explanation = explanation(layout, from, to)
	if view.Progress != nil && view.Progress.BytesTotal > 0 {
		detail.Comparisons = comparisons(layout, from, to, view.Progress.BytesTotal)
	}
}

package console

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/console/contract"
	"github.com/restripe/restripe/operator/price"
	"github.com/restripe/restripe/operator/words"
)

// overviews shows the whole on one page.
type overviews struct {
	*sources
	*watching
	nodes       *nodes
	transitions *transitions
}

// GetOverview says whether data is safe, what it costs and what is moving.
func (s *overviews) GetOverview(context.Context, *consolev1.GetOverviewRequest) (*consolev1.Overview, error) {
	return s.overview(), nil
}

// WatchOverview does so whenever it changes.
func (s *overviews) WatchOverview(ctx context.Context, _ *consolev1.WatchOverviewRequest, stream *connect.ServerStream[consolev1.Overview]) error {
	return watchOne(ctx, s.watching, s.overview, sameOverview, stream.Send)
}

// sameOverview compares overviews but for the time they are of.
func sameOverview(a, b *consolev1.Overview) bool {
	if !sameSources(a.Sources, b.Sources) {
		return false
	}
	timeless := func(o *consolev1.Overview) *consolev1.Overview {
		o = proto.CloneOf(o)
		o.At, o.SafetyAt, o.Sources = nil, nil, nil
		return o
	}
	return proto.Equal(timeless(a), timeless(b))
}

// movingShown, classesShown and badShown are how many transitions, classes and bad nodes an overview has: it is sent again
// and again.
const (
	movingShown  = 50
	classesShown = 20
	badShown     = 10
)

// largest returns the classes with the most stored bytes, in the order they came in.
func largest(classes []*consolev1.ClassOverview) []*consolev1.ClassOverview {
	if len(classes) <= classesShown {
		return classes
	}
	places := make([]int, len(classes))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(classes[b].StoredBytes, classes[a].StoredBytes) })
	places = slices.Sorted(slices.Values(places[:classesShown]))
	shown := make([]*consolev1.ClassOverview, 0, classesShown)
	for _, place := range places {
		shown = append(shown, classes[place])
	}
	return shown
}

func (s *overviews) overview() *consolev1.Overview {
	o := &consolev1.Overview{At: contract.Time(s.now()), Nodes: &consolev1.NodeCounts{ByState: map[string]int32{}}, Sources: s.freshness("")}
	policies := s.world.policiesByClass()
	var classes []*consolev1.ClassOverview
	safety := safetyTally{canLose: math.MaxInt32}
	for _, seen := range s.backends.all("") {
		safety.add(seen)
		o.Backends = append(o.Backends, seen.health())
		countNodes(o.Nodes, s.nodes.nodeViews(seen))
		for _, class := range overviewsOf(seen, policies) {
			classes = append(classes, class.view)
			o.ProtectedBytes += class.view.Bytes
			o.PaddingBytes += class.view.PaddingBytes
			o.StoredBytes += class.view.StoredBytes
			o.SavedBytes += class.view.SavedBytes
			o.SavedPerMonth += class.perMonth
		}
	}
	if o.ProtectedBytes > 0 {
		o.Overhead = float64(o.StoredBytes) / float64(o.ProtectedBytes)
	}
	o.Classes, o.ClassesTotal = largest(classes), int64(len(classes))
	safety.tell(o)
	s.tellMoving(o)
	return o
}

// badStates are those of nodes that do not serve, the worst first.
var badStates = []string{"missing", "out", "down", "suspect"}

// countNodes adds the nodes of a backend.
func countNodes(counts *consolev1.NodeCounts, nodes []*consolev1.Node) {
	for _, node := range nodes {
		counts.Total++
		counts.ByState[node.State]++
		if slices.Contains(badStates, node.State) {
			counts.Bad = append(counts.Bad, node)
		}
	}
	slices.SortStableFunc(counts.Bad, func(a, b *consolev1.Node) int {
		return cmp.Compare(slices.Index(badStates, a.State), slices.Index(badStates, b.State))
	})
	counts.Bad = counts.Bad[:min(len(counts.Bad), badShown)]
}

// safetyTally sums up over backends what may be lost.
type safetyTally struct {
	seen                        int
	unseen                      []string // backends that never answered
	objects, groups, incomplete int64
	canLose                     int32
	repair                      float64 // seconds that repair takes still; 0: not known
	repairing                   bool
	at                          time.Time // of the oldest walk
	silent                      []string  // backends that answered once and do not any more
	silentSince                 time.Time // of the first of them
	behind                      []string  // backends whose catalogs are behind what their nodes hold
}

func (t *safetyTally) add(seen *seenBackend) {
	walk, known, _ := seen.observer.Walked.Get()
	status := walk.Status
	if !known {
		t.unseen = append(t.unseen, seen.name)
		return
	}
	t.seen++
	if at := walk.At(); t.at.IsZero() || at.Before(t.at) {
		t.at = at
	}
	if since := seen.silentSince(); !since.IsZero() {
		t.silent = append(t.silent, seen.name)
		if t.silentSince.IsZero() || since.Before(t.silentSince) {
			t.silentSince = since
		}
	}
	if seen.behind() != "" {
		t.behind = append(t.behind, seen.name)
	}
	t.objects += status.Objects
	t.groups += status.Groups
	t.incomplete += status.NotWhole
	if status.CanLose >= 0 {
		t.canLose = min(t.canLose, int32(status.CanLose))
	}
	if repair, known, _ := seen.repair.Get(); known && repair.State == api.RepairRunning {
		t.repairing = true
		if repair.Pass != nil && repair.Pass.ETASeconds > 0 {
			t.repair = max(t.repair, repair.Pass.ETASeconds)
		}
	}
}

func (t *safetyTally) tell(o *consolev1.Overview) {
	o.Objects, o.Groups, o.GroupsNotWhole = t.objects, t.groups, t.incomplete
	if t.canLose != math.MaxInt32 && len(t.silent) == 0 {
		o.CanLose = proto.Int32(t.canLose)
	}
	o.Safety, o.SafetyLine = t.verdict()
	if len(t.silent) > 0 {
		o.SafetyLine = fmt.Sprintf(
			"Unknown since %s: no gateway of %s answers; last: %s", t.silentSince.UTC().Format("15:04:05 UTC"), strings.Join(t.silent, ", "), lowered(o.SafetyLine),
		)
		o.Safety, o.LastSafety, o.UnknownSince = consolev1.Safety_SAFETY_UNSPECIFIED, o.Safety, contract.Time(t.silentSince)
	}
	o.SafetyAt = contract.Time(t.at)
	if len(t.unseen) > 0 && t.seen > 0 {
		o.SafetyLine += " Nothing is known of " + strings.Join(t.unseen, ", ") + "."
	}
}

// lowered is a sentence as it goes on in another.
func lowered(sentence string) string { return strings.ToLower(sentence[:1]) + sentence[1:] }

// silentSince is since when no gateway has answered; the zero time while one does.
func (b *seenBackend) silentSince() time.Time {
	_, _, fresh := b.observer.Status.Get()
	return fresh.Since
}

// behind is how the catalog was found to be behind its nodes, when a gateway answered last; empty if it was not.
func (b *seenBackend) behind() string {
	status, _, _ := b.observer.Status.Get()
	return status.CatalogBehind
}

// verdict is what was known when every backend answered last.
func (t *safetyTally) verdict() (consolev1.Safety, string) {
	switch {
	case t.seen == 0 && len(t.unseen) > 0:
		return consolev1.Safety_SAFETY_UNSPECIFIED, "Not known: no gateway of " + strings.Join(t.unseen, ", ") + " has answered yet."
	case t.seen == 0:
		return consolev1.Safety_SAFETY_UNSPECIFIED, "Not known: no backend is declared. Declare a StorageBackend, or start one with `restripe up`."
	case len(t.behind) > 0:
		return consolev1.Safety_SAFETY_BEHIND, "The catalog of " + strings.Join(t.behind, ", ") + " is behind what its nodes hold: " +
			"nothing is deleted until somebody decides. See `restripe catalog lineage`."
	case t.canLose == math.MaxInt32:
		return consolev1.Safety_SAFETY_EMPTY, "Nothing is stored yet. Store something with `restripe put`."
	}
	every := "Every object"
	if t.objects > 0 {
		every = "All " + words.Count(t.objects, "object")
		if t.objects == 1 {
			every = "The one object"
		}
	}
	lose := fmt.Sprintf("%s can lose %s", every, words.Count(int64(t.canLose), "node"))
	if t.canLose == 0 {
		lose = "The loss of one more node may lose data"
	}
	if t.incomplete == 0 {
		if t.canLose == 0 {
			return consolev1.Safety_SAFETY_UNPROTECTED, lose + ": some objects are kept without redundancy, or nodes are down."
		}
		return consolev1.Safety_SAFETY_SAFE, lose + "."
	}
	line := fmt.Sprintf("%s miss blocks. %s now", words.Count(t.incomplete, "group"), lose)
	if t.incomplete == 1 {
		line = "1 group misses blocks. " + lose + " now"
	}
	switch {
	case t.repair > 0:
		line += ", repair done in about " + words.About(words.Seconds(t.repair))
	case t.repairing:
		line += ", repair is under way"
	}
	if t.canLose == 0 {
		return consolev1.Safety_SAFETY_UNPROTECTED, line + "."
	}
	return consolev1.Safety_SAFETY_REDUCED, line + "."
}

// classOverview is what a class is and costs.
type classOverview struct {
	view     *consolev1.ClassOverview
	perMonth float64
}

func overviewsOf(seen *seenBackend, policies map[classKey]*v1alpha1.RedundancyPolicy) (overviews []classOverview) {
	report, known, _ := seen.observer.Heat.Get()
	if !known {
		return nil
	}
	for i := range report.Classes {
		class := &report.Classes[i]
		policy := policies[classKey{seen.name, class.Class}]
		overviews = append(overviews, overviewOf(seen, class, policy))
	}
	return overviews
}

func overviewOf(seen *seenBackend, class *api.ClassHeat, policy *v1alpha1.RedundancyPolicy) classOverview {
	o := classOverview{view: &consolev1.ClassOverview{Backend: seen.name, Class: class.Class, Objects: class.Objects, Bytes: class.Bytes}}
	table := price.Default()
	if policy != nil {
		o.view.Policy = policy.Name
		if declared, err := price.TableOf(policy.Spec.Prices.DeepCopy()); err == nil {
			table = declared
		}
	}
	var rungs []price.Rung
	var cells int64
	for i := range class.Rungs {
		rung := &class.Rungs[i]
		cells += rung.Bytes
		o.view.StoredBytes += rung.StoredBytes
		view := &consolev1.RungOverview{Scheme: rung.Scheme, Groups: rung.Groups, Bytes: rung.Bytes, StoredBytes: rung.StoredBytes}
		if rung.Groups > 0 {
			view.MeanHeat = proto.Float64(meanHeat(rung))
		}
		o.view.Rungs = append(o.view.Rungs, view)
		if scheme, err := stripe.ParseScheme(rung.Scheme); err == nil {
			rungs = append(rungs, price.Rung{Scheme: scheme, StoredBytes: rung.StoredBytes})
		}
	}
	o.view.PaddingBytes = max(0, cells-o.view.Bytes) // the walks that counted them are two
	if o.view.Bytes > 0 {
		o.view.Overhead = float64(o.view.StoredBytes) / float64(o.view.Bytes)
	}
	if ladder := seen.ladder(class.Class); ladder != nil {
		savings := table.SavingsOf(ladder, rungs, 0, 0)
		o.view.SavedBytes, o.perMonth = savings.SavedBytes, savings.PerMonth
	}
	return o
}

// class is what the gateways said last of a class, nil if that is not known.
func (b *seenBackend) class(name string) *api.ClassHeat {
	report, _, _ := b.observer.Heat.Get()
	for i := range report.Classes {
		if report.Classes[i].Class == name {
			return &report.Classes[i]
		}
	}
	return nil
}

// ladder is that of a class at the gateways, nil if it is not known.
func (b *seenBackend) ladder(class string) stripe.Ladder {
	classes, _, _ := b.observer.Classes.Get()
	for i := range classes {
		if classes[i].Name == class {
			if ladder, err := stripe.ParseLadder(classes[i].Ladder); err == nil {
				return ladder
			}
		}
	}
	return nil
}

// mode is the layout mode of a class at the gateways.
func (b *seenBackend) mode(class string) stripe.Mode {
	classes, _, _ := b.observer.Classes.Get()
	for i := range classes {
		if classes[i].Name == class {
			return stripe.Mode(classes[i].Mode)
		}
	}
	return stripe.ModeFree
}

// meanHeat is the mean of the geometric middles of the buckets, by groups. The first bucket counts as never, the last as
// its lower bound.
func meanHeat(rung *api.RungHeat) float64 {
	var sum float64
	var groups int64
	for i, bucket := range rung.Buckets {
		low, high := api.HeatEdge(i), api.HeatEdge(i+1)
		middle := math.Sqrt(low * high)
		if i == 0 || math.IsInf(high, 1) {
			middle = low
		}
		sum += middle * float64(bucket.Groups)
		groups += bucket.Groups
	}
	if groups == 0 {
		return 0
	}
	return sum / float64(groups)
}

// health is what is right and wrong at a backend.
func (b *seenBackend) health() *consolev1.BackendHealth {
	h := &consolev1.BackendHealth{Backend: b.name}
	silent := b.silentSince()
	if load, known, _ := b.observer.Load.Get(); known && silent.IsZero() {
		h.Load = &consolev1.Load{
			WindowSeconds: load.WindowSeconds, Requests: load.Requests, P50Seconds: load.P50Seconds, P99Seconds: load.P99Seconds,
			TransitionBytesPerSecond: load.TransitionBytesPerSecond,
		}
	}
	repair, repairKnown, _ := b.repair.Get()
	if repairKnown {
		h.Repair = repairView(&repair)
	}
	walk, known, fresh := b.observer.Walked.Get()
	status := walk.Status
	switch {
	case !known:
		h.State, h.Line = "unknown", "No gateway has answered yet."
		if fresh.Err != nil {
			h.Line = oneLine(fresh.Err)
		}
	case !silent.IsZero():
		h.State, h.Line = "unknown", "No gateway answers."
	case b.behind() != "":
		h.State, h.Line = "behind", b.behind()
	case status.NotWhole > 0 && repairKnown && repair.State == api.RepairRunning:
		h.State, h.Line = "repairing", words.Count(status.NotWhole, "group")+" with blocks missing; they are being rebuilt."
	case status.NotWhole > 0:
		h.State, h.Line = "reduced", words.Count(status.NotWhole, "group")+" with blocks missing."
	default:
		h.State, h.Line = "whole", "Every block is there."
	}
	return h
}

func repairView(r *api.RepairStatus) *consolev1.RepairProgress {
	view := &consolev1.RepairProgress{State: string(r.State)}
	if p := r.Pass; p != nil {
		view.BytesTotal, view.BytesDone = p.BytesTotal, p.BytesDone
		view.GroupsTotal, view.GroupsDone, view.Problem = int64(p.GroupsTotal), int64(p.GroupsChecked), p.Problem
		if r.State == api.RepairRunning {
			view.EtaSeconds = contract.Seconds(p.ETASeconds)
		}
	}
	return view
}

// tellMoving adds the transitions that have not ended, in words too.
func (s *overviews) tellMoving(o *consolev1.Overview) {
	var left int64
	var running, eta int64
	estimated := true
	for _, t := range s.transitions.transitionViews(&consolev1.TransitionFilter{Active: true}) {
		o.MovingTotal++
		if len(o.Moving) < movingShown {
			o.Moving = append(o.Moving, t)
		}
		if t.NeedsApproval && !t.Approved {
			o.WaitingForApproval++
		}
		if t.State == "Running" && t.Progress != nil {
			running++
			left += max(0, t.Progress.BytesTotal-t.Progress.BytesDone)
			eta = max(eta, int64(t.Progress.GetEtaSeconds()))
			estimated = estimated && t.Progress.EtaSeconds != nil
		}
	}
	switch {
	case o.MovingTotal == 0:
		o.MovingLine = "Nothing is moving."
	case running == 0:
		verb := "wait or are paused"
		if o.MovingTotal == 1 {
			verb = "waits or is paused"
		}
		o.MovingLine = words.Count(o.MovingTotal, "transition") + " " + verb + "; nothing is moving."
	default:
		o.MovingLine = fmt.Sprintf("%s with %s left", words.Count(running, "running transition"), words.Bytes(left))
		switch {
		case !estimated:
			o.MovingLine += ", estimating how long that takes"
		case eta > 0:
			o.MovingLine += ", about " + words.About(words.Seconds(float64(eta)))
		}
		o.MovingLine += "."
	}
	if o.WaitingForApproval > 0 {
		o.MovingLine += " " + words.Count(o.WaitingForApproval, "transition") + " to approve."
	}
}

package controller

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/decide"
	"github.com/restripe/restripe/operator/gateways"
)

// heatOf is the heat of a class as decisions see it; nil where the gateways have not reported it.
func heatOf(seen *gateways.Snapshot, class string) (*decide.ClassHeat, error) {
	reported := seen.Heats[class]
	if reported == nil {
		return nil, nil
	}
	heat := &decide.ClassHeat{Began: seen.Heat.Began, Complete: seen.Heat.Complete, Bytes: reported.Bytes, Shadows: reported.Shadows}
	for i := range reported.Rungs {
		from := &reported.Rungs[i]
		scheme, err := stripe.ParseScheme(from.Scheme)
		if err != nil {
			return nil, fmt.Errorf("reading the heat of class %s: %w", class, err)
		}
		rung := decide.RungHeat{Scheme: scheme, Groups: from.Groups, Bytes: from.Bytes, StoredBytes: from.StoredBytes, OffLadder: from.OffLadder}
		for at, bucket := range from.Buckets {
			rung.Buckets = append(rung.Buckets, decide.HeatBucket{
				AtLeast: api.HeatEdge(at), Below: api.HeatEdge(at + 1), Groups: bucket.Groups, Bytes: bucket.Bytes,
				SettledGroups: bucket.SettledGroups, SettledBytes: bucket.SettledBytes,
			})
		}
		heat.Rungs = append(heat.Rungs, rung)
	}
	return heat, nil
}

// elsewhereOf is what was counted beside the class of a policy; nil where the gateways have not reported the class.
func elsewhereOf(report *api.HeatReport, class *decide.Class) *decide.Elsewhere {
	var e *decide.Elsewhere
	for i := range report.Classes {
		if counted := &report.Classes[i]; counted.Class == class.Name {
			e = &decide.Elsewhere{
				At: report.ObjectsAt, Current: slices.Equal(counted.CountedPrefixes, slices.Sorted(slices.Values(class.Prefixes))),
				Others: classCounts(counted.Elsewhere),
			}
		}
	}
	if e == nil {
		return nil
	}
	for i := range report.Classes {
		for _, count := range report.Classes[i].Elsewhere {
			if count.Class == class.Name {
				e.Kept = append(e.Kept, decide.ClassCount{Class: report.Classes[i].Class, Objects: count.Objects, Bytes: count.Bytes})
			}
		}
	}
	return e
}

func classCounts(counts []api.ClassCount) []decide.ClassCount {
	list := make([]decide.ClassCount, len(counts))
	for i, count := range counts {
		list[i] = decide.ClassCount{Class: count.Class, Objects: count.Objects, Bytes: count.Bytes}
	}
	return list
}

// requestFor is what the gateways are asked to estimate for a move.
func requestFor(move *decide.Move) api.TransitionRequest {
	request := api.TransitionRequest{
		Selector: api.Selector{Class: move.Class}, From: move.From.String(), To: move.To.String(), SettledSeconds: move.Settled.Seconds(),
	}
	request.HeatAtLeast, request.HeatBelow = bounds(move.Heat)
	return request
}

func bounds(heat decide.HeatRange) (atLeast, below *float64) {
	if heat.AtLeast > 0 {
		atLeast = &heat.AtLeast
	}
	if !math.IsInf(heat.Below, 1) {
		below = &heat.Below
	}
	return atLeast, below
}

// requestOf is the job of a Transition whose codes are known.
func requestOf(transition *v1alpha1.Transition, from, to string) api.TransitionRequest {
	spec := &transition.Spec
	request := api.TransitionRequest{Selector: api.Selector{Class: spec.Class}, From: from, To: to, Planner: spec.Planner}
	if heat := spec.Heat; heat != nil {
		if heat.AtLeast != nil {
			least := heat.AtLeast.AsApproximateFloat64()
			request.HeatAtLeast = &least
		}
		if heat.Below != nil {
			below := heat.Below.AsApproximateFloat64()
			request.HeatBelow = &below
		}
		if heat.Settled != nil {
			request.SettledSeconds = heat.Settled.Seconds()
		}
	}
	return request
}

func estimateOf(e *api.Estimate) decide.Estimate {
	return decide.Estimate{
		Groups: e.Groups, Bytes: e.Bytes, GroupsOffLadder: e.GroupsOffLadder, GroupsCopied: e.GroupsCopied, GroupsReshaped: e.GroupsReshaped,
		BytesRead: e.BytesRead, BytesSent: e.BytesSent,
		BytesWritten: e.BytesWritten, PeakBytes: e.PeakBytes, StoredBefore: e.StoredBefore, StoredAfter: e.StoredAfter,
		ReencodeBytesSent: e.ReencodeBytesSent, PlanHash: e.PlanHash,
	}
}

// jobOf is a transition at the gateways as decisions see it.
func jobOf(t *api.Transition) *decide.Job {
	job := &decide.Job{
		ID: t.ID, State: decide.JobState(t.State), Error: t.Error, GroupsTotal: t.GroupsTotal, GroupsDone: t.GroupsDone,
		BytesTotal: t.BytesTotal, BytesDone: t.BytesDone, BytesSentPredicted: t.Predicted.BytesSent, BytesSentSoFar: t.Measured.BytesSent,
		Started: t.Started.Truncate(time.Second), Finished: t.Finished,
	}
	job.Applied = decide.Grant{Total: limitOf(t.BytesPerSecond), Node: limitOf(t.NodeBytesPerSecond), Domain: limitOf(t.DomainBytesPerSecond)}
	return job
}

// At the gateways a limit of 0 is none.
func limitOf(rate int64) int64 {
	if rate <= 0 {
		return decide.Unlimited
	}
	return rate
}

func rateOf(limit int64) int64 {
	if limit >= decide.Unlimited {
		return 0
	}
	return limit
}

func loadOf(load api.Load) decide.Load {
	return decide.Load{
		Window: seconds(load.WindowSeconds), Requests: load.Requests, P99: seconds(load.P99Seconds), Moving: int64(load.TransitionBytesPerSecond),
	}
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// moveOf is what a transition moves, for the price table.
func moveOf(view *decide.TransitionView) (*decide.Move, error) {
	from, err := stripe.ParseScheme(view.From)
	if err != nil {
		return nil, fmt.Errorf("reading a transition: %w", err)
	}
	to, err := stripe.ParseScheme(view.To)
	if err != nil {
		return nil, fmt.Errorf("reading a transition: %w", err)
	}
	return &decide.Move{Selection: decide.Selection{Backend: view.Transition.Spec.BackendRef, Class: view.Transition.Spec.Class, From: from}, To: to}, nil
}

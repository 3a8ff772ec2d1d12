package contract

import (
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/restripe/restripe/agent/gateway/api"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/words"
)

// Time is a time as the contract has it; the zero time is absent.
func Time(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// Seconds is a duration that the gateways write as -1 where it is not known.
func Seconds(seconds float64) *float64 {
	if seconds < 0 {
		return nil
	}
	return proto.Float64(seconds)
}

// Node is a node as the gateways of a backend see it.
func Node(backend string, n *api.NodeInfo) *consolev1.Node {
	view := &consolev1.Node{
		Backend: backend, Name: string(n.ID), Address: n.Address, FailureDomain: n.Domain, State: n.State, Declared: n.Declared, Spare: n.Spare,
		Release: n.Release, StoreKind: n.StoreKind, Durable: n.Durable, UsedBytes: n.UsedBytes, CapacityBytes: n.CapacityBytes,
		Slots: n.Slots, Warnings: n.Warnings,
		Fenced: n.Fenced, OutBy: n.OutBy, Replaces: string(n.Replaces), Volume: n.Volume,
		Rates: &consolev1.NodeRates{Read: twoDigits(n.Rates.Read), Sent: twoDigits(n.Rates.Sent), Written: twoDigits(n.Rates.Written)},
	}
	switch {
	case bySilence(n):
		view.Since = Time(*n.Silent)
	case n.Since != nil:
		view.Since = Time(*n.Since)
	}
	if d := n.Drain; d != nil {
		view.Drain = &consolev1.Drain{
			SlotsTotal: d.SlotsTotal, SlotsLeft: d.SlotsLeft, BytesPerSecond: d.BytesPerSecond, Paused: d.Paused,
			EtaSeconds: Seconds(d.ETASeconds),
		}
	}
	return view
}

// bySilence reports whether a node is in its state because it does not answer, and not because somebody said so.
func bySilence(n *api.NodeInfo) bool {
	return n.Silent != nil && (n.State == "suspect" || n.State == "down" && n.Declared != "down")
}

// GivenUpAt is when a node is given up if it stays silent; nil where it is not silent, or is waited for for ever.
func GivenUpAt(n *api.NodeInfo, patience api.Patience) *timestamppb.Timestamp {
	if !bySilence(n) || patience.OutAfterSeconds < 0 {
		return nil
	}
	return Time(n.Silent.Add(words.Seconds(patience.OutAfterSeconds)))
}

// twoDigits rounds a rate, so that watches are not told of every byte.
func twoDigits(rate float64) int64 {
	unit := int64(1)
	for ; rate >= 100; rate /= 10 {
		unit *= 10
	}
	return int64(math.Round(rate)) * unit
}

// Scrub is how far the scrub of a backend is.
func Scrub(backend string, scrub *api.Scrub) *consolev1.Scrub {
	view := &consolev1.Scrub{
		Backend: backend, State: string(scrub.State), Depth: string(scrub.Depth), Cycle: scrub.Cycle,
		GroupsTotal: scrub.GroupsTotal, GroupsDone: scrub.GroupsDone,
		BytesTotal: scrub.BytesTotal, BytesDone: scrub.BytesDone, Findings: scrub.Findings, Repaired: scrub.Repaired,
		Error: scrub.Error, Started: Time(scrub.Started),
	}
	if scrub.Finished != nil {
		view.Finished = Time(*scrub.Finished)
	}
	if scrub.State == api.ScrubRunning {
		view.EtaSeconds = Seconds(scrub.ETASeconds)
	}
	return view
}

// Finding is something that a scrub found wrong.
func Finding(backend string, f *api.ScrubFinding) *consolev1.ScrubFinding {
	return &consolev1.ScrubFinding{
		Backend: backend, Found: Time(f.Found), Kind: f.Kind, Group: f.Group.String(), Slot: int32(f.Slot), Node: string(f.Node), Text: f.Text,
		Objects: f.Objects, MoreObjects: int32(f.More), Repaired: f.Repaired, Outcome: f.Outcome,
	}
}

// Compaction is how far the compaction of a backend is, and how much of its classes is dead.
func Compaction(backend string, compaction *api.Compaction) *consolev1.Compaction {
	view := &consolev1.Compaction{
		Backend: backend, State: string(compaction.State), Pass: compaction.Pass, Background: compaction.Background,
		Everything: compaction.Everything, BytesPerSecond: compaction.BytesPerSecond,
		GroupsTotal: compaction.GroupsTotal, GroupsDone: compaction.GroupsDone, ObjectsMoved: compaction.ObjectsMoved,
		ObjectsSpliced: compaction.ObjectsSpliced,
		BytesTotal:     compaction.BytesTotal, BytesDone: compaction.BytesDone, BytesFreed: compaction.BytesFreed,
		Failed: compaction.Failed, Error: compaction.Error, Started: Time(compaction.Started),
	}
	if compaction.Finished != nil {
		view.Finished = Time(*compaction.Finished)
	}
	if compaction.State == api.CompactionRunning {
		view.EtaSeconds = Seconds(compaction.ETASeconds)
	}
	if compaction.Looked != nil {
		view.Looked = Time(*compaction.Looked)
	}
	for i := range compaction.Classes {
		of := &compaction.Classes[i]
		view.Classes = append(view.Classes, &consolev1.DeadSpace{
			Class: of.Name, Groups: of.Groups, Bytes: of.Bytes, DeadBytes: of.Dead, DeadAtMostPercent: int32(of.DeadAtMostPercent),
		})
	}
	return view
}

// Balance is how far the balance of a backend is.
func Balance(backend string, balance *api.Balance) *consolev1.Balance {
	view := &consolev1.Balance{
		Backend: backend, State: string(balance.State), Number: balance.Number, BytesPerSecond: balance.BytesPerSecond,
		BytesTotal: balance.BytesTotal, BytesMoved: balance.BytesMoved, SlotsMoved: balance.SlotsMoved, Planned: balance.Planned,
		Waits: balance.Waits, Note: balance.Note, Error: balance.Error, Started: Time(balance.Started),
	}
	if balance.Finished != nil {
		view.Finished = Time(*balance.Finished)
	}
	if balance.State == api.BalanceRunning {
		view.EtaSeconds = Seconds(balance.ETASeconds)
	}
	return view
}

// BalancePlan is what a balance would move, in one sentence too.
func BalancePlan(plan *api.BalancePlan) *consolev1.BalancePlan {
	view := &consolev1.BalancePlan{
		Bytes: plan.Bytes, Slots: plan.Slots, Groups: plan.Groups, BytesPerSecond: plan.BytesPerSecond, Seconds: Seconds(plan.Seconds),
		Even: plan.Even, Note: plan.Note, Said: "Every node would hold about its share; nothing is moved",
	}
	if !plan.Even {
		view.Said = fmt.Sprintf("%s in %s would be moved", words.Bytes(plan.Bytes), words.Count(plan.Slots, "slot"))
	}
	if !plan.Even && plan.Seconds >= 0 {
		view.Said += fmt.Sprintf(", which takes %s at %s", words.Span(words.Seconds(plan.Seconds)), words.Limit(plan.BytesPerSecond))
	}
	for i := range plan.Nodes {
		n := &plan.Nodes[i]
		view.Nodes = append(view.Nodes, &consolev1.BalanceNode{
			Name: string(n.ID), FairBytes: n.FairBytes, BytesBefore: n.BytesBefore, BytesAfter: n.BytesAfter, Note: n.Note,
		})
	}
	return view
}

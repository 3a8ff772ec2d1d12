package screen

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	tea "charm.land/bubbletea/v2"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/console/v1/consolev1connect"
)

// noon is the time of every fixture.
var noon = time.Date(2026, 3, 14, 12, 4, 11, 0, time.UTC)

func ago(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(noon.Add(-d)) }

// silent is a console that is never called: what comes from it is a fixture.
type silent struct{ consolev1connect.ConsoleClient }

// still returns a screen of a size that no time passes for. Its commands are not run.
func still(t testing.TB, width, height int, change ...func(*Options)) *Model {
	t.Helper()
	options := Options{Client: silent{}, Address: "127.0.0.1:7482", NoColor: true, Now: func() time.Time { return noon }}
	for _, c := range change {
		c(&options)
	}
	m := New(context.Background(), options)
	t.Cleanup(m.Close)
	m.Init()
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	return m
}

// keyNames are keys that are no characters.
var keyNames = map[string]rune{"esc": tea.KeyEscape, "enter": tea.KeyEnter, "down": tea.KeyDown, "up": tea.KeyUp, "left": tea.KeyLeft, "right": tea.KeyRight, "tab": tea.KeyTab}

// press types keys, each a name or characters, and returns the last command.
func press(m *Model, names ...string) (command tea.Cmd) {
	for _, name := range names {
		if code, is := keyNames[name]; is {
			_, command = m.Update(tea.KeyPressMsg{Code: code})
			continue
		}
		for _, r := range name {
			_, command = m.Update(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
	return command
}

// pageOf is the page of a kind.
func pageOf[P page](m *Model) P {
	for i := range m.kinds {
		if p, is := m.kinds[i].page.(P); is {
			return p
		}
	}
	panic("no kind has such a page") // invariant: the kinds are all there
}

func tellOverview(m *Model, overview *consolev1.Overview) {
	m.Update(received[consolev1.Overview]{&m.overview.feed, nil, overview})
}

func tellTransitions(m *Model, list ...*consolev1.Transition) {
	m.Update(received[consolev1.TransitionList]{&pageOf[*transitionsPage](m).feed, nil, &consolev1.TransitionList{Whole: true, Transitions: list}})
}

func tellPolicies(m *Model, list ...*consolev1.Policy) {
	m.Update(received[consolev1.PolicyList]{&pageOf[*policiesPage](m).feed, nil, &consolev1.PolicyList{Whole: true, Policies: list}})
}

func tellNodes(m *Model, list ...*consolev1.Node) {
	m.Update(received[consolev1.NodeList]{&pageOf[*nodesPage](m).feed, nil, &consolev1.NodeList{Whole: true, Nodes: list}})
}

func tellHeat(m *Model, list ...*consolev1.ClassHeat) {
	m.Update(received[consolev1.HeatReport]{&pageOf[*heatPage](m).feed, nil, &consolev1.HeatReport{Classes: list}})
}

// lost breaks the watch of the overview as a console that ends does.
func lost(m *Model) {
	m.Update(broken[consolev1.Overview]{&m.overview.feed, io.ErrUnexpectedEOF})
}

const mebibyte = 1 << 20

func transitions() []*consolev1.Transition {
	return []*consolev1.Transition{
		{Name: "media-rs-12-2-7", Policy: "media", Backend: "demo", Class: "media", From: "rs(4,2)", To: "rs(12,2)", State: "Running", StateWhy: "It moves groups.",
			Reason: "452 groups are used less than 3,072 times a day", Heat: "below 3,072 accesses a day", PlanHash: "6f1c", Created: ago(4 * time.Minute), Started: ago(3 * time.Minute),
			Cost: &consolev1.Cost{Groups: 424, Traffic: &consolev1.Traffic{BytesRead: 192 * mebibyte, BytesWritten: 32 * mebibyte}, PeakBytes: 4 * mebibyte,
				ReencodeBytesSent: 137 * mebibyte, Price: "0.0002", SavingPerMonth: "0.004"},
			Progress: &consolev1.Progress{GroupsTotal: 424, GroupsDone: 314, GroupsOffLadder: 12, BytesTotal: 192 * mebibyte, BytesDone: 142 * mebibyte, BytesPerSecond: 40 * mebibyte,
				EtaSeconds: proto.Float64(360), EtaSecondsLow: proto.Float64(300), EtaSecondsHigh: proto.Float64(540),
				Predicted: &consolev1.Traffic{BytesRead: 142 * mebibyte, BytesWritten: 24 * mebibyte}, Measured: &consolev1.Traffic{BytesRead: 142 * mebibyte, BytesWritten: 24 * mebibyte},
				OtherWaysBytesSent: map[string]int64{"reencode": 101 * mebibyte, "copy-pool": 189 * mebibyte}}},
		{Name: "logs-rs-4-2-2", Policy: "logs", Backend: "demo", Class: "logs", From: "rep(3)", To: "rs(4,2)", State: "Unapproved", StateWhy: "A person has to approve it.",
			NeedsApproval: true, PlanHash: "9d22", Created: ago(10 * time.Minute),
			Cost: &consolev1.Cost{Groups: 12, Traffic: &consolev1.Traffic{BytesRead: 5 * mebibyte, BytesWritten: 2 * mebibyte}, PeakBytes: mebibyte, ReencodeBytesSent: 9 * mebibyte}},
		{Name: "cache-rep-3-1", Policy: "cache", Backend: "demo", Class: "cache", From: "rs(12,2)", To: "rep(3)", State: "Paused", StateWhy: "It is outside its windows, until 22:00.",
			Created: ago(time.Hour), Started: ago(time.Hour), BytesPerSecondLimit: 20 * mebibyte,
			Progress: &consolev1.Progress{GroupsTotal: 40, GroupsDone: 10, BytesTotal: 4 << 30, BytesDone: 1 << 30, Measured: &consolev1.Traffic{BytesSent: 1200 * mebibyte},
				Predicted: &consolev1.Traffic{BytesSent: 1200 * mebibyte}}},
		{Name: "old-rs-4-2-1", Policy: "old", Backend: "demo", Class: "old", From: "rep(3)", To: "rs(4,2)", State: "Done", Created: ago(26 * time.Hour), Started: ago(26 * time.Hour), Ended: ago(25 * time.Hour),
			Progress: &consolev1.Progress{GroupsTotal: 7, GroupsDone: 7, BytesTotal: 3 * mebibyte, BytesDone: 3 * mebibyte}},
		{Name: "bad-rs-4-2-1", Policy: "bad", Backend: "demo", Class: "bad", From: "rep(3)", To: "rs(4,2)", State: "Failed", StateWhy: "no space at n4", Created: ago(30 * time.Hour), Ended: ago(30 * time.Hour)},
	}
}

func overview() *consolev1.Overview {
	return &consolev1.Overview{
		At: ago(0), Safety: consolev1.Safety_SAFETY_SAFE, SafetyLine: "All 11,478 objects can lose 2 nodes.", SafetyAt: ago(8 * time.Second), CanLose: proto.Int32(2), Objects: 11478, Groups: 905,
		ProtectedBytes: 173 * mebibyte, StoredBytes: 249 * mebibyte, Overhead: 1.44, SavedBytes: 259 * mebibyte, SavedPerMonth: 0.006,
		Moving: transitions()[:3], MovingTotal: 3, WaitingForApproval: 1, MovingLine: "1 running transition with 50 MiB left, about 6 min. 1 transition to approve.",
		Classes: []*consolev1.ClassOverview{
			{Backend: "demo", Class: "media", Policy: "media", Objects: 9000, Bytes: 142 * mebibyte, StoredBytes: 190 * mebibyte, Overhead: 1.34, Rungs: []*consolev1.RungOverview{
				{Scheme: "rep(3)", Groups: 12, Bytes: 8 * mebibyte, MeanHeat: proto.Float64(120000)}, {Scheme: "rs(4,2)", Groups: 40, Bytes: 30 * mebibyte, MeanHeat: proto.Float64(9000)},
				{Scheme: "rs(12,2)", Groups: 600, Bytes: 104 * mebibyte, MeanHeat: proto.Float64(10)}}},
			{Backend: "demo", Class: "default", Policy: "default", Objects: 2478, Bytes: 31 * mebibyte, StoredBytes: 59 * mebibyte, Overhead: 1.9, Rungs: []*consolev1.RungOverview{
				{Scheme: "rep(3)", Groups: 3, Bytes: 3 * mebibyte, MeanHeat: proto.Float64(800)}, {Scheme: "rs(4,2)", Groups: 250, Bytes: 28 * mebibyte, MeanHeat: proto.Float64(2)}}},
		},
		Nodes:    &consolev1.NodeCounts{Total: 15, ByState: map[string]int32{"up": 14, "suspect": 1}},
		Backends: []*consolev1.BackendHealth{{Backend: "demo", State: "whole", Line: "Every block is there.", Load: &consolev1.Load{WindowSeconds: 10, Requests: 1200, P50Seconds: 0.0012, P99Seconds: 0.018, TransitionBytesPerSecond: 40 * mebibyte}}},
		Sources:  []*consolev1.Source{{Name: "API server", Answered: ago(0)}, {Name: "backend demo", Answered: ago(time.Second)}},
	}
}

func backends() []*consolev1.Backend {
	ready := &consolev1.Condition{Type: "Ready", Status: "True", Reason: "InPlace", Message: "The gateways answer.", Since: ago(time.Hour)}
	return []*consolev1.Backend{{
		Name: "demo", Type: "file", Gateways: []string{"http://127.0.0.1:7480"}, UsedBytes: 249 * mebibyte, CapacityBytes: 4 << 30,
		Cluster: "8a1f", Conditions: []*consolev1.Condition{ready},
	}}
}

// compaction is one under way.
func compaction() *consolev1.Compaction {
	return &consolev1.Compaction{
		Backend: "demo", State: "running", Pass: 7, GroupsTotal: 120, GroupsDone: 30, ObjectsMoved: 4800, ObjectsSpliced: 4500,
		BytesTotal: 48 * mebibyte, BytesDone: 12 * mebibyte, BytesFreed: 20 * mebibyte, BytesPerSecond: 10 * mebibyte,
		Failed: 1, Error: "too few nodes answer", EtaSeconds: proto.Float64(240), Looked: ago(time.Minute),
		Classes: []*consolev1.DeadSpace{
			{Class: "default", Groups: 250, Bytes: 59 * mebibyte, DeadBytes: 28 * mebibyte, DeadAtMostPercent: 15},
			{Class: "kept", Groups: 2, Bytes: 3 * mebibyte, DeadBytes: 2 * mebibyte, DeadAtMostPercent: 1000},
		},
	}
}

// balance is one under way.
func balance() *consolev1.Balance {
	return &consolev1.Balance{
		Backend: "demo", State: "running", Number: 2, Planned: true, BytesTotal: 48 * mebibyte, BytesMoved: 12 * mebibyte, SlotsMoved: 96,
		BytesPerSecond: 10 * mebibyte, EtaSeconds: proto.Float64(240), Started: ago(time.Minute), Waits: "foreground traffic",
	}
}

func policies() []*consolev1.Policy {
	ready := []*consolev1.Condition{{Type: "Ready", Status: "True", Reason: "InPlace", Message: "Every group is where it belongs.", Since: ago(time.Hour)}}
	return []*consolev1.Policy{
		{Name: "media", Backend: "demo", Class: "media", Prefixes: []string{"media/"}, Ladder: []string{"rep(3)", "rs(4,2)", "rs(12,2)"}, StopPolicy: "None", Approval: "Auto", ActiveTransitions: 1,
			Rungs:      []*consolev1.Rung{{Scheme: "rep(3)", Groups: 12, Bytes: 8 * mebibyte, StoredBytes: 24 * mebibyte}, {Scheme: "rs(4,2)", Groups: 40, Bytes: 30 * mebibyte, StoredBytes: 45 * mebibyte}, {Scheme: "rs(12,2)", Groups: 600, Bytes: 104 * mebibyte, StoredBytes: 121 * mebibyte}},
			SavedBytes: 236 * mebibyte, Conditions: ready, HysteresisPercent: 10, BytesPerSecond: 100 * mebibyte,
			Rules: []*consolev1.TemperatureRule{{Scheme: "rep(3)", AtLeast: proto.Float64(98304)}, {Scheme: "rs(4,2)", AtLeast: proto.Float64(3072), Below: proto.Float64(98304)}, {Scheme: "rs(12,2)", Below: proto.Float64(3072)}}},
		{Name: "logs", Backend: "demo", Class: "logs", Ladder: []string{"rep(3)", "rs(4,2)"}, StopPolicy: "Hold", Approval: "Manual", Conditions: ready},
		{Name: "huge", Backend: "demo", Class: "huge", Ladder: []string{"rs(12,2)"}, StopPolicy: "None", Approval: "Auto",
			Conditions: []*consolev1.Condition{{Type: "Ready", Status: "False", Reason: "Infeasible", Message: "The backend has 10 nodes; rs(12,2) needs 14.", Since: ago(time.Minute)}}},
	}
}

func nodes() (list []*consolev1.Node) {
	for i := range 14 {
		list = append(list, &consolev1.Node{Backend: "demo", Name: fmt.Sprintf("n%d", i+1), Address: fmt.Sprintf("127.0.0.1:%d", 7501+i), State: "up", Declared: "up", StoreKind: "file", Durable: true,
			FailureDomain: fmt.Sprintf("rack%d", i/5+1), UsedBytes: int64(17+i) * mebibyte, CapacityBytes: 128 * mebibyte, Slots: 905, Since: ago(20 * time.Minute)})
	}
	list[8].State, list[8].Since, list[8].Warnings = "suspect", ago(3*time.Second), []string{"It has not answered for 3 s."}
	list[10].State, list[10].Declared, list[10].Drain = "draining", "draining", &consolev1.Drain{SlotsTotal: 905, SlotsLeft: 300, BytesPerSecond: 20 * mebibyte, EtaSeconds: proto.Float64(95)}
	list[11].State, list[11].Since = "down", ago(5*time.Minute)
	return list
}

func heats() []*consolev1.ClassHeat {
	return []*consolev1.ClassHeat{{Backend: "demo", Class: "media", Policy: "media", At: ago(time.Second), Complete: true, HalfLife: "2s", Dwell: "3s",
		Rungs: []*consolev1.RungHeat{
			{Scheme: "rep(3)", Groups: 12, Bytes: 8 * mebibyte, StoredBytes: 24 * mebibyte, Buckets: []*consolev1.HeatBucket{{AtLeast: 98304, Groups: 12, Bytes: 8 * mebibyte}}},
			{Scheme: "rs(4,2)", Groups: 40, Bytes: 30 * mebibyte, StoredBytes: 45 * mebibyte, Buckets: []*consolev1.HeatBucket{{AtLeast: 3072, Below: proto.Float64(6144), Groups: 40, Bytes: 30 * mebibyte}}},
			{Scheme: "rs(12,2)", Groups: 600, Bytes: 104 * mebibyte, StoredBytes: 121 * mebibyte, Buckets: []*consolev1.HeatBucket{{AtLeast: 0, Below: proto.Float64(0.001), Groups: 500, Bytes: 90 * mebibyte}, {AtLeast: 12, Below: proto.Float64(24), Groups: 100, Bytes: 14 * mebibyte}}},
		},
		Rules: policies()[0].Rules}}
}

// chosen is a class under mode auto.
func chosen() *consolev1.ClassHeat {
	const byUse = "by use (half-life 3 d, slack 4, hotter where it pays within 2.2 d)"
	return &consolev1.ClassHeat{
		Backend: "demo", Class: "pages", Policy: "pages", At: ago(time.Second), Complete: true, HalfLife: "72h0m0s", Dwell: "3h0m0s",
		Rungs: []*consolev1.RungHeat{
			{Scheme: "rep(3)", Groups: 12, Bytes: 8 * mebibyte, StoredBytes: 24 * mebibyte,
				Buckets: []*consolev1.HeatBucket{{AtLeast: 8, Groups: 12, Bytes: 8 * mebibyte}}},
			{Scheme: "rs(4,2)", Groups: 40, Bytes: 30 * mebibyte, StoredBytes: 45 * mebibyte,
				Buckets: []*consolev1.HeatBucket{{AtLeast: 0.25, Below: proto.Float64(0.5), Groups: 40, Bytes: 30 * mebibyte}}},
		},
		Choice: &consolev1.TemperatureChoice{
			Leader: byUse, Since: ago(26 * time.Hour), CountedSince: ago(10 * 24 * time.Hour), LookedAt: ago(2 * time.Hour), Days: 10,
			Reason: "it would have cost 1.20 since 2026-05-01 12:00 UTC, where everything on rep(3) cost 1.61; the way there costs at most 0.02",
			Paid:   1.5, BestFixed: "everything on rs(4,2)", SavedPerMonth: 0.84,
			Ways: []*consolev1.TemperatureWay{
				{Text: byUse, Paid: 1.45, Leads: true}, {Text: "everything on rep(3)", Paid: 3.2, Fixed: true},
				{Text: "everything on rs(4,2)", Paid: 1.78, Fixed: true},
			},
		},
	}
}

// merge is the picture of four columns merged with eight others: nothing is sent.
func merge() *consolev1.Picture {
	p := &consolev1.Picture{From: "rs(4,2)", To: "rs(12,2)", Rows: 1, Columns: 12, Proved: true, Cost: &consolev1.PictureCost{BlocksRead: 6, BlocksWritten: 2}}
	for column := range int32(12) {
		p.Cells = append(p.Cells, &consolev1.Cell{Column: column, OldStripe: column / 4})
	}
	for row := range int32(2) {
		p.Parities = append(p.Parities, &consolev1.ParityNode{Position: 12 + row, Row: row, OldStripes: []int32{0, 1, 2}, NewStripes: []int32{0}})
		p.Steps = append(p.Steps, &consolev1.PictureStep{Kind: consolev1.StepKind_STEP_KIND_ADD, Position: 12 + row, NewStripe: 0, OldStripes: []int32{0, 1, 2},
			Text: fmt.Sprintf("parity node %d makes its parity of new stripe 1 of 3 old parity blocks it already holds.", row+1)})
	}
	p.Steps = append(p.Steps, &consolev1.PictureStep{Kind: consolev1.StepKind_STEP_KIND_COMMIT, Position: -1, NewStripe: -1,
		Text: "The catalog names the new blocks in one transaction, and the old ones are deleted. Nothing crossed the network."})
	return p
}

// spread is the picture of a plan that sends: 2 columns with a copy more become one stripe with a parity.
func spread() *consolev1.Picture {
	return &consolev1.Picture{From: "rep(2)", To: "rs(2,1)", Rows: 1, Columns: 2, Proved: true, Cost: &consolev1.PictureCost{BlocksRead: 2, BlocksSent: 1, BlocksWritten: 1},
		Cells:    []*consolev1.Cell{{OldStripe: 0}, {Column: 1, OldStripe: 1}},
		Parities: []*consolev1.ParityNode{{Position: 2, OldStripes: []int32{0}, NewStripes: []int32{0}}},
		Steps: []*consolev1.PictureStep{
			{Kind: consolev1.StepKind_STEP_KIND_SEND, Text: "column 2 sends 1 block to parity node 1: 1 cell.", Position: 1, ToPosition: 2, Blocks: 1, Cells: []*consolev1.CellReference{{Column: 1}}, BlocksSentTotal: 1, NewStripe: -1},
			{Kind: consolev1.StepKind_STEP_KIND_ADD, Text: "parity node 1 makes its parity of new stripe 1 of 1 old parity block it already holds and 1 block it was sent.", Position: 2, BlocksReceived: 1, BlocksSentTotal: 1},
			{Kind: consolev1.StepKind_STEP_KIND_COMMIT, Text: "The catalog names the new blocks in one transaction, and the old ones are deleted. 1 block crossed the network.", Position: -1, NewStripe: -1, BlocksSentTotal: 1},
		}}
}

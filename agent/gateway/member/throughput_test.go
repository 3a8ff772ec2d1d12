package member

import (
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/wire"
)

// Rates are averages of at least two seconds, and none go back below zero when an agent starts anew.
func TestThroughput(t *testing.T) {
	began := time.Unix(1000, 0)
	var work throughput
	for _, step := range []struct {
		start               string
		after               time.Duration
		read, sent, written int64
		want                api.NodeRates
	}{
		{"a", 0, 5000, 5000, 5000, api.NodeRates{}},
		{"a", time.Second, 6000, 5000, 5000, api.NodeRates{}},
		{"a", 2 * time.Second, 9000, 6000, 5000, api.NodeRates{Read: 2000, Sent: 500}},
		{"a", 3 * time.Second, 9000, 6000, 90000, api.NodeRates{Read: 2000, Sent: 500}},
		{"a", 6 * time.Second, 9000, 6000, 9000, api.NodeRates{Written: 1000}},
		{"b", 9 * time.Second, 100, 100, 100, api.NodeRates{}},
		{"b", 11 * time.Second, 100, 100, 300, api.NodeRates{Written: 100}},
	} {
		work.note(&wire.HelloReply{Start: step.start, Counters: wire.Counters{BytesRead: step.read, BytesSent: step.sent, BytesWritten: step.written}}, began.Add(step.after))
		if work.rates != step.want {
			t.Errorf("after %s: %+v, want %+v", step.after, work.rates, step.want)
		}
	}
}

func TestCapacityOfNodesThatShareAVolume(t *testing.T) {
	for _, c := range []struct {
		nodes          []api.NodeStatus
		used, capacity int64
	}{
		{nil, 0, 0},
		{[]api.NodeStatus{{UsedBytes: 1, CapacityBytes: 10}, {UsedBytes: 2, CapacityBytes: 20}}, 3, 30},
		{[]api.NodeStatus{{UsedBytes: 7, CapacityBytes: 10, Volume: "a"}, {UsedBytes: 7, CapacityBytes: 10, Volume: "a"}, {UsedBytes: 2, CapacityBytes: 20, Volume: "b"}}, 9, 30},
		{[]api.NodeStatus{{UsedBytes: 1, CapacityBytes: 10}, {UsedBytes: 2}}, 3, 0},
	} {
		if used, capacity := api.Capacity(c.nodes); used != c.used || capacity != c.capacity {
			t.Errorf("%+v: %d of %d, want %d of %d", c.nodes, used, capacity, c.used, c.capacity)
		}
	}
}

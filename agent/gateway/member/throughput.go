package member

import (
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/wire"
)

// throughputEvery is over how long at least the work of a node is averaged: it comes in units of whole blocks.
const throughputEvery = 2 * time.Second

// throughput makes rates of the counters that an agent tells with every answer to a probe. The zero value is ready to use.
type throughput struct {
	start string // of the agent whose counters they are
	since time.Time
	base  wire.Counters // as of then
	rates api.NodeRates
}

func (t *throughput) note(hello *wire.HelloReply, now time.Time) {
	if hello.Start != t.start {
		*t = throughput{start: hello.Start, since: now, base: hello.Counters}
		return
	}
	took := now.Sub(t.since)
	if took < throughputEvery {
		return
	}
	rate := func(now, before int64) float64 { return float64(now-before) / took.Seconds() }
	t.rates = api.NodeRates{
		Read: rate(hello.Counters.BytesRead, t.base.BytesRead), Sent: rate(hello.Counters.BytesSent, t.base.BytesSent),
		Written: rate(hello.Counters.BytesWritten, t.base.BytesWritten),
	}
	t.since, t.base = now, hello.Counters
}

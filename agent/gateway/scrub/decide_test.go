package scrub

import (
	"testing"
	"time"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
)

// A store that has dropped blocks has all of them looked for, soon and once, unless a person has stopped the scrub. The audit of
// all bytes comes as often as ever, whatever was looked at in between.
func TestDroppedBlocksAreLookedFor(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	before := func(d time.Duration) *time.Time { at := now.Add(-d); return &at }
	done := func(started, audited time.Duration) api.Scrub {
		return api.Scrub{State: api.ScrubDone, Started: *before(started), Audited: before(audited)}
	}
	for name, c := range map[string]struct {
		every   time.Duration
		scrub   api.Scrub
		dropped bool
		want    scrubMove
	}{
		"nothing was dropped":         {DefaultEvery, done(time.Hour, time.Hour), false, scrubRest},
		"dropped":                     {DefaultEvery, done(time.Hour, time.Hour), true, scrubLook},
		"dropped right after a cycle": {DefaultEvery, done(time.Second, time.Hour), true, scrubRest},
		"dropped before any cycle":    {DefaultEvery, api.Scrub{State: api.ScrubNever}, true, scrubLook},
		"dropped while paused":        {DefaultEvery, api.Scrub{State: api.ScrubPaused}, true, scrubRest},
		"only on request":             {-1, done(time.Hour, time.Hour), true, scrubRest},
		"looks are no audits":         {DefaultEvery, done(time.Hour, DefaultEvery+time.Hour), false, scrubBegin},
		"an audit looks, too":         {DefaultEvery, done(time.Hour, DefaultEvery+time.Hour), true, scrubBegin},
	} {
		s := &Scrubber{options: Options{Every: c.every}, began: now.Add(-time.Minute), dropped: c.dropped}
		if got := s.decide(&catalog.Job{Version: 1}, &c.scrub, now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if c.want == scrubLook && s.decide(&catalog.Job{Version: 1}, &c.scrub, now) != scrubRest {
			t.Errorf("%s: looked for twice", name)
		}
	}
}

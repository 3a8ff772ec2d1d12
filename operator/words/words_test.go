package words_test

import (
	"math"
	"testing"
	"time"

	"github.com/restripe/restripe/operator/words"
)

const gibibyte = 1 << 30

func TestQuantitiesCarryUnits(t *testing.T) {
	for _, c := range []struct{ have, want string }{
		{words.Number(11478), "11,478"}, {words.Number(-1000), "-1,000"},
		{words.Decimal(1200), "1,200"}, {words.Decimal(0.5), "0.5"},
		{words.Count(0, "group"), "0 groups"}, {words.Count(1, "group"), "1 group"}, {words.Count(11478, "group"), "11,478 groups"},
		{words.Count(2, "policy"), "2 policies"}, {words.Count(2, "loss"), "2 losses"}, {words.Count(2, "way"), "2 ways"},
		{words.Bytes(0), "0 B"}, {words.Bytes(1023), "1023 B"}, {words.Bytes(1536), "1.5 KiB"}, {words.Bytes(gibibyte * 3 / 2), "1.5 GiB"},
		{words.Bytes(-1024), "-1.0 KiB"}, {words.Bytes(math.MaxInt64), "8.0 EiB"}, {words.Bytes(math.MinInt64), "-8.0 EiB"},
		{words.Rate(40 << 20), "40 MiB/s"}, {words.Rate(0), "0 B/s"},
		{words.Limit(40 << 20), "40 MiB/s"}, {words.Limit(0), "unlimited"},
		{words.Part(90<<20, 192<<20), "90 of 192 MiB"}, {words.Part(1<<19, 4<<20), "0.5 of 4.0 MiB"}, {words.Part(3, 0), "3 B"}, {words.Part(3, 900), "3 of 900 B"},
		{words.Share(1, 4), "25 %"}, {words.Share(999, 1000), "99 %"}, {words.Share(7, 7), "100 %"}, {words.Share(0, 0), "-"},
		{words.Accesses(0), "0"}, {words.Accesses(0.25), "0.25"}, {words.Accesses(2770.4), "2,770"}, {words.Accesses(1_500_000), "1.5 M"},
	} {
		if c.have != c.want {
			t.Errorf("have %q, want %q", c.have, c.want)
		}
	}
}

func TestTimesCarryUnits(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct{ have, want string }{
		{words.Span(0), "0 s"}, {words.Span(400 * time.Millisecond), "0.4 s"}, {words.Span(3 * time.Second), "3 s"},
		{words.Span(9960 * time.Millisecond), "10 s"}, {words.Span(12400 * time.Millisecond), "12 s"}, {words.Span(59600 * time.Millisecond), "1 min"},
		{words.Span(200 * time.Second), "3 min 20 s"}, {words.Span(3599600 * time.Millisecond), "1 h"}, {words.Span(125 * time.Minute), "2 h 5 min"},
		{words.Span(6 * time.Hour), "6 h"}, {words.Span(47 * time.Hour), "47 h"}, {words.Span(3*day + 4*time.Hour), "3 d 4 h"}, {words.Span(-time.Minute), "-1 min"},
		{words.About(0), "1 s"}, {words.About(-time.Minute), "1 s"}, {words.About(12 * time.Second), "12 s"}, {words.About(14 * time.Minute), "14 min"},
		{words.About(3*time.Hour + 30*time.Minute), "3.5 h"}, {words.About(50 * time.Hour), "2.1 d"},
		{words.ETA(14*time.Minute, 11*time.Minute, 19*time.Minute), "14 min (11-19)"}, {words.ETA(2*time.Hour, 90*time.Minute, 3*time.Hour), "2.0 h (1.5-3.0)"},
		{words.ETA(14*time.Minute, 14*time.Minute, 14*time.Minute+5*time.Second), "14 min"}, {words.ETA(time.Second/2, 0, time.Hour), "1 s"},
		{words.ETA(0, 0, 0), "1 s"},
		{words.Left(-1), "unknown"}, {words.Left(12), "about 12 s"}, {words.Left(240), "about 4 min"},
		{words.Time(time.Date(2026, 3, 29, 16, 5, 59, 0, time.FixedZone("two hours ahead", 7200))), "2026-03-29 14:05 UTC"},
	} {
		if c.have != c.want {
			t.Errorf("have %q, want %q", c.have, c.want)
		}
	}
	for seconds, want := range map[float64]time.Duration{0.5: time.Second / 2, -2: -2 * time.Second, 1e30: math.MaxInt64} {
		if have := words.Seconds(seconds); have != want {
			t.Errorf("%v seconds: have %v, want %v", seconds, have, want)
		}
	}
}

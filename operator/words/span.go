package words

import (
	"math"
	"strconv"
	"time"
)

const day = 24 * time.Hour

// Seconds returns a length of time in seconds as a time.Duration; beyond the longest there is, it is that.
func Seconds(seconds float64) time.Duration {
	if nanoseconds := seconds * float64(time.Second); nanoseconds < math.MaxInt64 {
		return time.Duration(nanoseconds)
	}
	return math.MaxInt64
}

// spans are the pairs of units of Span, and from how long on each is used.
var spans = []struct {
	from, large, small   time.Duration
	largeName, smallName string
}{
	{2 * day, day, time.Hour, "d", "h"},
	{time.Hour, time.Hour, time.Minute, "h", "min"},
	{time.Minute, time.Minute, time.Second, "min", "s"},
}

// Span shows how long something took or takes, in at most two units and without those that are zero: 0.4 s, 12 s, 3 min 20 s,
// 2 h 5 min, 6 h, 3 d 4 h.
func Span(d time.Duration) string {
	if d < 0 {
		return "-" + Span(-max(d, -math.MaxInt64))
	}
	for _, s := range spans {
		rounded := d.Round(s.small)
		if rounded < s.from {
			continue
		}
		text := strconv.FormatInt(int64(rounded/s.large), 10) + " " + s.largeName
		if rest := rounded % s.large / s.small; rest > 0 {
			text += " " + strconv.FormatInt(int64(rest), 10) + " " + s.smallName
		}
		return text
	}
	precision := time.Second
	if d.Round(time.Second/10) < 10*time.Second {
		precision = time.Second / 10
	}
	return strconv.FormatFloat(d.Round(precision).Seconds(), 'f', -1, 64) + " s"
}

// unit is the unit that a rough length of time has.
type unit struct {
	name     string
	length   time.Duration
	decimals int
}

func unitOf(d time.Duration) unit {
	switch {
	case d < 90*time.Second:
		return unit{"s", time.Second, 0}
	case d < 90*time.Minute:
		return unit{"min", time.Minute, 0}
	case d < 36*time.Hour:
		return unit{"h", time.Hour, 1}
	}
	return unit{"d", day, 1}
}

func (u unit) count(d time.Duration) string {
	return strconv.FormatFloat(max(0, d.Seconds())/u.length.Seconds(), 'f', u.decimals, 64)
}

// About shows roughly how long something takes or how long ago it was, in one unit: 12 s, 14 min, 3.5 h, 2.1 d. What is less
// than a second is a second.
func About(d time.Duration) string {
	d = max(d, time.Second)
	u := unitOf(d)
	return u.count(d) + " " + u.name
}

// ETA shows an estimate of how long something takes as About does, and between which times in the same unit where they
// differ: 14 min, 14 min (11-19).
func ETA(middle, low, high time.Duration) string {
	u, text := unitOf(middle), About(middle)
	from, to := u.count(low), u.count(high)
	if middle < time.Second || from == to {
		return text
	}
	return text + " (" + from + "-" + to + ")"
}

// Left shows an estimate of the time left in seconds, as the gateways give it: below 0 it is not known.
func Left(seconds float64) string {
	if seconds < 0 {
		return "unknown"
	}
	return "about " + About(Seconds(seconds))
}

// Time shows a time of any zone in UTC, to the minute: 2026-03-29 14:05 UTC.
func Time(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

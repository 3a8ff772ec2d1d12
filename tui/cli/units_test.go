package cli

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/tui/progress"
)

func TestBarsAndLetters(t *testing.T) {
	cases := []struct{ have, want string }{
		{progress.Bar(1, 2), "[##########----------]"}, {progress.Bar(3, 2), "[" + strings.Repeat("#", 20) + "]"}, {progress.Bar(0, 0), "[" + strings.Repeat("-", 20) + "]"},
		{stripeLetters(0), "a"}, {stripeLetters(25), "z"}, {stripeLetters(26), "aa"}, {stripeLetters(27), "ab"}, {stripeLetters(26 + 26*26), "aaa"},
	}
	for _, c := range cases {
		if c.have != c.want {
			t.Errorf("have %q, want %q", c.have, c.want)
		}
	}
}

func TestRates(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "unlimited": 0, "0": 0, "50MiB/s": 50 << 20, "50MB/s": 50e6, "1 GiB": 1 << 30, "4096": 4096} {
		if have, err := parseRate(text); err != nil || have != want {
			t.Errorf("%q: %d, %v; want %d", text, have, err, want)
		}
	}
	for _, text := range []string{"fast", "-5MiB/s", "MiB", "1e40GiB"} {
		if have, err := parseRate(text); err == nil {
			t.Errorf("%q was read as %d", text, have)
		}
	}
}

func TestSpans(t *testing.T) {
	for text, want := range map[string][2]int64{"0-9": {0, 10}, "5-": {5, 0}, "5+3": {5, 3}, "9223372036854775807-": {math.MaxInt64, 0}, "7-7": {7, 1}} {
		if offset, length, err := parseSpan(text); err != nil || offset != want[0] || length != want[1] {
			t.Errorf("%q: %d, %d, %v; want %v", text, offset, length, err, want)
		}
	}
	for _, text := range []string{"9-3", "-5", "+", "a-b", "", "5", "5+0", "0-9223372036854775807", "9+9223372036854775807"} {
		if offset, length, err := parseSpan(text); err == nil {
			t.Errorf("%q was read as %d, %d", text, offset, length)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.StringMatching(`-?[0-9]{0,20}[-+]?[0-9]{0,20}`).Draw(r, "range")
		offset, length, err := parseSpan(text)
		if err == nil && (offset < 0 || length < 0 || offset+length < 0 || (length == 0 && !strings.HasSuffix(text, "-"))) {
			r.Fatalf("%q: offset %d, length %d", text, offset, length)
		}
	})
}

func TestSafetyIsSaidInOneLine(t *testing.T) {
	cases := []struct {
		status api.Status
		want   string
	}{
		{api.Status{CanLose: -1}, "Nothing is stored yet"},
		{api.Status{CanLose: 0, Objects: 3}, "Some objects survive no further loss"},
		{api.Status{CanLose: 1, Objects: 1200, NotWhole: 2}, "All 1,200 objects survive the loss of any 1 node; 2 groups not whole"},
		{api.Status{CanLose: 2, Objects: 1}, "The one object survives the loss of any 2 nodes."},
		{api.Status{CanLose: 2, Objects: 3}, "All 3 objects survive the loss of any 2 nodes."},
	}
	for _, c := range cases {
		if have := safetyText(c.status); !strings.HasPrefix(have, c.want) {
			t.Errorf("have %q, want %q", have, c.want)
		}
	}
}

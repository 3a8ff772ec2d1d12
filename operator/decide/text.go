package decide

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

func formatBytes(n int64) string {
	if n < 0 {
		return "-" + formatBytes(-n)
	}
	return humanize.IBytes(uint64(n))
}

// formatDuration is time.Duration's text without zero units: 6h, 1h30m, 45s.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// formatRate is accesses a day with as few digits as say it.
func formatRate(rate float64) string { return humanize.Commaf(rate) }

func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// formatETA is "6m (5-9)": the middle in its largest fitting unit, the range in the same unit.
func formatETA(eta ETA) string {
	unit, letter := time.Second, "s"
	switch {
	case eta.Middle >= 48*time.Hour:
		unit, letter = 24*time.Hour, "d"
	case eta.Middle >= 2*time.Hour:
		unit, letter = time.Hour, "h"
	case eta.Middle >= 2*time.Minute:
		unit, letter = time.Minute, "m"
	}
	in := func(d time.Duration) int64 { return int64((d + unit/2) / unit) }
	middle, low, high := in(eta.Middle), in(eta.Low), in(eta.High)
	if low == high {
		return fmt.Sprintf("%d%s", middle, letter)
	}
	return fmt.Sprintf("%d%s (%d-%d)", middle, letter, low, high)
}

// formatShare is "74 %" of a whole; never 100 before it is whole.
func formatShare(part, whole int64) string {
	if whole <= 0 {
		return ""
	}
	percent := int64(float64(part) / float64(whole) * 100)
	if part < whole {
		percent = min(percent, 99)
	}
	return fmt.Sprintf("%d %%", percent)
}

// sentences joins messages into one.
func sentences(parts ...string) string {
	var kept []string
	for _, part := range parts {
		if part != "" {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, "; ")
}

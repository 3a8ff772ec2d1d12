package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// bytesText shows a number of bytes with a binary unit, for example "1.2 GiB".
func bytesText(n int64) string {
	if n < 0 {
		return "-" + humanize.IBytes(uint64(-n))
	}
	return humanize.IBytes(uint64(n))
}

// rateText shows bytes per second; 0 is no limit.
func rateText(bytesPerSecond int64) string {
	if bytesPerSecond == 0 {
		return "unlimited"
	}
	return bytesText(bytesPerSecond) + "/s"
}

// countText shows a count with separators: 11,478.
func countText(n int64) string { return humanize.Comma(n) }

// parseRate reads a limit such as 50MiB/s, 50MB/s or 50MiB; "unlimited" and 0 lift it.
func parseRate(text string) (int64, error) {
	if text == "" || text == "unlimited" {
		return 0, nil
	}
	n, err := humanize.ParseBytes(strings.TrimSuffix(text, "/s"))
	if err != nil || n > math.MaxInt64 {
		return 0, fmt.Errorf("rate %q: want a number of bytes per second such as 50MiB/s, or unlimited", text)
	}
	return int64(n), nil
}

// plural shows a count of things: "1 object", "11,478 objects".
func plural(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return countText(n) + " " + thing + "s"
}

// durationText shows a length of time as people say it: 0.4 s, 12 s, 3 min 20 s, 2 h 5 min.
func durationText(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds()+0.5)) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// leftText shows an estimate of the time left; negative means unknown.
func leftText(seconds float64) string {
	if seconds < 0 {
		return "unknown"
	}
	return "about " + durationText(time.Duration(seconds*float64(time.Second)))
}

// ageText shows how long ago something was, roughly.
func ageText(then, now time.Time) string {
	switch age := now.Sub(then); {
	case age < 0:
		return "0s"
	case age < 2*time.Minute:
		return fmt.Sprintf("%ds", int(age.Seconds()))
	case age < 2*time.Hour:
		return fmt.Sprintf("%dm", int(age.Minutes()))
	case age < 48*time.Hour:
		return fmt.Sprintf("%dh", int(age.Hours()))
	default:
		return fmt.Sprintf("%dd", int(age.Hours()/24))
	}
}

// shareText shows part of whole as a percentage, with the whole where it is not zero.
func shareText(part, whole int64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%d%%", 100*part/whole)
}

// parseSpan reads a range of bytes: "a-b" (both included), "a-" to the end, or "a+n" n bytes from a on.
func parseSpan(text string) (offset, length int64, err error) {
	wrong := fmt.Errorf("range %q: want first-last (both included), first- or first+count, in bytes", text)
	if first, count, found := strings.Cut(text, "+"); found {
		offset, err = strconv.ParseInt(first, 10, 64)
		if err == nil {
			length, err = strconv.ParseInt(count, 10, 64)
		}
		if err != nil || offset < 0 || length <= 0 || offset > math.MaxInt64-length {
			return 0, 0, wrong
		}
		return offset, length, nil
	}
	first, last, found := strings.Cut(text, "-")
	if offset, err = strconv.ParseInt(first, 10, 64); err != nil || !found {
		return 0, 0, wrong
	}
	if last == "" {
		return offset, 0, nil
	}
	end, err := strconv.ParseInt(last, 10, 64)
	if err != nil || end < offset || end == math.MaxInt64 {
		return 0, 0, wrong
	}
	return offset, end - offset + 1, nil
}

package screen

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/dustin/go-humanize"
	"google.golang.org/protobuf/types/known/timestamppb"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
)

// bytesText is "1.2 GiB".
func bytesText(bytes int64) string {
	if bytes < 0 {
		return "-" + humanize.IBytes(uint64(-bytes))
	}
	return humanize.IBytes(uint64(bytes))
}

// rateText is "40 MiB/s".
func rateText(bytesPerSecond int64) string { return bytesText(bytesPerSecond) + "/s" }

// partText is "90 of 192 MiB": both in the unit of the whole.
func partText(part, whole int64) string {
	if whole <= 0 {
		return bytesText(part)
	}
	text := bytesText(whole)
	_, unit, _ := strings.Cut(text, " ")
	size := math.Pow(1024, float64(strings.Index("BKMGTPE", unit[:1])))
	share := float64(part) / size
	format := "%.0f"
	if share > 0 && share < 10 && unit != "B" {
		format = "%.1f"
	}
	return fmt.Sprintf(format, share) + " of " + text
}

// countText is "1,200 objects", or "1 object".
func countText(count int64, what string) string {
	if count == 1 {
		return "1 " + what
	}
	return humanize.Comma(count) + " " + what + "s"
}

// spanText is a length of time: 12 s, 14 min, 3.5 h, 2.1 d.
func spanText(seconds float64) string {
	switch {
	case seconds < 1:
		return "1 s"
	case seconds < 90:
		return fmt.Sprintf("%.0f s", seconds)
	case seconds < 90*60:
		return fmt.Sprintf("%.0f min", seconds/60)
	case seconds < 36*3600:
		return fmt.Sprintf("%.1f h", seconds/3600)
	}
	return fmt.Sprintf("%.1f d", seconds/86400)
}

// rangeText is "14 min (11-19)": what is left, and between which times, in the same unit.
func rangeText(p *consolev1.Progress) string {
	if p == nil || p.EtaSeconds == nil || p.GetEtaSeconds() <= 0 {
		return "-"
	}
	eta := p.GetEtaSeconds()
	text := spanText(eta)
	if p.EtaSecondsLow == nil || p.EtaSecondsHigh == nil {
		return text
	}
	unit := 1.0
	switch _, name, _ := strings.Cut(text, " "); name {
	case "min":
		unit = 60
	case "h":
		unit = 3600
	case "d":
		unit = 86400
	}
	low, high := math.Floor(p.GetEtaSecondsLow()/unit), math.Ceil(p.GetEtaSecondsHigh()/unit)
	if high < 1 {
		return text
	}
	return fmt.Sprintf("%s (%.0f-%.0f)", text, low, high)
}

// ageText is how long ago something was, roughly: 12s, 4m, 3h, 2d.
func ageText(then *timestamppb.Timestamp, now time.Time) string {
	if then == nil {
		return "-"
	}
	switch age := max(0, now.Sub(then.AsTime())); {
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

// clockText is a time of this day, or a day and a time.
func clockText(then *timestamppb.Timestamp, now time.Time) string {
	if then == nil {
		return "-"
	}
	at := then.AsTime().In(now.Location())
	if at.Year() == now.Year() && at.YearDay() == now.YearDay() {
		return at.Format("15:04:05")
	}
	return at.Format("2006-01-02 15:04")
}

// schemeText is a code in few characters: "rep 3" for rep(3), "4+2" for rs(4,2).
func schemeText(code string) string {
	if copies, is := strings.CutPrefix(code, "rep("); is {
		return "rep " + strings.TrimSuffix(copies, ")")
	}
	if numbers, is := strings.CutPrefix(code, "rs("); is {
		return strings.Replace(strings.TrimSuffix(numbers, ")"), ",", "+", 1)
	}
	return code
}

// accessText is a number of accesses a day.
func accessText(perDay float64) string {
	switch {
	case perDay >= 1e5:
		return humanize.SIWithDigits(perDay, 1, "")
	case perDay >= 10 || perDay == 0:
		return humanize.Comma(int64(perDay + 0.5))
	}
	return fmt.Sprintf("%.2g", perDay)
}

// plain takes out of a text from elsewhere what would steer the terminal.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return '?'
		}
		return r
	}, text)
}

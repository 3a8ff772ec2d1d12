package screen

import (
	"strings"
	"time"
	"unicode"

	"google.golang.org/protobuf/types/known/timestamppb"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/words"
)

// etaOf is what is left, and between which times, as far as it is known.
func etaOf(p *consolev1.Progress) string {
	if p == nil || p.EtaSeconds == nil || p.GetEtaSeconds() <= 0 {
		return "-"
	}
	if p.EtaSecondsLow == nil || p.EtaSecondsHigh == nil {
		return words.About(words.Seconds(p.GetEtaSeconds()))
	}
	return words.ETA(words.Seconds(p.GetEtaSeconds()), words.Seconds(p.GetEtaSecondsLow()), words.Seconds(p.GetEtaSecondsHigh()))
}

// ageText is roughly how long ago something was.
func ageText(then *timestamppb.Timestamp, now time.Time) string {
	if then == nil {
		return "-"
	}
	return words.About(now.Sub(then.AsTime()))
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

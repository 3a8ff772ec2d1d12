package words

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
)

// Number shows a whole number with separators: 11,478.
func Number(n int64) string { return humanize.Comma(n) }

// Known shows a whole number as Number does, and one that is not known, which is below 0, as a question mark.
func Known(n int64) string {
	if n < 0 {
		return "?"
	}
	return Number(n)
}

// Decimal shows a number as exactly as it is known, with separators: 1,200, 0.5.
func Decimal(x float64) string { return humanize.Commaf(x) }

// Count shows how many there are of something, named in the singular: 1 object, 11,478 objects, 2 policies.
func Count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Number(n) + " " + plural(noun)
}

// Moved says how many objects a compaction moved, and how many of them stayed on their nodes.
func Moved(objects, spliced int64) string {
	text := Count(objects, "object")
	if spliced > 0 {
		text += ", " + Number(spliced) + " of them on their nodes"
	}
	return text
}

// plural returns the plural of an English noun that is formed by rule.
func plural(noun string) string {
	before, ends := strings.CutSuffix(noun, "y")
	switch {
	case ends && before != "" && !strings.ContainsAny(before[len(before)-1:], "aeiou"):
		return before + "ies"
	case strings.HasSuffix(noun, "s") || strings.HasSuffix(noun, "x") || strings.HasSuffix(noun, "ch") || strings.HasSuffix(noun, "sh"):
		return noun + "es"
	}
	return noun + "s"
}

// Bytes shows a number of bytes with a binary unit and two digits that count: 0 B, 1.5 KiB, 40 MiB.
func Bytes(n int64) string {
	if n < 0 {
		return "-" + humanize.IBytes(-uint64(n))
	}
	return humanize.IBytes(uint64(n))
}

// Rate shows bytes per second: 40 MiB/s.
func Rate(bytesPerSecond int64) string { return Bytes(bytesPerSecond) + "/s" }

// Limit shows a bound on bytes per second, of which 0 is none: 40 MiB/s, unlimited.
func Limit(bytesPerSecond int64) string {
	if bytesPerSecond == 0 {
		return "unlimited"
	}
	return Rate(bytesPerSecond)
}

// Part shows a part of some bytes beside all of them, in the unit of the whole: 90 of 192 MiB. Without a whole it shows the
// part.
func Part(part, whole int64) string {
	if whole <= 0 {
		return Bytes(part)
	}
	text := Bytes(whole)
	_, unit, _ := strings.Cut(text, " ")
	share := float64(part) / math.Pow(1024, float64(strings.Index("BKMGTPE", unit[:1])))
	format := "%.0f"
	if share > 0 && share < 10 && unit != "B" {
		format = "%.1f"
	}
	return fmt.Sprintf(format, share) + " of " + text
}

// Share shows a part of a whole in percent, and never 100 % before it is whole: 74 %. Of nothing it is "-".
func Share(part, whole int64) string {
	if whole <= 0 {
		return "-"
	}
	percent := int64(float64(part) / float64(whole) * 100)
	if part < whole {
		percent = min(percent, 99)
	}
	return strconv.FormatInt(percent, 10) + " %"
}

// Accesses shows a measured number of accesses a day in few characters: 0.25, 2,770, 1.5 M.
func Accesses(perDay float64) string {
	switch {
	case perDay >= 1e5:
		return strings.TrimSpace(humanize.SIWithDigits(perDay, 1, ""))
	case perDay >= 10 || perDay == 0:
		return Number(int64(perDay + 0.5))
	}
	return fmt.Sprintf("%.2g", perDay)
}

package console

import (
	"fmt"
	"strconv"

	"github.com/dustin/go-humanize"
)

// counted is "1,200 objects", or "1 object".
func counted(count int64, what string) string {
	if count == 1 {
		return "1 " + what
	}
	return humanize.Comma(count) + " " + what + "s"
}

// sized is "1.2 GiB".
func sized(bytes int64) string {
	if bytes < 0 {
		return "-" + humanize.IBytes(uint64(-bytes))
	}
	return humanize.IBytes(uint64(bytes))
}

// about is "about 4 min".
func about(seconds float64) string {
	switch {
	case seconds < 1:
		return "about a second"
	case seconds < 90:
		return fmt.Sprintf("about %.0f s", seconds)
	case seconds < 90*60:
		return fmt.Sprintf("about %.0f min", seconds/60)
	case seconds < 36*3600:
		return fmt.Sprintf("about %.1f h", seconds/3600)
	}
	return fmt.Sprintf("about %.1f days", seconds/86400)
}

// amountOf reads an amount of money that the operator wrote; what is none is 0.
func amountOf(text string) float64 {
	amount, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return amount
}

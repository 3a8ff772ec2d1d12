package price

import (
	"math"
	"strconv"
)

// Amount shows an amount of money: two decimals, or two digits that count where it is less than a hundredth.
func Amount(amount float64) string {
	size := math.Abs(amount)
	switch {
	case size == 0:
		return "0"
	case size >= 0.005:
		return strconv.FormatFloat(amount, 'f', 2, 64)
	case size < 1e-6:
		return "less than 0.000001"
	}
	decimals := 1 - int(math.Floor(math.Log10(size)))
	return strconv.FormatFloat(amount, 'f', decimals, 64)
}

// monthsText shows a payback time with a decimal, or with as many as tell it from the limit.
func monthsText(months, limit float64) string {
	if months < 0.05 && limit >= 0.1 {
		return "less than 0.1 months"
	}
	for decimals := 1; ; decimals++ {
		text := strconv.FormatFloat(months, 'f', decimals, 64)
		shown, err := strconv.ParseFloat(text, 64)
		if err != nil || decimals == 9 || (shown <= limit) == (months <= limit) {
			return text + " months"
		}
	}
}

func numberText(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

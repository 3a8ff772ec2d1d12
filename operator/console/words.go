package console

import "strconv"

// amountOf reads an amount of money that the operator wrote; what is none is 0.
func amountOf(text string) float64 {
	amount, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return amount
}

package resp

import (
	"math"
	"math/big"
	"strings"

	"github.com/restripe/restripe/agent/gateway/values"
)

func doIncrement(x *call) error { return x.addTo(1) }
func doDecrement(x *call) error { return x.addTo(-1) }

func doIncrementBy(x *call) error {
	by, err := x.integer(2)
	if err != nil {
		return err
	}
	return x.addTo(by)
}

func doDecrementBy(x *call) error {
	by, err := x.integer(2)
	if err != nil {
		return err
	}
	if by == math.MinInt64 {
		return errDecrement
	}
	return x.addTo(-by)
}

func (x *call) addTo(by int64) error {
	var sum int64
	err := x.keys.Accumulate(x.ctx, x.key(1), func(now *values.Value) (values.Change, error) {
		was, is := int64(0), true
		if now != nil {
			was, is = parseInteger(now.Data)
		}
		if !is {
			return values.Change{}, errInteger
		}
		if by < 0 && was < math.MinInt64-by || by > 0 && was > math.MaxInt64-by {
			return values.Change{}, errOverflow
		}
		sum = was + by
		return x.changed(now, decimal(sum)), nil
	})
	if err == nil {
		x.reply.integer(sum)
	}
	return err
}

// Redis adds in the 80 bits of its processor's long double, and writes 17 places after the point.
const (
	longDoubleBits = 64 // of the mantissa
	longDoubleMost = 16384
	longDoubleText = 256
)

func doIncrementFloat(x *call) error {
	by, is := parseFloat(x.arguments[2])
	if !is {
		return errFloat
	}
	if by.IsInf() {
		return errNotFinite
	}
	var sum []byte
	err := x.keys.Accumulate(x.ctx, x.key(1), func(now *values.Value) (values.Change, error) {
		was, is := new(big.Float), true
		if now != nil {
			was, is = parseFloat(now.Data)
		}
		if !is {
			return values.Change{}, errFloat
		}
		if was.IsInf() {
			return values.Change{}, errNotFinite
		}
		next := new(big.Float).SetPrec(longDoubleBits).Add(was, by)
		if next.MantExp(nil) > longDoubleMost {
			return values.Change{}, errNotFinite
		}
		sum = formatFloat(next)
		return x.changed(now, sum), nil
	})
	if err == nil {
		x.reply.bulk(sum)
	}
	return err
}

func parseFloat(text []byte) (*big.Float, bool) {
	switch strings.ToLower(strings.TrimLeft(string(text), "+-")) {
	case "inf", "infinity":
		return new(big.Float).SetInf(text[0] == '-'), true
	}
	if len(text) == 0 || len(text) > longDoubleText || strings.ContainsAny(string(text), "_iIpP") {
		return nil, false
	}
	number, _, err := big.ParseFloat(string(text), 10, longDoubleBits, big.ToNearestEven)
	if err != nil || number.IsInf() || number.MantExp(nil) > longDoubleMost || number.MantExp(nil) < -longDoubleMost-longDoubleBits {
		return nil, false
	}
	return number, true
}

func formatFloat(number *big.Float) []byte {
	text := strings.TrimRight(number.Text('f', 17), "0")
	text = strings.TrimSuffix(text, ".")
	if text == "-0" {
		text = "0"
	}
	return []byte(text)
}

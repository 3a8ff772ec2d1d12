package console

import (
	"math"
	"strconv"
	"time"

	"connectrpc.com/connect"
	"k8s.io/apimachinery/pkg/api/resource"
)

// quantityOf is a number of accesses a day as declared objects have it.
func quantityOf(value *float64) (*resource.Quantity, error) {
	if value == nil {
		return nil, nil
	}
	if math.IsNaN(*value) || math.IsInf(*value, 0) || *value < 0 {
		return nil, refuse(connect.CodeInvalidArgument, "%v accesses a day; give a number of 0 or more", *value)
	}
	quantity, err := resource.ParseQuantity(strconv.FormatFloat(*value, 'f', -1, 64))
	if err != nil {
		return nil, refuse(connect.CodeInvalidArgument, "%v accesses a day: %w", *value, err)
	}
	return &quantity, nil
}

// secondsOf is a duration; what is beyond the longest there is, is that.
func secondsOf(seconds float64) time.Duration {
	if nanoseconds := seconds * float64(time.Second); nanoseconds < math.MaxInt64 {
		return time.Duration(nanoseconds)
	}
	return math.MaxInt64
}

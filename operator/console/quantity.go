package console

import (
	"math"
	"strconv"

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

package price

import "errors"

// ErrTable is what every error about a price table wraps.
var ErrTable = errors.New("invalid price table")

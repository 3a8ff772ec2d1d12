package kernel

import "errors"

// ErrShape is returned by Compile for a term outside the matrix or given twice.
var ErrShape = errors.New("malformed matrix")

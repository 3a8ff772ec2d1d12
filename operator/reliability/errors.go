package reliability

import "errors"

// Sentinels; use errors.Is. Every error of the package wraps one of them.
var (
	ErrModel  = errors.New("no such model")        // a code, a number of nodes or rates the models are not made for
	ErrTarget = errors.New("target not reachable") // no code reaches the target within its limits
)

package stripe

import "errors"

// Sentinels; use errors.Is. Every error of the package wraps one of them.
var (
	ErrScheme   = errors.New("invalid scheme")         // a scheme or ladder that cannot be, or text that is none
	ErrLayout   = errors.New("no such layout")         // columns, mode or size that a layout cannot have
	ErrPlan     = errors.New("no such plan")           // a request no planner can serve
	ErrUnproved = errors.New("plan is wrong")          // a plan that does not do what it says
	ErrLost     = errors.New("too many blocks lost")   // what is left does not determine what is wanted
	ErrLadder   = errors.New("no ladder to recommend") // no ladder fits the nodes
)

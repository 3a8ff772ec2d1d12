// Package decide decides what the operator does. It is pure: values in, values out; no I/O, no clock of its own, no
// randomness. Controllers observe, ask here, carry out the answer and write the conditions they are given.
//
// The way of a policy: Declare reads it into a Declaration (class, temperature rules, windows, limits), Conflicts holds
// it against the other policies, Feasible holds it against the backend, Moves finds what should move by the heat of the
// class, Select judges each Move by cost, approval and concurrency, and PolicyConditions says it all in words.
//
// The way of a transition: Windows.At says whether it may start and run, Allocate what rate it gets, DecideTransition
// the one call to the gateway that comes next, and TransitionConditions the words.
//
// Words: a rung is a step of a class's ladder; a band is the range of heat that a rule gives to a rung; a group is
// settled when it has been under its scheme for the dwell time; a move is what should become a Transition.
package decide

// Package sketch counts how often keys are written and read, in little memory, however many keys there are. Counts age with a
// half-life, as those of groups do (package heat): a count is the sum over what was noted of 2^(-age/halfLife).
//
// It is a count-min sketch (Cormode, Muthukrishnan, J. Algorithms 2005) with conservative update (Estan, Varghese, SIGCOMM 2002)
// and forward decay. A count is never less than the true one. With probability of at least 1 - e^-4 it is above it by no more than
// e/32768 of all that is counted; for keys that come often, which is what matters here, by far less.
//
// A Set has one sketch of 1 MiB for every half-life, and at most four: a further half-life uses the sketch whose own is nearest.
// Time is passed in; where it goes back, counts stand still.
package sketch

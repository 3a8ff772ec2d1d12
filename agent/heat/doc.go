// Package heat counts how often groups are used. The value of a group is the sum over its accesses of 2^(-age/halfLife),
// with a half-life for every class; its rate, value * ln 2 / halfLife, is the accesses a day that would keep the value
// as it is.
//
// A Tracker is one gateway's: what it counted itself is its part, which it can write as text (Part) and take up again
// after a restart (Restore), and beside it lies the sum of what other gateways counted (Merge). Rates are of both.
//
// Counters do not age one by one: a value is kept as of a landmark of its class, and an access at time t adds
// 2^((t-landmark)/halfLife) (forward decay: Cormode, Shkapenyuk, Srivastava, Xu, ICDE 2009). Landmarks move on before
// numbers get large.
//
// The number of groups is bounded. Where one too many is used, the coldest are forgotten: an unknown group counts as
// never used.
//
// Time is passed in. A clock that jumps back stands still for the Tracker, which goes on from there, so that no group
// becomes hotter but by being used.
package heat

// Package reliability says how unlikely the loss of data is under a code, and picks codes for a target in nines. It is
// pure: figures from values, no I/O and no clock.
//
// The models are continuous-time Markov chains over the number of failed nodes, those of Ring (Taranov, Alonso and
// Hoefler, "Fast and strongly-consistent per-item resilience in key-value stores", EuroSys 2018, Appendix A) with its
// misprints corrected: a data node of a stretched code is repaired s/k times as fast as a parity node, not k/s times;
// the matrix of the differential equation is the transpose of the printed one; p(i) is f(i)/f(i-1). RS is a stripe, SRS
// a group whose k-stripes are stretched over s columns with the same m parity nodes, which is how a ladder lays out
// every step but its widest.
//
// Everything is computed by additions, products and quotients of positive numbers, so that a probability of 1e-15, or
// of 1e-60, has the same relative accuracy as one of a half.
//
// Files: environment (what the nodes are like), survive (which failures a group survives), model (the chains), chain
// (their solution), choose and search (a ladder for a target), explain (in words), declared (from a policy's fields).
package reliability

// Package stripe decides how groups are laid out, protected and re-striped. It is pure: no I/O, no clock, no global
// randomness; equal inputs give equal outputs on every machine.
//
// Words: a group is an array of Rows x Columns data cells plus parity. A scheme rs(k,m) cuts the cells into stripes of
// k cells with distinct columns; parity row p of stripe S is the sum over its cells c of U[p][column(c)]*D[c] in
// GF(2^8)/0x11d, where U is one fixed matrix for every scheme (Coefficient). A plan is a value that says which
// node-local linear combinations and which messages between nodes take a group from one scheme to another; it is
// proved symbolically before anybody runs it.
//
// As a cell's coefficients depend on its column alone, the parity of a union of stripes is the XOR of their parities:
// merging stripes, and turning replicas (k = 1) into a code, sends nothing.
//
// Where to start: ParseLadder reads what a class may become, NewLayout cuts its groups, NewPlan, NewUpdatePlan and
// NewRepairPlan make plans, LowerBound and Baselines say what they are worth, Explain says it in words. Layouts and
// plans are shared values from bounded caches; do not change them. All functions are safe for concurrent use.
//
// Files: layout_* cut groups into stripes, and plan_* make plans, prove and count them. The rest is what both stand on,
// the code (field, matrix, decode, decodings) and its ladders (scheme, parse), and what is for people (recommend,
// explain, report).
package stripe

// Package stripe decides how groups are laid out, protected and re-striped. It is pure: no I/O, no clock, no global
// randomness; equal inputs give equal outputs on every machine.
//
// Words: a group is an array of Rows x Columns data cells plus parity. A scheme rs(k,m) cuts the cells into stripes of
// k cells with distinct columns; parity row p of stripe S is the sum over its cells c of U[p][column(c)]*D[c] in
// GF(2^8)/0x11d, where U is one fixed matrix for every scheme (Coefficient). A plan is a value that says which
// node-local linear combinations and which messages between nodes take a group from one scheme to another; it is
// proved symbolically before anybody runs it.
package stripe

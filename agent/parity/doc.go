// Package parity judges the parity equations of a group by the fingerprints of its units alone, and says which units are
// wrong where the equations do not hold. Fingerprints are linear over GF(2^8), so the fingerprint of a parity block is
// the same combination of its cells' fingerprints as the block is of the cells: a few bytes per unit stand for the unit.
//
// The package is pure: fingerprints in, verdicts out.
package parity

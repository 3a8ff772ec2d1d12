// Package kernel applies sparse matrices over GF(2^8)/0x11d to blocks: one kernel for encoding, transitions, deltas,
// decoding and repair. A matrix is compiled once and applied often; applying allocates nothing, works in pieces that
// fit the cache, and treats coefficient 1 as XOR. It also holds aligned buffers and the linear fingerprint.
//
// The products are computed by klauspost/reedsolomon, whose field is the same; the sums by crypto/subtle.
package kernel

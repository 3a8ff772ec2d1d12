// Package kernel applies sparse matrices over GF(2^8)/0x11d to blocks: one kernel for encoding, transitions, deltas,
// decoding and repair. It also holds aligned buffers, the linear fingerprint and CRC-32C.
//
// A matrix is compiled once and applied often. The compiler puts rows that have the same columns into tiles of up to six,
// whose sums stay in registers while the columns pass by once; a row of ones and columns of ones are sums instead of
// products; and tiles that share inputs are applied to one piece of the blocks after the other, which stays in the cache.
// Applying allocates nothing.
//
// The assembly is written by the generator in _gen, for three instruction sets; the best one that the machine has is
// taken, or the one that the environment variable RESTRIPE_KERNEL names. Without any, and for ends of blocks that are no
// whole vector where there are no masks, github.com/klauspost/reedsolomon computes the products, whose field is the same.
package kernel

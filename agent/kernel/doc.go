// Package kernel applies sparse matrices over GF(2^8)/0x11d to blocks: one kernel for encoding, transitions, deltas,
// decoding and repair. A matrix is compiled once and applied often; applying allocates nothing, works in pieces that
// fit the cache, and treats coefficient 1 as XOR. It also holds aligned buffers and the linear fingerprint.
//
// API other packages rely on:
//
//	type Term struct{ Output, Input int; Coefficient byte }
//	func Compile(outputs, inputs int, terms []Term) (*Matrix, error)
//	func (m *Matrix) Apply(out, in [][]byte)       // out = M*in; overwrites out
//	func (m *Matrix) Accumulate(out, in [][]byte)  // out += M*in
//	func (m *Matrix) AccumulateColumn(out [][]byte, input int, in []byte) // out += column(input)*in, touching only rows that use it
//	func Buffer(size int) []byte                   // 64-byte aligned, zeroed
//	type Pool: Get(size int) []byte, Put([]byte)   // aligned, not zeroed, bounded
//	type Key [16]byte
//	func NewFingerprinter(key Key) *Fingerprinter
//	func (f *Fingerprinter) Sum(data []byte) block.Fingerprint            // any length; zero-padded to 16 bytes at the end
//	func (f *Fingerprinter) Join(first block.Fingerprint, second block.Fingerprint, secondBytes int) block.Fingerprint // Sum(a||b) where len(a) is a multiple of 16
//	func Combine(coefficients []byte, prints []block.Fingerprint) block.Fingerprint // sum of coefficients[i]*prints[i]
package kernel

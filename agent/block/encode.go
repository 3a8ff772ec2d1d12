package block

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// castagnoli is for headers, which are short. Package kernel, which uses this one, has CRC-32C for units.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A block at rest is
//
//	8 bytes   magic, the last byte of which is the format version: 3 for a header with a Span, else 2 for one with Lengths,
//	          else 1
//	4 bytes   length of the header, little-endian as all numbers here
//	8 bytes   length of the payload
//	4 bytes   CRC-32C of the 20 bytes before and of the header
//	header    deterministic CBOR (RFC 8949, section 4.2.1) of a Header
//	padding   zeros up to a multiple of 64 bytes
//	payload   of each of the Units units the first Lengths[i] bytes, UnitBytes where there are no Lengths
//
// The versions differ so that a release that knows only the lower ones takes a block of a higher one for what it is,
// newer, and not for a damaged one. Every version keeps the preamble and its checksum: a version that is damage is known by
// it.
const (
	PreambleBytes  = 24
	Alignment      = 64       // of the payload within the value
	MaxHeaderBytes = 4 << 20  // a header with its manifest
	MaxUnits       = 1 << 16  // units of one block
	MaxUnitBytes   = 64 << 20 // bytes of one unit
	maxTextBytes   = 4096     // each text of a header
	maxSlot        = 1 << 16  // exclusive
	magic          = "RSTRIPE"
	versionFull    = 1 // every unit is stored in full
	versionTrimmed = 2 // the header has Lengths
	versionSpanned = 3 // the header has a Span
)

// Errors of decoding and encoding; use errors.Is.
var (
	ErrMalformed = errors.New("malformed block")                    // bytes that no version of the format produces, or damaged ones
	ErrVersion   = errors.New("block of an unknown format version") // written by a newer release
	ErrInvalid   = errors.New("invalid block header")               // a header whose fields contradict each other
)

// Address returns where the block lies.
func (h *Header) Address() Address {
	return Address{Node: h.Node, Group: h.Group, Slot: h.Slot, Stamp: h.Stamp}
}

// PayloadBytes returns the length of the payload as it is stored: without the trailing zeros of the units, where there
// are Lengths.
func (h *Header) PayloadBytes() int64 {
	if h.Lengths == nil {
		return h.FullBytes()
	}
	sum := int64(0)
	for _, length := range h.Lengths {
		sum += int64(length)
	}
	return sum
}

// FullBytes returns the length of all units with their trailing zeros.
func (h *Header) FullBytes() int64 { return int64(h.Units) * int64(h.UnitBytes) }

// ContentChecksum identifies the content of the block: the CRC-32C over its unit checksums, each as four bytes in
// little-endian order.
func (h *Header) ContentChecksum() uint32 {
	var sum uint32
	var number [4]byte
	for _, checksum := range h.Checksums {
		binary.LittleEndian.PutUint32(number[:], checksum)
		sum = crc32.Update(sum, castagnoli, number[:])
	}
	return sum
}

// ValidateShape checks that the fields hold together, apart from Checksums and Fingerprints, which may be absent still.
// Lengths have one form: one for each unit, or nil where every unit is stored in full.
func (h *Header) ValidateShape() error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("block %s: %w: %s", h.Address(), ErrInvalid, fmt.Sprintf(format, args...))
	}
	switch {
	case len(h.Node) < 1 || len(h.Node) > 63:
		return wrong("the node's name has %d bytes, not 1 to 63", len(h.Node))
	case h.Slot < 0 || h.Slot >= maxSlot:
		return wrong("slot %d is outside 0 to %d", h.Slot, maxSlot-1)
	case h.Stamp.IsZero() || h.Group.Stamp.IsZero():
		return wrong("the stamp of the block or of its group is zero")
	case h.Units < 1 || h.Units > MaxUnits:
		return wrong("%d units, not 1 to %d", h.Units, MaxUnits)
	case h.UnitBytes < 1 || h.UnitBytes > MaxUnitBytes:
		return wrong("units of %d bytes, not 1 to %d", h.UnitBytes, MaxUnitBytes)
	case h.FirstUnit < 0 || h.FirstUnit > 1<<30:
		return wrong("first unit %d is outside 0 to 2^30", h.FirstUnit)
	case h.LayoutVersion < 0 || h.Columns < 0:
		return wrong("negative layout version or number of columns")
	case len(h.Class) > maxTextBytes || len(h.Ladder) > maxTextBytes || len(h.Mode) > maxTextBytes || len(h.Scheme) > maxTextBytes:
		return wrong("a text is longer than %d bytes", maxTextBytes)
	}
	if len(h.Span) == 1 || len(h.Span) > MaxUnits {
		return wrong("a span of %d groups, not 2 to %d", len(h.Span), MaxUnits)
	}
	for i := 1; i < len(h.Span); i++ {
		if h.Span[i] <= h.Span[i-1] {
			return wrong("the groups of the span are not ascending")
		}
	}
	if h.Lengths == nil {
		return nil
	}
	if len(h.Lengths) != h.Units {
		return wrong("%d lengths for %d units", len(h.Lengths), h.Units)
	}
	for i, length := range h.Lengths {
		if length < 0 || length > h.UnitBytes {
			return wrong("%d bytes are stored of unit %d, not 0 to %d", length, h.FirstUnit+i, h.UnitBytes)
		}
	}
	if h.PayloadBytes() == h.FullBytes() {
		return wrong("there are lengths, and every unit is stored in full")
	}
	return nil
}

// Validate checks the whole header: its shape, and one checksum and one fingerprint for each unit.
func (h *Header) Validate() error {
	if err := h.ValidateShape(); err != nil {
		return err
	}
	if len(h.Checksums) != h.Units || len(h.Fingerprints) != h.Units {
		return fmt.Errorf("block %s: %w: %d units with %d checksums and %d fingerprints",
			h.Address(), ErrInvalid, h.Units, len(h.Checksums), len(h.Fingerprints))
	}
	return nil
}

// EncodeHeader returns everything that stands before the payload; its length is a multiple of Alignment. The block at
// rest is these bytes followed by the payload. A header that Validate refuses, or that is too long, is ErrInvalid.
func EncodeHeader(h *Header) ([]byte, error) {
	if err := h.Validate(); err != nil {
		return nil, err
	}
	encoded, err := encoding.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("encoding the header of block %s: %w", h.Address(), err)
	}
	if len(encoded) > MaxHeaderBytes {
		return nil, fmt.Errorf("block %s: %w: the header has %d bytes, at most %d are allowed; the manifest has %d",
			h.Address(), ErrInvalid, len(encoded), MaxHeaderBytes, len(h.Manifest))
	}
	head := make([]byte, align(PreambleBytes+len(encoded)))
	copy(head, magic)
	head[7] = h.version()
	binary.LittleEndian.PutUint32(head[8:], uint32(len(encoded)))
	binary.LittleEndian.PutUint64(head[12:], uint64(h.PayloadBytes()))
	copy(head[PreambleBytes:], encoded)
	binary.LittleEndian.PutUint32(head[20:], headChecksum(head, len(encoded)))
	return head, nil
}

func (h *Header) version() byte {
	if len(h.Span) > 0 {
		return versionSpanned
	}
	if h.Lengths != nil {
		return versionTrimmed
	}
	return versionFull
}

// Encode returns the block at rest: header and payload, whose length must be the header's PayloadBytes. It trims
// nothing; Pack does.
func Encode(h *Header, payload []byte) ([]byte, error) {
	if int64(len(payload)) != h.PayloadBytes() {
		return nil, fmt.Errorf("block %s: %w: %d bytes of payload, the header says %d for %d units of %d bytes",
			h.Address(), ErrInvalid, len(payload), h.PayloadBytes(), h.Units, h.UnitBytes)
	}
	head, err := EncodeHeader(h)
	if err != nil {
		return nil, err
	}
	return append(head, payload...), nil
}

// HeadBytes returns how many bytes stand before the payload, from the first PreambleBytes bytes of a block of whichever
// version. It fails with ErrMalformed.
func HeadBytes(preamble []byte) (int, error) {
	if len(preamble) < PreambleBytes {
		return 0, fmt.Errorf("%w: %d bytes are too few for a block", ErrMalformed, len(preamble))
	}
	if string(preamble[:7]) != magic {
		return 0, fmt.Errorf("%w: it does not begin with the magic", ErrMalformed)
	}
	length := binary.LittleEndian.Uint32(preamble[8:])
	if length == 0 || length > MaxHeaderBytes {
		return 0, fmt.Errorf("%w: a header of %d bytes, not 1 to %d", ErrMalformed, length, MaxHeaderBytes)
	}
	return align(PreambleBytes + int(length)), nil
}

// DecodeHeader reads the header from the beginning of a block; value must hold at least HeadBytes bytes, and the
// payload begins after exactly that many. It accepts exactly what EncodeHeader makes (one encoding for each header) and
// allocates no more than a small multiple of the header's length. The Header shares no memory with value.
func DecodeHeader(value []byte) (*Header, error) {
	headBytes, err := HeadBytes(value)
	if err != nil {
		return nil, err
	}
	if len(value) < headBytes {
		return nil, fmt.Errorf("%w: %d of %d bytes of the header", ErrMalformed, len(value), headBytes)
	}
	length := int(binary.LittleEndian.Uint32(value[8:]))
	if binary.LittleEndian.Uint32(value[20:]) != headChecksum(value, length) {
		return nil, fmt.Errorf("%w: the checksum of the header does not match", ErrMalformed)
	}
	if version := value[7]; version < versionFull || version > versionSpanned {
		return nil, fmt.Errorf("%w: version %d, this release reads versions %d to %d; use the release that wrote it", ErrVersion, version, versionFull, versionSpanned)
	}
	encoded := value[PreambleBytes : PreambleBytes+length]
	for _, pad := range value[PreambleBytes+length : headBytes] {
		if pad != 0 {
			return nil, fmt.Errorf("%w: padding is not zero", ErrMalformed)
		}
	}
	h := new(Header)
	if err := decoding.Unmarshal(encoded, h); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if err := h.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if value[7] != h.version() {
		return nil, fmt.Errorf("%w: the header has not the form of version %d", ErrMalformed, value[7])
	}
	if binary.LittleEndian.Uint64(value[12:]) != uint64(h.PayloadBytes()) {
		return nil, fmt.Errorf("%w: the preamble and the header differ on the length of the payload", ErrMalformed)
	}
	again, err := encoding.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if !bytes.Equal(again, encoded) {
		return nil, fmt.Errorf("%w: the header is not in its canonical encoding", ErrMalformed)
	}
	return h, nil
}

func headChecksum(head []byte, headerBytes int) uint32 {
	sum := crc32.Checksum(head[:20], castagnoli)
	return crc32.Update(sum, castagnoli, head[PreambleBytes:PreambleBytes+headerBytes])
}

func align(n int) int { return (n + Alignment - 1) &^ (Alignment - 1) }

package wire

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/restripe/restripe/agent/kernel"
)

// A frame is a prefix of 36 bytes, numbers little-endian, a header and a payload:
//
//	4 bytes  magic, the last byte of which is the protocol version
//	1 byte   kind
//	1 byte   operation (requests; else 0)
//	2 bytes  zero
//	8 bytes  stream: chosen by the client for a request, repeated in what belongs to it; ours end with the operation
//	4 bytes  length of the header
//	4 bytes  length of the payload
//	4 bytes  CRC-32C of the header
//	4 bytes  CRC-32C of the payload
//	4 bytes  CRC-32C of the 32 bytes before
const (
	prefixBytes = 36
	magic       = "RSW\x01"
)

type frameKind uint8

const (
	kindRequest frameKind = 1 + iota
	kindReply
	kindError
	kindCancel // the caller no longer waits
	kindPing   // answered by a pong, to tell an idle peer from a dead one
	kindPong
)

type prefix struct {
	kind       frameKind
	op         Op
	stream     uint64
	header     uint32 // length
	payload    uint32 // length
	headerSum  uint32
	payloadSum uint32
}

// errFrame is the class of bytes that are no frame of this protocol; the connection they came on is of no further use.
var errFrame = errors.New("malformed frame")

// newPrefix describes a frame with the given header and payload.
func newPrefix(kind frameKind, op Op, stream uint64, header, payload []byte) (prefix, error) {
	if len(header) > MaxHeaderBytes || len(payload) > MaxPayloadBytes {
		return prefix{}, fmt.Errorf("%w: a message of %d + %d bytes, at most %d + %d are sent; ask for less at a time",
			ErrTooLarge, len(header), len(payload), MaxHeaderBytes, MaxPayloadBytes)
	}
	return prefix{
		kind: kind, op: op, stream: stream, header: uint32(len(header)), payload: uint32(len(payload)),
		headerSum: kernel.Checksum(header), payloadSum: kernel.Checksum(payload),
	}, nil
}

func (p prefix) encode() (b [prefixBytes]byte) {
	copy(b[:], magic)
	b[4], b[5] = byte(p.kind), byte(p.op)
	binary.LittleEndian.PutUint64(b[8:], p.stream)
	binary.LittleEndian.PutUint32(b[16:], p.header)
	binary.LittleEndian.PutUint32(b[20:], p.payload)
	binary.LittleEndian.PutUint32(b[24:], p.headerSum)
	binary.LittleEndian.PutUint32(b[28:], p.payloadSum)
	binary.LittleEndian.PutUint32(b[32:], kernel.Checksum(b[:32]))
	return b
}

func decodePrefix(b *[prefixBytes]byte) (prefix, error) {
	if string(b[:3]) != magic[:3] {
		return prefix{}, fmt.Errorf("%w: it does not begin with the magic; is the other side an agent?", errFrame)
	}
	if b[3] != magic[3] {
		return prefix{}, fmt.Errorf("%w: protocol version %d, this release speaks %d; run one release on both sides", errFrame, b[3], magic[3])
	}
	if binary.LittleEndian.Uint32(b[32:]) != kernel.Checksum(b[:32]) {
		return prefix{}, fmt.Errorf("%w: checksum of the prefix", errFrame)
	}
	p := prefix{
		kind: frameKind(b[4]), op: Op(b[5]), stream: binary.LittleEndian.Uint64(b[8:]),
		header: binary.LittleEndian.Uint32(b[16:]), payload: binary.LittleEndian.Uint32(b[20:]),
		headerSum: binary.LittleEndian.Uint32(b[24:]), payloadSum: binary.LittleEndian.Uint32(b[28:]),
	}
	switch {
	case p.kind < kindRequest || p.kind > kindPong:
		return prefix{}, fmt.Errorf("%w: kind %d", errFrame, p.kind)
	case b[6] != 0 || b[7] != 0:
		return prefix{}, fmt.Errorf("%w: reserved bytes are not zero", errFrame)
	case p.kind != kindRequest && p.op != 0:
		return prefix{}, fmt.Errorf("%w: an operation on a frame that is no request", errFrame)
	case p.kind >= kindCancel && (p.header != 0 || p.payload != 0):
		return prefix{}, fmt.Errorf("%w: a body on a control frame", errFrame)
	case p.header > MaxHeaderBytes || p.payload > MaxPayloadBytes:
		return prefix{}, fmt.Errorf("%w: %d + %d bytes, at most %d + %d are allowed", errFrame, p.header, p.payload, MaxHeaderBytes, MaxPayloadBytes)
	}
	return p, nil
}

// size is the length of the whole frame.
func (p prefix) size() int64 { return prefixBytes + int64(p.header) + int64(p.payload) }

// checkBody compares header and payload with the checksums of the prefix.
func (p prefix) checkBody(header, payload []byte) error {
	if kernel.Checksum(header) != p.headerSum {
		return fmt.Errorf("%w: checksum of the header", errFrame)
	}
	if kernel.Checksum(payload) != p.payloadSum {
		return fmt.Errorf("%w: checksum of the payload", errFrame)
	}
	return nil
}

package wire

import "encoding/binary"

// PrefixBytes is how much of a frame Peek needs.
const PrefixBytes = prefixBytes

// Glimpse is what can be told of a frame by its first PrefixBytes, for what carries frames without serving them.
type Glimpse struct {
	Request bool // it asks for an operation; else an answer or control
	Op      Op   // of a request
	Bytes   int  // length of the whole frame
}

// Peek looks at the beginning of a frame, of at least PrefixBytes, and believes it.
func Peek(frame []byte) Glimpse {
	return Glimpse{
		Request: frameKind(frame[4]) == kindRequest, Op: Op(frame[5]),
		Bytes: prefixBytes + int(binary.LittleEndian.Uint32(frame[16:])) + int(binary.LittleEndian.Uint32(frame[20:])),
	}
}

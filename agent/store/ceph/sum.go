package ceph

import (
	"encoding/binary"

	"github.com/restripe/restripe/agent/kernel"
)

// sumBytes is the length of an encoded sum.
const sumBytes = 12

// sum says what a value should be.
type sum struct {
	checksum uint32 // CRC-32C
	length   int64
}

func sumOf(value []byte) sum {
	return sum{checksum: kernel.Checksum(value), length: int64(len(value))}
}

func (s sum) encode() []byte {
	encoded := binary.BigEndian.AppendUint32(nil, s.checksum)
	return binary.BigEndian.AppendUint64(encoded, uint64(s.length))
}

// parseSum is the inverse of encode, for sumBytes bytes.
func parseSum(encoded []byte) sum {
	return sum{checksum: binary.BigEndian.Uint32(encoded), length: int64(binary.BigEndian.Uint64(encoded[4:]))}
}

package ceph

import (
	"encoding/binary"
	"hash/crc32"
)

// sumBytes is the length of an encoded sum.
const sumBytes = 12

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum says what a value should be.
type sum struct {
	checksum uint32 // CRC-32C
	length   int64
}

func sumOf(value []byte) sum {
	return sum{checksum: crc32.Checksum(value, castagnoli), length: int64(len(value))}
}

func (s sum) encode() []byte {
	encoded := binary.BigEndian.AppendUint32(nil, s.checksum)
	return binary.BigEndian.AppendUint64(encoded, uint64(s.length))
}

// parseSum is the inverse of encode, for sumBytes bytes.
func parseSum(encoded []byte) sum {
	return sum{checksum: binary.BigEndian.Uint32(encoded), length: int64(binary.BigEndian.Uint64(encoded[4:]))}
}

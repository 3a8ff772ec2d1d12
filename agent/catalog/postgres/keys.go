package postgres

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/jackc/pgx/v5/pgtype"
)

// split divides a key as the tables have it.
func split(key string) (lead, digest, tail []byte) {
	if len(key) <= leadBytes {
		return []byte(key), []byte{}, []byte{}
	}
	sum := sha256.Sum256([]byte(key))
	return []byte(key[:leadBytes]), sum[:], []byte(key[leadBytes:])
}

// arguments are those of one call of a function, in binary form.
type arguments struct {
	values [][]byte
	types  []uint32
}

// binaryForm says that all of a call is in it.
var binaryForm = []int16{1}

func (a *arguments) add(oid uint32, value []byte) {
	a.values, a.types = append(a.values, value), append(a.types, oid)
}

func (a *arguments) bytes(value []byte) { a.add(pgtype.ByteaOID, value) }

func (a *arguments) int(value int64) {
	a.add(pgtype.Int8OID, binary.BigEndian.AppendUint64(nil, uint64(value)))
}

func (a *arguments) bool(value bool) { a.add(pgtype.BoolOID, boolean(value)) }

func boolean(value bool) []byte {
	if value {
		return []byte{1}
	}
	return []byte{0}
}

func (a *arguments) byteas(values [][]byte) { a.array(pgtype.ByteaArrayOID, pgtype.ByteaOID, values) }

func (a *arguments) bools(values []bool) {
	elements := make([][]byte, len(values))
	for i, value := range values {
		elements[i] = boolean(value)
	}
	a.array(pgtype.BoolArrayOID, pgtype.BoolOID, elements)
}

func (a *arguments) ints(values []int32) {
	elements := make([][]byte, len(values))
	for i, value := range values {
		elements[i] = binary.BigEndian.AppendUint32(nil, uint32(value))
	}
	a.array(pgtype.Int4ArrayOID, pgtype.Int4OID, elements)
}

// counts are those of counters, nil for none.
func (a *arguments) counts(values []*int64) {
	elements := make([][]byte, len(values))
	for i, value := range values {
		if value != nil {
			elements[i] = binary.BigEndian.AppendUint64(nil, uint64(*value))
		}
	}
	a.array(pgtype.Int8ArrayOID, pgtype.Int8OID, elements)
}

// array adds one with an element for each of elements, of which nil is null.
func (a *arguments) array(oid, element uint32, elements [][]byte) {
	size := 20
	for _, value := range elements {
		size += 4 + len(value)
	}
	out := make([]byte, 0, size)
	put := func(n uint32) { out = binary.BigEndian.AppendUint32(out, n) }
	if len(elements) == 0 {
		put(0)
		put(0)
		put(element)
		a.add(oid, out)
		return
	}
	put(1) // dimensions
	put(1) // there may be nulls
	put(element)
	put(uint32(len(elements)))
	put(1) // the first index
	for _, value := range elements {
		if value == nil {
			put(1<<32 - 1)
			continue
		}
		put(uint32(len(value)))
		out = append(out, value...)
	}
	a.add(oid, out)
}

// integers reads an array of integers, of which a missing one has none.
func integers(array []byte) []int {
	const header = 20
	var values []int
	for at := header; at+8 <= len(array); at += 8 { // a length and four bytes each
		values = append(values, int(int32(binary.BigEndian.Uint32(array[at+4:]))))
	}
	return values
}

// number reads an integer of eight bytes.
func number(value []byte) int64 { return int64(binary.BigEndian.Uint64(value)) }

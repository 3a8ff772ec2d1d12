package block

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"math/bits"
	"strconv"
	"strings"
)

// Stamp numbers attempts, groups, epochs and revisions alike. Sequence is the time in microseconds at which it was drawn, or
// later where that is not above what the stamp follows; a start of a gateway draws none twice. The upper half of Salt is the
// Mark of that start, the lower half is random: so no two are the same, also where a catalog was restored from an old copy,
// and whoever sees a stamp knows whose it is. The zero Stamp means "none".
type Stamp struct {
	Sequence uint64 `cbor:"1,keyasint" json:"sequence"`
	Salt     uint64 `cbor:"2,keyasint" json:"salt"`
}

// Mark returns the upper half of the salts of all stamps that a start of a gateway draws.
func Mark(start string) uint32 {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(start)) // a hash never fails
	return hash.Sum32()
}

// Mark returns the mark of the start that drew s.
func (s Stamp) Mark() uint32 { return uint32(s.Salt >> 32) }

// Compare orders stamps by their sequence, and those of one sequence by their salt: as their texts are.
func (s Stamp) Compare(other Stamp) int {
	return cmp.Or(cmp.Compare(s.Sequence, other.Sequence), cmp.Compare(s.Salt, other.Salt))
}

// IsZero reports whether s is the zero Stamp, which names no attempt.
func (s Stamp) IsZero() bool { return s == Stamp{} }

// String returns the canonical text of s, fixed width so that text order is sequence order.
func (s Stamp) String() string {
	var text [33]byte
	return string(s.append(text[:0]))
}

// Names are made for every record and block that is asked for, so that they are made by hand.
func (s Stamp) append(text []byte) []byte {
	return appendHex(append(appendHex(text, s.Sequence, 16), '.'), s.Salt, 16)
}

// appendHex appends a number in hexadecimal digits, of which there are at least so many.
func appendHex(text []byte, number uint64, digits int) []byte {
	for at := max(digits, (bits.Len64(number)+3)/4) - 1; at >= 0; at-- {
		text = append(text, "0123456789abcdef"[number>>(4*at)&15])
	}
	return text
}

// ParseStamp reads the form written by Stamp.String.
func ParseStamp(text string) (Stamp, error) {
	sequence, salt, found := strings.Cut(text, ".")
	if !found || len(sequence) != 16 || len(salt) != 16 {
		return Stamp{}, fmt.Errorf("stamp %q: want 16 hex digits, a dot, 16 hex digits", text)
	}
	var s Stamp
	var err error
	if s.Sequence, err = strconv.ParseUint(sequence, 16, 64); err != nil {
		return Stamp{}, fmt.Errorf("stamp %q: %w", text, err)
	}
	if s.Salt, err = strconv.ParseUint(salt, 16, 64); err != nil {
		return Stamp{}, fmt.Errorf("stamp %q: %w", text, err)
	}
	return s, nil
}

// MarshalText and UnmarshalText use the canonical text, in JSON and YAML alike.
func (s Stamp) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the canonical text.
func (s *Stamp) UnmarshalText(text []byte) (err error) {
	*s, err = ParseStamp(string(text))
	return err
}

// GroupID names a group: the stamp of the attempt that created it and the group's index within that attempt.
type GroupID struct {
	Stamp Stamp  `cbor:"1,keyasint" json:"stamp"`
	Index uint32 `cbor:"2,keyasint" json:"index"`
}

// String returns the canonical text of id; text order is the order of the stamps.
func (id GroupID) String() string {
	var text [42]byte
	return string(id.append(text[:0]))
}

func (id GroupID) append(text []byte) []byte {
	return appendHex(append(id.Stamp.append(text), '.'), uint64(id.Index), 8)
}

// ParseGroupID reads the form written by GroupID.String.
func ParseGroupID(text string) (GroupID, error) {
	at := strings.LastIndexByte(text, '.')
	if at < 0 || len(text)-at-1 != 8 {
		return GroupID{}, fmt.Errorf("group %q: want a stamp, a dot, 8 hex digits", text)
	}
	stamp, err := ParseStamp(text[:at])
	if err != nil {
		return GroupID{}, fmt.Errorf("group %q: %w", text, err)
	}
	index, err := strconv.ParseUint(text[at+1:], 16, 32)
	if err != nil {
		return GroupID{}, fmt.Errorf("group %q: %w", text, err)
	}
	return GroupID{Stamp: stamp, Index: uint32(index)}, nil
}

// MarshalText returns the canonical text.
func (id GroupID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads the canonical text.
func (id *GroupID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseGroupID(string(text))
	return err
}

// NodeID names a node for as long as it is a member: 1 to 63 characters of [a-z0-9-].
type NodeID string

// Address is where one block lies. Slots 0..w-1 are the data columns of the group, w..w+m-1 its parity rows.
type Address struct {
	Node  NodeID  `cbor:"1,keyasint" json:"node"`
	Group GroupID `cbor:"2,keyasint" json:"group"`
	Slot  int     `cbor:"3,keyasint" json:"slot"`
	Stamp Stamp   `cbor:"4,keyasint" json:"stamp"`
}

// KeyPrefix begins the store key of every block; other keys in a store are bookkeeping.
const KeyPrefix = "b/"

// Key returns the name of the block inside its node's store: printable ASCII, at most 100 bytes.
func (a Address) Key() string {
	if a.Slot < 0 { // of no block
		return fmt.Sprintf("%s%s/%02x/%s", KeyPrefix, a.Group, a.Slot, a.Stamp)
	}
	text := append(make([]byte, 0, 96), KeyPrefix...)
	text = append(a.Group.append(text), '/')
	text = append(appendHex(text, uint64(a.Slot), 2), '/')
	return string(a.Stamp.append(text))
}

// String is for people: node and key.
func (a Address) String() string { return string(a.Node) + ":" + a.Key() }

// ErrNotBlockKey is returned by ParseKey for a key that no Address produces.
var ErrNotBlockKey = errors.New("not a block key")

// ParseKey recovers the address of the block stored under key on node. It accepts exactly the keys Address.Key makes.
func ParseKey(node NodeID, key string) (Address, error) {
	parts := strings.Split(key, "/")
	if len(parts) != 4 || parts[0]+"/" != KeyPrefix || len(parts[2]) < 2 {
		return Address{}, fmt.Errorf("%q: %w", key, ErrNotBlockKey)
	}
	group, err := ParseGroupID(parts[1])
	if err != nil {
		return Address{}, fmt.Errorf("%q: %w: %w", key, ErrNotBlockKey, err)
	}
	slot, err := strconv.ParseUint(parts[2], 16, 16)
	if err != nil {
		return Address{}, fmt.Errorf("%q: %w: %w", key, ErrNotBlockKey, err)
	}
	stamp, err := ParseStamp(parts[3])
	if err != nil {
		return Address{}, fmt.Errorf("%q: %w: %w", key, ErrNotBlockKey, err)
	}
	a := Address{Node: node, Group: group, Slot: int(slot), Stamp: stamp}
	if a.Key() != key {
		return Address{}, fmt.Errorf("%q: %w: not canonical", key, ErrNotBlockKey)
	}
	return a, nil
}

package ceph

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// placementGroup returns in which of a pool's placement groups an object of the default namespace is: Ceph's
// ceph_stable_mod of the hash of its name (src/include/rados.h).
func placementGroup(name string, groups int) int {
	mask := uint32(1)<<bits.Len32(uint32(groups-1)) - 1
	hash := nameHash(name)
	if group := hash & mask; group < uint32(groups) {
		return int(group)
	}
	return int(hash & (mask >> 1))
}

// placeOf returns where in the order of a pool's objects those of a name are: by the bits of its hash, the lowest first.
func placeOf(name string) uint32 { return bits.Reverse32(nameHash(name)) }

// isBefore reports whether an object comes before another in the order of a pool's objects; one without a name is before all.
func isBefore(one, other string) bool {
	if one == "" || other == "" {
		return one == "" && other != ""
	}
	if at, otherAt := placeOf(one), placeOf(other); at != otherAt {
		return at < otherAt
	}
	return one < other
}

// nameHash is Robert Jenkins' hash of 1996 as Ceph has it, ceph_str_hash_rjenkins (src/common/ceph_hash.cc).
func nameHash(name string) uint32 {
	const golden = 0x9e3779b9
	a, b, c := uint32(golden), uint32(golden), uint32(0)
	rest := []byte(name)
	for len(rest) >= 12 {
		a += binary.LittleEndian.Uint32(rest)
		b += binary.LittleEndian.Uint32(rest[4:])
		c += binary.LittleEndian.Uint32(rest[8:])
		a, b, c = mix(a, b, c)
		rest = rest[12:]
	}
	var last [12]byte
	copy(last[:8], rest)
	if len(rest) > 8 {
		copy(last[9:], rest[8:]) // the first byte of c is the length's
	}
	a += binary.LittleEndian.Uint32(last[:])
	b += binary.LittleEndian.Uint32(last[4:])
	c += binary.LittleEndian.Uint32(last[8:]) + uint32(len(name))
	_, _, c = mix(a, b, c)
	return c
}

func mix(a, b, c uint32) (uint32, uint32, uint32) {
	a = (a - b - c) ^ c>>13
	b = (b - c - a) ^ a<<8
	c = (c - a - b) ^ b>>13
	a = (a - b - c) ^ c>>12
	b = (b - c - a) ^ a<<16
	c = (c - a - b) ^ b>>5
	a = (a - b - c) ^ c>>3
	b = (b - c - a) ^ a<<10
	c = (c - a - b) ^ b>>15
	return a, b, c
}

// witnessNames returns one name of an object for each placement group of a pool. No key can be such a name, because keys
// have no spaces.
func witnessNames(groups int) []string {
	names := make([]string, groups)
	for number, missing := 0, groups; missing > 0; number++ {
		name := fmt.Sprintf("restripe witness %d", number)
		if group := placementGroup(name, groups); names[group] == "" {
			names[group] = name
			missing--
		}
	}
	return names
}

package block

import "encoding/binary"

// Trim returns the length of unit without its trailing zeros.
func Trim(unit []byte) int {
	length := len(unit)
	for length >= 32 {
		last := unit[length-32 : length]
		if binary.LittleEndian.Uint64(last)|binary.LittleEndian.Uint64(last[8:])|binary.LittleEndian.Uint64(last[16:])|binary.LittleEndian.Uint64(last[24:]) != 0 {
			break
		}
		length -= 32
	}
	for length >= 8 && binary.LittleEndian.Uint64(unit[length-8:length]) == 0 {
		length -= 8
	}
	for length > 0 && unit[length-1] == 0 {
		length--
	}
	return length
}

// Pack takes the trailing zeros out of a payload that is laid out as h says (full units, where h has no Lengths): it
// moves the units together within payload, sets h.Lengths to what is left of each, and returns that part of payload.
// Nothing is moved, and h.Lengths is nil, where every unit ends in something else than zero. A slice that was in
// h.Lengths is not written to. The payload's length must be h.PayloadBytes(), and h valid as of ValidateShape.
//
// This is how the virtual coding stripes of BCStore (section III.C) cost what they hold: every unit is as long as the
// code wants it in all arithmetic, and as short as its data at rest.
func (h *Header) Pack(payload []byte) []byte {
	var lengths []int
	from, to := 0, 0
	for i := range h.Units {
		length := h.UnitBytes
		if h.Lengths != nil {
			length = h.Lengths[i]
		}
		kept := Trim(payload[from : from+length])
		if kept < h.UnitBytes && lengths == nil {
			lengths = make([]int, h.Units)
			for full := range i {
				lengths[full] = h.UnitBytes
			}
		}
		if lengths != nil {
			lengths[i] = kept
		}
		if to < from {
			copy(payload[to:], payload[from:from+kept])
		}
		from, to = from+length, to+kept
	}
	h.Lengths = lengths
	return payload[:to]
}

package node

// minPieceBytes is the smallest piece that units larger than it may be cut into: every piece is accounted for.
const minPieceBytes = 4 << 10

// pieces is how the units of a run are cut: into count pieces of bytes each, but for the last, which ends with the unit.
type pieces struct{ unit, bytes, count int }

// piecesOf cuts units of unit bytes into pieces of that many bytes; 0 leaves them whole.
func piecesOf(unit, bytes int) pieces {
	if bytes <= 0 || bytes > unit {
		bytes = unit
	}
	return pieces{unit: unit, bytes: bytes, count: (unit + bytes - 1) / bytes}
}

// start returns where a piece begins in its unit; that of the piece after the last is the end.
func (p pieces) start(piece int) int { return min(piece*p.bytes, p.unit) }

// stripBytes is how much of a row is made, and at most sent, at a time.
const stripBytes = 256 << 10

// strip is how many bytes the strips have that rows are kept in, but for the last: whole pieces.
func (p pieces) strip() int { return max(stripBytes/p.bytes, 1) * p.bytes }

// strips is how many of them a row has.
func (p pieces) strips() int { return (p.unit + p.strip() - 1) / p.strip() }

// afterStrip returns the first piece that lies behind a strip.
func (p pieces) afterStrip(strip int) int { return min((strip+1)*(p.strip()/p.bytes), p.count) }

// wholeStrip returns the strip that bytes [offset, offset+length) of a unit are; ok is false where they are not just one.
func (p pieces) wholeStrip(offset, length int) (number int, ok bool) {
	size := p.strip()
	return offset / size, offset%size == 0 && length == min(size, p.unit-offset)
}

// whole returns the pieces that bytes [offset, offset+length) of a unit consist of; ok is false where they do not begin
// and end with pieces.
func (p pieces) whole(offset, length int) (first, end int, ok bool) {
	if offset < 0 || length < 1 || length > p.unit || offset > p.unit-length || offset%p.bytes != 0 {
		return 0, 0, false
	}
	if offset+length == p.unit {
		return offset / p.bytes, p.count, true
	}
	return offset / p.bytes, (offset + length) / p.bytes, length%p.bytes == 0
}

// rest returns the pieces that the last length bytes of a message, which begin at offset and have zeros after them, stand for:
// all from there on. ok is false where they do not begin with a piece.
func (p pieces) rest(offset, length int) (first, end int, ok bool) {
	ok = offset >= 0 && offset < p.unit && length >= 0 && length <= p.unit-offset && offset%p.bytes == 0
	return offset / p.bytes, p.count, ok
}

// arrived is what has come of one message.
type arrived struct {
	have []bool // by piece
	left int    // pieces still missing
	ends bool   // it is known where it ends
}

// span is consecutive pieces of one row.
type span struct {
	row, first, count int
	last              bool // the row is complete, and all after first that holds anything but zeros is in it
}

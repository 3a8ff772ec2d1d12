package wire

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/fxamacker/cbor/v2"

	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/trace"
)

var (
	encoding = must(cbor.CoreDetEncOptions().EncMode())
	decoding = must(cbor.DecOptions{
		DupMapKey:        cbor.DupMapKeyEnforcedAPF,
		IndefLength:      cbor.IndefLengthForbidden,
		TagsMd:           cbor.TagsForbidden,
		MaxArrayElements: 1 << 20,
		MaxMapPairs:      4096,
		MaxNestedLevels:  16,
	}.DecMode())
)

// must is for modes made of constants: an error is a mistake of the program.
func must[Mode any](mode Mode, err error) Mode {
	if err != nil {
		panic(fmt.Sprintf("wire: %v", err))
	}
	return mode
}

// Decode reads the header of a frame into value, within the limits of the protocol. What it cannot read is
// ErrBadRequest. Unknown fields are skipped, so that a newer peer may add some.
func Decode(header []byte, value any) error {
	if err := decoding.Unmarshal(header, value); err != nil {
		return fmt.Errorf("%w: reading the header: %w", ErrBadRequest, err)
	}
	return nil
}

// elementBytes is at least what an element of any list in a request, or a structure, takes in memory.
const elementBytes = 320

// weigh returns an upper bound of what a header takes in memory once decoded. It takes the header for well-formed; of one that
// is not nothing is decoded.
func weigh(header []byte) int64 {
	weight := int64(0)
	for len(header) > 0 {
		major, argument := header[0]>>5, uint64(header[0]&31)
		header = header[1:]
		if length := argument - 24; length < 4 { // the argument follows in 1, 2, 4 or 8 bytes
			bytes := 1 << length
			if len(header) < bytes {
				return weight
			}
			argument = 0
			for _, b := range header[:bytes] {
				argument = argument<<8 | uint64(b)
			}
			header = header[bytes:]
		}
		switch major {
		case 0, 1, 7: // numbers and the like, of which the list or structure around them has the room
			continue
		}
		if argument > uint64(len(header)) { // there is a byte for every element
			return weight
		}
		switch major {
		case 2, 3: // bytes and text
			weight += elementBytes/10 + int64(argument)
			header = header[argument:]
		case 4:
			weight += int64(argument) * elementBytes
		case 5:
			weight += elementBytes + int64(argument)*elementBytes/3 // structures, and maps of small things
		}
	}
	return weight
}

// A header may end with the mark of the trace that a request belongs to: its field 255, which comes after all others. Who does not
// know it skips it.
var markField = []byte{0x18, 0xff, 0x58, trace.MarkBytes}

// withMark returns a header with the mark of a trace, if there is one.
func withMark(header, mark []byte) []byte {
	if len(mark) != trace.MarkBytes {
		return header
	}
	if len(header) == 0 {
		header = []byte{emptyMap}
	}
	if header[0] < emptyMap || header[0] >= emptyMap+maxSmall { // no structure, or one of very many fields
		return header
	}
	header = slices.Concat(header, markField, mark)
	header[0]++
	return header
}

// emptyMap begins a structure without fields; up to maxSmall of them are counted in the same byte.
const (
	emptyMap = 0xa0
	maxSmall = 23
)

// markOf returns the mark of the trace that a request belongs to; nil where there is none.
func markOf(header []byte) []byte {
	rest, mark := header[:max(0, len(header)-trace.MarkBytes)], header[max(0, len(header)-trace.MarkBytes):]
	if !bytes.HasSuffix(rest, markField) {
		return nil
	}
	return mark
}

func encode(value any) ([]byte, error) {
	if value == nil {
		return nil, nil
	}
	header, err := encoding.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", value, err)
	}
	return header, nil
}

// FrameBytes returns how many bytes a request or reply with this header and so many bytes of payload takes on the network.
func FrameBytes(header any, payload int) (int64, error) {
	encoded, err := encode(header)
	return prefixBytes + int64(len(encoded)+payload), err
}

// buffers holds the payloads of all clients and servers of the process.
var buffers kernel.Pool

// Buffer returns size bytes, with any content, of the memory that payloads come in.
func Buffer(size int) []byte { return buffers.Get(size) }

// Recycle gives bytes of Buffer, of Payload.Take or of Client.Call back for reuse. Nobody has to; the caller must not touch
// them again.
func Recycle(bytes []byte) { buffers.Put(bytes) }

// Payload is the bytes that came with a request. It belongs to one goroutine.
type Payload struct {
	Bytes []byte // nil where there are none
	taken bool
}

// Take makes the bytes the caller's, who may Recycle them: what goes on to use them need not copy them.
func (p *Payload) Take() []byte {
	p.taken = true
	return p.Bytes
}

func (p *Payload) free() {
	if !p.taken {
		buffers.Put(p.Bytes)
	}
}

package resp

import (
	"strconv"

	"github.com/restripe/restripe/agent/gateway/values"
)

// largeBytes is the size from which on a value is sent from where it is.
const largeBytes = 16 << 10

// reply is an answer, as it is sent. What version 3 has and version 2 has not is sent there as what Redis sends instead.
type reply struct {
	bytes   []byte
	large   []inserted
	version int // 2 or 3
}

// inserted is a value that is sent after so many of the bytes.
type inserted struct {
	after int
	value *values.Value
}

func (r *reply) line(kind byte, text string) {
	r.bytes = append(append(append(r.bytes, kind), text...), '\r', '\n')
}

func (r *reply) header(kind byte, number int64) {
	r.bytes = append(strconv.AppendInt(append(r.bytes, kind), number, 10), '\r', '\n')
}

// status is a short word without line ends.
func (r *reply) status(text string) { r.line('+', text) }

func (r *reply) ok() { r.status("OK") }

// fail is an error, which begins with a word in capitals. Line ends become spaces.
func (r *reply) fail(text string) {
	r.bytes = append(r.bytes, '-')
	begin := len(r.bytes)
	r.bytes = append(r.bytes, text...)
	for i, c := range r.bytes[begin:] {
		if c == '\r' || c == '\n' {
			r.bytes[begin+i] = ' '
		}
	}
	r.bytes = append(r.bytes, '\r', '\n')
}

func (r *reply) integer(number int64) { r.header(':', number) }

// count is an integer.
func (r *reply) count(number int) { r.integer(int64(number)) }

// yes is 1 or 0.
func (r *reply) yes(is bool) {
	if is {
		r.integer(1)
	} else {
		r.integer(0)
	}
}

// bulk is any bytes.
func (r *reply) bulk(value []byte) {
	r.header('$', int64(len(value)))
	r.bytes = append(append(r.bytes, value...), '\r', '\n')
}

func (r *reply) text(value string) {
	r.header('$', int64(len(value)))
	r.bytes = append(append(r.bytes, value...), '\r', '\n')
}

// value is a value, or null where there is none. The reply releases it.
func (r *reply) value(value *values.Value) {
	switch {
	case value == nil:
		r.null()
	case len(value.Data) < largeBytes:
		r.bulk(value.Data)
		value.Release()
	default:
		r.header('$', int64(len(value.Data)))
		r.large = append(r.large, inserted{len(r.bytes), value})
		r.bytes = append(r.bytes, '\r', '\n')
	}
}

// null is that there is nothing.
func (r *reply) null() {
	if r.version == 2 {
		r.bytes = append(r.bytes, "$-1\r\n"...)
	} else {
		r.bytes = append(r.bytes, "_\r\n"...)
	}
}

// noArray is that there is no list.
func (r *reply) noArray() {
	if r.version == 2 {
		r.bytes = append(r.bytes, "*-1\r\n"...)
	} else {
		r.bytes = append(r.bytes, "_\r\n"...)
	}
}

// array begins a list of so many replies, pairs one of so many pairs of replies.
func (r *reply) array(count int) { r.header('*', int64(count)) }

func (r *reply) pairs(count int) {
	if r.version == 2 {
		r.array(2 * count)
	} else {
		r.header('%', int64(count))
	}
}

// set begins a list whose order says nothing.
func (r *reply) set(count int) {
	if r.version == 2 {
		r.array(count)
	} else {
		r.header('~', int64(count))
	}
}

// verbatim is text for people.
func (r *reply) verbatim(text string) {
	if r.version == 2 {
		r.text(text)
		return
	}
	r.header('=', int64(len(text)+4))
	r.bytes = append(append(append(r.bytes, "txt:"...), text...), '\r', '\n')
}

// mark is where a reply is; back takes back what was written since.
func (r *reply) mark() (bytes, large int) { return len(r.bytes), len(r.large) }

func (r *reply) back(bytes, large int) {
	for i := range r.large[large:] {
		r.large[large+i].value.Release()
	}
	r.bytes, r.large = r.bytes[:bytes], r.large[:large]
}

// clear makes a reply of nothing, and gives the memory of its values back.
func (r *reply) clear() {
	r.back(0, 0)
	if cap(r.bytes) > keptBytes {
		r.bytes = nil
	}
}

// size is how many bytes the reply has.
func (r *reply) size() int {
	size := len(r.bytes)
	for _, l := range r.large {
		size += len(l.value.Data)
	}
	return size
}

package wire

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"
)

// said is a connection on which the peer has said all it will ever say.
type said struct {
	net.Conn
	from io.Reader
}

func (s said) Read(p []byte) (int, error)      { return s.from.Read(p) }
func (s said) SetReadDeadline(time.Time) error { return nil }

// abrupt gives as much as is asked for, and its end together with the last of it.
type abrupt struct{ from *bytes.Reader }

func (a abrupt) Read(p []byte) (int, error) {
	n, err := a.from.Read(p)
	if a.from.Len() == 0 {
		err = io.EOF
	}
	return n, err
}

// sources give the same bytes in the ways that the contract of io.Reader allows; a TLS connection tells its end together
// with the last bytes.
var sources = map[string]func(io.Reader) io.Reader{
	"end after the data":          func(r io.Reader) io.Reader { return r },
	"end with the data":           iotest.DataErrReader,
	"end with much data":          func(r io.Reader) io.Reader { return abrupt{r.(*bytes.Reader)} },
	"single bytes":                iotest.OneByteReader,
	"single bytes, end with last": func(r io.Reader) io.Reader { return iotest.DataErrReader(iotest.OneByteReader(r)) },
}

// A frame is read whole however its bytes arrive, and one that breaks off is an error.
func TestFramesAreReadWhole(t *testing.T) {
	for _, size := range []int{0, 1, readBufferBytes - 1, readBufferBytes, readBufferBytes + 1, wakeBytes + 1} {
		header, payload := []byte("header"), bytes.Repeat([]byte{0xa5}, size)
		p, err := newPrefix(kindReply, 0, 7, header, payload)
		if err != nil {
			t.Fatal(err)
		}
		head := p.encode()
		frame := append(append(head[:], header...), payload...)
		for name, source := range sources {
			for cut := range 2 {
				var sent, received atomic.Int64
				l := newLink(said{from: source(bytes.NewReader(frame[:len(frame)-cut]))}, &sent, &received)
				got, err := l.readPrefix()
				if err != nil {
					t.Fatalf("%d bytes, %s: %v", size, name, err)
				}
				gotHeader, gotPayload := make([]byte, got.header), make([]byte, got.payload)
				err = l.readBody(got, gotHeader, gotPayload)
				if cut > 0 {
					if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
						t.Errorf("%d bytes, %s: a frame that breaks off is read with %v", size, name, err)
					}
				} else if err != nil || !bytes.Equal(gotHeader, header) || !bytes.Equal(gotPayload, payload) {
					t.Errorf("%d bytes, %s: %v, and the bytes differ or are lost", size, name, err)
				}
			}
		}
	}
}

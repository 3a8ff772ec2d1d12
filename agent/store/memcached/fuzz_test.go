package memcached

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/store"
)

// recorded is a connection on which the server has said all it will ever say.
type recorded struct {
	net.Conn
	*bytes.Reader
}

func (r recorded) Read(p []byte) (int, error)  { return r.Reader.Read(p) }
func (r recorded) Write(p []byte) (int, error) { return len(p), nil }
func (r recorded) SetDeadline(time.Time) error { return nil }
func (r recorded) Close() error                { return nil }

// replay returns a connection that answers with said.
func replay(said []byte) *connection {
	socket := recorded{Reader: bytes.NewReader(said)}
	return &connection{
		socket: socket, reader: bufio.NewReaderSize(socket, readBufferBytes), writer: bufio.NewWriter(io.Discard), timeout: time.Minute,
	}
}

// FuzzMetaParser feeds lines to the parser of answers, and whole conversations to everything that reads them. Whatever
// a server says, the client neither panics nor takes over more bytes than it asked for, and a parsed line is one that
// the protocol has.
func FuzzMetaParser(f *testing.F) {
	encoded := manifest{id: 7, length: 10, partBytes: 5}.encode()
	for _, said := range []string{
		"HD\r\n", "HD s5 f0 t-1\r\n", "VA 5 s5 f0 c12 kab\r\nhello\r\n", "EN\r\n", "NF\r\n", "NS\r\n", "EX\r\n", "MN\r\n", "STORED\r\n",
		"NOT_STORED\r\n", "ERROR\r\n", "CLIENT_ERROR bad data chunk\r\n", "SERVER_ERROR out of memory storing object\r\n",
		"SERVER_ERROR object too large for cache\r\n", "VA 99999999999 s1\r\n", "VA -1\r\n", "VA 5 s6\r\nhello\r\n", "VA 5\r\nhelloXY",
		"STAT item_size_max 1048576\r\nSTAT evictions on\r\nEND\r\n", "STAT a\r\nEND\r\n",
		"key=restripe.value%2Fa exp=-1 la=1 cas=1 fetch=no cls=1 size=69\r\nEND\r\n", "key=%zz\r\nEND\r\n", "BUSY currently\r\n",
		"VA 28 s28 f10 c1\r\n" + string(encoded) + "\r\nVA 5 s5\r\n01234\r\nVA 5 s5\r\n56789\r\n",
		"VA 28 s28 f11 c1\r\n" + string(encoded) + "\r\n",
	} {
		f.Add([]byte(said))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		line, _, _ := bytes.Cut(said, []byte("\r\n"))
		if r, err := parseReply(line); err == nil {
			if !bytes.HasPrefix(line, []byte(r.status)) || r.size < 0 || r.size > maxValueBytes {
				t.Errorf("line %q is parsed as %+v", line, r)
			}
		} else if !errors.Is(err, errProtocol) {
			t.Errorf("line %q: error %v does not wrap errProtocol", line, err)
		}

		p := bytes.Repeat([]byte{0xa5}, 64)
		if count, err := readAt(replay(said), "key", p[:16], 3); err == nil && count > 16 {
			t.Errorf("%d bytes read into 16", count)
		}
		if !bytes.Equal(p[16:], bytes.Repeat([]byte{0xa5}, 48)) {
			t.Error("bytes written behind the buffer")
		}
		for _, converse := range []func(c *connection) error{
			func(c *connection) error { return add(c, "key", []byte("value"), 0) },
			func(c *connection) error { return remove(c, "key") },
			func(c *connection) error { _, err := exists(c, "key"); return err },
			func(c *connection) error { _, err := readStatistics(c, "stats"); return err },
			func(c *connection) error { _, err := readDump(c, "hash", func(dumped) {}); return err },
			func(c *connection) error { return readSizes(c, []string{"a", "b"}, make([]int64, 2)) },
			func(c *connection) error { return createInParts(c, "key", []byte("0123456789"), 4) },
		} {
			c := replay(said)
			if err := converse(c); err == nil && c.err != nil {
				t.Errorf("conversation %q: failure %v of the connection is not reported", said, c.err)
			}
		}
	})
}

func FuzzManifest(f *testing.F) {
	f.Add(manifest{id: 7, length: 10, partBytes: 5}.encode(), uint32(10))
	f.Add([]byte("RSM1"), uint32(1))
	f.Fuzz(func(t *testing.T, encoded []byte, flags uint32) {
		m, err := parseManifest(encoded, flags)
		if err != nil {
			if !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("error %v does not wrap ErrCorrupt", err)
			}
			return
		}
		if !bytes.Equal(m.encode(), encoded) || m.length != int64(flags) {
			t.Errorf("%x with flags %d is parsed as %+v", encoded, flags, m)
		}
		if from, to := m.span(m.parts() - 1); from < 0 || from >= to || to != m.length {
			t.Errorf("the last part of %+v holds %d to %d", m, from, to)
		}
	})
}

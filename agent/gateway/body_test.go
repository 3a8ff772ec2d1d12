package gateway_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/iotest"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
)

// sources give the same bytes in the ways that the contract of io.Reader allows.
var sources = map[string]func(io.Reader) io.Reader{
	"end after the data":           func(r io.Reader) io.Reader { return r },
	"end with the data":            iotest.DataErrReader,
	"single bytes":                 iotest.OneByteReader,
	"single bytes, end with last":  func(r io.Reader) io.Reader { return iotest.DataErrReader(iotest.OneByteReader(r)) },
	"half of what is asked for":    iotest.HalfReader,
	"nothing between the bytes":    func(r io.Reader) io.Reader { return &stutter{from: r} },
	"end with the data, in halves": func(r io.Reader) io.Reader { return iotest.DataErrReader(iotest.HalfReader(r)) },
}

// stutter gives nothing, without an error, before each read.
type stutter struct {
	from   io.Reader
	paused bool
}

func (s *stutter) Read(p []byte) (int, error) {
	if s.paused = !s.paused; s.paused {
		return 0, nil
	}
	return s.from.Read(p)
}

// boundaries are sizes at and beside everything at which a body is cut: where packing ends, cells, groups.
func boundaries(t *testing.T, class *api.Class) (sizes []int) {
	t.Helper()
	layout, err := stripe.NewLayout(class.Ladder, 0, class.Mode)
	if err != nil {
		t.Fatal(err)
	}
	const unit = 64 // cells are whole multiples of it
	cell := (class.GroupBytes/int64(layout.Cells()) + unit - 1) / unit * unit
	seen := map[int64]bool{}
	for _, edge := range []int64{0, 1, class.PackBelow, cell, 2 * cell, class.GroupBytes,
		class.GroupBytes + class.PackBelow, class.GroupBytes + cell, 2 * class.GroupBytes, 3 * class.GroupBytes} {
		for _, size := range []int64{edge - 1, edge, edge + 1, edge + 2} {
			if size >= 0 && !seen[size] {
				seen[size] = true
				sizes = append(sizes, int(size))
			}
		}
	}
	return sizes
}

// Every body is stored byte for byte, whether its length is announced or not and however its source gives it.
func TestBodiesAreStoredWhole(t *testing.T) {
	c := newCluster(t, 9)
	for i := range c.classes {
		class := &c.classes[i]
		key := class.Prefixes[0] + "k"
		for _, size := range boundaries(t, class) {
			data := noise(size, uint64(size))
			for name, source := range sources {
				for _, announced := range []int64{-1, int64(size)} {
					object, err := c.gateway.Put(t.Context(), key, source(bytes.NewReader(data)), api.PutOptions{Size: announced})
					if err != nil {
						t.Fatalf("class %s, %d bytes, %s, %d announced: %v", class.Name, size, name, announced, err)
					}
					if object.Size != int64(size) {
						t.Errorf("class %s, %d bytes, %s, %d announced: acknowledged with %d", class.Name, size, name, announced, object.Size)
					}
					if got := c.get(key); !bytes.Equal(got, data) {
						t.Errorf("class %s, %d bytes, %s, %d announced: reads back %d bytes that differ", class.Name, size, name, announced, len(got))
					}
				}
			}
		}
	}
}

var errBroken = errors.New("the source broke")

// A body whose source fails, with its last bytes or after them, or that ends early, is never stored as a whole one.
func TestBodiesThatBreakAreNotStored(t *testing.T) {
	c := newCluster(t, 9)
	old := []byte("what was there before")
	for i := range c.classes {
		class := &c.classes[i]
		key := class.Prefixes[0] + "k"
		c.put(key, old, api.PutOptions{})
		for _, size := range boundaries(t, class) {
			data := noise(size, uint64(size))
			broken := func() io.Reader { return io.MultiReader(bytes.NewReader(data), iotest.ErrReader(errBroken)) }
			for name, source := range sources {
				for _, announced := range []int64{-1, int64(size) + 1, int64(size) + class.GroupBytes} {
					if object, err := c.gateway.Put(t.Context(), key, source(broken()), api.PutOptions{Size: announced}); !errors.Is(err, errBroken) {
						t.Errorf("class %s, broken after %d bytes, %s, %d announced: %+v, %v", class.Name, size, name, announced, object, err)
					}
				}
				if object, err := c.gateway.Put(t.Context(), key, source(bytes.NewReader(data)), api.PutOptions{Size: int64(size) + 1}); !errors.Is(err, api.ErrBadRequest) {
					t.Errorf("class %s, ended after %d of %d bytes, %s: %+v, %v", class.Name, size, size+1, name, object, err)
				}
			}
			c.check(key, old)
		}
	}
}

// The same over HTTP, where a chunked body tells its end together with the last bytes.
func TestBodiesOverHTTPAreStoredWhole(t *testing.T) {
	c := newCluster(t, 9)
	server := httptest.NewServer(c.gateway.Handler())
	defer server.Close()
	call := func(method, path string, body io.Reader, length int64) ([]byte, int) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, body)
		if err != nil {
			t.Fatal(err)
		}
		request.ContentLength = length
		reply, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		text, err := io.ReadAll(reply.Body)
		if err != nil {
			t.Fatal(err)
		}
		return text, reply.StatusCode
	}
	for i := range c.classes {
		class := &c.classes[i]
		path := "/v1/objects/" + class.Prefixes[0] + "k"
		for _, size := range boundaries(t, class) {
			data := noise(size, uint64(size))
			for _, length := range []int64{-1, int64(size)} {
				var body io.Reader = struct{ io.Reader }{bytes.NewReader(data)}
				if length == 0 {
					body = http.NoBody
				}
				if text, status := call(http.MethodPut, path, body, length); status != http.StatusOK {
					t.Fatalf("class %s, %d bytes, length %d: status %d: %s", class.Name, size, length, status, text)
				}
				if got, status := call(http.MethodGet, path, nil, 0); status != http.StatusOK || !bytes.Equal(got, data) {
					t.Errorf("class %s, %d bytes, length %d: status %d, %d bytes that differ", class.Name, size, length, status, len(got))
				}
			}
			if size == 0 {
				continue
			}
			fresh := noise(size, uint64(size)+1)
			patch := fmt.Sprintf("%s?offset=0", path)
			if text, status := call(http.MethodPatch, patch, struct{ io.Reader }{iotest.DataErrReader(bytes.NewReader(fresh))}, int64(size)); status != http.StatusOK {
				t.Fatalf("class %s, an update of %d bytes: status %d: %s", class.Name, size, status, text)
			}
			if got, _ := call(http.MethodGet, path, nil, 0); !bytes.Equal(got, fresh) {
				t.Errorf("class %s, an update of %d bytes reads back %d that differ", class.Name, size, len(got))
			}
		}
	}
}

package adopt

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// What is carried is counted, summed and passed on whole, however its source gives it; what breaks, also with its last
// bytes, is an error that stays, and is never taken for whole.
func TestBodiesAreCarriedWhole(t *testing.T) {
	errBroken := errors.New("the source broke")
	sources := map[string]func(io.Reader) io.Reader{
		"end after the data":          func(r io.Reader) io.Reader { return r },
		"end with the data":           iotest.DataErrReader,
		"single bytes":                iotest.OneByteReader,
		"single bytes, end with last": func(r io.Reader) io.Reader { return iotest.DataErrReader(iotest.OneByteReader(r)) },
	}
	for _, size := range []int{1, 2, leastBurst - 1, leastBurst, leastBurst + 1} {
		data := bytes.Repeat([]byte{0x5a}, size)
		want := sha256.Sum256(data)
		for name, source := range sources {
			body := func(from io.Reader, checked *[]byte) *meteredBody {
				return &meteredBody{
					ctx: context.Background(), limit: newLimit(0), tally: new(tally), from: from, size: int64(size), sum: sha256.New(),
					whole: func(checksum []byte) error { *checked = bytes.Clone(checksum); return nil },
				}
			}
			var checked []byte
			b := body(source(bytes.NewReader(data)), &checked)
			if got, err := io.ReadAll(b); err != nil || !bytes.Equal(got, data) || b.count != int64(size) || !bytes.Equal(checked, want[:]) || b.end() != nil {
				t.Errorf("%d bytes, %s: %d read, %v", size, name, len(got), err)
			}
			checked = nil
			short := io.MultiReader(bytes.NewReader(data[:size-1]), iotest.ErrReader(errBroken))
			b = body(source(short), &checked)
			if _, err := io.ReadAll(b); !errors.Is(err, errBroken) || checked != nil || !errors.Is(b.end(), errBroken) {
				t.Errorf("%d bytes, %s, broken: %v, taken for whole: %v", size, name, err, checked != nil)
			}
		}
	}
}

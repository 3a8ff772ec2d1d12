package tree

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"
)

// TestFirstDifference compares streams that come in pieces of any size.
func TestFirstDifference(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		length := rapid.SampledFrom([]int{0, 1, 1000, compareBytes - 1, compareBytes, compareBytes + 1, 2 * compareBytes}).Draw(r, "length")
		a := bytes.Repeat([]byte{1}, length)
		b := bytes.Clone(a)
		want := int64(-1)
		if length > 0 && rapid.Bool().Draw(r, "differs") {
			at := rapid.IntRange(0, length-1).Draw(r, "at")
			b[at], want = 2, int64(at)
		} else if rapid.Bool().Draw(r, "longer") {
			b, want = append(b, 1), int64(length)
		}
		if have, err := FirstDifference(iotest.HalfReader(bytes.NewReader(a)), bytes.NewReader(b)); err != nil || have != want {
			r.Fatalf("have %d, %v; want %d", have, err, want)
		}
	})
	for _, broken := range []error{io.ErrUnexpectedEOF, errors.New("reset")} {
		if _, err := FirstDifference(io.MultiReader(strings.NewReader("12"), iotest.ErrReader(broken)), strings.NewReader("12")); !errors.Is(err, broken) {
			t.Errorf("a stream broken by %v: %v", broken, err)
		}
	}
}

func TestProgressOfATree(t *testing.T) {
	files := Tree{Files: []File{{Size: 3 << 20}, {Size: 1 << 20}}, Bytes: 4 << 20}
	var done Done
	if line := files.Line(&done, 0); !strings.HasSuffix(line, "0 of 2 objects  0 B/s  unknown left") || !strings.Contains(line, "]   0 %  0 B of 4.0 MiB") {
		t.Errorf("at the beginning: %q", line)
	}
	done.Objects.Store(1)
	done.Bytes.Store(1 << 20)
	want := "[#####---------------]  25 %  1.0 MiB of 4.0 MiB  1 of 2 objects  512 KiB/s  about 6 s left"
	if line := files.Line(&done, 2*time.Second); line != want {
		t.Errorf("after a quarter: %q, want %q", line, want)
	}
}

package memcache

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/restripe/restripe/agent/budget"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sending returns the input of a connection that is sent these pieces and then ends: over TCP, or over what can only be read from.
func sending(t *testing.T, overTCP bool, memory budget.Budget, pieces ...[]byte) *input {
	t.Helper()
	here, there := net.Pipe()
	if overTCP {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if there, err = net.Dial("tcp", listener.Addr().String()); err != nil {
			t.Fatal(err)
		}
		if here, err = listener.Accept(); err != nil {
			t.Fatal(err)
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
	}
	sent := make(chan error, 1)
	go func() {
		for _, piece := range pieces {
			if _, err := there.Write(piece); err != nil {
				sent <- errors.Join(err, there.Close())
				return
			}
		}
		sent <- there.Close()
	}()
	t.Cleanup(func() {
		_ = here.Close() // the test may have closed it
		<-sent
	})
	in := new(input)
	in.init(here, memory, func(int) {}, func() {})
	return in
}

func inPieces(data []byte, size int) [][]byte { return slices.Collect(slices.Chunk(data, size)) }

// Lines and values are the same however they come.
func TestInputInPieces(t *testing.T) {
	value := bytes.Repeat([]byte("a line\r\n\x00"), 20_000)
	var script bytes.Buffer
	long := "get " + strings.Repeat("key ", 30_000)
	script.WriteString("first\r\n\n\r\n second \r\nvalue\r\n")
	script.Write(value)
	script.WriteString("\r\n" + long + "\r\nshort\r\nxyzafter\nabc\rlast\r\nrest")
	for _, overTCP := range []bool{true, false} {
		for _, size := range []int{7, 1000, bufferBytes, 1 << 20} {
			memory := budget.New(10 << 20)
			in := sending(t, overTCP, memory, inPieces(script.Bytes(), size)...)
			line := func(want string) {
				t.Helper()
				if got, err := in.line(); err != nil || string(got) != want {
					t.Fatalf("in pieces of %d a line is %.50q, %v, want %.50q", size, got, err, want)
				}
			}
			block := func(length int, want []byte, isWhole bool) {
				t.Helper()
				held := memory.Hold(0)
				got, whole, left, err := in.block(t.Context(), held, int64(length))
				if err != nil || whole != isWhole || left != 0 || !bytes.Equal(got, want) {
					t.Fatalf("in pieces of %d a value is %d bytes, %v, %d left, %v", size, len(got), whole, left, err)
				}
				held.Release()
			}
			for _, want := range []string{"first", "", "\r", " second ", "value"} {
				line(want)
			}
			block(len(value), value, true)
			line(long)
			line("short")
			if err := in.swallow(3); err != nil {
				t.Fatal(err)
			}
			line("after")
			block(3, []byte("abc"), false)
			line("ast")
			if got, err := in.line(); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
				t.Fatalf("after the last line there is %q, %v", got, err)
			}
			in.close()
			if release, room := memory.Try(10 << 20); !room {
				t.Error("memory of the input was not given back")
			} else {
				release()
			}
		}
	}
}

func TestInputIsBounded(t *testing.T) {
	for text, want := range map[string]error{
		"set " + strings.Repeat("k", 20_000): errLongLine, "get " + strings.Repeat("k", 2<<20): errLongLine, "\x80": errBinary, "half": io.EOF,
	} {
		in := sending(t, true, budget.New(100<<20), []byte(text))
		if line, err := in.line(); !errors.Is(err, want) {
			t.Errorf("%.10q is %.10q, %v", text, line, err)
		}
	}
	in := sending(t, true, budget.New(1<<10), []byte("get "+strings.Repeat("k", 2<<20)))
	if line, err := in.line(); !errors.Is(err, errNoMemory) {
		t.Errorf("without memory a long line is %.10q, %v", line, err)
	}
	in = sending(t, true, budget.New(100<<10), bytes.Repeat([]byte("v"), 200_002), []byte("next\r\n"))
	others, _ := in.memory.Try(100 << 10)
	defer others()
	_, _, left, err := in.block(t.Context(), in.memory.Hold(0), 200_000)
	if !errors.Is(err, budget.ErrFull) {
		t.Fatalf("without memory a value is %v", err)
	}
	if err := in.swallow(left); err != nil {
		t.Fatal(err)
	}
	if line, err := in.line(); err != nil || string(line) != "next" {
		t.Errorf("after what was swallowed comes %q, %v", line, err)
	}
}

// Who has nothing to say holds no buffer.
func TestIdleInputHoldsNothing(t *testing.T) {
	in := sending(t, true, budget.New(1<<20), []byte("one\r\n"))
	if _, err := in.line(); err != nil {
		t.Fatal(err)
	}
	in.stop()
	if _, err := in.line(); !errors.Is(err, errStopped) {
		t.Errorf("after the end it says %v", err)
	}
	if in.room != nil || in.lent != nil {
		t.Error("it holds a buffer")
	}
}

package resp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/restripe/restripe/agent/budget"
)

// tape is a connection from which a text is read.
type tape struct {
	net.Conn
	from io.Reader
}

func (t *tape) Read(buffer []byte) (int, error) { return t.from.Read(buffer) }
func (t *tape) SetReadDeadline(time.Time) error { return nil }

func readerOf(from io.Reader, bounds limits) *reader {
	if bounds.memory.Bytes == 0 {
		bounds.memory = budget.New(1 << 20)
	}
	return &reader{limits: &bounds, source: source{conn: &tape{from: from}}, known: true}
}

func small() limits { return limits{argument: 1 << 20, command: 4 << 20} }

func words(arguments [][]byte) (words []string) {
	for _, argument := range arguments {
		words = append(words, string(argument))
	}
	return words
}

// Commands come as arrays or as lines, whole or a byte at a time, one or many behind each other.
func TestCommandsAreRead(t *testing.T) {
	large := strings.Repeat("x", 3*bufferBytes)
	text := "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n" +
		"PING\r\n" +
		"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\n\r\n\x00$\r\n" +
		"*2\r\n$4\r\nECHO\r\n$49152\r\n" + large + "\r\n" +
		"set  k 'it\\'s' \"a\\x41\\n\\q\"\n" +
		"\r\n*0\r\n*-1\r\nget " + large + "\r\n"
	want := [][]string{
		{"GET", "k"}, {"PING"}, {"SET", "", "\r\n\x00$"}, {"ECHO", large}, {"set", "k", "it's", "aA\nq"}, nil, nil, nil, {"get", large},
	}
	for name, from := range map[string]io.Reader{
		"whole": strings.NewReader(text), "a byte at a time": iotest.OneByteReader(strings.NewReader(text)),
	} {
		t.Run(name, func(t *testing.T) {
			r := readerOf(from, small())
			defer r.release()
			var c command
			for _, want := range want {
				c.clear()
				if err := readNext(r, &c); err != nil || !slices.Equal(words(c.arguments), want) {
					t.Fatalf("%.50q, %v, want %.50q", words(c.arguments), err, want)
				}
			}
			c.clear()
			if err := readNext(r, &c); !errors.Is(err, io.EOF) {
				t.Errorf("at the end: %v", err)
			}
		})
	}
}

// What is no command is told from what ends too early.
func TestWhatIsNoCommand(t *testing.T) {
	for text, want := range map[string]string{
		"*2\r\n+OK\r\n":                        "Protocol error: expected '$', got '+'",
		"*x\r\n":                               "Protocol error: invalid multibulk length",
		"*\r\n":                                "Protocol error: invalid multibulk length",
		"*1048577\r\n":                         "Protocol error: invalid multibulk length",
		"*1\r\n$-1\r\n":                        "Protocol error: invalid bulk length",
		"*1\r\n$536870913\r\n":                 "Protocol error: invalid bulk length",
		"*1\r\n$99999999999999999999\r\n":      "Protocol error: invalid bulk length",
		"*" + strings.Repeat("1", 70000):       "Protocol error: too big mbulk count string",
		"*1\r\n$" + strings.Repeat("1", 70000): "Protocol error: too big bulk count string",
		"get \"k\r\n":                          "Protocol error: unbalanced quotes in request",
		"get \"k\"x\r\n":                       "Protocol error: unbalanced quotes in request",
		strings.Repeat("x", 70000):             "Protocol error: too big inline request",
		"*1\r\n$3\r\nGE":                       io.ErrUnexpectedEOF.Error(),
		"*1\r\n":                               io.ErrUnexpectedEOF.Error(),
		"get k":                                io.ErrUnexpectedEOF.Error(),
	} {
		r := readerOf(strings.NewReader(text), small())
		var c command
		if err := readNext(r, &c); err == nil || err.Error() != want {
			t.Errorf("%.20q: %q, %v, want %s", text, words(c.arguments), err, want)
		}
		r.release()
	}
}

// A client that has not said who it is sends little.
func TestStrangersSendLittle(t *testing.T) {
	for text, want := range map[string]string{
		"*11\r\n":                "Protocol error: unauthenticated multibulk length",
		"*1\r\n$16385\r\n":       "Protocol error: unauthenticated bulk length",
		"*1\r\n$4\r\nPING\r\n\n": "",
	} {
		r := readerOf(strings.NewReader(text), small())
		r.known = false
		var c command
		got := ""
		if err := readNext(r, &c); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
		r.release()
	}
}

// A command that is too large is read to its end, without being kept, and the next one is read after it.
func TestTooLargeCommandsArePassedOver(t *testing.T) {
	bulk := func(size int) string {
		return "$" + string(decimal(int64(size))) + "\r\n" + strings.Repeat("x", size) + "\r\n"
	}
	for name, text := range map[string]string{
		"argument": "*3\r\n" + bulk(3) + bulk(2000) + bulk(3),
		"command":  "*7\r\n" + strings.Repeat(bulk(900), 7),
	} {
		t.Run(name, func(t *testing.T) {
			r := readerOf(strings.NewReader(text+"PING\r\n"), limits{argument: 1000, command: 5000})
			defer r.release()
			var c command
			if err := readNext(r, &c); err != nil || c.refusal == nil || len(c.arguments) > 1 {
				t.Fatalf("%d arguments, %v, refused: %v", len(c.arguments), err, c.refusal)
			}
			c.clear()
			if err := readNext(r, &c); err != nil || c.refusal != nil || len(c.arguments) != 1 {
				t.Fatalf("%d arguments, %v, refused: %v", len(c.arguments), err, c.refusal)
			}
		})
	}
}

// Memory of large commands comes from a budget, and goes back to it.
func TestLargeCommandsTakeOfTheBudget(t *testing.T) {
	text := "*2\r\n$3\r\nGET\r\n$100000\r\n" + strings.Repeat("x", 100_000) + "\r\n"
	bounds := small()
	bounds.memory = budget.New(150_000)
	r := readerOf(strings.NewReader(text), bounds)
	defer r.release()
	var c command
	if err := readNext(r, &c); err != nil || c.refusal != nil {
		t.Fatal(err, c.refusal)
	}
	if _, room := bounds.memory.Try(100_000); room {
		t.Error("the command has taken nothing of the budget")
	}
	c.clear()
	if _, room := bounds.memory.Try(150_000); !room {
		t.Error("the command has not given back what it took")
	}
}

// Whatever comes is commands or an error, and what is read is the same whole and a byte at a time.
func FuzzCommands(f *testing.F) {
	for _, seed := range []string{
		"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", "PING\r\n", "*0\r\n*-1\r\n\r\n", "set k 'it\\'s' \"a\\x41\\n\\q\"\n", "*1\r\n$3\r\nGE",
		"*2\r\n$3\r\nGET\r\n$2000\r\nk", "*3\n$1\na\r\n$0\r\n\r\n$2\r\n\r\n\r\n", "*9999999999\r\n", "$\r\n*1\r\n$-0\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		read := func(from io.Reader) (commands [][]string, last string) {
			r := readerOf(from, limits{argument: 1000, command: 5000})
			defer r.release()
			for {
				var c command
				if err := readNext(r, &c); err != nil {
					return commands, err.Error()
				}
				if c.refusal == nil {
					commands = append(commands, words(c.arguments))
				}
				c.clear()
			}
		}
		whole, end := read(bytes.NewReader(text))
		slow, slowEnd := read(iotest.OneByteReader(bytes.NewReader(text)))
		if end != slowEnd || !slices.EqualFunc(whole, slow, slices.Equal[[]string]) {
			t.Errorf("whole %q, %s; slowly %q, %s", whole, end, slow, slowEnd)
		}
	})
}

// readNext reads the next command of a connection.
func readNext(r *reader, c *command) error {
	if err := r.wait(); err != nil {
		return err
	}
	return r.next(context.Background(), c)
}

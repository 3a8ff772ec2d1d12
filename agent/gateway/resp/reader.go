package resp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/restripe/restripe/agent/budget"
	"github.com/restripe/restripe/agent/gateway/api"
)

// Bounds on what a client may send. Those that Redis has too are the same.
const (
	inlineLimit     = 64 << 10
	argumentsLimit  = 1 << 20
	bulkLimit       = 512 << 20
	strangersLimit  = 16 << 10 // of an argument of a client that has not said who it is
	strangersMost   = 10       // arguments of such a client
	bufferBytes     = 16 << 10
	ownBytes        = 16 << 10 // an argument from this size on has memory of its own
	freeBytes       = 32 << 10 // a command up to this size takes nothing of the budget
	argumentBytes   = 40       // what an argument costs beside its bytes
	reserveStep     = 64 << 10
	keptBytes       = 64 << 10 // of a command's memory that is kept for the next one
	idleAfter       = 2 * time.Second
	stalledAfter    = time.Minute
	commandPatience = 5 * time.Second // for memory
)

// protocolError is what a client sent that is no command. The connection cannot be used any more.
type protocolError struct{ text string }

func (e *protocolError) Error() string { return "Protocol error: " + e.text }

func wrong(format string, arguments ...any) error {
	return &protocolError{fmt.Sprintf(format, arguments...)}
}

// command is what a client sent: its arguments, the first of which is its name.
type command struct {
	arguments [][]byte
	text      []byte // of the small arguments, behind each other
	places    []place
	size      int64 // with what it costs beside the bytes
	reserved  int64
	free      []func()
	refusal   error // why it is not carried out, though it was well formed
}

// place is where an argument is: in the text, or in memory of its own.
type place struct {
	begin, end int
	own        []byte
}

// clear makes a command ready to be read, and gives its memory back.
func (c *command) clear() {
	for _, free := range c.free {
		free()
	}
	if cap(c.text) > keptBytes || cap(c.places) > 1024 {
		*c = command{}
		return
	}
	clear(c.arguments)
	clear(c.places)
	*c = command{arguments: c.arguments[:0], text: c.text[:0], places: c.places[:0], free: c.free[:0]}
}

// take returns an argument as bytes that nobody changes any more.
func (c *command) take(i int) []byte {
	if own := c.places[i].own; own != nil {
		return own
	}
	return bytes.Clone(c.arguments[i])
}

// settle makes the arguments of their places.
func (c *command) settle() {
	for _, p := range c.places {
		if p.own == nil {
			p.own = c.text[p.begin:p.end]
		}
		c.arguments = append(c.arguments, p.own)
	}
}

// limits bound commands.
type limits struct {
	argument int64 // bytes
	command  int64
	memory   budget.Budget // of all commands that are read or carried out
}

// reader reads commands from a connection. While nothing comes it holds no buffer.
type reader struct {
	limits   *limits
	source   source
	buffered *bufio.Reader // nil: none is held
	known    bool          // the client may send large commands
}

var buffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, bufferBytes) }}

// source is the connection that a reader reads from. It holds back the byte that was read without a buffer.
type source struct {
	conn    net.Conn
	waits   func() // is called before the client is waited for; may be nil
	closing atomic.Bool
	within  bool // a command
	begun   bool
	first   [1]byte
}

// errClosing says that the server ends.
var errClosing = errors.New("the server ends")

// Read reads from the connection. It does not wait for ever.
func (s *source) Read(buffer []byte) (int, error) {
	if s.begun {
		s.begun = false
		return copy(buffer, s.first[:]), nil
	}
	patience := idleAfter
	if s.within {
		patience = stalledAfter
	}
	return s.read(buffer, time.Now().Add(patience))
}

func (s *source) read(buffer []byte, until time.Time) (int, error) {
	if s.waits != nil {
		s.waits()
	}
	if err := s.conn.SetReadDeadline(until); err != nil {
		return 0, err
	}
	if s.closing.Load() { // after the deadline was set: close sets it after this was said
		return 0, errClosing
	}
	return s.conn.Read(buffer)
}

// close ends waiting for what the client sends. Others may call it.
func (s *source) close() {
	s.closing.Store(true)
	_ = s.conn.SetReadDeadline(time.Unix(1, 0)) // a connection that is gone already waits for nothing
}

// waiting reports whether the client has sent more than was read.
func (r *reader) waiting() bool { return r.buffered != nil && r.buffered.Buffered() > 0 }

// wait returns when the client has sent something. It returns io.EOF where the connection ends.
func (r *reader) wait() error {
	r.source.within = false
	if r.buffered != nil {
		_, err := r.buffered.Peek(1)
		if !errors.Is(err, os.ErrDeadlineExceeded) || r.source.closing.Load() {
			return err
		}
		r.release()
	}
	if _, err := r.source.read(r.source.first[:], time.Time{}); err != nil {
		return err
	}
	r.source.begun = true
	r.buffered = buffers.Get().(*bufio.Reader)
	r.buffered.Reset(&r.source)
	_, err := r.buffered.Peek(1)
	return err
}

// release gives the buffer back. What is in it is lost.
func (r *reader) release() {
	if r.buffered != nil {
		r.buffered.Reset(nil)
		buffers.Put(r.buffered)
		r.buffered = nil
	}
}

// next reads the next command, of which wait said that it comes. A blank line is one without arguments. It returns io.ErrUnexpectedEOF
// where the connection ends in the command, and a *protocolError for what is none.
func (r *reader) next(ctx context.Context, c *command) error {
	r.source.within = true
	err := r.parse(ctx, c)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func (r *reader) parse(ctx context.Context, c *command) error {
	first, err := r.buffered.Peek(1)
	if err != nil {
		return err
	}
	if first[0] != '*' {
		return r.parseInline(c)
	}
	count, err := r.number("multibulk", "mbulk", argumentsLimit)
	if err != nil {
		return err
	}
	if count > strangersMost && !r.known {
		return wrong("unauthenticated multibulk length")
	}
	for range max(count, 0) {
		if err := r.argument(ctx, c); err != nil {
			return err
		}
	}
	c.settle()
	return nil
}

// argument reads one.
func (r *reader) argument(ctx context.Context, c *command) error {
	sign, err := r.buffered.Peek(1)
	if err != nil {
		return err
	}
	if sign[0] != '$' {
		return wrong("expected '$', got '%c'", sign[0])
	}
	size, err := r.number("bulk", "bulk", bulkLimit)
	if err != nil {
		return err
	}
	if size < 0 {
		return wrong("invalid bulk length")
	}
	if size > strangersLimit && !r.known {
		return wrong("unauthenticated bulk length")
	}
	r.grow(ctx, c, size)
	switch {
	case c.refusal != nil:
		err = r.skip(size)
	case size >= ownBytes:
		own := make([]byte, size)
		_, err = io.ReadFull(r.buffered, own)
		c.places = append(c.places, place{own: own})
	default:
		begin := len(c.text)
		err = r.copy(c, int(size))
		c.places = append(c.places, place{begin: begin, end: len(c.text)})
	}
	if err != nil {
		return err
	}
	_, err = r.buffered.Discard(2)
	return err
}

// grow takes memory for an argument, or has the command refused.
func (r *reader) grow(ctx context.Context, c *command, size int64) {
	c.size += size + argumentBytes
	switch {
	case c.refusal != nil:
	case size > r.limits.argument:
		c.refuse(api.Refuse(api.ErrBadRequest, "an argument of %d bytes is too long: a value has at most %d", size, r.limits.argument))
	case c.size > r.limits.command:
		c.refuse(api.Refuse(api.ErrBadRequest, "the command is too long: one has at most %d bytes, and each argument counts %d more",
			r.limits.command, argumentBytes))
	case c.size > max(c.reserved, freeBytes):
		patient, done := context.WithTimeout(ctx, commandPatience)
		defer done()
		more := max(c.size-c.reserved, reserveStep)
		free, err := r.limits.memory.Reserve(patient, more)
		if err != nil {
			c.refuse(errNoMemory)
			return
		}
		c.reserved += more
		c.free = append(c.free, free)
	}
}

// refuse has a command not carried out, and keeps nothing of it but its name.
func (c *command) refuse(err error) {
	for _, free := range c.free {
		free()
	}
	c.free, c.refusal = nil, err
	c.places = c.places[:min(len(c.places), 1)]
}

// copy appends bytes to the text of a command.
func (r *reader) copy(c *command, size int) error {
	for size > 0 {
		some, err := r.buffered.Peek(min(size, max(1, r.buffered.Buffered())))
		if err != nil {
			return err
		}
		c.text = append(c.text, some...)
		size -= len(some)
		if _, err := r.buffered.Discard(len(some)); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) skip(size int64) error {
	_, err := r.buffered.Discard(int(size))
	return err
}

// number reads a line of a sign and a number.
func (r *reader) number(of, short string, most int64) (int64, error) {
	line, err := r.buffered.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return 0, wrong("too big %s count string", short)
	}
	if err != nil {
		return 0, err
	}
	value, is := parseInteger(bytes.TrimSuffix(line[1:len(line)-1], []byte("\r")))
	if !is || value > most {
		return 0, wrong("invalid %s length", of)
	}
	return value, nil
}

// parseInteger reads a number as Redis does: without a plus, spaces, or zeros in front.
func parseInteger(text []byte) (value int64, is bool) {
	digits := text
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && len(text) > 1 || digits[0] == '+' {
		return 0, false
	}
	value, err := strconv.ParseInt(string(text), 10, 64)
	return value, err == nil
}

// parseInline reads a line of words, as a person types it.
func (r *reader) parseInline(c *command) error {
	var whole []byte
	for {
		line, err := r.buffered.ReadSlice('\n')
		if len(whole)+len(line) > inlineLimit {
			return wrong("too big inline request")
		}
		whole = append(whole, line...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
	words, err := split(bytes.TrimSuffix(whole[:len(whole)-1], []byte("\r")))
	for _, word := range words {
		c.size += int64(len(word)) + argumentBytes
		c.places = append(c.places, place{own: word})
	}
	c.settle()
	return err
}

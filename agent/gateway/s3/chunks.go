package s3

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"strconv"
	"strings"
)

const (
	chunkHeadBytes = 16 << 10 // of the line before a chunk, and of a trailer
	trailersMost   = 16
)

var emptyDigest = digestOf("")

// chunks reads a body that comes in chunks of S3 ("aws-chunked"): each begins with a line that has its length and, where they are signed,
// its signature, which covers the one before it. Trailers may follow the last one.
type chunks struct {
	from     *bufio.Reader
	signed   bool // chunks have signatures
	trailing bool // trailers may come

	by       *authorization // nil: signatures are not looked at
	key      []byte
	previous string // signature

	begun, ended bool
	left         int64 // of the chunk
	claimed      string
	sum          hash.Hash
	trailers     map[string]string
}

func newChunks(body io.Reader, payload string) *chunks {
	return &chunks{
		from: bufio.NewReaderSize(body, chunkHeadBytes), signed: payload != streamingTrailer,
		trailing: payload == streamingTrailer || payload == streamingSignedTrailer, sum: sha256.New(), trailers: map[string]string{},
	}
}

// verifies has the signatures of chunks be verified.
func (c *chunks) verifies(by *authorization, key []byte) {
	if c.signed {
		c.by, c.key, c.previous = by, key, by.signature
	}
}

// Read reads what the chunks carry. The bytes of a chunk are given before its signature is known to be right: the error comes with the
// last of them at the latest, so that nothing may be done with any before the end.
func (c *chunks) Read(into []byte) (int, error) {
	if len(into) == 0 {
		return 0, nil
	}
	if !c.ended && c.left == 0 {
		if err := c.head(); err != nil {
			return 0, err
		}
	}
	if c.ended {
		return 0, io.EOF
	}
	n, err := c.from.Read(into[:min(int64(len(into)), c.left)])
	c.left -= int64(n)
	if c.by != nil {
		c.sum.Write(into[:n])
	}
	if err != nil {
		return n, broken(err)
	}
	if c.left == 0 {
		line, err := c.line()
		switch {
		case err != nil:
			return n, err
		case line != "":
			return n, refuse(incompleteBody, "a chunk of the body is longer than its head says")
		}
		return n, c.check()
	}
	return n, nil
}

// head reads the line before a chunk, and what follows the last one.
func (c *chunks) head() error {
	line, err := c.line()
	if err != nil {
		return err
	}
	length, extension, _ := strings.Cut(line, ";")
	size, err := strconv.ParseInt(strings.TrimSpace(length), 16, 64)
	if err != nil || size < 0 {
		return refuse(incompleteBody, "a chunk of the body begins with %.40q; want its length in hexadecimal digits", line)
	}
	c.claimed = ""
	if name, value, _ := strings.Cut(strings.TrimSpace(extension), "="); name == "chunk-signature" {
		c.claimed = value
	}
	c.left, c.begun = size, true
	c.sum.Reset()
	if size > 0 {
		return nil
	}
	if err := c.check(); err != nil {
		return err
	}
	if err := c.readTrailers(); err != nil {
		return err
	}
	c.ended = true
	return nil
}

// check compares the signature of a chunk that was read.
func (c *chunks) check() error {
	if c.by == nil {
		return nil
	}
	return c.compare(algorithm+"-PAYLOAD", c.claimed, emptyDigest+"\n"+hex.EncodeToString(c.sum.Sum(nil)))
}

func (c *chunks) compare(kind, claimed, what string) error {
	text := kind + "\n" + c.by.timestamp + "\n" + c.by.scope() + "\n" + c.previous + "\n" + what
	given := authorization{signature: claimed}
	if !given.isSignedBy(c.key, text) {
		return refuse(signatureDoesNotMatch, "the signature of a part of the body is not that of what came; send it again")
	}
	c.previous = claimed
	return nil
}

// readTrailers reads the lines after the last chunk up to an empty one, or the end.
func (c *chunks) readTrailers() error {
	signature := ""
	var signedText strings.Builder
	for range trailersMost {
		line, err := c.line()
		if errors.Is(err, io.ErrUnexpectedEOF) && line == "" {
			err = nil // the last line may be left out
		}
		if err != nil {
			return err
		}
		if line == "" {
			switch {
			case c.by == nil || !c.trailing:
				return nil
			case signature == "":
				return refuse(incompleteBody, "the body ends without the signature of its trailers")
			}
			return c.compare(algorithm+"-TRAILER", signature, digestOf(signedText.String()))
		}
		name, value, found := strings.Cut(line, ":")
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
		if !found || !c.trailing {
			return refuse(malformedTrailer, "the body is followed by %.40q; want the name of a trailer, a colon and its value", line)
		}
		if name == "x-amz-trailer-signature" {
			signature = value
			continue
		}
		c.trailers[name] = value
		signedText.WriteString(name + ":" + value + "\n")
	}
	return refuse(malformedTrailer, "the body is followed by more than %d trailers", trailersMost)
}

// line reads one line, without its end.
func (c *chunks) line() (string, error) {
	text, err := c.from.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return "", refuse(incompleteBody, "a line between chunks of the body has more than %d bytes", chunkHeadBytes)
	case err != nil:
		return string(text), broken(err)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), nil
}

// broken is the error of a body that ends where more has to come.
func broken(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

package memcached

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The answers this client acts on; the first word of a line.
const (
	statusValue     = "VA"
	statusDone      = "HD"
	statusMiss      = "EN"
	statusNotFound  = "NF"
	statusExists    = "EX"
	statusNotStored = "NS"
	statusNoop      = "MN"

	statusAdded    = "STORED"
	statusNotAdded = "NOT_STORED"

	statusError       = "ERROR"
	statusClientError = "CLIENT_ERROR"
	statusServerError = "SERVER_ERROR"
)

// maxValueBytes bounds what a server may announce as the size of one item; memcached's own bound is 1 GiB.
const maxValueBytes = 1 << 30

// reply is one line of an answer.
type reply struct {
	status  string
	size    int64  // of the data that follows (VA), or of the item (flag s)
	flags   uint32 // the client's flags of the item (flag f)
	cas     uint64 // version of the item (flag c)
	message string // of an error
}

// errProtocol is wrapped where a server says what the protocol does not allow; the connection is useless after it.
var errProtocol = errors.New("server does not speak the memcached meta protocol; memcached 1.6 or later is needed")

// parseReply reads one line, without its end. Errors wrap errProtocol.
func parseReply(line []byte) (reply, error) {
	status, rest, _ := bytes.Cut(line, []byte{' '})
	r := reply{status: string(status)}
	switch r.status {
	case statusError, statusClientError, statusServerError:
		r.message = strings.TrimSpace(string(rest))
		return r, nil
	case statusAdded, statusNotAdded, statusNoop:
		if len(rest) > 0 {
			return reply{}, fmt.Errorf("line %.80q: %w", line, errProtocol)
		}
		return r, nil
	case statusValue, statusDone, statusMiss, statusNotFound, statusExists, statusNotStored:
	default:
		return reply{}, fmt.Errorf("line %.80q: %w", line, errProtocol)
	}
	fields := bytes.Fields(rest)
	var err error
	if r.status == statusValue {
		if len(fields) == 0 {
			return reply{}, fmt.Errorf("line %.80q: no size: %w", line, errProtocol)
		}
		if r.size, err = parseSize(fields[0]); err != nil {
			return reply{}, fmt.Errorf("line %.80q: size: %w", line, err)
		}
		fields = fields[1:]
	}
	for _, field := range fields {
		switch field[0] {
		case 's':
			var size int64
			if size, err = parseSize(field[1:]); err == nil && r.status == statusValue && size != r.size {
				err = fmt.Errorf("two sizes: %w", errProtocol)
			}
			r.size = size
		case 'f':
			var flags uint64
			flags, err = parseNumber(field[1:], 32)
			r.flags = uint32(flags)
		case 'c':
			r.cas, err = parseNumber(field[1:], 64)
		}
		if err != nil {
			return reply{}, fmt.Errorf("line %.80q: flag %q: %w", line, field[0], err)
		}
	}
	return r, nil
}

// parseSize reads the size of an item.
func parseSize(text []byte) (int64, error) {
	size, err := parseNumber(text, 63)
	if err != nil {
		return 0, err
	}
	if size > maxValueBytes {
		return 0, fmt.Errorf("%d bytes: %w", size, errProtocol)
	}
	return int64(size), nil
}

// parseNumber reads an unsigned decimal number.
func parseNumber(text []byte, bits int) (uint64, error) {
	number, err := strconv.ParseUint(string(text), 10, bits)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errProtocol, err)
	}
	return number, nil
}

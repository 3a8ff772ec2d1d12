package memcache

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	mostMetaWords = 19 // of a meta command, its name and key among them, as memcached has it
	mostOpaque    = 32 // bytes of the flag O with its token
)

// meta is a meta command with its flags.
type meta struct {
	key      string
	isBinary bool     // the key came in base64
	flags    []string // in their order, each with its token

	quiet, value, stale, empties bool // q, v, I, x
	touches, vivifies, recaches  bool // T, N, R, with seconds:
	touched, vivified, recached  int64
	hasCAS                       bool
	cas                          uint64 // C
	clientFlags                  uint32 // F
	mode                         byte   // M; 0: none
	delta, initial               uint64 // D, J
}

const (
	badToken = "CLIENT_ERROR bad token in command line format\r\n"
	casFlag  = "CLIENT_ERROR flag E is not supported: versions are numbered by the gateway\r\n"
)

// parseMeta reads a meta command whose flags begin at the given word.
func parseMeta(words []string, first int) (m *meta, wrong string) {
	m = &meta{key: words[1], flags: slices.Clone(words[min(first, len(words)):]), delta: 1}
	if !isKey(m.key) {
		return m, badFormat
	}
	if len(words) > mostMetaWords {
		return m, "CLIENT_ERROR options flags are too long\r\n"
	}
	var seen [128]bool
	for _, flag := range m.flags {
		letter := flag[0]
		if letter >= 127 || seen[letter] {
			return m, "CLIENT_ERROR duplicate flag\r\n"
		}
		seen[letter] = true
		if wrong == "" {
			wrong = m.parse(letter, flag[1:])
		}
	}
	return m, wrong
}

// parse reads one flag, and returns what is wrong with it.
func (m *meta) parse(letter byte, token string) (wrong string) {
	ok := true
	wrong = badToken
	switch letter {
	case 'b':
		wrong = "CLIENT_ERROR error decoding key\r\n"
		m.isBinary = true
		m.key, ok = decodeKey(m.key)
	case 'N':
		m.vivifies = true
		m.vivified, ok = parseTime(token)
	case 'T':
		m.touches = true
		m.touched, ok = parseTime(token)
	case 'R':
		m.recaches = true
		m.recached, ok = parseTime(token)
	case 'O':
		wrong = "CLIENT_ERROR opaque token too long\r\n"
		ok = len(token) < mostOpaque
	case 'v':
		m.value = true
	case 'q':
		m.quiet = true
	case 'I':
		m.stale = true
	case 'x':
		m.empties = true
	case 'F':
		wrong = badFormat
		m.clientFlags, ok = parseFlags(token)
	case 'C':
		m.hasCAS = true
		m.cas, ok = parseUint(token)
	case 'M':
		wrong = "CLIENT_ERROR incorrect length for M token\r\n"
		if ok = len(token) == 1; ok {
			m.mode = token[0]
		}
	case 'J':
		wrong = "CLIENT_ERROR invalid numeric initial value\r\n"
		m.initial, ok = parseUint(token)
	case 'D':
		wrong = "CLIENT_ERROR invalid numeric delta value\r\n"
		m.delta, ok = parseUint(token)
	case 'E':
		return casFlag
	case 'k', 's', 't', 'c', 'f', 'l', 'h', 'u', 'P', 'L': // u, P and L ask for nothing that there is here
	default:
		return fmt.Sprintf("CLIENT_ERROR invalid flag %q\r\n", letter)
	}
	if ok {
		return ""
	}
	return wrong
}

// modes are what the token of M stands for in ms.
var modes = map[byte]storing{
	0: storeSet, 'S': storeSet, 'E': storeAdd, 'A': storeAppend, 'P': storePrepend, 'R': storeReplace,
	's': storeSet, 'e': storeAdd, 'a': storeAppend, 'p': storePrepend, 'r': storeReplace,
}

// storage is what ms asks for.
func (m *meta) storage(length int64) (s storage, wrong string) {
	how, known := modes[m.mode]
	if !known {
		return s, "CLIENT_ERROR invalid mode for ms M token\r\n"
	}
	if m.hasCAS && (how == storeSet || how == storeReplace) {
		how = storeCAS
	}
	return storage{
		key: m.key, how: how, flags: m.clientFlags, length: length, cas: m.cas, quiet: m.quiet, seconds: m.touched, isStaleLower: m.stale,
		vivifies: m.vivifies, vivified: m.vivified,
	}, ""
}

// isUp reports whether ma counts up.
func (m *meta) isUp() (isUp bool, wrong string) {
	switch m.mode {
	case 0, 'I', 'i', '+':
		return true, ""
	case 'D', 'd', '-':
		return false, ""
	}
	return false, "CLIENT_ERROR invalid mode for ma M token\r\n"
}

// addKey adds the key as the flag k.
func (m *meta) addKey(line []byte) []byte {
	line = append(line, " k"...)
	if !m.isBinary {
		return append(line, m.key...)
	}
	return append(base64.StdEncoding.AppendEncode(line, []byte(m.key)), " b"...)
}

// addAsked adds the flags that are the same whatever became of the command: k and O.
func (m *meta) addAsked(line []byte) []byte {
	for _, flag := range m.flags {
		switch flag[0] {
		case 'k':
			line = m.addKey(line)
		case 'O':
			line = append(append(line, ' '), flag...)
		}
	}
	return line
}

// addTold adds the flags that were asked for, of a value. T and N change the time that t tells, where they come before it.
func (m *meta) addTold(line []byte, it *item, was time.Time, isNew bool, now time.Time) []byte {
	expires := was
	for _, flag := range m.flags {
		switch flag[0] {
		case 'T':
			expires = expiry(m.touched, now)
		case 'N':
			if isNew {
				expires = expiry(m.vivified, now)
			}
		case 'k':
			line = m.addKey(line)
		case 'O':
			line = append(append(line, ' '), flag...)
		case 's':
			line = strconv.AppendInt(append(line, " s"...), it.size, 10)
		case 't':
			line = strconv.AppendInt(append(line, " t"...), remaining(expires, now), 10)
		case 'c':
			line = strconv.AppendUint(append(line, " c"...), it.cas, 10)
		case 'f':
			line = strconv.AppendUint(append(line, " f"...), uint64(it.flags), 10)
		}
	}
	return line
}

// visit is what becomes of a value that mg looks at.
type visit struct {
	isNew   bool      // it is made, as there was none
	won     bool      // this client is to make it anew
	changes bool      // of the value as it is stored
	expires time.Time // afterwards
}

// visit decides what becomes of a value, nil for none. T, N and R work in their order.
func (m *meta) visit(it *item, now time.Time) (v visit) {
	if it == nil {
		v.isNew = m.vivifies
		if v.won, v.changes = v.isNew, v.isNew; !v.isNew {
			return v
		}
		it = &item{}
	}
	v.expires = it.expires
	for _, flag := range m.flags {
		switch flag[0] {
		case 'T':
			v.expires, v.changes = expiry(m.touched, now), true
		case 'N':
			if v.isNew {
				v.expires = expiry(m.vivified, now)
			}
		case 'R':
			if below := expiry(m.recached, now); !v.isNew && !it.won && !v.expires.IsZero() && v.expires.Before(below) {
				v.won = true
			}
		}
	}
	if it.stale && !it.won {
		v.won = true
	}
	v.changes = v.changes || v.won
	return v
}

// addMarks adds the flags Z, X and W.
func (v *visit) addMarks(line []byte, was *item) []byte {
	if was != nil && was.won {
		line = append(line, " Z"...)
	}
	if was != nil && was.stale {
		line = append(line, " X"...)
	}
	if v.won {
		line = append(line, " W"...)
	}
	return line
}

// metaWords reports whether a meta command has a key, and refuses it if not.
func (c *connection) metaWords(name command, words []string) bool {
	if len(words) < 2 {
		c.say(name, errorReply, outcomeClientError)
		return false
	}
	return true
}

// debugLine is what me tells of a value.
func debugLine(m *meta, it *item, class string, now time.Time) string {
	key := m.key
	if m.isBinary {
		key = base64.StdEncoding.EncodeToString([]byte(key))
	}
	exp := int64(-1)
	if !it.expires.IsZero() {
		exp = -remaining(it.expires, now)
	}
	var line strings.Builder
	fmt.Fprintf(&line, "ME %s exp=%d cas=%d size=%d class=%s", key, exp, it.cas, it.size, class)
	for _, mark := range []struct {
		name string
		is   bool
	}{{"stale", it.stale}, {"won", it.won}} {
		if mark.is {
			fmt.Fprintf(&line, " %s=yes", mark.name)
		}
	}
	return line.String() + "\r\n"
}

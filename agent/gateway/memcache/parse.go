package memcache

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	mostKey   = 250 // bytes, as memcached has it
	mostWords = 24  // of a command but for those that take many keys; what comes after them is one more
)

// words splits a line at its spaces.
func words(line string, into []string) []string {
	for len(into) < mostWords {
		word, rest := nextWord(line)
		if word == "" {
			return into
		}
		into, line = append(into, word), rest
	}
	if rest := strings.TrimLeft(line, " "); rest != "" {
		into = append(into, rest)
	}
	return into
}

// nextWord cuts the first word off a line; empty: there is none.
func nextWord(line string) (word, rest string) {
	line = strings.TrimLeft(line, " ")
	if at := strings.IndexByte(line, ' '); at >= 0 {
		return line[:at], line[at+1:]
	}
	return line, ""
}

// isKey reports whether a word may be a key: 1 to 250 bytes. The protocol forbids control characters, but there are clients that use
// some, and memcached takes all that do not end the line.
func isKey(word string) bool {
	return word != "" && len(word) <= mostKey && strings.IndexByte(word, 0) < 0 && strings.IndexByte(word, '\r') < 0
}

// parseUint reads a decimal number, as C's strtoull does that memcached reads with: with or without a plus sign.
func parseUint(word string) (uint64, bool) {
	number, err := strconv.ParseUint(strings.TrimPrefix(word, "+"), 10, 64)
	return number, err == nil
}

// parseNumber reads a decimal number with or without a sign.
func parseNumber(word string) (int64, bool) {
	number, err := strconv.ParseInt(word, 10, 64)
	return number, err == nil
}

// parseFlags reads the number that clients keep with values.
func parseFlags(word string) (uint32, bool) {
	flags, isNumber := parseUint(word)
	return uint32(flags), isNumber && flags <= math.MaxUint32
}

const (
	mostRelative = 60 * 60 * 24 * 30 // seconds; a larger time is one of the clock
	mostSeconds  = 253_402_300_799   // the end of the year 9999
	atOnce       = -1                // a value with this time to live is gone at once
)

// parseTime reads the time that a value is to live.
func parseTime(word string) (seconds int64, ok bool) {
	seconds, ok = parseNumber(word)
	return seconds, ok && seconds <= mostSeconds && seconds >= math.MinInt32
}

// expiry is when a value is gone of which a client says a time to live: seconds from now, or above 30 days since 1970. The zero time: it
// stays. Below 0 it is gone at once.
func expiry(seconds int64, now time.Time) time.Time {
	switch {
	case seconds == 0:
		return time.Time{}
	case seconds <= atOnce:
		return time.Unix(1, 0)
	case seconds <= mostRelative:
		return now.Add(time.Duration(seconds) * time.Second)
	}
	return time.Unix(seconds, 0)
}

// remaining is how many seconds a value still has, -1 where it stays.
func remaining(expires, now time.Time) int64 {
	if expires.IsZero() {
		return -1
	}
	return max(0, int64(math.Ceil(expires.Sub(now).Seconds())))
}

// parseCounter reads what incr and decr count: digits, and whatever comes after a space behind them.
func parseCounter(data []byte) (uint64, bool) {
	if len(data) > 1024 {
		return 0, false
	}
	text := strings.TrimLeft(string(data), " \t\n\v\f\r")
	if at := strings.IndexAny(text, " \t\n\v\f\r"); at >= 0 {
		text = text[:at]
	}
	return parseUint(text)
}

// count is a counter after a change of it: it goes round above 64 bits, and stops at 0.
func count(counter, delta uint64, isUp bool) uint64 {
	switch {
	case isUp:
		return counter + delta
	case delta > counter:
		return 0
	}
	return counter - delta
}

// decodeKey returns the bytes of a binary key.
func decodeKey(word string) (string, bool) {
	key, err := base64.StdEncoding.DecodeString(word)
	return string(key), err == nil && len(key) > 0 && len(key) <= mostKey
}

// storing is how a command stores a value.
type storing int

// The ways of storing.
const (
	storeSet storing = iota
	storeAdd
	storeReplace
	storeAppend
	storePrepend
	storeCAS
)

// storage is a command that stores a value.
type storage struct {
	key    string
	how    storing
	flags  uint32
	length int64
	cas    uint64 // 0: none
	quiet  bool   // there is no reply, or none that says that it is done

	seconds      int64 // to live
	isStaleLower bool  // one with a lower cas is stored, and stale
	vivifies     bool  // what is appended to need not be there; it then lives for
	vivified     int64
}

const badFormat = "CLIENT_ERROR bad command line format\r\n"

// parseStorage reads the line of a text command that stores. Where that says what is wrong, the length is that of what follows, if it
// is known, else -1.
func parseStorage(how storing, words []string) (s storage, wrong string) {
	s = storage{key: words[1], how: how, length: -1}
	s.quiet = words[len(words)-1] == "noreply"
	length, isLength := parseNumber(words[4])
	if isLength && length >= 0 && length <= math.MaxInt32-2 {
		s.length = length
	}
	var isFlags, isTime bool
	s.flags, isFlags = parseFlags(words[2])
	s.seconds, isTime = parseTime(words[3])
	isCAS := true
	if how == storeCAS {
		s.cas, isCAS = parseUint(words[5])
	}
	if s.length < 0 || !isKey(s.key) || !isFlags || !isTime || !isCAS {
		return s, badFormat
	}
	return s, ""
}

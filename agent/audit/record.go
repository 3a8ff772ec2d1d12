package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Sentinels; use errors.Is.
var (
	// ErrDamaged says that records are missing or not as they were written; nothing is appended to such a log.
	ErrDamaged = errors.New("the audit log is damaged")
	// ErrInUse says that another program has the directory.
	ErrInUse = errors.New("another program writes the audit log")
	// ErrNone says that there is no audit log.
	ErrNone = errors.New("there is no audit log")
	// ErrClosed says that the log was closed.
	ErrClosed = errors.New("the audit log is closed")
)

// Entry is what is known of an action before it happens.
type Entry struct {
	User     string          `json:"user,omitempty"`
	Method   string          `json:"method,omitempty"` // how the user is known
	From     string          `json:"from,omitempty"`   // address
	Verb     string          `json:"verb,omitempty"`
	Action   string          `json:"action,omitempty"` // name of the call
	Object   string          `json:"object,omitempty"`
	Request  json.RawMessage `json:"request,omitempty"` // what was asked, where it is not told by the rest
	Before   json.RawMessage `json:"before,omitempty"`
	PlanHash string          `json:"planHash,omitempty"`
}

// Result says how an action ended.
type Result string

// The results. ResultUnknown is never written: it is that of an action without an end.
const (
	ResultDone    Result = "done"
	ResultRefused Result = "refused" // and nothing was changed
	ResultFailed  Result = "failed"  // and it cannot be told what was changed
	ResultUnknown Result = "unknown"
)

// Outcome is how an action ended.
type Outcome struct {
	Result Result          `json:"result,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// Action is an action as the log has it.
type Action struct {
	Sequence int64     `json:"sequence"` // of the record that began it
	Begun    time.Time `json:"begun"`
	Ended    time.Time `json:"ended,omitzero"`
	Entry
	Outcome
}

// record is one line.
type record struct {
	Sequence int64     `json:"sequence"`
	Time     time.Time `json:"time"`
	Ends     int64     `json:"ends,omitempty"` // the record that began the action; 0 in that one itself
	Entry
	Outcome
	Previous string `json:"previous"` // hash of the record before
}

// Head names the newest record of a log.
type Head struct {
	Sequence int64  `json:"sequence"` // 0: there are none
	Hash     string `json:"hash"`
}

const (
	hashMark   = `,"hash":"`
	hashLength = 2 * sha256.Size
)

// encode returns the line of a record, newline included, and its hash.
func encode(r *record) (line []byte, hash string, err error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, "", fmt.Errorf("encoding an audit record: %w", err)
	}
	body = body[:len(body)-1] // without the closing brace
	sum := sha256.Sum256(body)
	hash = hex.EncodeToString(sum[:])
	return append(append(body, hashMark...), hash+"\"}\n"...), hash, nil
}

// decodeLine reads a line without its newline, and checks its own hash.
func decodeLine(line []byte) (r record, hash string, err error) {
	tail := len(hashMark) + hashLength + len(`"}`)
	if len(line) < tail || !bytes.HasPrefix(line[len(line)-tail:], []byte(hashMark)) || !bytes.HasSuffix(line, []byte(`"}`)) {
		return r, "", errors.New("is no record")
	}
	body := line[:len(line)-tail]
	hash = string(line[len(line)-hashLength-2 : len(line)-2])
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != hash {
		return r, "", errors.New("is not as it was written: its hash differs")
	}
	if err := json.Unmarshal(append(bytes.Clone(body), '}'), &r); err != nil {
		return r, "", fmt.Errorf("cannot be read: %w", err)
	}
	return r, hash, nil
}

// Filter says which actions; empty fields say nothing.
type Filter struct {
	User         string
	Object       string // or a part of its name
	Verb         string
	Since, Until time.Time // of the begin; Until is exclusive
}

func (f *Filter) matches(r *record) bool {
	return (f.User == "" || f.User == r.User) && (f.Verb == "" || f.Verb == r.Verb) && strings.Contains(r.Object, f.Object) &&
		(f.Since.IsZero() || !r.Time.Before(f.Since)) && (f.Until.IsZero() || r.Time.Before(f.Until))
}

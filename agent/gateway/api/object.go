package api

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/restripe/restripe/agent/block"
)

// Object is one object as clients see it.
type Object struct {
	Key      string      `json:"key"`   // printable form: Go-quoted where it holds unprintable bytes
	Key64    string      `json:"key64"` // the exact bytes, base64url without padding
	Class    string      `json:"class"`
	Scheme   string      `json:"scheme"`
	Size     int64       `json:"size"`
	Revision block.Stamp `json:"revision"`
	Modified time.Time   `json:"modified"`

	Expires  time.Time         `json:"expires,omitzero"`   // when it is gone; zero: never
	Metadata map[string]string `json:"metadata,omitempty"` // that it was put with
	Earlier  []block.Stamp     `json:"earlier,omitempty"`  // revisions before this one that are kept, the last one first
}

// EncodeKey and DecodeKey turn keys of any bytes into query-safe text and back.
func EncodeKey(key string) string { return base64.RawURLEncoding.EncodeToString([]byte(key)) }

// DecodeKey reverses EncodeKey.
func DecodeKey(text string) (string, error) {
	key, err := base64.RawURLEncoding.DecodeString(text)
	return string(key), err
}

// AfterPrefix is a text that no key comes after which begins with a prefix, and all do that come after these.
func AfterPrefix(prefix string) string {
	return prefix + strings.Repeat("\xff", max(0, MaxKeyBytes-len(prefix)))
}

// PrintableKey returns a key as people read it: Go-quoted where it holds bytes that cannot be printed.
func PrintableKey(key string) string {
	if quoted := strconv.Quote(key); quoted != `"`+key+`"` {
		return quoted
	}
	return key
}

// ObjectList is one page of a listing. Next is empty on the last page, else the key64 to continue after.
type ObjectList struct {
	Objects []Object `json:"objects"`
	Next    string   `json:"next,omitempty"`
}

// Stat is an object with the groups that hold it.
type Stat struct {
	Object
	Groups []GroupStat `json:"groups"`
}

// GroupStat is one group: its code, where its slots lie, and whether each block is there.
type GroupStat struct {
	ID        block.GroupID `json:"id"`
	Epoch     block.Stamp   `json:"epoch"`
	Scheme    string        `json:"scheme"`
	Ladder    string        `json:"ladder"`
	Mode      string        `json:"mode"`
	Rows      int           `json:"rows"`
	Columns   int           `json:"columns"`
	CellBytes int           `json:"cellBytes"`
	Packed    bool          `json:"packed"`
	Live      int64         `json:"live"`  // extents of all objects in the group
	Bytes     int64         `json:"bytes"` // of this object in the group
	Heat      float64       `json:"heat"`  // how many times a day the group is used: counted, or to be expected
	Slots     []SlotStat    `json:"slots"`
}

// SlotStat is one data column or parity row of a group.
type SlotStat struct {
	Slot   int          `json:"slot"`
	Role   string       `json:"role"` // data or parity
	Node   block.NodeID `json:"node"`
	Blocks int          `json:"blocks"` // store items the slot consists of; 0 where nothing was put into the column, which can miss nothing
	State  string       `json:"state"`  // ok, missing, unreachable, suspect
}

// PutOptions say how an object is to be kept and under which condition it may be written.
type PutOptions struct {
	Class      string       // default: by the longest matching prefix
	Scheme     string       // default: the class's
	Size       int64        // bytes the body will have; -1 unknown
	IfRevision *block.Stamp // write only over this revision; the zero Stamp: only if the key is absent
	Request    Request      // is done once, and answered as before when it is asked for again; zero: each put is one of its own

	Expires  time.Time         // when the object is gone, to the millisecond; zero: never
	Metadata map[string]string // is kept with it, and says nothing to the gateway; text, at most MaxMetadataBytes

	// Digests returns more metadata, whose names begin with block.DigestPrefix: what is known once the whole body was read. It is called
	// once, then, and its error is that of the put. No other metadata with such names is kept. nil: there is none.
	Digests func() (map[string]string, error)
}

// MaxMetadataBytes bounds the names and values of the metadata of one object: all of them are in the header of each block that has
// bytes of it.
const MaxMetadataBytes = 4096

// CheckMetadata refuses what no object can have.
func CheckMetadata(metadata map[string]string) error {
	if bytes := MetadataBytes(metadata); bytes > MaxMetadataBytes {
		return Refuse(ErrBadRequest,
			"an object has at most %d bytes of metadata, names and values together, this one has %d; keep more in the object",
			MaxMetadataBytes, bytes)
	}
	for name, value := range metadata {
		if name == "" || !utf8.ValidString(name) || !utf8.ValidString(value) {
			return Refuse(ErrBadRequest, "metadata %.40q = %.40q: a name is text of a byte or more, a value is text, both in UTF-8", name, value)
		}
	}
	return nil
}

// MetadataBytes is how many bytes the names and values of metadata have.
func MetadataBytes(metadata map[string]string) (bytes int) {
	for name, value := range metadata {
		bytes += len(name) + len(value)
	}
	return bytes
}

// MaxKeyBytes is the length of the longest key.
const MaxKeyBytes = 4096

// CheckKey refuses keys that no object can have.
func CheckKey(key string) error {
	if key == "" || len(key) > MaxKeyBytes {
		return Refuse(ErrBadRequest, "a key has 1 to %d bytes, this one has %d", MaxKeyBytes, len(key))
	}
	if block.IsEarlierKey(key) {
		return Refuse(ErrBadRequest, "keys that begin as %q does are those of earlier versions; ask for one by its object and its revision", key)
	}
	return nil
}

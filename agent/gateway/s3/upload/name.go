package upload

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Prefix begins the keys of all objects of uploads. No bucket has a name like it.
const Prefix = ".multipart/"

// PartsMost is how many parts an upload has at most.
const PartsMost = 10_000

const (
	keyEnd     = "\x00" // after the key
	partDigits = 5
	idLength   = 32
)

// Name says which upload it is, and what it is for.
type Name struct{ Bucket, Key, ID string }

// newID is in the order in which uploads begin.
func newID(now time.Time) string {
	var random [10]byte
	_, _ = rand.Read(random[:]) // which never fails
	return fmt.Sprintf("%012x%s", now.UnixMilli(), hex.EncodeToString(random[:]))
}

var validID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// record is the key of the object that says what is known of an upload. Those of its parts begin with it.
func (n Name) record() string { return within(n.Bucket) + n.Key + keyEnd + n.ID + "/" }

// within begins the keys of uploads of a bucket.
func within(bucket string) string { return Prefix + bucket + "/" }

func (n Name) part(number int) string { return fmt.Sprintf("%s%0*d", n.record(), partDigits, number) }

// readName takes the key of an object of an upload apart, behind what begins those of its bucket. The number is 0 for the one that says
// what is known.
func readName(name string) (key, id string, number int, isOne bool) {
	rest, last := name, name[strings.LastIndexByte(name, '/')+1:]
	if last != "" {
		n, err := strconv.Atoi(last)
		if err != nil || len(last) != partDigits || n < 1 {
			return "", "", 0, false
		}
		number = n
	}
	rest = strings.TrimSuffix(rest[:len(rest)-len(last)], "/")
	if len(rest) < idLength+len(keyEnd) {
		return "", "", 0, false
	}
	id, rest = rest[len(rest)-idLength:], rest[:len(rest)-idLength]
	key, isOne = strings.CutSuffix(rest, keyEnd)
	return key, id, number, isOne && validID.MatchString(id)
}

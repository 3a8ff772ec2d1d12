package block

import "strings"

// KeepDurable as the number of versions to be kept says that the last version with a parity is kept while those put over it have none.
const KeepDurable = -1

// earlier begins the keys of objects that are earlier versions of others. No client can ask for them.
const earlier = "\x00earlier"

// EarlierKey is the key of the object that an earlier version of an object is.
func EarlierKey(key string, revision Stamp) string {
	return EarlierPrefix(key) + "\x00" + revision.String()
}

// EarlierPrefix is what all keys of earlier versions of objects begin with whose keys begin with a prefix.
func EarlierPrefix(prefix string) string { return earlier + "\x00" + prefix }

// IsEarlierKey reports whether a key is one that no client can ask for.
func IsEarlierKey(key string) bool { return strings.HasPrefix(key, earlier) }

// AfterEarlier is a key after which no earlier versions come, and before which nothing else does.
const AfterEarlier = earlier + "\x01"

// OfEarlierKey takes the key of an earlier version apart.
func OfEarlierKey(key string) (of string, revision Stamp, is bool) {
	rest, is := strings.CutPrefix(key, EarlierPrefix(""))
	end := strings.LastIndexByte(rest, 0)
	if !is || end < 0 {
		return "", Stamp{}, false
	}
	revision, err := ParseStamp(rest[end+1:])
	return rest[:end], revision, err == nil
}

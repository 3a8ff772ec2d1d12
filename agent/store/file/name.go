package file

import (
	"fmt"
	"strings"

	"github.com/restripe/restripe/agent/kernel"
)

// Both the spread over directories and the names are part of the format.
const (
	fanOut     = 64
	nameSuffix = ".value" // also keeps the keys "." and ".." from meaning directories
)

// leafOf returns the directory of key, relative to the store's.
func leafOf(key string) string {
	hash := kernel.Checksum([]byte(key))
	return fmt.Sprintf("%s/%02x/%02x", valuesName, hash%fanOut, hash/fanOut%fanOut)
}

// nameOf returns the name of key's file within its directory.
func nameOf(key string) string { return strings.ReplaceAll(key, "/", " ") + nameSuffix }

// keyOf recovers the key from the name of its file; false if no key has that name.
func keyOf(name string) (string, bool) {
	name, found := strings.CutSuffix(name, nameSuffix)
	return strings.ReplaceAll(name, " ", "/"), found && name != ""
}

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

// leaves is the number of directories that hold values.
const leaves = fanOut * fanOut

// leafOf returns the directory of key, relative to the store's.
func leafOf(key string) string { return leafPath(leafNumber(key)) }

// leafNumber returns the place of key's directory in the order of all.
func leafNumber(key string) int {
	hash := kernel.Checksum([]byte(key))
	return int(hash%fanOut*fanOut + hash/fanOut%fanOut)
}

// leafPath returns the directory at a place in the order, relative to the store's.
func leafPath(number int) string {
	return fmt.Sprintf("%s/%02x/%02x", valuesName, number/fanOut, number%fanOut)
}

// nameOf returns the name of key's file within its directory.
func nameOf(key string) string { return strings.ReplaceAll(key, "/", " ") + nameSuffix }

// keyOf recovers the key from the name of its file; false if no key has that name.
func keyOf(name string) (string, bool) {
	name, found := strings.CutSuffix(name, nameSuffix)
	return strings.ReplaceAll(name, " ", "/"), found && name != ""
}

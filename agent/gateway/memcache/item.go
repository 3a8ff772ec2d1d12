package memcache

import (
	"maps"
	"strconv"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/values"
)

// What is kept of a value in its metadata. What is 0 or false is left out.
const (
	flagsName = "flags"          // the number that clients keep with it, in decimal
	staleName = "memcache-stale" // it was declared stale
	wonName   = "memcache-won"   // a client was told to make it anew
)

// casOf is the number by which clients tell versions of a value apart. It is the sequence of the version's stamp, which is the time in
// microseconds, and larger than that of the version before it. Only where two gateways put one key at the same time, and in the same
// microsecond, may the version of one replace that of the other with the same number. A write is over the whole stamp.
func casOf(revision block.Stamp) uint64 { return revision.Sequence }

// item is what a reply may tell of a value.
type item struct {
	size    int64
	flags   uint32
	cas     uint64
	expires time.Time
	stale   bool
	won     bool
}

func itemOf(size int64, revision block.Stamp, expires time.Time, metadata map[string]string) *item {
	return &item{
		size: size, flags: flagsOf(metadata), cas: casOf(revision), expires: expires,
		stale: metadata[staleName] != "", won: metadata[wonName] != "",
	}
}

// itemOfValue is nil for nil.
func itemOfValue(value *values.Value) *item {
	if value == nil {
		return nil
	}
	return itemOf(int64(len(value.Data)), value.Revision, value.Expires, value.Metadata)
}

// flagsOf is the number that clients keep with a value. One that others than clients of memcached have stored has 0.
func flagsOf(metadata map[string]string) uint32 {
	if text, has := metadata[flagsName]; has {
		if flags, ok := parseFlags(text); ok {
			return flags
		}
	}
	return 0
}

// metadataOf is that of a new value.
func metadataOf(flags uint32) map[string]string {
	if flags == 0 {
		return nil
	}
	return map[string]string{flagsName: strconv.FormatUint(uint64(flags), 10)}
}

// marked is metadata with a mark set or taken away. That which is given is left as it is.
func marked(metadata map[string]string, mark string, is bool) map[string]string {
	if is == (metadata[mark] != "") {
		return metadata
	}
	metadata = maps.Clone(metadata)
	switch {
	case !is:
		delete(metadata, mark)
	case metadata == nil:
		metadata = map[string]string{mark: "1"}
	default:
		metadata[mark] = "1"
	}
	return metadata
}

// put is a value as it is, to be changed and put in its place.
func putOf(value *values.Value) *values.Put {
	return &values.Put{Data: value.Data, Class: value.Class, Expires: value.Expires, Metadata: value.Metadata}
}

// withoutFlags is metadata without the number of clients.
func withoutFlags(metadata map[string]string) map[string]string {
	if _, has := metadata[flagsName]; !has {
		return metadata
	}
	metadata = maps.Clone(metadata)
	delete(metadata, flagsName)
	return metadata
}

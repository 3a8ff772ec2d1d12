package schema

import (
	"slices"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/kv"
)

// DroppedKey is the key of the record by which an earlier version is removed that its object does not name any more. It stands where an
// object would that expires at the beginning of time.
func DroppedKey(key string, revision block.Stamp) string {
	return PrefixDropped + block.EarlierKey(key, revision)
}

// Keep sets which versions an object has kept that is put over another, and returns whether that one is among them, and which earlier
// versions of it are dropped. isDurable says whether what is put over has parities.
func Keep(object, was *Object, isDurable bool) (keeps bool, dropped []block.Stamp) {
	versions, most := was.Earlier, object.Keep
	if keeps = object.Keep > 0 || object.Keep == block.KeepDurable && isDurable; keeps {
		versions = slices.Insert(slices.Clone(versions), 0, was.Revision)
	}
	if object.Keep == block.KeepDurable {
		// One, or those that were kept for their number before the class said so, among which the last durable one may be.
		if most = len(versions); keeps {
			most = 1
		}
	}
	most = min(most, len(versions))
	object.Earlier = versions[:most:most]
	return keeps, versions[most:]
}

// DropWrites has earlier versions of an object removed, which nothing names any more.
func DropWrites(key string, revisions []block.Stamp) (writes []kv.Write) {
	for _, revision := range revisions {
		writes = append(writes, kv.Write{Key: DroppedKey(key, revision), Value: []byte{}})
	}
	return writes
}

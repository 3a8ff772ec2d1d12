package catalog

import (
	"bytes"
	"slices"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// lives is by how much a transaction changes what lives in groups.
type lives map[block.GroupID]live

// live is a number of extents, and of the bytes of those that lie in one column of a packed group.
type live struct{ extents, bytes int64 }

// add counts extents that objects get (sign 1) or lose (-1).
func (l lives) add(extents []Extent, sign int64) {
	for _, extent := range extents {
		of := l[extent.Group]
		of.extents += sign
		if extent.Column != WholeGroup {
			of.bytes += sign * extent.Length
		}
		l[extent.Group] = of
	}
}

// writes changes the counts of groups that are there, and leaves a note for Free where one went down.
func (l lives) writes() []kv.Write {
	var writes []kv.Write
	for id, delta := range l {
		if delta.extents != 0 {
			writes = append(writes, kv.Write{Key: schema.LiveKey(id), Kind: kv.Increment, Add: delta.extents})
		}
		if delta.bytes != 0 {
			writes = append(writes, kv.Write{Key: schema.BytesKey(id), Kind: kv.Increment, Add: delta.bytes})
		}
		if delta.extents < 0 {
			writes = append(writes, kv.Write{Key: schema.FreeableKey(id), Value: []byte{}})
		}
	}
	slices.SortFunc(writes, func(a, b kv.Write) int { return bytes.Compare([]byte(a.Key), []byte(b.Key)) })
	return writes
}

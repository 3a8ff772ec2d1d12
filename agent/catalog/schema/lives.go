package schema

import (
	"bytes"
	"slices"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/kv"
)

// Lives is by how much a transaction changes what lives in groups.
type Lives map[block.GroupID]Live

// Live is a number of extents, and of the bytes of those that lie in one column of a packed group.
type Live struct{ Extents, Bytes int64 }

// Add counts extents that objects get (sign 1) or lose (-1).
func (l Lives) Add(extents []Extent, sign int64) {
	for _, extent := range extents {
		of := l[extent.Group]
		of.Extents += sign
		if extent.Column != WholeGroup {
			of.Bytes += sign * extent.Length
		}
		l[extent.Group] = of
	}
}

// Lie counts the columns of a group in those that they lie in (sign 1), or not any more (-1).
func (l Lives) Lie(group *Group, sign int64) {
	for _, id := range group.LiesIn() {
		of := l[id]
		of.Extents += sign
		l[id] = of
	}
}

// Writes changes the counts of groups that are there, and leaves a note for Free where one went down.
func (l Lives) Writes() []kv.Write {
	var writes []kv.Write
	for id, delta := range l {
		if delta.Extents != 0 {
			writes = append(writes, kv.Write{Key: LiveKey(id), Kind: kv.Increment, Add: delta.Extents})
		}
		if delta.Bytes != 0 {
			writes = append(writes, kv.Write{Key: BytesKey(id), Kind: kv.Increment, Add: delta.Bytes})
		}
		if delta.Extents < 0 {
			writes = append(writes, kv.Write{Key: FreeableKey(id), Value: []byte{}})
		}
	}
	slices.SortFunc(writes, func(a, b kv.Write) int { return bytes.Compare([]byte(a.Key), []byte(b.Key)) })
	return writes
}

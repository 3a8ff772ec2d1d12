package catalog

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/schema"
	"pgregory.net/rapid"
)

// Equal records have equal encodings, and any key is kept.
func TestEncodingRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stamp := rapid.Custom(func(t *rapid.T) block.Stamp {
			return block.Stamp{Sequence: rapid.Uint64().Draw(t, "sequence"), Salt: rapid.Uint64().Draw(t, "salt")}
		})
		object := Object{
			Key: string(rapid.SliceOf(rapid.Byte()).Draw(t, "key")), Revision: stamp.Draw(t, "revision"), Class: "c", Scheme: "rs(4,2)",
			Size: rapid.Int64().Draw(t, "size"), Modified: rapid.Int64().Draw(t, "modified"),
			Extents: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Extent {
				return Extent{
					Group:  block.GroupID{Stamp: stamp.Draw(t, "group"), Index: rapid.Uint32().Draw(t, "index")},
					Column: rapid.IntRange(-1, 70).Draw(t, "column"),
					Offset: rapid.Int64().Draw(t, "offset"), Length: rapid.Int64().Draw(t, "length"),
				}
			}), 1, 5).Draw(t, "extents"),
		}
		raw := codec.Encode(object)
		again, err := codec.Decode[Object]("o/", raw)
		if err != nil || !reflect.DeepEqual(object, again) {
			t.Fatalf("%+v became %+v, %v", object, again, err)
		}
		if !bytes.Equal(raw, codec.Encode(again)) {
			t.Fatal("one record has two encodings")
		}
	})
}

// A new field or order of encoding must not go unnoticed: catalogs written before have to be read.
func TestEncodingIsFixed(t *testing.T) {
	object := Object{Key: "k\xff", Revision: block.Stamp{Sequence: 1, Salt: 2}, Class: "c", Scheme: "rep(3)", Size: 3, Modified: 4,
		Extents: []Extent{{Group: block.GroupID{Stamp: block.Stamp{Sequence: 1, Salt: 2}, Index: 3}, Column: WholeGroup, Length: 3}}}
	want := "\xa7\x01\x42k\xff\x02\xa2\x01\x01\x02\x02\x03\x41c\x04\x46rep(3)\x05\x03\x06\x04\x07\x81\xa4\x01\xa2\x01\xa2\x01\x01\x02\x02\x02\x03\x02\x20\x03\x00\x04\x03"
	if got := string(codec.Encode(object)); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Damaged records are errors, never panics, and what is read is written as it was.
func FuzzDecode(f *testing.F) {
	f.Add(codec.Encode(Object{Key: "k", Extents: []Extent{{Column: WholeGroup}}}))
	f.Add(codec.Encode(Group{Slots: []Slot{{{Units: 1, Node: "n"}}}}))
	f.Add(codec.Encode(Intent{Kind: KindPut, Blocks: []BlockSet{{Slots: []int{1}, Nodes: []block.NodeID{"n"}}}}))
	f.Add([]byte("17"))
	f.Add(codec.Encode(Group{Columns: 3, Slots: []Slot{{{Units: 1, Node: "n"}}}}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if object, err := codec.Decode[Object]("o/k", raw); err == nil {
			if again, err := codec.Decode[Object]("o/k", codec.Encode(object)); err != nil || !reflect.DeepEqual(object, again) {
				t.Errorf("%+v became %+v, %v", object, again, err)
			}
		}
		if group, err := codec.Decode[Group]("g/k", raw); err == nil {
			shape, inside := group.Check(), group.CheckExtents([]Extent{{Group: group.ID, Column: 0, Length: 1}})
			if shape == nil && inside == nil && len(group.Slots[0]) == 0 {
				t.Errorf("a byte lies inside an empty column of %+v", group)
			}
		}
		_, intentErr := codec.Decode[Intent]("i/k", raw)
		_, graveErr := codec.Decode[graveRecord]("d/k", raw)
		if _, err := codec.DecodeCount("l/k", raw); err == nil && intentErr == nil && graveErr == nil && len(raw) > 0 && raw[0] >= 0x80 {
			t.Errorf("%q is a number and a map", raw)
		}
	})
}

func FuzzAddressOfGrave(f *testing.F) {
	f.Add(schema.GraveKey(block.Address{Node: "n-1", Slot: 300, Stamp: block.Stamp{Sequence: 1, Salt: 2}}))
	f.Add("d/:")
	f.Fuzz(func(t *testing.T, key string) {
		address, err := schema.AddressOfGrave(key)
		if err == nil && schema.GraveKey(address) != key && schema.PrefixGrave+key != schema.GraveKey(address) {
			t.Errorf("%q became %q", key, schema.GraveKey(address))
		}
	})
}

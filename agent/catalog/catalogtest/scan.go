package catalogtest

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/catalog/kv"
	"pgregory.net/rapid"
)

// orderedScan compares listings over arbitrary keys with a sorted slice.
func orderedScan(t *testing.T, instance Instance) {
	engine := instance.Engine
	key := rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, '/', 'a', 'b', 0x7f, 0x80, 0xfe, 0xff}), 1, 4).Draw(t, "key"))
	})
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		root := fmt.Sprintf("round%04d/", round)
		keys := rapid.SliceOfNDistinct(key, 0, 20, rapid.ID[string]).Draw(rt, "keys")
		var writes []kv.Write
		for _, k := range keys {
			writes = append(writes, set(root+k, "v"+k))
		}
		removed := len(keys) / 4
		for _, k := range keys[:removed] {
			writes = append(writes, kv.Write{Key: root + k, Kind: kv.Remove})
		}
		update(t, engine, nil, writes...)
		kept := slices.Clone(keys[removed:])
		sort.Strings(kept)

		prefix := rapid.OneOf(rapid.Just(""), key).Draw(rt, "prefix")
		after := rapid.OneOf(rapid.Just(""), key).Draw(rt, "after")
		limit := rapid.IntRange(0, 25).Draw(rt, "limit")
		var want []string
		for _, k := range kept {
			if strings.HasPrefix(k, prefix) && k > after && len(want) < limit {
				want = append(want, k)
			}
		}
		records, err := engine.Scan(deadline(t), root+prefix, root+after, limit)
		if err != nil {
			rt.Fatal(err)
		}
		var got []string
		for _, record := range records {
			got = append(got, strings.TrimPrefix(record.Key, root))
			if string(record.Value) != "v"+strings.TrimPrefix(record.Key, root) {
				rt.Fatalf("key %q has the value %q", record.Key, record.Value)
			}
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("prefix %q after %q limit %d: got %q, want %q", prefix, after, limit, got, want)
		}
	})
}

// scanPrefixes checks prefixes that end in bytes that are no text.
func scanPrefixes(t *testing.T, instance Instance) {
	engine := instance.Engine
	keys := []string{"p\x7f", "p\x80", "p\x80\xff", "p\x80\xff\xff", "p\x81", "p\xfe", "p\xff", "p\xff\xff", "q"}
	for _, key := range keys {
		update(t, engine, nil, set(key, key))
	}
	for _, prefix := range append([]string{"p", "p\x82", ""}, keys...) {
		var want, got []string
		for _, key := range keys {
			if strings.HasPrefix(key, prefix) {
				want = append(want, key)
			}
		}
		records, err := engine.Scan(deadline(t), prefix, "", 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, record := range records {
			got = append(got, record.Key)
		}
		if !slices.Equal(got, want) {
			t.Errorf("prefix %q: got %q, want %q", prefix, got, want)
		}
	}
}

// scanPages walks records page by page and at the ends of the key space.
func scanPages(t *testing.T, instance Instance) {
	engine := instance.Engine
	var writes []kv.Write
	for i := range 500 {
		writes = append(writes, set(fmt.Sprintf("page/%03d", i), ""))
	}
	update(t, engine, nil, append(writes, set("\xff\xff", "last"), set("\x00", "first"))...)
	count := 0
	for after := ""; ; {
		records, err := engine.Scan(deadline(t), "page/", after, 64)
		if err != nil {
			t.Fatal(err)
		}
		if len(records) == 0 {
			break
		}
		for _, record := range records {
			if want := fmt.Sprintf("page/%03d", count); record.Key != want || record.Value == nil {
				t.Fatalf("record %d: %q with nil value: %v", count, record.Key, record.Value == nil)
			}
			count++
		}
		after = records[len(records)-1].Key
	}
	if count != 500 {
		t.Errorf("walked over %d records, want 500", count)
	}
	all, err := engine.Scan(deadline(t), "", "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 502 || all[0].Key != "\x00" || all[501].Key != "\xff\xff" {
		t.Errorf("listing everything: %d records", len(all))
	}
	if last, err := engine.Scan(deadline(t), "\xff", "", 10); err != nil || len(last) != 1 {
		t.Errorf("listing under the last prefix: %v, %v", last, err)
	}
}

// snapshots checks that a snapshot is of one instant while others change, add and remove what it has.
func snapshots(t *testing.T, instance Instance) {
	engine := instance.Engine
	empty, err := engine.Snapshot(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	const count = 300
	var first []kv.Write
	for i := range count {
		first = append(first, set(fmt.Sprintf("s/%04d", 2*i), "before"))
	}
	update(t, engine, nil, append(first, kv.Write{Key: "t", Kind: kv.Count, Add: 7})...)
	held, err := engine.Snapshot(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for after := ""; ; {
		page, err := held.Scan(deadline(t), "s/", after, 7)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, record := range page {
			if want := fmt.Sprintf("s/%04d", 2*seen); record.Key != want || string(record.Value) != "before" {
				t.Fatalf("record %d of the snapshot is %q of %q, want %q", seen, record.Value, record.Key, want)
			}
			seen++
		}
		after = page[len(page)-1].Key
		// Of each page: one record of the next is changed, one removed, one added, and the counter is raised.
		update(t, engine, nil, set(fmt.Sprintf("s/%04d", 2*seen), "changed"), set(fmt.Sprintf("s/%04d", 2*seen+3), "added"),
			kv.Write{Key: fmt.Sprintf("s/%04d", 2*seen+2), Kind: kv.Remove}, kv.Write{Key: "t", Kind: kv.Increment, Add: 1})
	}
	if seen != count {
		t.Errorf("the snapshot has %d records, want %d", seen, count)
	}
	if last, err := held.Scan(deadline(t), "", "s/9999", 9); err != nil || len(last) != 1 || string(last[0].Value) != "7" {
		t.Errorf("the counter of the snapshot is %q, %v", last, err)
	}
	if page, err := empty.Scan(deadline(t), "", "", 9); err != nil || len(page) > 0 {
		t.Errorf("a snapshot of nothing has %d records, %v", len(page), err)
	}
	if err := errors.Join(held.Close(), empty.Close()); err != nil {
		t.Error(err)
	}
	listed, err := engine.Scan(deadline(t), "", "", 4*count)
	if err != nil {
		t.Fatal(err)
	}
	size, err := engine.Size(deadline(t))
	if err != nil || size.Bytes <= 0 || size.Records >= 0 && size.Records < int64(len(listed))/2 {
		t.Errorf("the size of %d records is %+v, %v", len(listed), size, err)
	}
}

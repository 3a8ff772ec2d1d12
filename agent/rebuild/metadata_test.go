package rebuild_test

import (
	"bytes"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/kernel"
)

// What was put with an object comes back with it: small or large, as it was put, moved, compacted or updated.
func TestExpiryAndMetadataComeBack(t *testing.T) {
	c := newCluster(t, stores(t, "mem", 9))
	expires := time.Now().Add(time.Hour).Truncate(time.Millisecond).UTC()
	want := map[string][]byte{}
	options := func(key string) api.PutOptions {
		return api.PutOptions{
			Size: int64(len(want[key])), Expires: expires, Metadata: map[string]string{"of": key, "text": "\x00 ü"},
			Digests: func() (map[string]string, error) { return map[string]string{block.DigestPrefix + "of": key}, nil },
		}
	}
	for i, size := range []int{100, 4000, 90_000, 300_000} {
		for _, prefix := range []string{"cold/", "as-it-was/"} {
			key := fmt.Sprint(prefix, size)
			want[key] = noise(size, uint64(i))
			if _, err := c.gateway.Put(t.Context(), key, bytes.NewReader(want[key]), options(key)); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.transition("cold/", "rs(6,2)")
	c.update("as-it-was/300000", want["as-it-was/300000"], 70_000, noise(100, 9))
	c.update("as-it-was/100", want["as-it-was/100"], 7, noise(10, 10))
	c.put("none", noise(200, 11), "")
	want["none"] = noise(200, 11)
	checksumOf := func(key string) uint32 {
		snapshot, err := c.catalog.Snapshot(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return snapshot.Object.Checksum
	}
	checksums := map[string]uint32{}
	for key := range want {
		checksums[key] = checksumOf(key)
	}
	for key, is := range map[string]uint32{
		"cold/100": kernel.Checksum(want["cold/100"]), "cold/4000": kernel.Checksum(want["cold/4000"]), "as-it-was/100": 0,
	} {
		if checksums[key] != is {
			t.Errorf("%s has the checksum %08x, want %08x", key, checksums[key], is)
		}
	}
	c.lose(nil)
	c.check(want)
	for key := range want {
		if is := checksumOf(key); is != checksums[key] {
			t.Errorf("%s comes back with the checksum %08x, it had %08x", key, is, checksums[key])
		}
		is, err := c.gateway.Stat(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if key == "none" {
			if !is.Expires.IsZero() || is.Metadata != nil {
				t.Errorf("%s: %+v", key, is.Object)
			}
			continue
		}
		metadata := options(key).Metadata
		if key != "as-it-was/300000" && key != "as-it-was/100" { // what was known of their bytes went with them
			metadata[block.DigestPrefix+"of"] = key
		}
		if !is.Expires.Equal(expires) || !maps.Equal(is.Metadata, metadata) {
			t.Errorf("%s: %+v", key, is.Object)
		}
	}
	if err := c.catalog.Audit(t.Context()); err != nil {
		t.Error(err)
	}
}

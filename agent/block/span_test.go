package block

import (
	"errors"
	"reflect"
	"testing"
)

// TestSpans: a header with a span is of version 3, with and without lengths, and only ascending spans of two groups and more
// are written or read.
func TestSpans(t *testing.T) {
	for _, h := range []*Header{sample(), trimmedSample()} {
		h.Span = []uint32{0, 3, 4}
		head, err := EncodeHeader(h)
		if err != nil || head[7] != 3 {
			t.Fatalf("version %d, %v", head[7], err)
		}
		if back, err := DecodeHeader(head); err != nil || !reflect.DeepEqual(back, h) {
			t.Fatalf("decoded %+v, %v", back, err)
		}
	}
	for name, span := range map[string][]uint32{"one group": {1}, "not ascending": {2, 1}, "twice": {1, 1}, "too many": make([]uint32, MaxUnits+1)} {
		h := sample()
		h.Span = span
		if _, err := EncodeHeader(h); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	encoded, err := encoding.Marshal(sample())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeHeader(forge(3, encoded, 16, 0)); !errors.Is(err, ErrMalformed) {
		t.Errorf("no span in version 3: %v, want ErrMalformed", err)
	}
}

func TestMergeManifests(t *testing.T) {
	entry := func(key string, revision uint64, size int64) ManifestEntry {
		return ManifestEntry{Key: []byte(key), Revision: Stamp{Sequence: revision}, Size: size, Length: 5}
	}
	older := []ManifestEntry{entry("a", 1, 0), entry("b", 7, 5)}
	newer := []ManifestEntry{entry("b", 1, 5), entry("a", 9, 5), entry("c", 2, 5)}
	want := []ManifestEntry{entry("a", 9, 5), entry("b", 7, 5), entry("c", 2, 5)}
	if merged := MergeManifests(older, newer); !reflect.DeepEqual(merged, want) {
		t.Errorf("merged %+v, want %+v", merged, want)
	}
	if merged := MergeManifests(older); !reflect.DeepEqual(merged, older) {
		t.Errorf("one alone is %+v", merged)
	}
	if merged := MergeManifests(); merged != nil {
		t.Errorf("nothing merges to %+v", merged)
	}
}

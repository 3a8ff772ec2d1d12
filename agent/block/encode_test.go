package block

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func drawStamp(t *rapid.T, label string) Stamp {
	return Stamp{Sequence: rapid.Uint64Min(1).Draw(t, label+" sequence"), Salt: rapid.Uint64().Draw(t, label+" salt")}
}

func drawHeader(t *rapid.T) *Header {
	text := rapid.StringMatching(`[ -~]{0,40}`)
	h := &Header{
		Group: GroupID{drawStamp(t, "group"), rapid.Uint32().Draw(t, "index")}, Slot: rapid.IntRange(0, 300).Draw(t, "slot"), Stamp: drawStamp(t, "block"),
		Node: NodeID(rapid.StringMatching(`[a-z0-9-]{1,63}`).Draw(t, "node")), Class: text.Draw(t, "class"), Ladder: text.Draw(t, "ladder"), Mode: text.Draw(t, "mode"),
		LayoutVersion: rapid.IntRange(0, 9).Draw(t, "layout"), Columns: rapid.IntRange(0, 64).Draw(t, "columns"), Scheme: text.Draw(t, "scheme"),
		FirstUnit: rapid.IntRange(0, 5000).Draw(t, "first"), Units: rapid.IntRange(1, 40).Draw(t, "units"), UnitBytes: rapid.IntRange(1, 200).Draw(t, "bytes"),
	}
	for range h.Units {
		h.Checksums = append(h.Checksums, rapid.Uint32().Draw(t, "checksum"))
		h.Fingerprints = append(h.Fingerprints, Fingerprint(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "fingerprint")))
	}
	if rapid.Bool().Draw(t, "trimmed") {
		h.Lengths = rapid.SliceOfN(rapid.IntRange(0, h.UnitBytes), h.Units, h.Units).Draw(t, "lengths")
		if h.PayloadBytes() == h.FullBytes() {
			h.Lengths = nil
		}
	}
	if rapid.Bool().Draw(t, "manifest") {
		h.Manifest = rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "manifest bytes")
	}
	return h
}

func TestEncodeAndDecode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHeader(t)
		payload := bytes.Repeat([]byte{0xa5}, int(h.PayloadBytes()))
		value, err := Encode(h, payload)
		if err != nil {
			t.Fatal(err)
		}
		headBytes, err := HeadBytes(value[:PreambleBytes])
		if err != nil || headBytes%Alignment != 0 || !bytes.Equal(value[headBytes:], payload) {
			t.Fatalf("the payload begins at %d, %v", headBytes, err)
		}
		back, err := DecodeHeader(value[:headBytes])
		if err != nil || !reflect.DeepEqual(back, h) {
			t.Fatalf("decoded %+v, %v; want %+v", back, err, h)
		}
		at := rapid.IntRange(0, headBytes-1).Draw(t, "damaged byte")
		value[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "damage"))
		if back, err := DecodeHeader(value); err == nil {
			t.Fatalf("byte %d of the head was changed, and it decodes to %+v", at, back)
		}
	})
}

func sample() *Header {
	return &Header{
		Group: GroupID{Stamp{1, 2}, 3}, Slot: 4, Stamp: Stamp{5, 6}, Node: "n1", Class: "c", Ladder: "rep(3)", Mode: "free", LayoutVersion: 1,
		Columns: 3, Scheme: "rep(3)", Units: 2, UnitBytes: 8, Checksums: []uint32{1, math.MaxUint32}, Fingerprints: make([]Fingerprint, 2),
	}
}

func TestInvalidHeadersAreNotWritten(t *testing.T) {
	for name, change := range map[string]func(h *Header){
		"no node":               func(h *Header) { h.Node = "" },
		"negative slot":         func(h *Header) { h.Slot = -1 },
		"no stamp":              func(h *Header) { h.Stamp = Stamp{} },
		"no units":              func(h *Header) { h.Units = 0 },
		"no bytes":              func(h *Header) { h.UnitBytes = 0 },
		"unit before the first": func(h *Header) { h.FirstUnit = -1 },
		"checksum missing":      func(h *Header) { h.Checksums = h.Checksums[:1] },
		"fingerprint missing":   func(h *Header) { h.Fingerprints = nil },
		"long text":             func(h *Header) { h.Class = strings.Repeat("x", 5000) },
		"length missing":        func(h *Header) { h.Lengths = []int{7} },
		"length too many":       func(h *Header) { h.Lengths = []int{7, 7, 0} },
		"negative length":       func(h *Header) { h.Lengths = []int{8, -1} },
		"length over the unit":  func(h *Header) { h.Lengths = []int{9, 1} },
		"only full lengths":     func(h *Header) { h.Lengths = []int{8, 8} },
		"long manifest":         func(h *Header) { h.Manifest = make([]byte, MaxHeaderBytes) },
	} {
		h := sample()
		change(h)
		if _, err := EncodeHeader(h); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	for h, wrong := range map[*Header]int{sample(): 15, trimmedSample(): 16} {
		if _, err := Encode(h, make([]byte, wrong)); !errors.Is(err, ErrInvalid) {
			t.Errorf("a payload of %d bytes where there should be %d: %v, want ErrInvalid", wrong, h.PayloadBytes(), err)
		}
	}
}

// trimmedSample stores 5 bytes of its 16.
func trimmedSample() *Header {
	h := sample()
	h.Lengths = []int{5, 0}
	return h
}

// forge makes a head around any header bytes, with right checksums.
func forge(version byte, encoded []byte, payloadBytes uint64, padding byte) []byte {
	head := make([]byte, align(PreambleBytes+len(encoded)))
	copy(head, magic)
	head[7] = version
	binary.LittleEndian.PutUint32(head[8:], uint32(len(encoded)))
	binary.LittleEndian.PutUint64(head[12:], payloadBytes)
	copy(head[PreambleBytes:], encoded)
	binary.LittleEndian.PutUint32(head[20:], headChecksum(head, len(encoded)))
	for i := PreambleBytes + len(encoded); i < len(head); i++ {
		head[i] = padding
	}
	return head
}

func TestOnlyTheCanonicalFormIsRead(t *testing.T) {
	encoded, err := encoding.Marshal(sample())
	if err != nil {
		t.Fatal(err)
	}
	trimmed, err := encoding.Marshal(trimmedSample())
	if err != nil {
		t.Fatal(err)
	}
	forgeLengths := func(payloadBytes uint64, lengths ...int) []byte {
		h := sample()
		h.Lengths = lengths
		encoded, err := encoding.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		return forge(2, encoded, payloadBytes, 0)
	}
	for _, head := range [][]byte{forge(1, encoded, 16, 0), forge(2, trimmed, 5, 0), forgeLengths(12, 4, 8)} {
		if _, err := DecodeHeader(head); err != nil {
			t.Fatalf("the forger does not work: %v", err)
		}
	}
	longer := append([]byte{0xb8, encoded[0] & 0x1f}, encoded[1:]...) // length of the map in two bytes instead of one
	for name, head := range map[string][]byte{
		"length in more bytes than needed": forge(1, longer, 16, 0),
		"trailing byte":                    forge(1, append(bytes.Clone(encoded), 0), 16, 0),
		"padding":                          forge(1, encoded, 16, 1),
		"other payload length":             forge(1, encoded, 17, 0),
		"cut off":                          forge(1, encoded, 16, 0)[:70],
		"nothing":                          nil,
		"array of 2^32 checksums":          forge(1, []byte{0xa1, 0x0e, 0x9a, 0xff, 0xff, 0xff, 0xff}, 0, 0),
		"lengths in version 1":             forge(1, trimmed, 5, 0),
		"no lengths in version 2":          forge(2, encoded, 16, 0),
		"payload not the sum of lengths":   forge(2, trimmed, 16, 0),
		"lengths of full units":            forgeLengths(16, 8, 8),
		"empty lengths":                    forgeLengths(16),
		"one length for two units":         forgeLengths(5, 5),
		"lengths that wrap around":         forgeLengths(7, 8, -1),
		"length over the unit":             forgeLengths(10, 9, 1),
		"array of 2^32 lengths":            forge(2, []byte{0xa1, 0x11, 0x9a, 0xff, 0xff, 0xff, 0xff}, 0, 0),
	} {
		if h, err := DecodeHeader(head); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v; want ErrMalformed", name, h, err)
		}
	}
	newer := forge(9, encoded, 16, 0)
	if _, err := DecodeHeader(newer); !errors.Is(err, ErrVersion) || errors.Is(err, ErrMalformed) {
		t.Errorf("a newer version: %v, want ErrVersion and not ErrMalformed", err)
	}
}

// TestDamagedHeadersAreMalformed: a flipped bit anywhere is damage, in the version too, and never a newer release's block.
func TestDamagedHeadersAreMalformed(t *testing.T) {
	for _, h := range []*Header{sample(), trimmedSample()} {
		head, err := EncodeHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		for bit := range 8 * len(head) {
			head[bit/8] ^= 1 << (bit % 8)
			if _, err := DecodeHeader(head); !errors.Is(err, ErrMalformed) || errors.Is(err, ErrVersion) {
				t.Errorf("with bit %d flipped: %v, want ErrMalformed", bit, err)
			}
			head[bit/8] ^= 1 << (bit % 8)
		}
	}
}

// TestFullBlocksLookAsEver pins the form of a block of full units, which was the only one at first.
func TestFullBlocksLookAsEver(t *testing.T) {
	pinned := "52535452495045016600000010000000000000009b1b7b63" +
		"af01a201a2010102020203020403a20105020604626e310561630666726570283329076466726565080109030a667265702833290b000c020d080e82011affffffff" +
		"0f8250" + strings.Repeat("00", 16) + "50" + strings.Repeat("00", 16) + "0000" + // fingerprints and padding
		"30313233343536373839616263640000"
	value, err := Encode(sample(), []byte("0123456789abcd\x00\x00"))
	if err != nil || hex.EncodeToString(value) != pinned {
		t.Fatalf("%x, %v; want %s", value, err, pinned)
	}
	if back, err := DecodeHeader(value); err != nil || !reflect.DeepEqual(back, sample()) {
		t.Fatalf("decoded %+v, %v", back, err)
	}
}

func TestManifest(t *testing.T) {
	entries := []ManifestEntry{{Key: []byte{0, 255}, Revision: Stamp{1, 2}, Size: 10, Column: -1, Length: 10}, {Key: []byte("k"), Column: 3, Offset: 7, Length: 3, At: 4}}
	encoded, err := EncodeManifest(entries)
	if err != nil {
		t.Fatal(err)
	}
	back, err := DecodeManifest(encoded)
	if err != nil || !reflect.DeepEqual(back, entries) {
		t.Fatalf("decoded %+v, %v", back, err)
	}
	if encoded, err := EncodeManifest(nil); encoded != nil || err != nil {
		t.Fatalf("no entries encode to %x, %v", encoded, err)
	}
	if _, err := DecodeManifest([]byte{0x80 | 1, 0xa1, 0x03, 0x20}); !errors.Is(err, ErrMalformed) {
		t.Fatalf("a negative size: %v, want ErrMalformed", err)
	}
}

func TestNamesAndKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Address{"n1", GroupID{drawStamp(t, "group"), rapid.Uint32().Draw(t, "index")}, rapid.IntRange(0, maxSlot-1).Draw(t, "slot"), drawStamp(t, "block")}
		back, err := ParseKey("n1", a.Key())
		if err != nil || back != a || len(a.Key()) > 100 {
			t.Fatalf("%s parses to %v, %v", a.Key(), back, err)
		}
	})
}

func FuzzDecodeHeader(f *testing.F) {
	for _, h := range []*Header{sample(), trimmedSample()} {
		head, err := EncodeHeader(h)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(head)
		f.Add(head[PreambleBytes : PreambleBytes+int(binary.LittleEndian.Uint32(head[8:]))])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, value := range [][]byte{data, forge(1, data, 16, 0), forge(2, data, 5, 0)} { // the last two pass the checksum
			h, err := DecodeHeader(value)
			if err != nil {
				if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrVersion) {
					t.Fatalf("error of no class: %v", err)
				}
				continue
			}
			again, err := EncodeHeader(h)
			if err != nil || !bytes.HasPrefix(value, again) {
				t.Fatalf("%x decodes, and encodes to %x, %v", value, again, err)
			}
			if stored, full := h.PayloadBytes(), h.FullBytes(); stored < 0 || stored > full || stored == full != (h.Lengths == nil) {
				t.Fatalf("%d of %d bytes are stored, with lengths %v", stored, full, h.Lengths)
			}
		}
		if _, err := DecodeManifest(data); err != nil && !errors.Is(err, ErrMalformed) {
			t.Fatalf("error of no class: %v", err)
		}
	})
}

func FuzzParseKey(f *testing.F) {
	f.Add(Address{"n", GroupID{Stamp{1, 2}, 3}, 4, Stamp{5, 6}}.Key())
	f.Fuzz(func(t *testing.T, key string) {
		if a, err := ParseKey("n", key); err == nil && a.Key() != key {
			t.Fatalf("%q parses to %v, whose key is %q", key, a, a.Key())
		}
	})
}

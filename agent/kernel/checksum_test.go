package kernel

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/block"
)

// checksumLengths are around what the assembly takes at a time, in a call and at least.
func checksumLengths() []int {
	lengths := lengthsUpTo(1200)
	for _, near := range []int{minChecksumBytes, 4096, 64 << 10, maxCallBytes, maxCallBytes + minChecksumBytes, 3*maxCallBytes + 100} {
		for length := near - 2*checksumBlockBytes; length <= near+2*checksumBlockBytes; length += 61 {
			lengths = append(lengths, length)
		}
		lengths = append(lengths, near-1, near, near+1)
	}
	return lengths
}

func TestChecksumIsThatOfTheStandardLibrary(t *testing.T) {
	data := filled(1, 4*maxCallBytes+lineBytes, 1)[0]
	source := rand.New(rand.NewPCG(1, 2))
	onEveryPath(t, func(t *testing.T) {
		for _, length := range checksumLengths() {
			part := data[source.IntN(lineBytes):][:length]
			before := source.Uint32()
			if got, want := Checksum(part), crc32.Checksum(part, castagnoli); got != want {
				t.Fatalf("%d bytes have checksum %08x, want %08x", length, got, want)
			}
			if got, want := UpdateChecksum(before, part), crc32.Update(before, castagnoli, part); got != want {
				t.Fatalf("%d bytes after %08x have checksum %08x, want %08x", length, before, got, want)
			}
		}
	})
}

// TestChecksumFactors compares with the factors that the paper gives for the polynomial of CRC-32C and 16 bytes times four.
func TestChecksumFactors(t *testing.T) {
	for bytes, want := range map[int]uint64{4*16 + 4: 0x740eef02, 4*16 - 4: 0x9e4addf8} {
		if got := checksumFactor(bytes); got != want {
			t.Errorf("%d bytes ahead are %#x, want %#x", bytes, got, want)
		}
	}
}

func TestEveryBitChangesTheChecksum(t *testing.T) {
	data := filled(1, minChecksumBytes+3*checksumBlockBytes+5, 1)[0]
	onEveryPath(t, func(t *testing.T) {
		seen := map[uint32]int{Checksum(data): -1}
		for bit := range 8 * len(data) {
			data[bit/8] ^= 1 << (bit % 8)
			sum := Checksum(data)
			data[bit/8] ^= 1 << (bit % 8)
			if other, twice := seen[sum]; twice {
				t.Fatalf("with bit %d changed the checksum is the one for %d", bit, other)
			}
			seen[sum] = bit
		}
	})
}

func TestExtendChecksum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "data")
		zeros := rapid.IntRange(0, 100_000).Draw(t, "zeros")
		if got, want := ExtendChecksum(Checksum(data), zeros), Checksum(append(data, make([]byte, zeros)...)); got != want {
			t.Fatalf("%x with %d zeros has checksum %08x, want %08x", data, zeros, got, want)
		}
	})
	if got, want := ExtendChecksum(Checksum(nil), block.MaxUnitBytes), Checksum(make([]byte, block.MaxUnitBytes)); got != want {
		t.Errorf("the checksum of the largest unit of zeros is %08x, want %08x", got, want)
	}
}

// FuzzChecksum splits data, and compares with the standard library.
func FuzzChecksum(f *testing.F) {
	f.Add([]byte{}, uint16(0), uint16(0))
	f.Add([]byte("123456789"), uint16(9), uint16(3))
	f.Add([]byte{0xff}, uint16(minChecksumBytes), uint16(minChecksumBytes-1))
	f.Add([]byte{1, 2, 3}, uint16(40_000), uint16(5000))
	f.Fuzz(func(t *testing.T, pattern []byte, length, split uint16) {
		data := bytes.Repeat(append(pattern, 7), int(length)/(len(pattern)+1)+1)[:length]
		at := min(int(split), len(data))
		want := crc32.Checksum(data, castagnoli)
		for _, p := range machinePaths() {
			withPath(p, func() {
				if got := UpdateChecksum(Checksum(data[:at]), data[at:]); got != want {
					t.Fatalf("%s: %d bytes in two parts, the first of %d, have checksum %08x, want %08x", p, len(data), at, got, want)
				}
			})
		}
	})
}

func BenchmarkChecksum(b *testing.B) {
	for _, size := range []int{4 << 10, 256 << 10, 32 << 20} {
		data := filled(1, size, 1)[0]
		for name, checksum := range map[string]func([]byte) uint32{
			"": Checksum, "/standard": func(data []byte) uint32 { return crc32.Checksum(data, castagnoli) },
		} {
			b.Run(fmt.Sprintf("%dKiB%s", size>>10, name), func(b *testing.B) {
				b.SetBytes(int64(size))
				for b.Loop() {
					checksum(data)
				}
			})
		}
	}
}

func BenchmarkExtendChecksum(b *testing.B) {
	for b.Loop() {
		ExtendChecksum(0x12345678, 1<<20-1)
	}
}

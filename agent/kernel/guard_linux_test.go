package kernel

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"os"
	"runtime/debug"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/block"
)

// guarded returns pages of memory between two pages that cannot be touched.
func guarded(t testing.TB, pages int) []byte {
	t.Helper()
	page := os.Getpagesize()
	mapping, err := unix.Mmap(-1, 0, (pages+2)*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatalf("mapping %d pages: %v", pages+2, err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(mapping); err != nil {
			t.Errorf("unmapping: %v", err)
		}
	})
	inner := mapping[page : (pages+1)*page : (pages+1)*page]
	for _, guard := range [][]byte{mapping[:page], mapping[(pages+1)*page:]} {
		if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
			t.Fatalf("protecting a guard page: %v", err)
		}
	}
	return inner
}

func readOnly(t testing.TB, memory []byte) {
	t.Helper()
	if err := unix.Mprotect(memory, unix.PROT_READ); err != nil {
		t.Fatalf("protecting inputs: %v", err)
	}
}

// caughtFault reports a touched guard page, or a written input, as a failure instead of the end of the process.
func caughtFault(t rapid.TB, describe func() string, do func()) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			t.Fatalf("%s: %v", describe(), fault)
		}
	}()
	do()
}

// touched keeps the compiler from leaving out reads.
var touched byte

// TestFaultsAreCaught: the tests below could not fail otherwise.
func TestFaultsAreCaught(t *testing.T) {
	memory := guarded(t, 1)
	readOnly(t, memory)
	behind := unsafe.Add(unsafe.Pointer(unsafe.SliceData(memory)), len(memory))
	before := unsafe.Add(unsafe.Pointer(unsafe.SliceData(memory)), -1)
	for name, touch := range map[string]func(){
		"reading behind":      func() { touched = *(*byte)(behind) },
		"reading before":      func() { touched = *(*byte)(before) },
		"writing to an input": func() { memory[0] = 1 },
		"a kernel that reads behind": func() {
			m := full(kinds[0], 2, 2).compile(t)
			far := unsafe.Slice((*byte)(behind), 100)
			m.Apply(filled(2, 100, 1), [][]byte{far, far})
		},
	} {
		caught := func() (caught bool) {
			defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
			defer func() { caught = recover() != nil }()
			touch()
			return false
		}()
		if !caught {
			t.Errorf("%s goes unnoticed", name)
		}
	}
}

// guardedLengths are all that one block of the guarded tests can have and are worth it.
func guardedLengths(whole int) []int {
	lengths := lengthsUpTo(1100)
	for _, near := range []int{2048, 4096, whole - 512, whole} {
		for length := near - 65; length <= min(near+65, whole); length++ {
			if !testing.Short() || length == near {
				lengths = append(lengths, length)
			}
		}
	}
	return lengths
}

// checkGuarded places blocks that end where a guard page begins, and blocks that begin where one ends. Inputs cannot be
// written to.
func checkGuarded(t *testing.T, examples []*example, pages int, lengths []int) {
	t.Helper()
	whole := pages * os.Getpagesize()
	samples := samplesOf(examples, []int{whole})
	onEveryPath(t, func(t *testing.T) {
		all := operations()
		for _, s := range samples {
			atPages := func(int) ([]byte, int) { return guarded(t, pages), 0 }
			r := newTrial(t, s, atPages, atPages)
			for _, inputs := range []*blocks{r.placedIn, r.placedBefore, r.placedAfter} {
				for _, memory := range inputs.buffers {
					readOnly(t, memory)
				}
			}
			for _, o := range all {
				for _, length := range lengths {
					for _, from := range []int{0, whole - length} {
						describe := func() string {
							return fmt.Sprintf("%s of %v, bytes %d to %d of %d", o.name, s, from, from+length, whole)
						}
						caughtFault(t, describe, func() { r.check(t, o, from, from+length) })
					}
				}
			}
		}
	})
}

func TestNothingBeyondTheBlocksIsTouched(t *testing.T) {
	checkGuarded(t, fewShapes(), 3, guardedLengths(3*os.Getpagesize()))
}

func TestNothingBeyondTheBlocksIsTouchedByAnyPass(t *testing.T) {
	checkGuarded(t, passes(), 1, lengthsUpTo(200))
}

// TestGuardedMultiply is for the functions that take one slice and one coefficient.
func TestGuardedMultiply(t *testing.T) {
	in, out := guarded(t, 1), guarded(t, 1)
	fill(in, 1)
	readOnly(t, in)
	for _, c := range []byte{0, 1, 0x8e} {
		for length := range 300 {
			for _, from := range []int{0, len(in) - length} {
				describe := func() string { return fmt.Sprintf("product by %d of %d bytes from %d", c, length, from) }
				caughtFault(t, describe, func() {
					Multiply(c, in[from:from+length], out[from:from+length])
					MultiplyAdd(c, in[from:from+length], out[from:from+length])
				})
				if !bytes.Equal(out[from:from+length], make([]byte, length)) {
					t.Fatalf("%s: product + product is not zero", describe())
				}
			}
		}
	}
}

// TestNothingBeyondTheDataIsSummed computes fingerprints and checksums of data at guard pages.
func TestNothingBeyondTheDataIsSummed(t *testing.T) {
	onEveryPath(t, func(t *testing.T) {
		f := NewFingerprinter(Key{2, 7, 1, 8, 2, 8})
		data := guarded(t, 3)
		fill(data, 3)
		readOnly(t, data)
		for _, length := range guardedLengths(len(data)) {
			var prints []block.Fingerprint
			for _, part := range [][]byte{data[:length], data[len(data)-length:]} {
				describe := func() string { return fmt.Sprintf("fingerprint of %d bytes at %p", length, part) }
				caughtFault(t, describe, func() { prints = append(prints, f.Sum(part), f.Sum(bytes.Clone(part))) })
				caughtFault(t, describe, func() {
					if got, want := Checksum(part), crc32.Checksum(part, castagnoli); got != want {
						t.Fatalf("%s: its checksum is %08x, want %08x", describe(), got, want)
					}
				})
			}
			if prints[0] != prints[1] || prints[2] != prints[3] {
				t.Fatalf("fingerprint of %d bytes: at guard pages %x and %x, of copies %x and %x", length, prints[0], prints[2], prints[1], prints[3])
			}
		}
	})
}

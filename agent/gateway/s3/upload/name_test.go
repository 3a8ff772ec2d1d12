package upload

import (
	"strings"
	"testing"
	"time"
)

// The key of an object of an upload says what it is of.
func FuzzName(f *testing.F) {
	f.Add("a/b", 7, "photos/x\x00")
	f.Add("\x00/00001", 0, "\x0001a2289f1e66a6557e690e41e41b7892/00001")
	f.Fuzz(func(t *testing.T, key string, number int, any string) {
		_, _, _, _ = readName(any)
		of := Name{"photos", key, newID(time.UnixMilli(1_700_000_000_000))}
		number = int(uint(number) % (PartsMost + 1))
		name := of.record()
		if number > 0 {
			name = of.part(number)
		}
		gotKey, gotID, gotNumber, isOne := readName(strings.TrimPrefix(name, within("photos")))
		if !isOne || gotKey != key || gotID != of.ID || gotNumber != number {
			t.Fatalf("%q is read as %q, %q, %d, %t", name, gotKey, gotID, gotNumber, isOne)
		}
	})
}

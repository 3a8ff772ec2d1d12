package main

import (
	"errors"
	"strings"
	"testing"
)

func TestValuesAreTheirOwn(t *testing.T) {
	for _, size := range []int{valueHead, 1 << 10, valueMost} {
		value := appendValue(nil, 7, 3, size)
		if version, err := versionOf(value, 7, size); err != nil || version != 3 {
			t.Fatalf("of %d bytes: version %d, %v", size, version, err)
		}
		if _, err := versionOf(value, 8, size); err == nil {
			t.Errorf("of %d bytes: taken for another record", size)
		}
		if _, err := versionOf(value[:size-1], 7, size); err == nil {
			t.Errorf("of %d bytes: taken though it is short", size)
		}
		if size == valueHead {
			continue
		}
		value[size-1] ^= 1
		if _, err := versionOf(value, 7, size); err == nil {
			t.Errorf("of %d bytes: taken though a bit is wrong", size)
		}
		torn := append(appendValue(nil, 7, 4, size)[:size/2], appendValue(nil, 7, 3, size)[size/2:]...)
		if _, err := versionOf(torn, 7, size); err == nil {
			t.Errorf("of %d bytes: taken though it is of two versions", size)
		}
	}
}

func TestReadsAreJudged(t *testing.T) {
	const size = 64
	l := newLedger("p/", 2, size)
	accept := func(string, []byte) error { return nil }
	write := func() {
		t.Helper()
		if _, err := l.write(1, nil, accept); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(version int, newest int64, want string) {
		t.Helper()
		err := l.judge(1, appendValue(nil, 1, version, size), newest)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("version %d is judged %v, want %q", version, err, want)
		}
	}
	write()
	before := l.asOf(1)
	expect(0, before, "")
	expect(1, before, "never written")
	write()
	expect(0, before, "") // the read began before
	expect(1, before, "")
	expect(0, l.asOf(1), "overwritten")
	expect(1, l.asOf(1), "")

	// Two writes at a time may have come in either order; both are as good.
	if _, err := l.write(1, nil, func(string, []byte) error { write(); return nil }); err != nil {
		t.Fatal(err)
	}
	expect(2, l.asOf(1), "")
	expect(3, l.asOf(1), "")
	expect(1, l.asOf(1), "overwritten")

	// One that is under way may be seen, and need not.
	seen := false
	if _, err := l.write(1, nil, func(string, []byte) error {
		seen = true
		expect(4, l.asOf(1), "")
		expect(3, l.asOf(1), "")
		return nil
	}); err != nil || !seen {
		t.Fatal(err)
	}
	expect(3, l.asOf(1), "overwritten")

	broken := errors.New("cut off")
	if _, err := l.write(1, nil, func(string, []byte) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("a write that fails is %v", err)
	}
	expect(4, l.asOf(1), "") // one whose outcome is unknown may have come, or come later
	expect(5, l.asOf(1), "")
	if got := l.key(1); got != "p/user00000001" {
		t.Errorf("the key is %s", got)
	}
}

package catalogtest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/catalog/kv"
)

// conditionalUpdate checks that all checks are evaluated, and all writes made or none.
func conditionalUpdate(t *testing.T, instance Instance) {
	engine := instance.Engine
	update(t, engine, nil, set("a", "1"), set("empty", ""))
	is := func(key, value string) kv.Check { return kv.Check{Key: key, Value: []byte(value)} }
	absent := func(key string) kv.Check { return kv.Check{Key: key} }
	for _, test := range []struct {
		name   string
		checks []kv.Check
		failed []int
	}{
		{"no check", nil, nil},
		{"value as expected", []kv.Check{is("a", "1")}, nil},
		{"absent as expected", []kv.Check{absent("b")}, nil},
		{"empty as expected", []kv.Check{is("empty", "")}, nil},
		{"other value", []kv.Check{is("a", "2")}, []int{0}},
		{"longer value", []kv.Check{is("a", "1\x00")}, []int{0}},
		{"expected and absent", []kv.Check{is("b", "1")}, []int{0}},
		{"expected empty and absent", []kv.Check{is("b", "")}, []int{0}},
		{"expected absent and there", []kv.Check{absent("a")}, []int{0}},
		{"expected absent and empty", []kv.Check{absent("empty")}, []int{0}},
		{"some of many", []kv.Check{is("a", "1"), is("a", "2"), absent("b"), absent("a")}, []int{1, 3}},
	} {
		t.Run(test.name, func(t *testing.T) {
			update(t, engine, nil, kv.Write{Key: "x", Kind: kv.Remove}, kv.Write{Key: "n", Kind: kv.Remove}, set("y", "kept"))
			failed := update(t, engine, test.checks, set("x", "written"),
				kv.Write{Key: "y", Kind: kv.Remove}, kv.Write{Key: "n", Kind: kv.Increment, Add: 1})
			if !slices.Equal(failed, test.failed) {
				t.Errorf("failed checks: got %v, want %v", failed, test.failed)
			}
			got := read(t, engine, "x", "y", "n")
			want := [][]byte{[]byte("written"), nil, []byte("1")}
			if test.failed != nil {
				want = [][]byte{nil, []byte("kept"), nil}
			}
			for i := range want {
				if (got[i] == nil) != (want[i] == nil) || !bytes.Equal(got[i], want[i]) {
					t.Errorf("record %d: got %q, want %q", i, got[i], want[i])
				}
			}
		})
	}
	update(t, engine, nil, set("order", "1"), kv.Write{Key: "order", Kind: kv.Remove}, set("order", "2"))
	if got := string(read(t, engine, "order")[0]); got != "2" {
		t.Errorf("writes are not made in order: got %q", got)
	}
	if failed := update(t, engine, []kv.Check{is("order", "2")}); failed != nil {
		t.Errorf("an update without writes: checks %v failed", failed)
	}
}

// values checks that every byte is kept, and that slices are not shared.
func values(t *testing.T, instance Instance) {
	engine := instance.Engine
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	large := bytes.Repeat(every, 8192) // 2 MiB
	longest := strings.Repeat("\xff\x00k", kv.KeyLimit/3)
	written := bytes.Clone(every)
	update(t, engine, nil, kv.Write{Key: string(every), Value: written}, kv.Write{Key: "large", Value: large},
		kv.Write{Key: longest, Value: []byte{}}, kv.Write{Key: "nil", Value: nil})
	written[0] = 77
	first := read(t, engine, string(every), "large", longest, "absent", "nil", "large")
	for i, want := range [][]byte{every, large, {}, nil, {}, large} {
		if (first[i] == nil) != (want == nil) || !bytes.Equal(first[i], want) {
			t.Errorf("value %d: got %d bytes (nil: %v), want %d", i, len(first[i]), first[i] == nil, len(want))
		}
	}
	first[0][0] = 78
	if again := read(t, engine, string(every))[0]; !bytes.Equal(again, every) {
		t.Errorf("a slice handed out is shared with the engine")
	}
}

// counters checks that they are exact, and read and compared as decimal integers.
func counters(t *testing.T, instance Instance) {
	engine := instance.Engine
	add := func(delta int64) kv.Write { return kv.Write{Key: "n", Kind: kv.Increment, Add: delta} }
	for _, step := range []struct {
		add  int64
		want string
	}{{5, "5"}, {-7, "-2"}, {0, "-2"}, {1 << 60, "1152921504606846974"}, {-(1 << 60) + 3, "1"}} {
		update(t, engine, nil, add(step.add))
		if got := string(read(t, engine, "n")[0]); got != step.want {
			t.Errorf("after %+d: got %s, want %s", step.add, got, step.want)
		}
	}
	if failed := update(t, engine, []kv.Check{{Key: "n", Value: []byte("1")}}, add(-1)); failed != nil {
		t.Errorf("a counter cannot be checked as a value")
	}
	count := kv.Write{Key: "n", Kind: kv.Count, Add: -12}
	if failed := update(t, engine, []kv.Check{{Key: "n", Value: []byte("01")}}, count); !slices.Equal(failed, []int{0}) {
		t.Errorf("a counter is compared as a number: 01 is not what it is read as")
	}
	if failed := update(t, engine, []kv.Check{{Key: "n", Value: []byte("0")}}, count); failed != nil {
		t.Errorf("a counter cannot be stored over what it was")
	}
	update(t, engine, nil, kv.Write{Key: "m", Kind: kv.Count, Add: 1 << 62})
	listed, err := engine.Scan(deadline(t), "", "", 10)
	if err != nil || len(listed) != 2 || string(listed[0].Value) != "4611686018427387904" || string(listed[1].Value) != "-12" {
		t.Errorf("listed are %q, %v", listed, err)
	}
	update(t, engine, nil, kv.Write{Key: "m", Kind: kv.Remove}, set("word", "seven"))
	if got := read(t, engine, "m")[0]; got != nil {
		t.Errorf("a counter that was removed is %q", got)
	}
	_, err = engine.Update(deadline(t), nil, []kv.Write{set("beside", "x"), {Key: "word", Kind: kv.Increment, Add: 1}})
	if err == nil {
		t.Errorf("incrementing a word is no error")
	}
	if got := read(t, engine, "beside", "word"); got[0] != nil || string(got[1]) != "seven" {
		t.Errorf("an update that failed left %q", got)
	}
}

// largestUpdate checks that what has the most that may be asked for is made, and what is larger made whole or refused.
func largestUpdate(t *testing.T, instance Instance) {
	engine := instance.Engine
	half := kv.UpdateRecords / 2
	build := func(count, bytes int, mark byte) (checks []kv.Check, writes []kv.Write) {
		for i := range count {
			key := fmt.Sprintf("largest/%06d", i)
			value := make([]byte, bytes/count-2*len(key))
			value[0] = mark
			checks = append(checks, kv.Check{Key: key})
			writes = append(writes, kv.Write{Key: key, Value: value})
		}
		return checks, writes
	}
	checks, writes := build(half, kv.UpdateBytes, 'a')
	if failed := update(t, engine, checks, writes...); failed != nil {
		t.Fatalf("%d checks failed", len(failed))
	}
	if failed := update(t, engine, checks, writes...); len(failed) != half {
		t.Errorf("%d checks failed of %d", len(failed), half)
	}
	var keys []string
	for _, write := range writes {
		keys = append(keys, write.Key)
	}
	for i, value := range read(t, engine, keys...) {
		if !bytes.Equal(value, writes[i].Value) {
			t.Fatalf("record %d: got %d bytes, want %d", i, len(value), len(writes[i].Value))
		}
	}
	for name, larger := range map[string]struct{ records, bytes int }{
		"bytes": {half, 3 * kv.UpdateBytes}, "records": {8 * half, kv.UpdateBytes},
	} {
		_, writes := build(larger.records, larger.bytes, 'b')
		_, err := engine.Update(deadline(t), nil, writes)
		if err != nil && !errors.Is(err, kv.ErrTooLarge) {
			t.Errorf("an update with too many %s: %v", name, err)
			continue
		}
		want := byte('a')
		if err == nil {
			want = 'b'
		}
		for _, value := range read(t, engine, keys...) {
			if value[0] != want {
				t.Fatalf("an update with too many %s was made in part, or made and refused: %v", name, err)
			}
		}
		update(t, engine, nil, func() []kv.Write { _, writes := build(half, kv.UpdateBytes, 'a'); return writes }()...)
	}
}

package catalogtest

import (
	"bytes"
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

// increment checks the decimal counters.
func increment(t *testing.T, instance Instance) {
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
	update(t, engine, nil, set("word", "seven"))
	_, err := engine.Update(deadline(t), nil, []kv.Write{set("beside", "x"), {Key: "word", Kind: kv.Increment, Add: 1}})
	if err == nil {
		t.Errorf("incrementing a word is no error")
	}
	if got := read(t, engine, "beside", "word"); got[0] != nil || string(got[1]) != "seven" {
		t.Errorf("an update that failed left %q", got)
	}
}

package history

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func sample(minute int) Sample {
	return Sample{At: start.Add(time.Duration(minute) * time.Minute), Bytes: int64(minute), Stored: 3 * int64(minute),
		Rungs: []Rung{{"rep(3)", int64(minute), 3 * int64(minute)}}, Buckets: []Bucket{{AtLeast: 0.5, Bytes: 7}}}
}

func opened(t *testing.T, directory string, options Options) *History {
	t.Helper()
	h, err := Open(directory, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

var media, logs = Class{"local", "media"}, Class{"local", "logs"}

func minutes(series []Series) map[string][]int64 {
	found := map[string][]int64{}
	for _, s := range series {
		for _, one := range s.Samples {
			found[s.Class.Class] = append(found[s.Class.Class], one.Bytes)
		}
	}
	return found
}

func TestFind(t *testing.T) {
	h := opened(t, "", Options{})
	for i := range 10 {
		h.Add(map[Class]Sample{media: sample(i)})
		if i >= 5 {
			h.Add(map[Class]Sample{logs: sample(i)})
		}
	}
	h.Add(map[Class]Sample{media: sample(3)}) // the clock jumped back
	at := func(minute int) time.Time { return start.Add(time.Duration(minute) * time.Minute) }
	for name, test := range map[string]struct {
		query Query
		want  map[string][]int64
	}{
		"all":    {Query{}, map[string][]int64{"media": {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, "logs": {5, 6, 7, 8, 9}}},
		"class":  {Query{Class: logs}, map[string][]int64{"logs": {5, 6, 7, 8, 9}}},
		"range":  {Query{Since: at(3), Until: at(6)}, map[string][]int64{"media": {3, 4, 5}, "logs": {5}}},
		"spread": {Query{Class: media, Samples: 3}, map[string][]int64{"media": {2, 5, 9}}},
		"nobody": {Query{Class: Class{"local", "none"}}, map[string][]int64{}},
		"later":  {Query{Since: at(100)}, map[string][]int64{}},
	} {
		if diff := cmp.Diff(test.want, minutes(h.Find(test.query))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if oldest := h.Oldest(); !oldest.Equal(start) {
		t.Errorf("the oldest is of %v", oldest)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	h := opened(t, "", Options{Samples: 10})
	for i := range 100 {
		h.Add(map[Class]Sample{media: sample(i), logs: sample(i)})
	}
	found := minutes(h.Find(Query{}))
	if diff := cmp.Diff(map[string][]int64{"media": {95, 96, 97, 98, 99}, "logs": {95, 96, 97, 98, 99}}, found); diff != "" {
		t.Error(diff)
	}
	for i := 100; i < 120; i++ { // a class that is no more makes room
		h.Add(map[Class]Sample{media: sample(i)})
	}
	if found := minutes(h.Find(Query{})); len(found["media"]) != 10 || len(found["logs"]) != 0 {
		t.Error(found)
	}
}

func TestDiskIsBoundedAndReadAgain(t *testing.T) {
	directory := t.TempDir()
	options := Options{FileBytes: 1000, Files: 3}
	for round := range 4 {
		h := opened(t, directory, options)
		for i := range 20 {
			h.Add(map[Class]Sample{media: sample(100*round + i)})
		}
		if err := h.Problem(); err != nil {
			t.Fatal(err)
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(directory)
		if err != nil || len(entries) > 3 {
			t.Fatalf("%d files, %v", len(entries), err)
		}
	}
	// A torn line at the end of the last file.
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	last, err := os.OpenFile(filepath.Join(directory, entries[len(entries)-1].Name()), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(last, `{"backend":"local","class":"media","at":"2026-01-09`)
	last.Close()
	h := opened(t, directory, options)
	found := h.Find(Query{Class: media})
	if len(found) != 1 || len(found[0].Samples) < 8 {
		t.Fatal(minutes(found))
	}
	if diff := cmp.Diff(sample(319), found[0].Samples[len(found[0].Samples)-1]); diff != "" {
		t.Error(diff)
	}
}

func TestADiskThatFailsIsReported(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "history")
	h := opened(t, directory, Options{FileBytes: 1})
	h.Add(map[Class]Sample{media: sample(1)})
	if err := os.RemoveAll(directory); err != nil {
		t.Fatal(err)
	}
	h.Add(map[Class]Sample{media: sample(2)})
	if h.Problem() == nil {
		t.Error("nobody is told that the disk is gone")
	}
	if found := minutes(h.Find(Query{})); len(found["media"]) != 2 {
		t.Error(found)
	}
	if err := os.Mkdir(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	h.Add(map[Class]Sample{media: sample(3)})
	if err := h.Problem(); err != nil {
		t.Error(err)
	}
}

package audit

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clock gives one second after the other.
func clock() func() time.Time {
	now := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	return func() time.Time {
		now = now.Add(time.Second)
		return now
	}
}

func open(t testing.TB, directory string, fileBytes int64) *Log {
	t.Helper()
	l, err := Open(directory, Options{FileBytes: fileBytes, Now: clock()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// act records a whole action.
func act(t testing.TB, l *Log, entry Entry, outcome Outcome) int64 {
	t.Helper()
	sequence, err := l.Begin(entry)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.End(sequence, outcome); err != nil {
		t.Fatal(err)
	}
	return sequence
}

// fill records so many actions of two people.
func fill(t testing.TB, l *Log, count int) {
	t.Helper()
	for i := range count {
		user, verb := "ada", "pause"
		if i%2 == 1 {
			user, verb = "bob", "approve"
		}
		act(t, l, Entry{User: user, From: "127.0.0.1:9", Verb: verb, Action: "Act", Object: fmt.Sprintf("transition/t%d", i), Before: json.RawMessage(`{"paused":false}`)},
			Outcome{Result: ResultDone, After: json.RawMessage(`{"paused":true}`)})
	}
}

func TestActionsAreListedWithTheirEnds(t *testing.T) {
	l := open(t, t.TempDir(), 1<<20)
	fill(t, l, 4)
	pending, err := l.Begin(Entry{User: "eve", Verb: "apply", Object: "policy/media"})
	if err != nil {
		t.Fatal(err)
	}
	actions, next, err := l.List(Filter{}, 0, 3)
	if err != nil || len(actions) != 3 || next != actions[2].Sequence {
		t.Fatalf("%v, next %d, %v", actions, next, err)
	}
	if a := actions[0]; a.Sequence != pending || a.Result != ResultUnknown || !a.Ended.IsZero() || a.User != "eve" {
		t.Errorf("an action without an end: %+v", a)
	}
	if a := actions[1]; a.Object != "transition/t3" || a.Result != ResultDone || string(a.After) != `{"paused":true}` || !a.Ended.After(a.Begun) {
		t.Errorf("an action with its end: %+v", a)
	}
	rest, next, err := l.List(Filter{}, next, 3)
	if err != nil || len(rest) != 2 || next != 0 || rest[1].Object != "transition/t0" {
		t.Errorf("the second page: %v, next %d, %v", rest, next, err)
	}
}

func TestFilters(t *testing.T) {
	l := open(t, t.TempDir(), 600) // a few records to a file
	fill(t, l, 10)
	all, _, err := l.List(Filter{}, 0, 100)
	if err != nil || len(all) != 10 {
		t.Fatal(len(all), err)
	}
	middle := all[4].Begun
	for name, test := range map[string]struct {
		filter Filter
		want   int
	}{
		"user": {Filter{User: "ada"}, 5}, "verb": {Filter{Verb: "approve"}, 5}, "object": {Filter{Object: "/t7"}, 1},
		"since": {Filter{Since: middle}, 5}, "until": {Filter{Until: middle}, 5}, "both": {Filter{User: "bob", Object: "t2"}, 0},
	} {
		found, _, err := l.List(test.filter, 0, 100)
		if err != nil || len(found) != test.want {
			t.Errorf("%s: %d actions, %v; want %d", name, len(found), err, test.want)
		}
		var visited []Action
		if err := l.Each(test.filter, func(a Action) error { visited = append(visited, a); return nil }); err != nil || len(visited) != test.want {
			t.Errorf("%s: %d actions visited, %v", name, len(visited), err)
		}
		for i := range visited {
			if visited[i].Sequence != found[len(found)-1-i].Sequence || visited[i].Result != ResultDone {
				t.Errorf("%s: visited %+v", name, visited[i])
			}
		}
	}
}

func TestRotationKeepsTheChain(t *testing.T) {
	directory := t.TempDir()
	l := open(t, directory, 500)
	first, err := l.Begin(Entry{User: "ada", Object: "slow"})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, l, 12)
	if err := l.End(first, Outcome{Result: ResultDone}); err != nil {
		t.Fatal(err)
	}
	if len(l.files) < 5 {
		t.Fatalf("only %d files", len(l.files))
	}
	for _, file := range l.files {
		if info, err := os.Stat(file.path); err != nil || info.Size() > 500+400 || info.Size() != file.size {
			t.Errorf("%s: %v, %v", file.path, info, err)
		}
	}
	report, err := l.Verify(Head{})
	if err != nil || report.Problem != "" || report.Records != 26 || report.First != 1 || report.Head != l.head {
		t.Errorf("%+v, %v", report, err)
	}
	slow, _, err := l.List(Filter{Object: "slow"}, 0, 1)
	if err != nil || len(slow) != 1 || slow[0].Result != ResultDone {
		t.Errorf("an action that ends files later: %+v, %v", slow, err)
	}
	// The oldest file may be moved away; the log goes on, and says where it begins.
	second := l.files[1].first
	if err := os.Remove(l.files[0].path); err != nil {
		t.Fatal(err)
	}
	if report, err := l.Verify(Head{}); err != nil || report.Problem != "" || report.First != second {
		t.Errorf("without the oldest file: %+v, %v", report, err)
	}
}

func TestALogHasOneWriter(t *testing.T) {
	directory := t.TempDir()
	l := open(t, directory, 0)
	if _, err := Open(directory, Options{}); !errors.Is(err, ErrInUse) {
		t.Errorf("a second writer: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Begin(Entry{}); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed log: %v", err)
	}
	fill(t, open(t, directory, 0), 1)
}

func TestNothingBeginsThatCannotBeWritten(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "audit")
	l := open(t, directory, 100) // every record in a file of its own
	fill(t, l, 1)
	away := directory + ".away"
	if err := os.Rename(directory, away); err != nil {
		t.Fatal(err)
	}
	if sequence, err := l.Begin(Entry{User: "ada"}); err == nil {
		t.Fatalf("record %d went nowhere", sequence)
	}
	if err := os.Rename(away, directory); err != nil {
		t.Fatal(err)
	}
	fill(t, l, 1) // it goes on when the disk is back
	if report, err := l.Verify(Head{}); err != nil || report.Problem != "" || report.Records != 4 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestExports(t *testing.T) {
	l := open(t, t.TempDir(), 600)
	fill(t, l, 5)
	act(t, l, Entry{User: "=cmd()", Object: "a,\"b\"\nc"}, Outcome{Result: ResultRefused, Error: "no"})
	var lines, table bytes.Buffer
	if err := l.WriteJSONLines(&lines, Filter{}); err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(&lines)
	for i := range 6 {
		var a Action
		if err := decoder.Decode(&a); err != nil {
			t.Fatal(err)
		}
		if i < 5 && a.Object != fmt.Sprintf("transition/t%d", i) {
			t.Errorf("line %d: %+v", i, a)
		}
	}
	if err := l.WriteCSV(&table, Filter{}); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&table).ReadAll()
	if err != nil || len(rows) != 7 || strings.Join(rows[0], " ") != strings.Join(csvColumns, " ") {
		t.Fatal(rows, err)
	}
	if last := rows[6]; last[3] != "'=cmd()" || last[7] != "a,\"b\"\nc" || last[11] != "refused" || last[12] != "no" {
		t.Errorf("the last row: %q", last)
	}
}

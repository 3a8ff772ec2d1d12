package audit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// written makes a log of so many actions, closes it and returns its files.
func written(t *testing.T, actions int, fileBytes int64) (files map[string][]byte, head Head) {
	t.Helper()
	directory := t.TempDir()
	l := open(t, directory, fileBytes)
	fill(t, l, actions)
	head = l.head
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	files = map[string][]byte{}
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(directory, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files, head
}

func place(t *testing.T, files map[string][]byte) string {
	t.Helper()
	directory := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(directory, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

// refuses reports whether a log of these files is found to be damaged, is not appended to, and still can be read.
func refuses(t *testing.T, what string, files map[string][]byte) {
	t.Helper()
	l, err := Open(place(t, files), Options{})
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	defer l.Close()
	if _, err := l.Begin(Entry{User: "ada"}); !errors.Is(err, ErrDamaged) || !errors.Is(l.Damage(), ErrDamaged) {
		t.Errorf("%s: Begin says %v", what, err)
	}
	if report, err := l.Verify(Head{}); err != nil || report.Problem == "" {
		t.Errorf("%s: Verify finds nothing: %+v, %v", what, report, err)
	}
	if _, _, err := l.List(Filter{}, 0, 10); err != nil {
		t.Errorf("%s: List: %v", what, err)
	}
}

const only = "audit-000000000001.jsonl"

// TestEveryEditIsFound changes every byte of a log.
func TestEveryEditIsFound(t *testing.T) {
	files, _ := written(t, 3, 1<<20)
	for i := range files[only] {
		edited := maps.Clone(files)
		edited[only] = bytes.Clone(files[only])
		edited[only][i] ^= 0x04
		if report, err := inspectFiles(t, edited); err != nil || report.problem == "" {
			t.Fatalf("byte %d (%q) was changed and nothing is found: %v", i, files[only][i], err)
		}
	}
	edited := maps.Clone(files)
	edited[only] = bytes.Replace(files[only], []byte("ada"), []byte("eve"), 1)
	refuses(t, "another user", edited)
}

var inspected string

// inspectFiles inspects the files in one directory, which is used again and again.
func inspectFiles(t *testing.T, files map[string][]byte) (*reading, error) {
	if inspected == "" || !existing(inspected) {
		inspected = t.TempDir()
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(inspected, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return inspect(inspected)
}

func existing(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestEveryCutIsFound cuts a log at every byte.
func TestEveryCutIsFound(t *testing.T) {
	files, _ := written(t, 3, 1<<20)
	for size := range files[only] {
		cut := maps.Clone(files)
		cut[only] = files[only][:size]
		if report, err := inspectFiles(t, cut); err != nil || report.problem == "" || report.torn {
			t.Fatalf("cut at byte %d of %d and nothing is found: %v", size, len(files[only]), err)
		}
	}
	lines := slices.Collect(bytes.Lines(files[only]))
	join := func(lines ...[]byte) map[string][]byte {
		changed := maps.Clone(files)
		changed[only] = bytes.Join(lines, nil)
		return changed
	}
	refuses(t, "the last record cut off", join(lines[:5]...))
	refuses(t, "a record taken out", join(lines[0], lines[1], lines[3], lines[4], lines[5]))
	refuses(t, "records swapped", join(lines[0], lines[2], lines[1], lines[3], lines[4], lines[5]))
	refuses(t, "a record doubled", join(lines[0], lines[1], lines[1], lines[2], lines[3], lines[4], lines[5]))
	headless := maps.Clone(files)
	delete(headless, headName)
	refuses(t, "no head", headless)
	headless[headName] = []byte("{")
	refuses(t, "a head that cannot be read", headless)
	gone := maps.Clone(files)
	delete(gone, only)
	refuses(t, "every record gone", gone)
}

func TestAFileInTheMiddleIsMissed(t *testing.T) {
	files, _ := written(t, 8, 500)
	names := slices.Sorted(maps.Keys(files))
	middle := maps.Clone(files)
	delete(middle, names[2])
	refuses(t, "a file in the middle gone", middle)
	last := maps.Clone(files)
	for i := len(names) - 1; i >= 0; i-- {
		if names[i] != headName && names[i] != lockName {
			delete(last, names[i])
			break
		}
	}
	refuses(t, "the last file gone", last)
}

// TestAKeptHeadFindsAForgedLog: whoever writes all files anew, head included, does not know what was kept elsewhere.
func TestAKeptHeadFindsAForgedLog(t *testing.T) {
	_, kept := written(t, 3, 1<<20)
	forged := open(t, t.TempDir(), 1<<20)
	fill(t, forged, 2)
	act(t, forged, Entry{User: "nobody"}, Outcome{Result: ResultDone})
	fill(t, forged, 2)
	if report, err := forged.Verify(Head{}); err != nil || report.Problem != "" {
		t.Fatalf("%+v, %v", report, err)
	}
	if report, err := forged.Verify(kept); err != nil || report.Problem == "" {
		t.Errorf("a forged log passes: %+v, %v", report, err)
	}
	honest := open(t, t.TempDir(), 1<<20)
	fill(t, honest, 5)
	if report, err := honest.Verify(kept); err != nil || report.Problem != "" {
		t.Errorf("a log that went on: %+v, %v", report, err)
	}
}

// TestACrashAnywhere cuts the writing of a record, and of the head after it, at every byte: nothing that was acknowledged
// is lost, nothing is called damage, and the log goes on.
func TestACrashAnywhere(t *testing.T) {
	before, _ := written(t, 2, 1<<20)
	after, _ := written(t, 3, 1<<20)
	for size := len(before[only]); size <= len(after[only]); size += 7 {
		crashed := maps.Clone(before)
		crashed[only] = after[only][:size]
		crashed[headName+".next"] = after[headName][:size%len(after[headName])]
		l, err := Open(place(t, crashed), Options{})
		if err != nil {
			t.Fatal(err)
		}
		act(t, l, Entry{User: "next"}, Outcome{Result: ResultDone})
		report, err := l.Verify(Head{})
		if err != nil || report.Problem != "" || report.Records < 6 {
			t.Errorf("crashed at byte %d: %+v, %v", size, report, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

const childVariable = "RESTRIPE_AUDIT_CHILD"

func TestMain(m *testing.M) {
	if directory := os.Getenv(childVariable); directory != "" {
		if err := writeUntilKilled(directory); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// writeUntilKilled records actions and tells of each that was acknowledged.
func writeUntilKilled(directory string) error {
	l, err := Open(directory, Options{FileBytes: 4 << 10})
	if err != nil {
		return err
	}
	for {
		sequence, err := l.Begin(Entry{User: "child", Object: "thing"})
		if err != nil {
			return err
		}
		if err := l.End(sequence, Outcome{Result: ResultDone}); err != nil {
			return err
		}
		fmt.Println(sequence)
	}
}

// TestKilled kills a program that writes the log, again and again.
func TestKilled(t *testing.T) {
	directory := t.TempDir()
	var acknowledged []int64 // in all rounds
	for round := range 8 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childVariable+"="+directory)
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for count := 0; lines.Scan(); count++ {
			sequence, err := strconv.ParseInt(lines.Text(), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			acknowledged = append(acknowledged, sequence)
			if count == 5+3*round {
				if err := child.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := child.Wait(); err == nil {
			t.Fatal("the child ended by itself")
		}
		l, err := Open(directory, Options{})
		if err != nil {
			t.Fatal(err)
		}
		report, err := l.Verify(Head{})
		if err != nil || report.Problem != "" || report.Head.Sequence <= acknowledged[len(acknowledged)-1] {
			t.Fatalf("round %d: acknowledged %d, %+v, %v", round, acknowledged, report, err)
		}
		done := map[int64]bool{}
		if err := l.Each(Filter{}, func(a Action) error {
			done[a.Sequence] = a.Result == ResultDone
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for _, sequence := range acknowledged {
			if !done[sequence] {
				t.Errorf("round %d: action %d was acknowledged and has no end", round, sequence)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

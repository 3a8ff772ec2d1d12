package audit

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A log is verified by its path while another program has it open, as a whole and file by file, and nothing is changed by that.
func TestVerifyPath(t *testing.T) {
	files, head := written(t, 8, 500)
	directory := place(t, files)
	report, err := VerifyPath(directory, Head{Sequence: 1})
	if err != nil || !strings.Contains(report.Problem, "record 1 is another") {
		t.Errorf("with another head: %+v, %v", report, err)
	}
	if report, err = VerifyPath(directory, Head{}); err != nil || report.Problem != "" || report.Records != 16 || report.Head != head {
		t.Errorf("%+v, %v", report, err)
	}
	open := open(t, directory, 500)
	fill(t, open, 2)
	if report, err = VerifyPath(directory, head); err != nil || report.Problem != "" || report.Records != 20 {
		t.Errorf("that is open: %+v, %v", report, err)
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(name string) bool { return name == headName || name == lockName })
	records := int64(0)
	for _, name := range names {
		report, err := VerifyPath(filepath.Join(directory, name), Head{})
		if err != nil || report.Problem != "" || report.First != records+1 {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
		records = report.Head.Sequence
	}
	elsewhere := filepath.Join(t.TempDir(), "kept")
	if err := os.WriteFile(elsewhere, files[names[0]], 0o600); err != nil {
		t.Fatal(err)
	}
	if report, err := VerifyPath(elsewhere, Head{}); err != nil || report.Problem != "" || report.First == 0 {
		t.Errorf("under another name: %+v, %v", report, err)
	}
	for what, text := range map[string]string{
		"line 1: record": strings.Replace(string(files[names[0]]), "ada", "eve", 1),
		"in the middle":  strings.TrimSuffix(string(files[names[0]]), "\n"),
		"no record":      "something else\n",
	} {
		if err := os.WriteFile(elsewhere, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if report, err := VerifyPath(elsewhere, Head{}); err != nil || !strings.Contains(report.Problem, what) {
			t.Errorf("%s: %+v, %v", what, report, err)
		}
	}
}

// Where there is no log that is said, and none is made.
func TestVerifyPathOfNoLog(t *testing.T) {
	directory := t.TempDir()
	if report, err := VerifyPath(directory, Head{}); !errors.Is(err, ErrNone) {
		t.Errorf("%+v, %v", report, err)
	}
	if report, err := VerifyPath(filepath.Join(directory, "none"), Head{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%+v, %v", report, err)
	}
	empty := filepath.Join(directory, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if report, err := VerifyPath(empty, Head{}); !errors.Is(err, ErrNone) {
		t.Errorf("%+v, %v", report, err)
	}
	if left, err := os.ReadDir(directory); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

// The log is its user's alone.
func TestNobodyElseReadsTheLog(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "audit")
	fill(t, open(t, directory, 500), 4)
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

package adopt

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestJournalRemembers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new folder", "j.db")
	journal, err := OpenJournal(t.Context(), path, "one")
	if err != nil {
		t.Fatal(err)
	}
	name := "any \x00\xff name"
	want := Entry{Source: Version{Tag: "7", Size: 3, Modified: time.Unix(5, 0).UTC()}, Target: "t", Checksum: []byte{1, 2}, Trimmed: true}
	if err := journal.Record(t.Context(), name, want); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenJournal(t.Context(), path, "one"); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("opening it twice: %v", err)
	}
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenJournal(t.Context(), path, "two"); !errors.Is(err, ErrOtherJob) {
		t.Errorf("opening it for another job: %v", err)
	}
	if journal, err = OpenJournal(t.Context(), path, "one"); err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	got, err := journal.Look(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("the entry (-want +got):\n%s", diff)
	}
	if got, err := journal.Look(t.Context(), "never seen"); got != nil || err != nil {
		t.Errorf("an unknown object: %v, %v", got, err)
	}
}

func TestJournalRefusesOtherFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.txt")
	text := []byte(strings.Repeat("no database\n", 100))
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenJournal(t.Context(), path, "one"); err == nil {
		t.Error("a text was opened as a journal")
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != string(text) {
		t.Errorf("the text was changed: %v", err)
	}
}

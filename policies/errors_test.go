package policies_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/restripe/restripe/policies"
)

var update = flag.Bool("update", false, "write what comes out into the files of testdata")

var formats = map[string]policies.Format{".yaml": policies.YAML, ".json": policies.JSON, ".cue": policies.CUE}

// lintedAt is the time at which the files of testdata/errors are linted.
var lintedAt = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// TestFindings lints the files of each archive and compares with its last file, want. A file in a directory "together"
// is linted with the others of it, every other one alone.
func TestFindings(t *testing.T) {
	archives, err := filepath.Glob("testdata/errors/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			last := len(archive.Files) - 1
			if last < 0 || archive.Files[last].Name != "want" {
				t.Fatal("the last file of the archive is not called want")
			}
			for _, sources := range together(archive.Files[:last]) {
				objects, findings := policies.Check(policies.Options{Now: lintedAt}, sources...)
				for _, finding := range findings {
					got.WriteString(finding.String() + "\n")
				}
				if len(findings.Errors()) == 0 {
					for _, object := range objects {
						got.WriteString(object.Position.String() + ": " + object.String() + " is fine\n")
					}
				}
			}
			compare(t, name, archive, got.String())
		})
	}
}

func compare(t *testing.T, name string, archive *txtar.Archive, got string) {
	t.Helper()
	want := &archive.Files[len(archive.Files)-1]
	if got == string(want.Data) {
		return
	}
	if *update {
		want.Data = []byte(got)
		if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("got\n%s\nwant\n%s\ngo test ./policies -update writes what comes out into the file", got, want.Data)
}

// together groups files that are linted together: those of one directory.
func together(files []txtar.File) [][]policies.Source {
	var groups [][]policies.Source
	at := make(map[string]int)
	for _, file := range files {
		source := policies.Source{Name: file.Name, Format: formats[filepath.Ext(file.Name)], Text: file.Data}
		directory, _, below := strings.Cut(file.Name, "/")
		if i, found := at[directory]; below && found {
			groups[i] = append(groups[i], source)
			continue
		}
		if below {
			at[directory] = len(groups)
		}
		groups = append(groups, []policies.Source{source})
	}
	return groups
}

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/sqlite"
)

// What is generated in parts is a whole catalog: its audit finds nothing, every question is answered, and a put goes on from there.
func TestALoadedCatalogIsWhole(t *testing.T) {
	engine, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "catalog.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	e := errand{Run: "test", Objects: chunk + 1000, Nodes: 20}
	loaded, err := e.load(t.Context(), engine)
	if err != nil {
		t.Fatal(err)
	}
	if got := loaded.Kinds["o/"].Records; got != e.Objects {
		t.Errorf("%d objects were written, want %d", got, e.Objects)
	}
	if groups, counts := loaded.Kinds["g/"].Records, loaded.Kinds["l/"].Records; groups != counts || groups < e.Objects/largeEvery {
		t.Errorf("%d groups and %d counts were written", groups, counts)
	}
	c, err := catalog.Open(t.Context(), engine, catalog.Owner("bench", "1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Audit(t.Context()); err != nil {
		t.Error(err)
	}
	asked, err := e.ask(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range asked.Asked {
		if a.Records == 0 {
			t.Errorf("%s: nothing was answered", a.What)
		}
	}
	if err := c.Audit(t.Context()); err != nil {
		t.Errorf("after the questions: %v", err)
	}
}

func TestWhatWasMeasuredIsReplaced(t *testing.T) {
	document := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(document, []byte("before\n"+measuredBegin+"old\n"+measuredEnd+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := replaceMeasured(document, "new\n"); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		if want := "before\n" + measuredBegin + "\nnew\n" + measuredEnd + "after\n"; string(text) != want {
			t.Errorf("the document is\n%s\nwant\n%s", text, want)
		}
	}
	if err := os.WriteFile(document, []byte("no place\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := replaceMeasured(document, "new\n"); err == nil {
		t.Error("a document without a place for it was written to")
	}
}

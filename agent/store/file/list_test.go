package file

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// fill puts empty values under as many keys as blocks have, without waiting for a disk.
func fill(t testing.TB, s *Store, count int) {
	t.Helper()
	for i := range count {
		key := fmt.Sprintf("b/%016x.%016x.%08x/%02x/%016x.%016x", i/14, 1<<60+i/14, 0, i%14, i/14, 1<<60+i/14)
		path := filepath.Join(s.path, leafOf(key), nameOf(key))
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			err = os.WriteFile(path, make([]byte, footerBytes), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// listPages lists the store in pages and returns the number of keys; each is called after a page with its length.
func listPages(t testing.TB, s *Store, limit int, each func(length int)) (count int) {
	t.Helper()
	for after, more := "", true; more; {
		var page []string
		var err error
		if page, more, err = s.Page(t.Context(), "b/", after, limit); err != nil {
			t.Fatal(err)
		}
		if count += len(page); len(page) > 0 {
			after = page[len(page)-1]
		}
		each(len(page))
	}
	return count
}

func TestAPageReadsTheDirectoriesOfItsKeysAndNoSizes(t *testing.T) {
	const values, limit = 20_000, 500
	s := open(t, t.TempDir())
	defer s.Close()
	fill(t, s, values)
	var names, most int64
	count := listPages(t, s, limit, func(int) {
		read := s.listed.names.Load()
		names, most = read, max(most, read-names)
	})
	if count != values {
		t.Errorf("the pages have %d keys of %d", count, values)
	}
	// The first directory may be in the page before too, the last in the page after.
	if most > limit+2*leafMost(t, s) {
		t.Errorf("a page of %d keys read %d names", limit, most)
	}
	if sizes := s.listed.sizes.Load(); sizes != 0 {
		t.Errorf("pages asked for %d sizes", sizes)
	}
}

// leafMost returns how many names the fullest directory has.
func leafMost(t *testing.T, s *Store) (most int64) {
	t.Helper()
	for number := range leaves {
		entries, err := os.ReadDir(filepath.Join(s.path, leafPath(number)))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		most = max(most, int64(len(entries)))
	}
	return most
}

func TestAListingGoesOnAfterTheStoreWasOpenedAgain(t *testing.T) {
	const values, limit = 100, 7
	directory := t.TempDir()
	s := open(t, directory)
	fill(t, s, values)
	seen := map[string]bool{}
	for after, more := "", true; more; {
		var page []string
		var err error
		if page, more, err = s.Page(t.Context(), "", after, limit); err != nil {
			t.Fatal(err)
		}
		for _, key := range page {
			if seen[key] {
				t.Errorf("%q is listed twice", key)
			}
			seen[key], after = true, key
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, directory)
	}
	defer s.Close()
	if len(seen) != values {
		t.Errorf("listed %d keys of %d", len(seen), values)
	}
}

// A listing goes on where the key of the file belongs, so it would come by it again and again.
func TestAFileInTheWrongDirectoryDoesNotLeadPagesAstray(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	fill(t, s, 200)
	key := "b/astray"
	path := filepath.Join(s.path, leafPath((leafNumber(key)+1)%leaves))
	if leafNumber(key) == leaves-1 {
		t.Fatal("choose another key, whose directory is not the last")
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, nameOf(key)), make([]byte, footerBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := 0
	count := listPages(t, s, 1, func(int) {
		if asked++; asked > 300 {
			t.Fatal("the listing has no end")
		}
	})
	if count != 200 {
		t.Errorf("listed %d keys, want 200", count)
	}
}

func BenchmarkPages(b *testing.B) {
	const values, limit = 100_000, 1000
	s := open(b, b.TempDir())
	defer s.Close()
	fill(b, s, values)
	pages := 0
	for b.Loop() {
		if count := listPages(b, s, limit, func(int) { pages++ }); count != values {
			b.Fatalf("listed %d keys of %d", count, values)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(pages), "ns/page")
	b.ReportMetric(float64(s.listed.names.Load())/float64(pages), "names/page")
}

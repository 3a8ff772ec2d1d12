package rebuild_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/rebuild"
)

// Versions that are kept beside their objects come back with them, wherever they have gone.
func TestVersionsComeBack(t *testing.T) {
	c := newCluster(t, stores(t, "mem", 9))
	want := map[string][]byte{}
	revisions := map[string][]block.Stamp{} // the last one first
	put := func(key string, size int, seed uint64, scheme string) {
		t.Helper()
		c.put(key, noise(size, seed), scheme)
		want[key] = noise(size, seed)
		stat, err := c.gateway.Stat(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		revisions[key] = slices.Insert(revisions[key], 0, stat.Revision)
	}
	sizes := []int{500, 150_000}
	for _, size := range sizes {
		for seed := range uint64(4) {
			put(fmt.Sprint("kept/", size), size, seed, "")
		}
		for seed, scheme := range []string{"rs(3,2)", "rep(1)", "rep(1)"} {
			put(fmt.Sprint("firmest/", size), size, uint64(seed), scheme)
		}
	}
	server := func() *httptest.Server {
		s := httptest.NewServer(c.gateway.Handler())
		t.Cleanup(s.Close)
		return s
	}
	at := func(from *httptest.Server, key string, revision block.Stamp, data []byte) {
		t.Helper()
		answer, err := http.Get(from.URL + "/v1/objects/" + url.PathEscape(key) + "?revision=" + revision.String())
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(answer.Body)
		if err := errors.Join(err, answer.Body.Close()); err != nil || answer.StatusCode != http.StatusOK || !bytes.Equal(got, data) {
			t.Errorf("%s at revision %s: %s, %d bytes, %v", key, revision, answer.Status, len(got), err)
		}
	}
	all := func() {
		t.Helper()
		c.check(want)
		from := server()
		for _, size := range sizes {
			for i, revision := range revisions[fmt.Sprint("kept/", size)][:3] {
				at(from, fmt.Sprint("kept/", size), revision, noise(size, uint64(3-i)))
			}
			at(from, fmt.Sprint("firmest/", size), revisions[fmt.Sprint("firmest/", size)][2], noise(size, 0))
		}
		for key := range want {
			stat, err := c.gateway.Stat(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			kept := revisions[key][1:3]
			if strings.HasPrefix(key, "firmest/") {
				kept = revisions[key][2:]
			}
			if !slices.Equal(stat.Earlier, kept) {
				t.Errorf("%s keeps %v, want %v", key, stat.Earlier, kept)
			}
		}
		if err := c.catalog.Audit(t.Context()); err != nil {
			t.Error(err)
		}
	}
	all()
	if report := c.lose(nil); len(report.Problems) > countKind(report, rebuild.ProblemVersions) {
		t.Errorf("%+v", report.Problems)
	}
	all()
	c.transition("kept/", "rs(3,2)")
	all()
	c.lose(nil)
	all()
	put("kept/500", 500, 4, "")
	put("firmest/150000", 150_000, 3, "rs(3,2)")
	for _, key := range []string{"kept/500", "firmest/150000"} {
		stat, err := c.gateway.Stat(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if kept := stat.Earlier; key == "kept/500" && !slices.Equal(kept, revisions[key][1:3]) || key != "kept/500" && len(kept) > 0 {
			t.Errorf("%s keeps %v after another put", key, kept)
		}
	}
}

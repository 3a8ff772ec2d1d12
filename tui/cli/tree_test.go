package cli

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/restripe/restripe/tui/cli/program"
	"github.com/restripe/restripe/tui/tree"
)

// plant writes files below a directory.
func plant(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTreesAreRead(t *testing.T) {
	root := t.TempDir()
	plant(t, root, map[string]string{"b": "12", "a/c": "345", "a/d/e": "", ".hidden": "6"})
	if err := os.Symlink("b", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a", filepath.Join(root, "linked")); err != nil {
		t.Fatal(err)
	}
	for _, prefix := range []string{"", "pre/", "pre"} {
		files, err := tree.Read(root, prefix)
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, file := range files.Files {
			keys = append(keys, file.Key)
			info, err := os.Stat(file.Path)
			if err != nil || info.Size() != file.Size {
				t.Errorf("%s has %d bytes: %v", file.Path, file.Size, err)
			}
		}
		want := []string{prefix + ".hidden", prefix + "a/c", prefix + "a/d/e", prefix + "b"}
		if !slices.Equal(keys, want) || files.Bytes != 6 || files.Skipped != 2 {
			t.Errorf("keys %q of %d bytes, %d skipped; want %q", keys, files.Bytes, files.Skipped, want)
		}
	}
	if _, err := tree.Read(filepath.Join(root, "nothing"), ""); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

// takingGateway stores what is put, and refuses keys that end in "bad".
type takingGateway struct {
	mutex  sync.Mutex
	stored map[string]string
	length map[string]int64 // that was announced
}

// ServeHTTP takes one object.
func (g *takingGateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := strings.TrimPrefix(r.URL.Path, "/v1/objects/")
	body, err := io.ReadAll(r.Body)
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if strings.HasSuffix(key, "bad") {
		http.Error(w, `{"error": "it is bad", "code": "bad_request"}`, http.StatusBadRequest)
		return
	}
	if err == nil {
		g.stored[key], g.length[key] = string(body), r.ContentLength
	}
	if _, err := w.Write([]byte(`{"key": "k", "scheme": "rep(3)", "size": 7, "revision": "0000000000000001.000000000000000a"}`)); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func newTakingGateway(t *testing.T) (*takingGateway, string) {
	taking := &takingGateway{stored: map[string]string{}, length: map[string]int64{}}
	server := httptest.NewServer(taking)
	t.Cleanup(server.Close)
	return taking, server.URL
}

// TestTreesAreStored: every file under its key, with its length said beforehand, and what failed is named.
func TestTreesAreStored(t *testing.T) {
	taking, address := newTakingGateway(t)
	root := t.TempDir()
	want := map[string]string{}
	for name, text := range map[string]string{"a": "1", "b/c": strings.Repeat("x", 100_000), "b/d": ""} {
		plant(t, root, map[string]string{name: text})
		want["pre/"+name] = text
	}
	var out, messages bytes.Buffer
	put := []string{"put", root, "pre/", "--jobs", "2", "--gateway", address}
	if code := execute(t.Context(), put, strings.NewReader(""), &out, &messages); code != program.ExitDone {
		t.Fatalf("exit code %d: %s", code, messages.String())
	}
	if len(taking.stored) != len(want) {
		t.Errorf("%d objects are stored", len(taking.stored))
	}
	for key, text := range want {
		if taking.stored[key] != text || taking.length[key] != int64(len(text)) {
			t.Errorf("%s: %d bytes, announced as %d, want %d", key, len(taking.stored[key]), taking.length[key], len(text))
		}
	}
	if !strings.HasPrefix(messages.String(), "3 of 3 objects, 98 KiB stored in ") || out.Len() > 0 {
		t.Errorf("it says %q and %q", messages.String(), out.String())
	}

	plant(t, root, map[string]string{"e-bad": "no"})
	messages.Reset()
	code := execute(t.Context(), put, strings.NewReader(""), &out, &messages)
	bad := "storing " + filepath.Join(root, "e-bad") + ` as "pre/e-bad": it is bad`
	if code != program.ExitFailed || !strings.Contains(messages.String(), bad) {
		t.Errorf("exit code %d: %s", code, messages.String())
	}
}

// TestStandardInputIsStreamed: its length is known to nobody before it ends, and where it breaks off nothing is claimed.
func TestStandardInputIsStreamed(t *testing.T) {
	taking, address := newTakingGateway(t)
	text := strings.Repeat("0123456789", 50_000)
	for name, in := range map[string]io.Reader{
		"whole": strings.NewReader(text), "halves": iotest.HalfReader(strings.NewReader(text)),
		"end":   iotest.DataErrReader(strings.NewReader(text)),
		"bytes": iotest.OneByteReader(strings.NewReader(text[:1000])),
	} {
		var out, messages bytes.Buffer
		code := execute(t.Context(), []string{"put", "-", name, "--gateway", address}, in, &out, &messages)
		want := text
		if name == "bytes" {
			want = text[:1000]
		}
		if code != program.ExitDone || taking.stored[name] != want || taking.length[name] != -1 {
			t.Errorf("%s: exit code %d, %d bytes, announced as %d: %s",
				name, code, len(taking.stored[name]), taking.length[name], messages.String())
		}
	}
	broken := io.MultiReader(strings.NewReader(text), iotest.ErrReader(errors.New("the pipe broke")))
	var out, messages bytes.Buffer
	code := execute(t.Context(), []string{"put", "-", "broken", "--gateway", address}, broken, &out, &messages)
	if _, stored := taking.stored["broken"]; code != program.ExitFailed || stored || !strings.Contains(messages.String(), "the pipe broke") {
		t.Errorf("exit code %d, stored %t: %s", code, stored, messages.String())
	}
}

// TestLongKeysAreCut: an error repeats no more of a key than a person reads.
func TestLongKeysAreCut(t *testing.T) {
	_, address := newTakingGateway(t)
	var out, messages bytes.Buffer
	key := strings.Repeat("k", 4000) + "bad"
	code := execute(t.Context(), []string{"put", "-", key, "--gateway", address}, strings.NewReader("x"), &out, &messages)
	cut := strings.Repeat("k", tree.KeyShown) + `..."`
	if code != program.ExitFailed || len(messages.String()) > tree.KeyShown+100 || !strings.Contains(messages.String(), cut) {
		t.Errorf("exit code %d: %s", code, messages.String())
	}
}

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/restripe/restripe/tui/cli/program"
)

// namesIn lists a directory.
func namesIn(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// holds fails the test unless a file holds a text.
func holds(t *testing.T, path, want string) {
	t.Helper()
	if text, err := os.ReadFile(path); err != nil || string(text) != want {
		t.Errorf("%s holds %q, want %q: %v", path, text, want, err)
	}
}

// TestFilesAppearWhole: a file that is there stays as it is until the last byte of what takes its place has arrived.
func TestFilesAppearWhole(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "file")
	if err := writeFile(t.Context(), path, strings.NewReader("first")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("reset")
	content := io.MultiReader(strings.NewReader("second"), iotest.ErrReader(broken))
	if err := writeFile(t.Context(), path, content); !errors.Is(err, broken) {
		t.Errorf("content that breaks off: %v", err)
	}
	holds(t, path, "first")
	if err := writeFile(t.Context(), path, strings.NewReader("third")); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "third")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	unread := iotest.ErrReader(errors.New("it was read"))
	if err := writeFile(t.Context(), root, unread); err == nil || err.Error() != "it is a directory" {
		t.Errorf("over a directory: %v", err)
	}
	if err := writeFile(t.Context(), filepath.Join(root, "nothing", "file"), unread); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into a directory that is not there: %v", err)
	}
	if names := namesIn(t, root); !slices.Equal(names, []string{"file"}) {
		t.Errorf("what is left: %q", names)
	}
	t.Chdir(root)
	if err := writeFile(t.Context(), "file", strings.NewReader("fourth")); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "fourth")
}

// TestLinksAreWrittenThrough: what a link names is written, whole or not at all, and the link stays one.
func TestLinksAreWrittenThrough(t *testing.T) {
	root := t.TempDir()
	plant(t, root, map[string]string{"file": "old", "deep/down/file": "old"})
	links := map[string]string{ // and what they name
		"link": "file", "absolute": filepath.Join(root, "file"), "twice": "link", "dangling": "new", "deep/up": "../file",
		"folder": "deep/down", "behind": "folder/../aside", "loop": "loop",
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(root, filepath.FromSlash(name))); err != nil {
			t.Fatal(err)
		}
	}
	broken := errors.New("reset")
	for name, file := range map[string]string{
		"link": "file", "absolute": "file", "twice": "file", "dangling": "new", "deep/up": "file", "folder/file": "deep/down/file",
		"behind": "deep/aside", // .. of the folder that the link names, not of the link
	} {
		if err := writeFile(t.Context(), filepath.Join(root, name), strings.NewReader("by "+name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		holds(t, filepath.Join(root, file), "by "+name)
		content := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken))
		if err := writeFile(t.Context(), filepath.Join(root, name), content); !errors.Is(err, broken) {
			t.Errorf("%s, content that breaks off: %v", name, err)
		}
		holds(t, filepath.Join(root, file), "by "+name)
	}
	unread := iotest.ErrReader(errors.New("it was read"))
	if err := writeFile(t.Context(), filepath.Join(root, "loop"), unread); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a link to itself: %v", err)
	}
	if err := writeFile(t.Context(), filepath.Join(root, "folder"), unread); err == nil || err.Error() != "it is a directory" {
		t.Errorf("a link to a directory: %v", err)
	}
	for name, target := range links {
		if have, err := os.Readlink(filepath.Join(root, name)); err != nil || have != target {
			t.Errorf("%s is no link to %s any more: %q, %v", name, target, have, err)
		}
	}
	want := []string{"absolute", "behind", "dangling", "deep", "file", "folder", "link", "loop", "new", "twice"}
	if names := namesIn(t, root); !slices.Equal(names, want) {
		t.Errorf("what is left: %q", names)
	}
	if names := namesIn(t, filepath.Join(root, "deep")); !slices.Equal(names, []string{"aside", "down", "up"}) {
		t.Errorf("what is left further down: %q", names)
	}
}

// pipeIn makes a named pipe and opens its end for reading, which waits for nobody.
func pipeIn(t *testing.T, folder string) (path string, reader *os.File) {
	t.Helper()
	path = filepath.Join(folder, "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, openToRead(t, path)
}

func openToRead(t *testing.T, path string) *os.File {
	t.Helper()
	reader, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
	})
	return reader
}

// TestPipesAreWrittenInto: what is no regular file stays what it is, and is written as the bytes come.
func TestPipesAreWrittenInto(t *testing.T) {
	root := t.TempDir()
	path, reader := pipeIn(t, root)
	if err := os.Symlink("pipe", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("reset")
	for _, name := range []string{"pipe", "link"} {
		content := io.MultiReader(strings.NewReader("by "+name), iotest.ErrReader(broken))
		if err := writeFile(t.Context(), filepath.Join(root, name), content); !errors.Is(err, broken) {
			t.Errorf("%s, content that breaks off: %v", name, err)
		}
		if text, err := io.ReadAll(reader); err != nil || string(text) != "by "+name {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
		t.Errorf("the pipe is %v, %v", info.Mode(), err)
	}
	if names := namesIn(t, root); !slices.Equal(names, []string{"link", "pipe"}) {
		t.Errorf("what is left: %q", names)
	}
}

// TestWaitsForReadersOfPipesEnd: a pipe that nobody reads does not hold up who interrupts.
func TestWaitsForReadersOfPipesEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := writeFile(ctx, path, strings.NewReader("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted wait: %v", err)
	}
	openToRead(t, path) // lets go of what waits
}

// TestTheSideThatFailsIsNamed: an object that cannot be read is told from a file that cannot be written.
func TestTheSideThatFailsIsNamed(t *testing.T) {
	root := t.TempDir()
	broken := errors.New("reset")
	breaking := func() io.Reader { return io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)) }
	file, nowhere := filepath.Join(root, "file"), filepath.Join(root, "nothing", "file")
	pipe, _ := pipeIn(t, root)
	for _, c := range []struct {
		out     io.Writer
		path    string
		content io.Reader
		begins  string
		cause   error
	}{
		{io.Discard, "-", breaking(), `reading "k": reset`, broken},
		{io.Discard, file, breaking(), `reading "k": reset`, broken},
		{io.Discard, pipe, breaking(), `reading "k": reset`, broken},
		{full{}, "-", strings.NewReader("x"), "writing standard output: no space left", errFull},
		{io.Discard, nowhere, strings.NewReader("x"), "writing " + nowhere + ": ", fs.ErrNotExist},
		{io.Discard, root, strings.NewReader("x"), "writing " + root + ": it is a directory", nil},
	} {
		err := (&session{Streams: program.Streams{Out: c.out}}).save(t.Context(), "k", c.content, c.path)
		if err == nil || !strings.HasPrefix(err.Error(), c.begins) || c.cause != nil && !errors.Is(err, c.cause) {
			t.Errorf("into %s: %v, want %s", c.path, err, c.begins)
		}
	}
}

// TestLostContentIsTheObjectsFault types get at a gateway that breaks off where what comes next is lost.
func TestLostContentIsTheObjectsFault(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"0000000000000001.0000000000000001"`)
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, "half")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	root := t.TempDir()
	path := filepath.Join(root, "file")
	for _, to := range [][]string{{}, {"-"}, {path}} {
		var out, messages bytes.Buffer
		get := append([]string{"get", "a/b", "--gateway", server.URL}, to...)
		code := execute(t.Context(), get, strings.NewReader(""), &out, &messages)
		if code != program.ExitFailed || !strings.HasPrefix(messages.String(), `restripe: reading "a/b": `) ||
			strings.Contains(messages.String(), path) {
			t.Errorf("get to %q: exit code %d: %s", to, code, messages.String())
		}
	}
	if names := namesIn(t, root); len(names) > 0 {
		t.Errorf("what is left: %q", names)
	}
}

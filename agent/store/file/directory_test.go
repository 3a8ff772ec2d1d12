package file

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/store"
)

// writerVariable makes the test program a writer in the directory it names, for the crash tests.
const writerVariable = "RESTRIPE_TEST_WRITER"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerVariable); path != "" {
		if err := writeForEver(path, os.Getenv(writerVariable+"_NAMED") != ""); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// valueOf is what a writer stores as its value number i.
func valueOf(i int) []byte { return bytes.Repeat([]byte{byte(i), byte(i >> 8), 0x5a}, 30_000+i) }

// writeForEver creates values and prints the number of each when it is acknowledged.
func writeForEver(path string, named bool) error {
	s, err := Open(context.Background(), path)
	if err != nil {
		return err
	}
	s.namelessFiles = s.namelessFiles && !named
	for i := 0; ; i++ {
		if err := s.Create(context.Background(), fmt.Sprintf("b/%d", i), valueOf(i)); err != nil {
			return err
		}
		fmt.Println(i)
	}
}

func TestAWriterThatIsKilledLeavesWholeValuesAndNoLeftovers(t *testing.T) {
	for _, named := range []string{"", "yes"} {
		path := t.TempDir()
		writer := exec.Command(os.Args[0])
		writer.Env = append(os.Environ(), writerVariable+"="+path, writerVariable+"_NAMED="+named)
		var complaints bytes.Buffer
		writer.Stderr = &complaints
		output, err := writer.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := writer.Start(); err != nil {
			t.Fatal(err)
		}
		acknowledged := -1
		lines := bufio.NewScanner(output)
		for lines.Scan() {
			if acknowledged, err = strconv.Atoi(lines.Text()); err != nil {
				t.Fatal(err)
			}
			if acknowledged == 3 { // a second agent meets the lock of the first
				_, err := Open(t.Context(), path)
				if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), strconv.Itoa(writer.Process.Pid)) || !strings.Contains(err.Error(), path) {
					t.Errorf("opening a directory in use: %v, want %v with the process %d", err, ErrInUse, writer.Process.Pid)
				}
			}
			if acknowledged == 20 {
				if err := writer.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := writer.Wait(); err == nil || acknowledged < 20 {
			t.Fatalf("the writer ended by itself after %d values: %v, %s", acknowledged, err, complaints.String())
		}
		s := open(t, path)
		for i := range acknowledged + 2 {
			value := valueOf(i)
			p := make([]byte, len(value)+1)
			count, err := s.ReadAt(t.Context(), fmt.Sprintf("b/%d", i), p, 0)
			if i > acknowledged && errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil || !bytes.Equal(p[:count], value) {
				t.Errorf("value %d of %d acknowledged: %d bytes, %v", i, acknowledged, count, err)
			}
		}
		if leftovers, err := os.ReadDir(filepath.Join(path, temporaryName)); err != nil || len(leftovers) != 0 {
			t.Errorf("leftovers of a killed writer: %v, %v", leftovers, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestLeftoversAreRemovedAtOpen(t *testing.T) {
	path := t.TempDir()
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	leftover := filepath.Join(path, temporaryName, "half")
	if err := os.WriteFile(leftover, []byte("half a val"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	defer s.Close()
	if _, err := os.Stat(leftover); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a leftover is still there: %v", err)
	}
}

func TestOneAgentPerDirectoryAlsoWithinAProcess(t *testing.T) {
	path := t.TempDir()
	first := open(t, path)
	if _, err := Open(t.Context(), path); !errors.Is(err, ErrInUse) {
		t.Errorf("opening a directory twice: %v, want %v", err, ErrInUse)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := open(t, path).Close(); err != nil {
		t.Error(err)
	}
}

func TestDirectoriesOfOthersAreRefused(t *testing.T) {
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "letter.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), foreign); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "letter.txt") {
		t.Errorf("opening a directory with other files: %v, want %v", err, ErrForeign)
	}
	newer := t.TempDir()
	if err := os.WriteFile(filepath.Join(newer, markerName), []byte("restripe file store, format 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), newer); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "format 2") {
		t.Errorf("opening a directory of a newer version: %v, want %v", err, ErrForeign)
	}
	disk := t.TempDir()
	if err := os.Mkdir(filepath.Join(disk, "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := open(t, disk).Close(); err != nil {
		t.Error(err)
	}
}

func TestDamagedFilesAreCorrupt(t *testing.T) {
	value := bytes.Repeat([]byte("value"), 1000)
	for name, damage := range map[string]func(path string, size int64) error{
		"cut":                 func(path string, size int64) error { return os.Truncate(path, size-1) },
		"cut to a few bytes":  func(path string, _ int64) error { return os.Truncate(path, 3) },
		"emptied":             func(path string, _ int64) error { return os.Truncate(path, 0) },
		"grown":               func(path string, size int64) error { return os.Truncate(path, size+1) },
		"grown by a page":     func(path string, size int64) error { return os.Truncate(path, size+4096) },
		"changed at its head": func(path string, _ int64) error { return overwrite(path, 0) },
		"changed inside":      func(path string, _ int64) error { return overwrite(path, 2500) },
	} {
		s := open(t, t.TempDir())
		if err := s.Create(t.Context(), "k", value); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(s.path, leafOf("k"), nameOf("k"))
		if err := damage(path, int64(len(value)+footerBytes)); err != nil {
			t.Fatal(err)
		}
		if count, err := s.ReadAt(t.Context(), "k", make([]byte, len(value)), 0); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("%s: reading %d bytes, %v, want %v", name, count, err, store.ErrCorrupt)
		}
		if err := s.List(t.Context(), "", func(string, int64) error { return nil }); err != nil {
			t.Errorf("%s: listing: %v", name, err)
		}
		if err := s.Create(t.Context(), "k", value); !errors.Is(err, store.ErrExists) {
			t.Errorf("%s: creating again: %v, want %v", name, err, store.ErrExists)
		}
		if err := s.Delete(t.Context(), "k"); err != nil {
			t.Errorf("%s: deleting: %v", name, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// overwrite changes one byte of a file.
func overwrite(path string, offset int64) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt([]byte{0xff}, offset)
	return errors.Join(err, file.Close())
}

// A file system that finds itself damaged goes read-only under those who use it.
func TestAReadOnlyFileSystemIsReadOnly(t *testing.T) {
	path, fail := mountFailing(t)
	s := open(t, path)
	defer s.Close()
	if err := s.Create(t.Context(), "k", []byte("value")); err != nil {
		t.Fatal(err)
	}
	fail()
	if err := s.Create(t.Context(), "other", nil); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("creating on a read-only file system: %v, want %v", err, store.ErrReadOnly)
	}
	if err := s.Delete(t.Context(), "k"); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("deleting on a read-only file system: %v, want %v", err, store.ErrReadOnly)
	}
	p := make([]byte, 5)
	if count, err := s.ReadAt(t.Context(), "k", p, 0); err != nil || string(p[:count]) != "value" {
		t.Errorf("reading on a read-only file system: %q, %v", p[:count], err)
	}
	info, err := s.Info(t.Context())
	if err != nil || !strings.Contains(strings.Join(info.Warnings, "\n"), "read-only") {
		t.Errorf("info of a read-only file system: %+v, %v", info, err)
	}
}

func TestAFileSystemInMemoryIsNotDurable(t *testing.T) {
	s := open(t, mountMemory(t, "size=4m"))
	defer s.Close()
	info, err := s.Info(t.Context())
	if err != nil || info.Durable || !strings.Contains(strings.Join(info.Warnings, "\n"), "tmpfs") {
		t.Errorf("info of a file system in memory: %+v, %v", info, err)
	}
}

func TestEveryKeyHasANameOfItsOwn(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		key := rapid.StringMatching(`[!-~]{1,200}`).Draw(r, "key")
		name := nameOf(key)
		if len(name) > 255 || strings.Contains(name, "/") || name == "." || name == ".." {
			r.Fatalf("key %q: %q is no file name", key, name)
		}
		if back, found := keyOf(name); !found || back != key {
			r.Fatalf("key %q: name %q leads back to %q", key, name, back)
		}
	})
}

func FuzzFooter(f *testing.F) {
	value := []byte("value")
	f.Add(footer{checksum: kernel.Checksum(value), length: 5}.encode(), int64(21))
	f.Add([]byte{}, int64(3))
	f.Fuzz(func(t *testing.T, encoded []byte, fileBytes int64) {
		parsed, err := parseFooter(encoded, fileBytes)
		if err != nil {
			if !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("error %v does not wrap ErrCorrupt", err)
			}
			return
		}
		if parsed.length != fileBytes-footerBytes || !bytes.Equal(parsed.encode(), encoded) {
			t.Errorf("footer %x of a file of %d bytes is parsed as %+v", encoded, fileBytes, parsed)
		}
	})
}

// Somebody empties the directory under a running agent: what is written next makes what it needs again.
func TestDirectoriesThatGoAreMadeAgain(t *testing.T) {
	for _, nameless := range []bool{true, false} {
		path := t.TempDir()
		s := open(t, path)
		s.namelessFiles = s.namelessFiles && nameless
		if err := s.Create(t.Context(), "key", []byte("before")); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{valuesName, temporaryName} {
			if err := os.RemoveAll(filepath.Join(path, name)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.ReadAt(t.Context(), "key", make([]byte, 10), 0); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("reading what is gone: %v", err)
		}
		if err := s.Create(t.Context(), "key", []byte("after")); err != nil {
			t.Errorf("writing again, with nameless files %v: %v", nameless, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Values are the user's alone to look at, also in a directory that an earlier release made.
func TestValuesAreTheirUsersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	for _, isOld := range []bool{false, true} {
		if isOld {
			if err := os.Chmod(filepath.Join(path, valuesName), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		s := open(t, path)
		if err := s.Create(t.Context(), fmt.Sprint("key", isOld), []byte("value")); err != nil {
			t.Fatal(err)
		}
		if err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: %v", name, info.Mode())
			}
			return err
		}); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

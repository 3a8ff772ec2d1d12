package sqlite_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/catalog/catalogtest"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/sqlite"
)

// childVariable names the database a child process of the test writes to until it is killed.
const childVariable = "RESTRIPE_TEST_CATALOG"

const childClients = 8

func TestMain(m *testing.M) {
	if path := os.Getenv(childVariable); path != "" {
		fmt.Fprintln(os.Stderr, writeUntilKilled(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func open(t testing.TB, path string) *sqlite.Engine {
	t.Helper()
	engine, err := sqlite.Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

func TestEngine(t *testing.T) {
	catalogtest.Run(t, func(t *testing.T) catalogtest.Instance {
		path := filepath.Join(t.TempDir(), "a catalog?with #odd %41 name.db")
		engine := open(t, path)
		return catalogtest.Instance{
			Engine:    engine,
			Second:    func() (kv.Engine, error) { return sqlite.Open(context.Background(), path) },
			Exclusive: true,
			Crash: func() kv.Engine {
				if err := engine.Close(); err != nil {
					t.Error(err)
				}
				return open(t, path)
			},
		}
	})
}

// writeUntilKilled counts, in one record for each client, and says what was acknowledged.
func writeUntilKilled(path string) error {
	ctx := context.Background()
	engine, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	failures := make(chan error)
	for client := range childClients {
		go func() {
			for i := 1; ; i++ {
				write := kv.Write{Key: fmt.Sprintf("client/%d", client), Kind: kv.Increment, Add: 1}
				if _, err := engine.Update(ctx, nil, []kv.Write{write}); err != nil {
					failures <- err
					return
				}
				mu.Lock()
				fmt.Printf("%d %d\n", client, i)
				mu.Unlock()
			}
		}()
	}
	return <-failures
}

// A killed owner leaves neither a lock nor a gap.
func TestKilledOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	acknowledged := [childClients]int{}
	for round := range 3 {
		child := exec.Command(executable)
		child.Env = append(os.Environ(), childVariable+"="+path)
		child.Stderr = os.Stderr
		output, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		before := acknowledged
		lines := bufio.NewScanner(output)
		for count := 0; lines.Scan(); count++ {
			client, number, _ := strings.Cut(lines.Text(), " ")
			i, errClient := strconv.Atoi(client)
			n, errNumber := strconv.Atoi(number)
			if errClient != nil || errNumber != nil {
				continue // the line the kill cut off
			}
			acknowledged[i] = before[i] + n
			if count == 0 {
				_, err := sqlite.Open(context.Background(), path)
				if !errors.Is(err, kv.ErrInUse) || !strings.Contains(err.Error(), strconv.Itoa(child.Process.Pid)) {
					t.Errorf("opening what process %d has open: %v", child.Process.Pid, err)
				}
			}
			if count == 200 {
				if err := child.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := child.Wait(); err == nil {
			t.Fatal("the child ended by itself")
		}
		engine := open(t, path)
		for client := range childClients {
			values, err := engine.Read(context.Background(), fmt.Sprintf("client/%d", client))
			if err != nil {
				t.Fatal(err)
			}
			got := 0
			if values[0] != nil {
				if got, err = strconv.Atoi(string(values[0])); err != nil {
					t.Fatal(err)
				}
			}
			// One more may have been committed without its acknowledgement being seen.
			if got < acknowledged[client] || got > acknowledged[client]+1 {
				t.Errorf("round %d, client %d: %d acknowledged, %d there", round, client, acknowledged[client], got)
			}
			acknowledged[client] = got
		}
		if err := engine.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestForeignFiles(t *testing.T) {
	ctx := context.Background()
	for _, test := range []struct {
		name string
		make func(t *testing.T, path string)
		want error
		text string
	}{
		{"text", func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("no database at all\n", 100)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, nil, "not a database"},
		{"other application", func(t *testing.T, path string) { execute(t, path, "CREATE TABLE songs (title TEXT)") }, nil, "another application"},
		{"newer", func(t *testing.T, path string) {
			if err := open(t, path).Close(); err != nil {
				t.Fatal(err)
			}
			execute(t, path, "PRAGMA user_version = 9")
		}, kv.ErrNewer, "version 9"},
		{"directory", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, nil, "is a directory"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "catalog.db")
			test.make(t, path)
			_, err := sqlite.Open(ctx, path)
			if err == nil || (test.want != nil && !errors.Is(err, test.want)) || !strings.Contains(err.Error(), test.text) || !strings.Contains(err.Error(), path) {
				t.Errorf("opening: %v", err)
			}
		})
	}
	if _, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "absent", "catalog.db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("opening in a directory that is not there: %v", err)
	}
}

func execute(t *testing.T, path, statement string) {
	t.Helper()
	database, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := database.Exec(statement); err != nil {
		t.Fatal(err)
	}
	if err := database.Close(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkUpdate shows what coalescing gains: the same updates by one client and by many.
func BenchmarkUpdate(b *testing.B) {
	for _, parallel := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("clients=%d", parallel), func(b *testing.B) {
			engine := open(b, filepath.Join(b.TempDir(), "catalog.db"))
			defer func() {
				if err := engine.Close(); err != nil {
					b.Error(err)
				}
			}()
			value := make([]byte, 500)
			var all sync.WaitGroup
			work := make(chan int)
			for range parallel {
				all.Go(func() {
					for i := range work {
						write := kv.Write{Key: fmt.Sprintf("o/%d", i), Value: value}
						if _, err := engine.Update(context.Background(), []kv.Check{{Key: write.Key}}, []kv.Write{write}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			for i := range b.N {
				work <- i
			}
			close(work)
			all.Wait()
		})
	}
}

// What is written once more as it is need not reach the file, and all else does, whatever of it is in memory.
func TestWritesOfWhatIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	engine := open(t, path)
	update := func(writes ...kv.Write) {
		t.Helper()
		if failed, err := engine.Update(t.Context(), nil, writes); err != nil || len(failed) > 0 {
			t.Fatalf("updating: %v failed, %v", failed, err)
		}
	}
	set := func(key, value string) kv.Write { return kv.Write{Key: key, Value: []byte(value)} }
	remove := func(key string) kv.Write { return kv.Write{Key: key, Kind: kv.Remove} }
	update(set("a", "1"), set("b", ""), set("c", "1"), set("d", "1"))
	update(set("a", "1"), set("b", ""), set("c", "1"), remove("e"))
	update(remove("a"), remove("b"), set("c", "2"), set("c", "1"), remove("d"), set("d", "1"))
	update(remove("a"), set("b", ""), remove("b"), set("f", ""))
	update(set("a", "1"), remove("f"), set("f", ""))
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	engine = open(t, path) // with nothing in memory
	defer func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}()
	records, err := engine.Scan(t.Context(), "", "", 10)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, record := range records {
		got += fmt.Sprintf("%s=%s ", record.Key, record.Value)
	}
	if want := "a=1 c=1 d=1 f= "; got != want {
		t.Errorf("the file has %q, want %q", got, want)
	}
}

// BenchmarkBatch is what a batch of small objects costs the catalog: it reads 50 of 100,000 records, and writes them with one of a new
// group and those that count what is left in the groups where they were. Processor is that of the whole process, for one record.
func BenchmarkBatch(b *testing.B) {
	engine := open(b, filepath.Join(b.TempDir(), "catalog.db"))
	defer func() {
		if err := engine.Close(); err != nil {
			b.Error(err)
		}
	}()
	const each = 50
	random := rand.New(rand.NewPCG(1, 2))
	batch := func(group int, pick func(i int) int) {
		keys := make([]string, each)
		writes := []kv.Write{{Key: fmt.Sprintf("g/%d", group), Value: make([]byte, 1500)}}
		left := map[int]bool{}
		for i := range keys {
			record := pick(i)
			keys[i], left[record%(100_000/each)] = fmt.Sprintf("o/%012d", record), true
			writes = append(writes, kv.Write{Key: keys[i], Value: fmt.Appendf(nil, "%200d", group)})
		}
		for of := range left {
			writes = append(writes, kv.Write{Key: fmt.Sprintf("l/%012d", of), Kind: kv.Increment, Add: 1},
				kv.Write{Key: fmt.Sprintf("b/%012d", of), Kind: kv.Increment, Add: 1000}, kv.Write{Key: fmt.Sprintf("f/%012d", of)})
		}
		if _, err := engine.Read(b.Context(), keys...); err != nil {
			b.Fatal(err)
		}
		if _, err := engine.Update(b.Context(), nil, writes); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 100_000 / each {
		batch(i, func(of int) int { return i*each + of })
	}
	began := processor(b)
	b.ResetTimer()
	for i := range b.N {
		batch(1e6+i, func(int) int { return random.IntN(100_000) })
	}
	b.ReportMetric(float64((processor(b)-began).Microseconds())/float64(b.N*each), "cpu-µs/record")
}

// processor is how much of it this process has used.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func BenchmarkRead(b *testing.B) {
	engine := open(b, filepath.Join(b.TempDir(), "catalog.db"))
	defer func() {
		if err := engine.Close(); err != nil {
			b.Error(err)
		}
	}()
	var writes []kv.Write
	var keys []string
	for i := range 32 {
		keys = append(keys, fmt.Sprintf("g/%d", i))
		writes = append(writes, kv.Write{Key: keys[i], Value: make([]byte, 500)})
	}
	if _, err := engine.Update(context.Background(), nil, writes); err != nil {
		b.Fatal(err)
	}
	for _, count := range []int{1, 3, 32} {
		b.Run(fmt.Sprintf("keys=%d", count), func(b *testing.B) {
			for range b.N {
				if _, err := engine.Read(context.Background(), keys[:count]...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A disk that hangs does not hang whoever has a deadline: the outcome is unknown to it.
func TestAnUpdateIsNotWaitedForBeyondItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	engine := open(t, path)
	database, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	hang, err := database.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hang.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	value := []byte("value")
	if _, err := engine.Update(ctx, nil, []kv.Write{{Key: "k", Value: value}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an update while the database is locked: %v", err)
	}
	copy(value, "other") // it is the caller's again
	if _, err := hang.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Update(t.Context(), nil, []kv.Write{{Key: "later", Value: []byte("value")}}); err != nil {
		t.Error(err)
	}
	if values, err := engine.Read(t.Context(), "k"); err != nil || values[0] != nil && string(values[0]) != "value" {
		t.Errorf("%q, %v", values, err)
	}
	if err := errors.Join(hang.Close(), database.Close(), engine.Close()); err != nil {
		t.Error(err)
	}
}

// Whoever reads for long keeps SQLite from beginning its log anew. Afterwards it is as short as before.
func TestTheLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	engine := open(t, path)
	database, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := database.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.ExecContext(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	var records int
	if err := reader.QueryRowContext(t.Context(), "SELECT count(*) FROM records").Scan(&records); err != nil {
		t.Fatal(err)
	}
	version := byte(0)
	size := func() int64 {
		t.Helper()
		version++
		value := bytes.Repeat([]byte{version}, 1<<20) // what is as it was takes no place in the log
		if _, err := engine.Update(t.Context(), nil, []kv.Write{{Key: "k", Value: value}}); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	const limit = 40 << 20
	for i := 0; size() < limit; i++ {
		if i > 100 {
			t.Fatal("a reader does not keep the log from being begun anew: the test tests nothing")
		}
	}
	if _, err := reader.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	for i := 0; size() >= limit; i++ {
		if i > 100_000 {
			t.Fatal("the log stays long")
		}
	}
	if err := errors.Join(reader.Close(), database.Close(), engine.Close()); err != nil {
		t.Error(err)
	}
}

// A catalog has every key and a secret: its files are its user's alone, also where an earlier release made them.
func TestFilesAreTheirUsersAlone(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "catalog.db")
	for _, isOld := range []bool{false, true} {
		if isOld {
			if err := os.Chmod(path, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		engine := open(t, path)
		if _, err := engine.Update(t.Context(), nil, []kv.Write{{Key: "k", Value: []byte("v")}}); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(directory)
		if err != nil || len(entries) < 3 {
			t.Fatalf("%v, %v", entries, err)
		}
		for _, entry := range entries {
			if info, err := entry.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: %v, %v", entry.Name(), info.Mode(), err)
			}
		}
		if err := engine.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A record of the size that groups have takes little more than its own bytes, in a file that is made now; one that was made with other
// pages goes on.
func TestGroupRecordsFitPages(t *testing.T) {
	for _, pages := range []struct {
		size string
		most int64 // bytes of the file for one of the values
	}{{"", 2200}, {"4096", 6000}} {
		path := filepath.Join(t.TempDir(), "catalog.db")
		if pages.size != "" {
			execute(t, path, "PRAGMA page_size = "+pages.size+"; VACUUM")
		}
		engine := open(t, path)
		const records, bytes = 2000, 1500
		for from := 0; from < records; from += 500 {
			var writes []kv.Write
			for i := from; i < from+500; i++ {
				writes = append(writes, kv.Write{Key: fmt.Sprintf("g/%08d", i), Value: make([]byte, bytes)})
			}
			if _, err := engine.Update(t.Context(), nil, writes); err != nil {
				t.Fatal(err)
			}
		}
		size, err := engine.Size(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if each := size.Bytes / records; each > pages.most {
			t.Errorf("pages of %q bytes: %d bytes for a value of %d", pages.size, each, bytes)
		} else {
			t.Logf("pages of %q bytes: %d bytes for a value of %d", pages.size, each, bytes)
		}
		if err := engine.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

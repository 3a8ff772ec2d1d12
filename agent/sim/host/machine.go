package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/restripe/restripe/agent/sim"
)

// machine runs seeds of one guest program, each in an instance of its own. Safe for concurrent use.
type machine struct {
	runtime wazero.Runtime
	guest   wazero.CompiledModule
}

// outcome is what became of one seed.
type outcome struct {
	sim.Result
	Hash string // of the whole journal
	Tail []byte // the end of the journal
}

// memoryPages of 64 KiB are what a guest may take, at once, so that its memory is not copied as it grows.
const memoryPages = 256 << 20 >> 16

// newMachine compiles the guest at path. What was compiled before is taken from the folder cache, if there is one.
func newMachine(ctx context.Context, path, cache string) (*machine, error) {
	code, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the guest: %w", err)
	}
	config := wazero.NewRuntimeConfigCompiler().WithMemoryLimitPages(memoryPages).WithMemoryCapacityFromMax(true)
	if cache != "" {
		compiled, err := wazero.NewCompilationCacheWithDir(cache)
		if err != nil {
			return nil, fmt.Errorf("opening the cache of compiled guests: %w", err)
		}
		config = config.WithCompilationCache(compiled)
	}
	m := &machine{runtime: wazero.NewRuntimeWithConfig(ctx, config)}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, m.runtime); err != nil {
		return nil, errors.Join(err, m.close(ctx))
	}
	if m.guest, err = m.runtime.CompileModule(experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0)), code); err != nil {
		return nil, errors.Join(fmt.Errorf("compiling the guest: %w", err), m.close(ctx))
	}
	return m, nil
}

func (m *machine) close(ctx context.Context) error { return m.runtime.Close(ctx) }

// clock is the guest's: it stands still while the guest computes, but for a little at each look, and jumps when the guest
// has nothing to do but wait.
type clock struct{ nanoseconds int64 }

const (
	epoch = 1_900_000_000 // Unix seconds, when every run begins
	look  = 200           // nanoseconds that a look at the clock takes
)

func (c *clock) nanotime() int64 {
	c.nanoseconds += look
	return c.nanoseconds
}

func (c *clock) walltime() (seconds int64, nanoseconds int32) {
	now := c.nanotime()
	return epoch + now/1e9, int32(now % 1e9)
}

func (c *clock) sleep(nanoseconds int64) { c.nanoseconds += nanoseconds }

// run carries out one seed. Its journal also goes to copy, which may be nil. An error says that the guest itself broke.
func (m *machine) run(ctx context.Context, seed uint64, size sim.Size, copy io.Writer) (outcome, error) {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	random, time, journal := rand.NewChaCha8(key), &clock{nanoseconds: 1}, newRecorder(copy)
	var complaint bytes.Buffer
	config := wazero.NewModuleConfig().WithName("").WithArgs("guest", strconv.FormatUint(seed, 10), string(size)).
		WithStdout(journal).WithStderr(&complaint).WithRandSource(random).
		WithWalltime(time.walltime, look).WithNanotime(time.nanotime, look).WithNanosleep(time.sleep)
	module, err := m.runtime.InstantiateModule(ctx, m.guest, config)
	if module != nil {
		err = errors.Join(err, module.Close(ctx))
	}
	var exit *sys.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 0 {
		err = nil
	}
	done := outcome{Result: sim.Result{Seed: seed}, Hash: hex.EncodeToString(journal.sum.Sum(nil)), Tail: journal.tail}
	if err != nil {
		return done, fmt.Errorf("seed %d: the guest broke: %w\n%s", seed, err, last(complaint.Bytes(), 8000))
	}
	lines := bytes.Split(bytes.TrimSpace(journal.tail), []byte("\n"))
	if err := json.Unmarshal(lines[len(lines)-1], &done.Result); err != nil {
		return done, fmt.Errorf("seed %d: reading the result: %w", seed, err)
	}
	return done, nil
}

func last(text []byte, limit int) []byte { return text[max(0, len(text)-limit):] }

// recorder keeps the hash of all and the end of what is written.
type recorder struct {
	sum  hash.Hash
	tail []byte
	copy io.Writer
}

const tailBytes = 32 << 10

func newRecorder(copy io.Writer) *recorder { return &recorder{sum: sha256.New(), copy: copy} }

func (r *recorder) Write(p []byte) (int, error) {
	if r.copy != nil {
		if n, err := r.copy.Write(p); err != nil {
			return n, err
		}
	}
	r.tail = append(r.tail, p...)
	if len(r.tail) > 2*tailBytes {
		r.tail = append(r.tail[:0], r.tail[len(r.tail)-tailBytes:]...)
	}
	return r.sum.Write(p)
}

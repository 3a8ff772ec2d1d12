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
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/restripe/restripe/agent/sim"
)

// machine runs seeds of one guest program, each in a process of its own. Safe for concurrent use.
type machine struct {
	guest string
}

// outcome is what became of one seed.
type outcome struct {
	sim.Result
	Hash   string // of the whole journal
	Tail   []byte // the end of the journal
	Memory int64  // bytes that the guest had at most
}

// guestTime is how long a guest may take by the clock of this machine. It takes a tenth of a second; one that still runs goes
// round in circles, while its own clock stands still.
const guestTime = 5 * time.Minute

// guestMemory is how much address space a guest may have, in bytes. It takes a tenth of it at most; one that keeps what it
// never lets go of must not take the memory of the machine, whose other guests then stand still.
const guestMemory = 6 << 30

// guestEnvironment is all that a guest has of it.
var guestEnvironment = []string{"GOMAXPROCS=1", "GOGC=off", "GOTRACEBACK=all"}

// run carries out one seed. Its journal also goes to copy, which may be nil. An error says that the guest itself broke.
func (m *machine) run(ctx context.Context, seed uint64, size sim.Size, copy io.Writer) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, guestTime)
	defer cancel()
	done := outcome{Result: sim.Result{Seed: seed}}
	read, write, err := os.Pipe()
	if err != nil {
		return done, err
	}
	var complaint bytes.Buffer
	command := exec.CommandContext(ctx, m.guest, strconv.FormatUint(seed, 10), string(size))
	command.Env, command.Stderr, command.ExtraFiles = guestEnvironment, &complaint, []*os.File{write}
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGQUIT) } // so that it says where it is
	command.WaitDelay = 10 * time.Second
	err = command.Start()
	err = errors.Join(err, write.Close())
	if command.Process != nil {
		bound := unix.Rlimit{Cur: guestMemory, Max: guestMemory}
		err = errors.Join(err, unix.Prlimit(command.Process.Pid, unix.RLIMIT_AS, &bound, nil))
	}
	journal := newRecorder(copy)
	if command.Process != nil {
		_, failed := io.Copy(journal, read)
		err = errors.Join(err, failed, command.Wait())
		if usage, known := command.ProcessState.SysUsage().(*syscall.Rusage); known {
			done.Memory = usage.Maxrss << 10
		}
	}
	err = errors.Join(err, read.Close())
	done.Hash, done.Tail = hex.EncodeToString(journal.sum.Sum(nil)), journal.tail
	if err != nil {
		return done, fmt.Errorf("seed %d: the guest broke: %w\n%s", seed, err, first(unframe(complaint.Bytes()), 8000))
	}
	lines := bytes.Split(bytes.TrimSpace(journal.tail), []byte("\n"))
	if err := json.Unmarshal(lines[len(lines)-1], &done.Result); err != nil {
		return done, fmt.Errorf("seed %d: reading the result: %w", seed, err)
	}
	return done, nil
}

func first(text []byte, limit int) []byte { return text[:min(limit, len(text))] }

// unframe takes away the heads that a program with fake time puts before everything it writes to its standard files: two
// zeroes, PB, the time as 8 bytes and the length of what follows as 4.
func unframe(text []byte) []byte {
	const head = 16
	var plain []byte
	for len(text) > 0 {
		if len(text) < head || string(text[:4]) != "\x00\x00PB" {
			plain, text = append(plain, text[0]), text[1:]
			continue
		}
		end := head + min(int(binary.BigEndian.Uint32(text[12:head])), len(text)-head)
		plain, text = append(plain, text[head:end]...), text[end:]
	}
	return plain
}

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

//go:build unix

// Command guest runs one seed of the simulation: guest SEED SIZE. It is built and run by agent/sim/host. The journal goes to
// file 3; its last line is the result as JSON.
package main

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	random "math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"github.com/restripe/restripe/agent/sim"
)

func main() {
	if err := run(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		os.Exit(2)
	}
}

func run(arguments []string) error {
	if len(arguments) != 3 {
		return fmt.Errorf("usage: guest SEED short|long")
	}
	seed, err := strconv.ParseUint(arguments[1], 10, 64)
	if err != nil {
		return fmt.Errorf("seed %q: %w", arguments[1], err)
	}
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	rand.Reader = random.NewChaCha8(key)
	result, err := json.Marshal(sim.Run(seed, sim.Size(arguments[2]), journal))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(journal, "%s\n", result)
	return err
}

const journal = file(3)

// file is written to without the scheduler being told, which lets other goroutines run while one is in the kernel.
type file uintptr

func (f file) Write(p []byte) (wrote int, err error) {
	for wrote < len(p) {
		rest := p[wrote:]
		n, _, failed := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(f), uintptr(unsafe.Pointer(unsafe.SliceData(rest))), uintptr(len(rest)))
		if failed != 0 {
			return wrote, failed
		}
		wrote += int(n)
	}
	return wrote, nil
}

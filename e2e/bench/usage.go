//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// clockTick is the unit of CPU times in /proc, fixed by the kernel's interface.
const clockTick = time.Second / 100

// processTime returns the CPU time a process has used.
func processTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, fmt.Errorf("reading CPU time: %w", err)
	}
	return parseProcessTime(text)
}

// parseProcessTime reads utime and stime of /proc/PID/stat. The name of the program, in parentheses, may hold anything.
func parseProcessTime(text []byte) (time.Duration, error) {
	end := bytes.LastIndexByte(text, ')')
	if end < 0 {
		return 0, fmt.Errorf("reading CPU time: %q has no name of a program", text)
	}
	fields := strings.Fields(string(text[end+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("reading CPU time: %d fields, want 13 and more", len(fields))
	}
	var ticks int64
	for _, field := range fields[11:13] {
		value, err := strconv.ParseInt(field, 10, 40)
		if err != nil || value < 0 {
			return 0, fmt.Errorf("reading CPU time: %q is not a count of ticks", field)
		}
		ticks += value
	}
	return time.Duration(ticks) * clockTick, nil
}

// ownTime returns the CPU time the bench itself has used.
func ownTime() (time.Duration, error) {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("reading the CPU time of the bench: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

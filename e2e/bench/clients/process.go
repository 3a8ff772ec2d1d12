package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// clockTick is the unit of processor times in /proc, fixed by the kernel's interface.
const clockTick = time.Second / 100

// stat is what /proc/PID/stat has behind the name of the program, which is in parentheses and may hold anything.
func stat(pid int) ([]string, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return nil, fmt.Errorf("/proc/%d/stat has %d fields behind the name, want 13 and more", pid, len(fields))
	}
	return fields, nil
}

// processorTime is what processes have used of the processors.
func processorTime(pids []int) (total time.Duration, err error) {
	for _, pid := range pids {
		fields, err := stat(pid)
		if err != nil {
			return 0, fmt.Errorf("reading processor time: %w", err)
		}
		for _, field := range fields[11:13] {
			ticks, err := strconv.ParseInt(field, 10, 40)
			if err != nil {
				return 0, fmt.Errorf("reading processor time: %w", err)
			}
			total += time.Duration(ticks) * clockTick
		}
	}
	return total, nil
}

// descendants are the processes that a process began, and they in turn.
func descendants(of int) (pids []int, err error) {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, folder := range folders {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			continue // no process
		}
		fields, err := stat(pid)
		if err != nil {
			continue // has ended meanwhile
		}
		if parent, err := strconv.Atoi(fields[1]); err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	for next := []int{of}; len(next) > 0; next = next[1:] {
		pids = append(pids, children[next[0]]...)
		next = append(next, children[next[0]]...)
	}
	return pids, nil
}

// gatewayAmong finds the gateway among processes of the program.
func gatewayAmong(pids []int) (int, error) {
	for _, pid := range pids {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if words := strings.Split(string(line), "\x00"); err == nil && len(words) > 1 && words[1] == "gateway" {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("none of %d processes is a gateway", len(pids))
}

// raiseOpenFiles has this process, and those that it starts, open as many files as that if it may, and returns how many it may.
func raiseOpenFiles(want uint64) (uint64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("reading the limit of open files: %w", err)
	}
	if limit.Max < want {
		err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: want, Max: want})
		if err == nil {
			return want, nil
		}
		if !errors.Is(err, syscall.EPERM) { // else only root may
			return 0, fmt.Errorf("raising the limit of open files: %w", err)
		}
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("raising the limit of open files: %w", err)
	}
	return limit.Cur, nil
}

package postgrestest

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// account is as whom servers run that root starts, as which they refuse to.
const account = "nobody"

// Account gives a folder to the user as whom servers run, and returns what a command needs to run as that user: nil for the present
// one.
func Account(folder string) (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	other, err := user.Lookup(account)
	if err != nil {
		return nil, err
	}
	id, err := strconv.Atoi(other.Uid)
	if err != nil {
		return nil, err
	}
	if err := os.Chown(folder, id, id); err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(id), Gid: uint32(id)}, nil
}

// Signal is for a process and all that it has started.
func Signal(pid int, signal syscall.Signal) error {
	family, err := children(pid)
	if err != nil {
		return err
	}
	for _, process := range append(family, pid) {
		if err := syscall.Kill(process, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("sending %v to process %d: %w", signal, process, err)
		}
	}
	return nil
}

// Kill ends a process and all that it has started, none of which may do anything any more. Gone reports whether they are.
func Kill(pid int) (gone func() bool, err error) {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil && !errors.Is(err, syscall.ESRCH) { // it makes no more of them
		return nil, err
	}
	family, err := children(pid)
	if err != nil {
		return nil, err
	}
	for _, process := range append(family, pid) {
		if err := syscall.Kill(process, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return nil, err
		}
	}
	return func() bool {
		return !slices.ContainsFunc(family, func(process int) bool { parent, state := status(process); return parent > 0 && state != "Z" })
	}, nil
}

// children are the processes that one has started.
func children(of int) (pids []int, err error) {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	for _, folder := range all {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			return nil, err
		}
		if parent, _ := status(pid); parent == of {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// status is the parent of a process and its state; 0 where there is none.
func status(pid int) (parent int, state string) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, ""
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	parent, err = strconv.Atoi(fields[1])
	if err != nil {
		return 0, ""
	}
	return parent, fields[0]
}

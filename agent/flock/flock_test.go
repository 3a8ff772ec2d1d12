package flock_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/restripe/restripe/agent/flock"
)

func TestOneOpeningAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	first, second := open(), open()
	defer second.Close()
	if err := flock.Take(first); err != nil {
		t.Fatal(err)
	}
	if err := flock.Take(second); !errors.Is(err, flock.ErrHeld) {
		t.Errorf("taking what is held: %v, want %v", err, flock.ErrHeld)
	}
	forked, err := unix.Dup(int(first.Fd())) // what a child has between its fork and its program
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(forked)
	if err := flock.Release(first); err != nil {
		t.Fatal(err)
	}
	if err := flock.Take(second); err != nil {
		t.Errorf("taking what was released while a child was forked: %v", err)
	}
}

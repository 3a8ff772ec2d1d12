package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// clock is a clock of processor time.
type clock int32

const (
	threadClock  clock = unix.CLOCK_THREAD_CPUTIME_ID
	processClock clock = unix.CLOCK_PROCESS_CPUTIME_ID
)

// now returns nanoseconds. It panics if the system has no such clock, a mistake of the program's requirements.
func (c clock) now() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(int32(c), &now); err != nil {
		panic(fmt.Sprintf("reading processor clock %d: %v", c, err))
	}
	return now.Nano()
}

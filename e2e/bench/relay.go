//go:build linux

package main

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/launch"
)

// A chain of bare relays shows what so many hops take on a machine where next to nothing is done at each: one process for
// each survivor reads its block, adds it to what comes and sends the sum on, in the pieces of the product's chain. Nothing
// is compared with checksums, acknowledged or stored. Its coefficients are ones, as those of the sums for a lost column are.

const (
	relayCommand = "relay" // as the first argument it makes this program one
	relayFirst   = "first" // as the last but one: it begins the chain
	relayPort    = ":7410"
)

// relay serves until its standard input ends: whoever connects has it pass on one block. The arguments are where it
// listens, where the next one does, the file of its block, and perhaps relayFirst.
func relay(arguments []string, in io.Reader, out io.Writer) error {
	if len(arguments) < 3 {
		return fmt.Errorf("a relay takes two addresses and a file, not %q", arguments)
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp4", arguments[0])
	if err != nil {
		return fmt.Errorf("starting a relay: %w", err)
	}
	closed := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, in)
		closed <- errors.Join(err, listener.Close())
	}()
	if _, err := fmt.Fprintf(out, "relay%s%s\n", launch.ListeningMark, arguments[0]); err != nil {
		return fmt.Errorf("starting a relay: %w", err)
	}
	for {
		connection, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return <-closed
		}
		if err == nil {
			err = errors.Join(passOnSums(connection, arguments[1], arguments[2], slices.Contains(arguments, relayFirst)), connection.Close())
		}
		if err != nil {
			return fmt.Errorf("relaying to %s: %w", arguments[1], err)
		}
	}
}

func passOnSums(from io.Reader, next, path string, first bool) (err error) {
	own, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.Close()) }()
	to, err := (&net.Dialer{}).DialContext(context.Background(), "tcp4", next)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	stored, came := make([]byte, blockPieceBytes), make([]byte, blockPieceBytes)
	for {
		n, err := io.ReadFull(own, stored)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		if !first {
			if _, err := io.ReadFull(from, came[:n]); err != nil {
				return err
			}
			subtle.XORBytes(stored, stored[:n], came[:n])
		}
		if _, err := to.Write(stored[:n]); err != nil {
			return err
		}
	}
}

// cellFile is where the cell of a slot is kept for its relay.
func (s *stage) cellFile(slot int) string { return filepath.Join(s.state, s.members[slot]+".cell") }

// startRelays makes a chain of the other columns and the first parity row, which has only ones, to the lost column.
func (s *stage) startRelays(ctx context.Context) (err error) {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	address := func(slot int) string { return s.network.address(s.members[slot]) + relayPort }
	if err := inside(s.members[0], func() (err error) {
		s.sink, err = net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address(0))))
		return err
	}); err != nil {
		return err
	}
	for slot := 1; slot <= s.scheme.K; slot++ {
		arguments := []string{relayCommand, address(slot), address(slot - 1), s.cellFile(slot)}
		if slot == s.scheme.K {
			arguments = append(arguments, relayFirst)
		}
		one, err := startProcess(ctx, s.members[slot], s.cellFile(slot)+".log", program, arguments...)
		if err != nil {
			return err
		}
		s.relays = append(s.relays, one)
	}
	return nil
}

// relayed has the relays make the lost cell, and compares it with what it was.
func (s *stage) relayed(ctx context.Context) (elapsed time.Duration, err error) {
	cell := make([]byte, s.cell)
	clear(cell) // its memory is there before the clock starts
	began := time.Now()
	deadline := began.Add(awaitPatience) // a relay that fails ends, and nobody connects
	if err := s.sink.SetDeadline(deadline); err != nil {
		return 0, fmt.Errorf("starting a chain of relays: %w", err)
	}
	start, err := (&net.Dialer{}).DialContext(ctx, "tcp4", s.network.address(s.members[s.scheme.K])+relayPort)
	if err != nil {
		return 0, fmt.Errorf("starting a chain of relays: %w", err)
	}
	defer func() { err = errors.Join(err, start.Close()) }()
	last, err := s.sink.Accept()
	if err != nil {
		return 0, fmt.Errorf("waiting for the last relay: %w", err)
	}
	defer func() { err = errors.Join(err, last.Close()) }()
	err = last.SetDeadline(deadline)
	if err == nil {
		_, err = io.ReadFull(last, cell)
	}
	if err != nil {
		return 0, fmt.Errorf("reading from the last relay: %w", err)
	}
	elapsed = time.Since(began)
	if kernel.Checksum(cell) != s.want {
		return 0, fmt.Errorf("%w: the relays' sum is not the lost cell", errDifferent)
	}
	return elapsed, nil
}

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// carry sends so many bytes over one TCP connection from one namespace to another and returns how long that took, from
// before it was opened until the last byte was there.
func (n *network) carry(ctx context.Context, from, to string, count int) (elapsed time.Duration, err error) {
	var listener net.Listener
	if err := inside(to, func() (err error) {
		listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp4", n.address(to)+":0")
		return err
	}); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, listener.Close()) }()
	data, err := randomBytes(count)
	if err != nil {
		return 0, err
	}
	came := make(chan error, 1)
	go func() { came <- swallow(listener, count) }()
	began := time.Now()
	if err := inside(from, func() (err error) {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp4", listener.Addr().String())
		if err != nil {
			return err
		}
		_, err = connection.Write(data)
		return errors.Join(err, connection.Close())
	}); err != nil {
		return 0, fmt.Errorf("carrying %d bytes: %w", count, err)
	}
	err = <-came
	return time.Since(began), err
}

// swallow takes one connection and reads it to its end.
func swallow(listener net.Listener, count int) error {
	connection, err := listener.Accept()
	if err != nil {
		return fmt.Errorf("taking bytes: %w", err)
	}
	n, err := io.Copy(io.Discard, connection)
	if err == nil && n != int64(count) {
		err = fmt.Errorf("%d bytes came, %d were sent", n, count)
	}
	return errors.Join(err, connection.Close())
}

// inside calls work on a thread that is in a namespace. Sockets that it opens stay there.
func inside(namespace string, work func() error) error {
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine, and nobody else gets it
		ended <- enter(namespace, work)
	}()
	return <-ended
}

func enter(namespace string, work func() error) error {
	descriptor, err := unix.Open(filepath.Join(namesDirectory, namespace), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening namespace %s: %w", namespace, err)
	}
	err = unix.Setns(descriptor, unix.CLONE_NEWNET)
	if err == nil {
		err = work()
	}
	if err = errors.Join(err, unix.Close(descriptor)); err != nil {
		return fmt.Errorf("in namespace %s: %w", namespace, err)
	}
	return nil
}

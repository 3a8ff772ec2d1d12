package program

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A service manager hears that a process serves, that it lives for as long as it does, and nothing while it does not.
func TestWatchdogsHearOfTheLiving(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	hear := func() string {
		t.Helper()
		if err := manager.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		text := make([]byte, 128)
		n, err := manager.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(text[:n])
	}
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", strconv.Itoa(20_000))
	var log strings.Builder
	var dead atomic.Bool
	asked := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	Lives(ctx, slog.New(slog.NewTextHandler(&log, nil)), func(ctx context.Context) error {
		if !dead.Load() {
			return nil
		}
		select {
		case asked <- struct{}{}:
		case <-ctx.Done():
		}
		return errors.New("the catalog does not answer")
	})
	if said := hear(); said != "READY=1" {
		t.Errorf("it says %q first", said)
	}
	for range 3 {
		if said := hear(); said != "WATCHDOG=1" {
			t.Errorf("it says %q", said)
		}
	}
	dead.Store(true)
	for range 3 {
		<-asked
	}
	cancel()
	for said := ""; said != "STOPPING=1"; { // what it said before it died may still be on its way
		if said = hear(); said != "WATCHDOG=1" && said != "STOPPING=1" {
			t.Errorf("it says %q", said)
		}
	}
	if !strings.Contains(log.String(), "the catalog does not answer") {
		t.Errorf("the log does not say why: %s", log.String())
	}
}

// Without a service manager nobody is told, and nothing is logged.
func TestNobodyToNotify(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("WATCHDOG_USEC", "")
	var log strings.Builder
	ctx, cancel := context.WithCancel(t.Context())
	Lives(ctx, slog.New(slog.NewTextHandler(&log, nil)), func(context.Context) error { return errors.New("asked") })
	cancel()
	if log.String() != "" {
		t.Errorf("it logs %s", log.String())
	}
}

package program

import (
	"context"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Lives tells the service manager that started this process, if it is one that listens (sd_notify), that the process serves, and from
// then on until ctx ends that it lives, as often as the manager's watchdog wants to hear it. It says so only while alive returns nil
// within half of the watchdog's time, so that a process that serves nobody any more is started anew.
func Lives(ctx context.Context, log *slog.Logger, alive func(ctx context.Context) error) {
	notify(log, daemon.SdNotifyReady)
	timeout, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("the watchdog of the service manager is not understood, and is told nothing", "cause", err)
	}
	go func() {
		if timeout > 0 {
			keepSaying(ctx, log, timeout, alive)
		} else {
			<-ctx.Done()
		}
		notify(log, daemon.SdNotifyStopping)
	}()
}

// keepSaying tells the watchdog until ctx ends.
func keepSaying(ctx context.Context, log *slog.Logger, timeout time.Duration, alive func(ctx context.Context) error) {
	every := time.NewTicker(timeout / 4)
	defer every.Stop()
	wasAlive := true
	for ctx.Err() == nil {
		within, cancel := context.WithTimeout(ctx, timeout/2)
		err := alive(within)
		cancel()
		switch {
		case err == nil:
			notify(log, daemon.SdNotifyWatchdog)
		case wasAlive && ctx.Err() == nil:
			log.Warn("the watchdog of the service manager is not told that this process lives", "cause", err)
		}
		wasAlive = err == nil
		select {
		case <-ctx.Done():
		case <-every.C:
		}
	}
}

// notify tells the service manager something. Without one there is nobody to tell.
func notify(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("the service manager could not be told", "what", state, "cause", err)
	}
}

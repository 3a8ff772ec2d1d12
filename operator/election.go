package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/restripe/restripe/agent/flock"
)

// Election says how one of several operators becomes the one that acts. At most one field is set; with none, this
// operator acts at once.
type Election struct {
	// LeaseNamespace is where the Lease lives that operators on a cluster hold in turn.
	LeaseNamespace string

	// LockFile is held by operators on one machine in turn, for API servers that have no Leases. The system releases it
	// when its holder ends, however it ends.
	LockFile string
}

// leaseName is the name of the Lease.
const leaseName = "operator.restripe.io"

// lockRetry is how often an operator that waits tries the lock file.
const lockRetry = 250 * time.Millisecond

// lock waits for the lock file and returns it held, for flock.Release.
func lock(ctx context.Context, path string, log *slog.Logger) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the operator's lock file: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the operator's lock file: %w", err)
	}
	again := time.NewTicker(lockRetry)
	defer again.Stop()
	for told := false; ; told = true {
		err := flock.Take(file)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, flock.ErrHeld) {
			return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), file.Close())
		}
		if !told {
			log.Info("another operator acts; waiting for it to end", "lock", path)
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), file.Close())
		case <-again.C:
		}
	}
}

package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Bounds on what children write: a log of more than logBytes, looked at every logEvery, becomes the one before, PATH.1.
const (
	logBytes = 16 << 20
	logEvery = 10 * time.Second
)

// boundLog copies a log that has more than limit bytes away and empties it. Its child goes on to write to the same file, at its
// end; lines that it writes in that moment may be lost.
func boundLog(path string, limit int64) (err error) {
	info, err := os.Stat(path)
	if err != nil || info.Size() <= limit {
		return err
	}
	log, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("turning the log over: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	before, err := os.OpenFile(path+".1", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("turning the log over: %w", err)
	}
	_, err = io.Copy(before, log)
	if err = errors.Join(err, before.Close()); err != nil {
		return fmt.Errorf("turning the log over: %w", err)
	}
	if err := log.Truncate(0); err != nil {
		return fmt.Errorf("turning the log over: %w", err)
	}
	return nil
}

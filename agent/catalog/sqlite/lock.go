package sqlite

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/flock"
)

// lockFile takes the lock that makes one Engine the owner of the database at path. The file stays when the lock goes:
// removing it would let two processes lock two files of one name.
func lockFile(path string) (*os.File, error) {
	name := path + ".lock"
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the catalog %s: locking it: %w: create the directory, or name another file", path, err)
	}
	err = flock.Take(file)
	if errors.Is(err, flock.ErrHeld) {
		owner := ownerOf(file)
		return nil, errors.Join(fmt.Errorf("opening the catalog %s: %w by %s, which holds the lock %s: stop it, or use a catalog engine for several gateways (redis)",
			path, kv.ErrInUse, owner, name), file.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the catalog %s: locking %s: %w: keep the catalog on a local file system", path, name, err), file.Close())
	}
	// For the message above; the lock does not depend on it.
	content := fmt.Sprintf("process %d\n", os.Getpid())
	if _, err := file.WriteAt([]byte(content), 0); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the catalog %s: writing %s: %w", path, name, err), flock.Release(file))
	}
	if err := file.Truncate(int64(len(content))); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the catalog %s: writing %s: %w", path, name, err), flock.Release(file))
	}
	return file, nil
}

// logSuffix makes the name of the file that SQLite writes ahead to.
const logSuffix = "-wal"

// makeFile makes an empty file at path if there is none, for its user alone. The files that SQLite puts beside it get its permissions.
func makeFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

// closeToOthers leaves a catalog that an earlier release made to its user: it has every key, and the secret of the fingerprints.
// Whoever does not own the files cannot do that, and must not be kept from them.
func closeToOthers(path string) error {
	for _, name := range []string{path, path + logSuffix, path + "-shm"} {
		err := os.Chmod(name, 0o600)
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission) {
			return err
		}
	}
	return nil
}

func ownerOf(file *os.File) string {
	content := make([]byte, 64)
	count, err := file.ReadAt(content, 0)
	if owner := strings.TrimSpace(string(content[:count])); owner != "" {
		return owner
	}
	if err != nil {
		return "another process"
	}
	return "another process, just starting"
}

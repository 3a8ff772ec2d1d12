// Package atomicfile writes files whole or not at all, also through a power cut.
package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Write gives the file at path the text, for the eyes of its owner alone. Whoever reads it meanwhile, and whoever reads it after
// a crash, finds what was there or all of the new text; once it returns it is the new one. Two that write one file at a time
// have to agree among themselves.
func Write(path string, text []byte) error {
	staged := path + ".new"
	err := writeSynced(staged, text)
	if err == nil {
		err = os.Rename(staged, path)
	}
	if err == nil {
		err = syncDirectory(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func writeSynced(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// syncDirectory makes a name in a directory last.
func syncDirectory(path string) error {
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}

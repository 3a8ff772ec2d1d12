package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// writeHead puts the head on disk; it never names a record that is not there yet.
func (l *Log) writeHead() error {
	text, err := json.Marshal(l.head)
	if err != nil {
		return err
	}
	next := filepath.Join(l.directory, headName+".next")
	file, err := os.OpenFile(next, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(next, filepath.Join(l.directory, headName)); err != nil {
		return err
	}
	return syncDirectory(l.directory)
}

// readHead returns the head that a directory has; found is false where it has none.
func readHead(directory string) (head Head, found bool, err error) {
	text, err := os.ReadFile(filepath.Join(directory, headName))
	if errors.Is(err, fs.ErrNotExist) {
		return head, false, nil
	}
	if err != nil {
		return head, false, err
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return head, false, fmt.Errorf("the file %s cannot be read: %w", headName, err)
	}
	return head, true, nil
}

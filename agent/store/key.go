package store

import (
	"errors"
	"fmt"
)

// KeyLimit is the length of the longest key, in bytes.
const KeyLimit = 200

// ErrKey is wrapped where a key is not one a Store accepts; nothing was done.
var ErrKey = errors.New("a key is 1 to 200 bytes of printable ASCII without spaces")

// CheckKey returns nil if every Store accepts key, else an error that wraps ErrKey.
func CheckKey(key string) error {
	if len(key) < 1 || len(key) > KeyLimit {
		return fmt.Errorf("key of %d bytes: %w", len(key), ErrKey)
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return fmt.Errorf("key %q: byte %d is %#02x: %w", key, i, key[i], ErrKey)
		}
	}
	return nil
}

// ErrOffset is wrapped where a read begins before the value; nothing was done.
var ErrOffset = errors.New("a read begins at offset 0 or later")

// CheckRead returns nil if key and offset may be given to ReadAt.
func CheckRead(key string, offset int64) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if offset < 0 {
		return fmt.Errorf("reading %q at %d: %w", key, offset, ErrOffset)
	}
	return nil
}

// Definite reports whether err says what happened: trying again without changing anything would fail the same way.
// Any other error, ErrDown included, leaves the outcome unknown.
func Definite(err error) bool {
	for _, sentinel := range []error{ErrNotFound, ErrExists, ErrFull, ErrTooLarge, ErrCorrupt, ErrReadOnly, ErrAuth, ErrKey, ErrOffset} {
		if errors.Is(err, sentinel) {
			return true
		}
	}
	return false
}

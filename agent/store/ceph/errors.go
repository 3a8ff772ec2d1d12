//go:build ceph

package ceph

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/ceph/go-ceph/rados"

	"github.com/restripe/restripe/agent/store"
)

var (
	errForeign = fmt.Errorf("the object was not written by Restripe: %w", store.ErrCorrupt)
	errClosed  = errors.New("the store was closed")
)

// classify adds the sentinel that an error of librados stands for.
func classify(err error) error {
	number, ok := numberOf(err)
	if !ok {
		return err
	}
	for sentinel, numbers := range map[error][]syscall.Errno{
		store.ErrNotFound: {syscall.ENOENT},
		store.ErrExists:   {syscall.EEXIST},
		store.ErrFull:     {syscall.ENOSPC, syscall.EDQUOT},
		store.ErrTooLarge: {syscall.EMSGSIZE, syscall.EFBIG},
		store.ErrAuth:     {syscall.EPERM, syscall.EACCES},
		store.ErrReadOnly: {syscall.EROFS},
		store.ErrCorrupt:  {syscall.EIO, syscall.EILSEQ, syscall.EBADMSG},
		store.ErrDown:     {syscall.ETIMEDOUT, syscall.ENOTCONN, syscall.ESHUTDOWN, syscall.ECONNREFUSED},
	} {
		for _, candidate := range numbers {
			if number == candidate {
				return fmt.Errorf("%w: %w", sentinel, err)
			}
		}
	}
	return err
}

// numberOf returns the number of an error of librados.
func numberOf(err error) (syscall.Errno, bool) {
	var own errno
	if errors.As(err, &own) {
		return syscall.Errno(own), true
	}
	var coded interface{ ErrorCode() int }
	if errors.As(err, &coded) {
		return syscall.Errno(max(coded.ErrorCode(), -coded.ErrorCode())), true
	}
	if errors.Is(err, rados.ErrNotFound) {
		return syscall.ENOENT, true
	}
	return 0, false
}

// failed classifies the error of an operation on an object. After a time-out the map of the OSDs counts as old. An object
// of a pool that is gone is not found either, which says nothing of the object.
func (s *Store) failed(err error) error {
	number, _ := numberOf(err)
	switch number {
	case syscall.ETIMEDOUT:
		s.latest.fallBehind()
		return fmt.Errorf("%w: %w: no answer of an OSD of the pool %s within %v", store.ErrDown, err, s.options.Pool, s.options.Timeout)
	case syscall.ENOENT:
		if id, lookErr := s.connection.GetPoolByName(s.options.Pool); lookErr != nil || id != s.poolID {
			return fmt.Errorf("%w: the pool %s is not there any more; if it was made anew, start the agent again", store.ErrDown, s.options.Pool)
		}
	case syscall.ESHUTDOWN:
		return fmt.Errorf("%w: %w: the cluster has blocklisted this client; start the agent again", store.ErrDown, err)
	}
	return classify(err)
}

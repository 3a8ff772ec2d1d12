//go:build ceph

package ceph

/*
#cgo LDFLAGS: -lrados
#include <rados/librados.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern void restripeOperationDone(uintptr_t operation);

static void restripe_done(rados_completion_t completion, void *operation) {
	restripeOperationDone((uintptr_t)operation);
}

static int restripe_completion(uintptr_t operation, rados_completion_t *completion) {
	return rados_aio_create_completion2((void *)operation, restripe_done, completion);
}

// Submits the creation, or with exclusive 0 the replacement, of an object with its attribute.
static int restripe_write(rados_ioctx_t pool, rados_completion_t completion, const char *name, int exclusive,
		const char *value, size_t length, const char *attribute, const char *sum, size_t sum_length) {
	rados_write_op_t op = rados_create_write_op();
	rados_write_op_create(op, exclusive ? LIBRADOS_CREATE_EXCLUSIVE : LIBRADOS_CREATE_IDEMPOTENT, NULL);
	rados_write_op_write_full(op, value, length);
	rados_write_op_setxattr(op, attribute, sum, sum_length);
	int error = rados_aio_write_op_operate(op, pool, completion, name, NULL, LIBRADOS_OPERATION_FULL_TRY);
	rados_release_write_op(op);
	return error;
}

static int restripe_remove(rados_ioctx_t pool, rados_completion_t completion, const char *name) {
	rados_write_op_t op = rados_create_write_op();
	rados_write_op_remove(op);
	int error = rados_aio_write_op_operate(op, pool, completion, name, NULL, LIBRADOS_OPERATION_FULL_TRY);
	rados_release_write_op(op);
	return error;
}

// What a read brings; librados writes into it until the operation is done.
typedef struct {
	char *data;
	size_t count;
	int data_error;
	uint64_t size;
	time_t changed;
	int size_error;
	rados_xattrs_iter_t attributes;
	int attributes_error;
} restripe_found;

static int restripe_read(rados_ioctx_t pool, rados_completion_t completion, const char *name, uint64_t offset, size_t length,
		restripe_found *found) {
	rados_read_op_t op = rados_create_read_op();
	rados_read_op_stat(op, &found->size, &found->changed, &found->size_error);
	rados_read_op_getxattrs(op, &found->attributes, &found->attributes_error);
	if (length > 0) // a read of no bytes is one of all
		rados_read_op_read(op, offset, length, found->data, &found->count, &found->data_error);
	int error = rados_aio_read_op_operate(op, pool, completion, name, LIBRADOS_OPERATION_NOFLAG);
	rados_release_read_op(op);
	return error;
}

// Copies the value of an attribute, if it is there with that length.
static int restripe_attribute(restripe_found *found, const char *wanted, char *into, size_t length) {
	const char *name, *value;
	size_t has;
	while (rados_getxattrs_next(found->attributes, &name, &value, &has) == 0 && name != NULL)
		if (strcmp(name, wanted) == 0 && has == length) {
			memcpy(into, value, length);
			return 1;
		}
	return 0;
}
*/
import "C"

import (
	"context"
	"fmt"
	"runtime/cgo"
	"syscall"
	"time"
	"unsafe"

	"github.com/restripe/restripe/agent/store"
)

// attribute is where an object has the checksum and the length of its value.
const attribute = "restripe"

// errno is an error of librados, as a positive number.
type errno syscall.Errno

func (e errno) Error() string { return "librados: " + syscall.Errno(e).Error() }

// ioctx is librados' handle of a pool.
type ioctx = C.rados_ioctx_t

// operation is one asynchronous call of librados under way.
type operation struct {
	completion C.rados_completion_t
	handle     cgo.Handle
	done       chan struct{} // closed by librados' thread
}

//export restripeOperationDone
func restripeOperationDone(handle C.uintptr_t) {
	close(cgo.Handle(handle).Value().(*operation).done)
}

// call is what operate needs to know of an operation.
type call struct {
	cost    int64                            // what it takes of the window, in bytes
	submit  func(C.rados_completion_t) C.int // hands the operation to librados
	look    func() error                     // at what a successful operation brought; may be nil
	release func()                           // gives back the memory that submit named; called once librados has done with it
}

// operate submits an operation and waits for its end, or for that of ctx; then the operation is cancelled and its outcome
// is unknown.
func (s *Store) operate(ctx context.Context, c call) error {
	if err := s.enter(ctx, c.cost); err != nil {
		c.release()
		return err
	}
	op := &operation{done: make(chan struct{})}
	op.handle = cgo.NewHandle(op)
	end := func() {
		if op.completion != nil {
			C.rados_aio_release(op.completion)
		}
		op.handle.Delete()
		c.release()
		s.leave(c.cost)
	}
	began := time.Now()
	rc := C.restripe_completion(C.uintptr_t(op.handle), &op.completion)
	if rc == 0 {
		rc = c.submit(op.completion)
	}
	if rc != 0 {
		end()
		return s.failed(errno(-rc))
	}
	select {
	case <-op.done:
	case <-ctx.Done():
		C.rados_aio_cancel(s.pool, op.completion) // fails if the operation has ended
		if time.Since(began) >= longUnanswered {
			s.beginLatest()
		}
		go func() {
			<-op.done
			end()
		}()
		return ctx.Err()
	}
	defer end()
	if rc := C.rados_aio_get_return_value(op.completion); rc < 0 {
		return s.failed(errno(-rc))
	}
	s.latest.succeed()
	if c.look == nil {
		return nil
	}
	return c.look()
}

// write creates an object exclusively, or writes it anew, with its attribute, whole or not at all. librados copies what it
// is given.
func (s *Store) write(ctx context.Context, name string, value []byte, exclusive bool) error {
	sum := sumOf(value).encode()
	cName, cAttribute := C.CString(name), C.CString(attribute)
	only := C.int(0)
	if exclusive {
		only = 1
	}
	return s.operate(ctx, call{
		cost: int64(len(value)),
		submit: func(completion C.rados_completion_t) C.int {
			return C.restripe_write(s.pool, completion, cName, only, pointer(value), C.size_t(len(value)), cAttribute, pointer(sum), C.size_t(len(sum)))
		},
		release: func() {
			C.free(unsafe.Pointer(cName))
			C.free(unsafe.Pointer(cAttribute))
		},
	})
}

// remove deletes an object, which must be there.
func (s *Store) remove(ctx context.Context, name string) error {
	cName := C.CString(name)
	return s.operate(ctx, call{
		submit:  func(completion C.rados_completion_t) C.int { return C.restripe_remove(s.pool, completion, cName) },
		release: func() { C.free(unsafe.Pointer(cName)) },
	})
}

// read fills p from offset on and returns how many bytes there were, and what the attribute says of the whole value.
func (s *Store) read(ctx context.Context, name string, p []byte, offset int64) (count int, whole sum, err error) {
	cName, cAttribute := C.CString(name), C.CString(attribute)
	found := (*C.restripe_found)(C.calloc(1, C.sizeof_restripe_found))
	if len(p) > 0 {
		found.data = (*C.char)(C.malloc(C.size_t(len(p)))) // not p: the caller may have it back before librados is done
	}
	err = s.operate(ctx, call{
		cost: int64(len(p)),
		submit: func(completion C.rados_completion_t) C.int {
			return C.restripe_read(s.pool, completion, cName, C.uint64_t(offset), C.size_t(len(p)), found)
		},
		look: func() error {
			for _, rc := range []C.int{found.size_error, found.attributes_error, found.data_error} {
				if rc < 0 {
					return s.failed(errno(-rc))
				}
			}
			encoded := make([]byte, sumBytes)
			if C.restripe_attribute(found, cAttribute, pointer(encoded), sumBytes) == 0 {
				return errForeign
			}
			if whole = parseSum(encoded); whole.length != int64(found.size) {
				return fmt.Errorf("the object has %d bytes, its value had %d: %w", int64(found.size), whole.length, store.ErrCorrupt)
			}
			count = int(found.count)
			copy(p, unsafe.Slice((*byte)(unsafe.Pointer(found.data)), count))
			return nil
		},
		release: func() {
			if found.attributes != nil {
				C.rados_getxattrs_end(found.attributes)
			}
			C.free(unsafe.Pointer(found.data))
			C.free(unsafe.Pointer(found))
			C.free(unsafe.Pointer(cName))
			C.free(unsafe.Pointer(cAttribute))
		},
	})
	return count, whole, err
}

// cursor is a place in the order of a pool's objects.
type cursor struct{ at C.rados_object_list_cursor }

func firstCursor(pool ioctx) cursor { return cursor{C.rados_object_list_begin(pool)} }

// cursorAt returns the place of the first object whose name has the hash that name has; that of an empty one is the first of all.
func (s *Store) cursorAt(name string) cursor {
	first := firstCursor(s.pool)
	if name == "" {
		return first
	}
	defer first.release(s.pool)
	end := C.rados_object_list_end(s.pool)
	defer C.rados_object_list_cursor_free(s.pool, end)
	// librados has no way to a hash but to cut the whole range of hashes, bits reversed, into as many slices as there are.
	at, after := firstCursor(s.pool), firstCursor(s.pool)
	defer after.release(s.pool)
	C.rados_object_list_slice(s.pool, first.at, end, C.size_t(placeOf(name)), 1<<32, &at.at, &after.at)
	return at
}

func (c cursor) release(pool ioctx) { C.rados_object_list_cursor_free(pool, c.at) }

// page returns the names of the next objects from a place on, at most most of them, and the place after them; more is false
// at the end. It waits for librados, which gives up after the time-out.
func (s *Store) page(from cursor, most int) (names []string, next cursor, more bool, err error) {
	end := C.rados_object_list_end(s.pool)
	defer C.rados_object_list_cursor_free(s.pool, end)
	items := (*C.rados_object_list_item)(C.calloc(C.size_t(most), C.sizeof_rados_object_list_item))
	defer C.free(unsafe.Pointer(items))
	next = firstCursor(s.pool)
	rc := C.rados_object_list(s.pool, from.at, end, C.size_t(most), nil, 0, items, &next.at)
	if rc < 0 {
		next.release(s.pool)
		return nil, cursor{}, false, s.failed(errno(-rc))
	}
	for _, item := range unsafe.Slice(items, int(rc)) {
		if item.nspace_length == 0 && item.locator_length == 0 {
			names = append(names, C.GoStringN(item.oid, C.int(item.oid_length)))
		}
	}
	C.rados_object_list_free(C.size_t(rc), items)
	return names, next, C.rados_object_list_is_end(s.pool, next.at) == 0, nil
}

// pointer returns the address of the first byte, nil for none.
func pointer(b []byte) *C.char {
	if len(b) == 0 {
		return nil
	}
	return (*C.char)(unsafe.Pointer(&b[0]))
}

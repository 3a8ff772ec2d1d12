//go:build ceph

package adopt

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/ceph/go-ceph/rados"

	"github.com/restripe/restripe/agent/store/ceph/pools"
)

// Pool is a pool of RADOS as a source or target.
type Pool struct {
	options    PoolOptions
	connection *pools.Connection
	contexts   chan *rados.IOContext // idle ones
	alignment  int64                 // of offsets of writes; 1 where any will do
}

var (
	_ Source  = (*Pool)(nil)
	_ Target  = (*Pool)(nil)
	_ Trimmer = (*Pool)(nil)
)

// idleContexts bounds the contexts that are kept between operations.
const idleContexts = 64

// OpenPool opens a pool of the cluster. The caller closes it before the connection.
func OpenPool(connection *pools.Connection, options PoolOptions) (*Pool, error) {
	p := &Pool{options: options, connection: connection, contexts: make(chan *rados.IOContext, idleContexts), alignment: 1}
	io, err := p.context()
	if err != nil {
		return nil, err
	}
	defer p.idle(io)
	switch required, err := io.RequiresAlignment(); {
	case err != nil:
		return nil, fmt.Errorf("opening the pool %s: %w", options.Name, err)
	case required:
		alignment, err := io.Alignment()
		if err != nil {
			return nil, fmt.Errorf("opening the pool %s: %w", options.Name, err)
		}
		p.alignment = int64(alignment)
	}
	return p, nil
}

// Close gives up what the pool holds of the connection.
func (p *Pool) Close() {
	for {
		select {
		case io := <-p.contexts:
			io.Destroy()
		default:
			return
		}
	}
}

// context returns a context that nobody else uses: the version of the last operation is a property of its context.
func (p *Pool) context() (*rados.IOContext, error) {
	select {
	case io := <-p.contexts:
		return io, nil
	default:
	}
	io, err := p.connection.Rados().OpenIOContext(p.options.Name)
	if err != nil {
		return nil, fmt.Errorf("opening the pool %s: %w", p.options.Name, err)
	}
	io.SetNamespace(p.options.Namespace)
	return io, nil
}

func (p *Pool) idle(io *rados.IOContext) {
	select {
	case p.contexts <- io:
	default:
		io.Destroy()
	}
}

// confirmed bounds how many objects with a telling name are looked at in earnest.
const confirmed = 100

// Survey counts the objects that List would visit, and fails if the names in the namespace show that the pool is another
// program's.
func (p *Pool) Survey(ctx context.Context) (Survey, error) {
	var s Survey
	looked := 0
	err := p.each(ctx, rados.AllNamespaces, func(namespace, name string) error {
		if namespace != p.options.Namespace {
			s.Elsewhere++
			return nil
		}
		application, attribute := applicationByName(name)
		if application != "" && attribute != "" {
			if looked++; looked > confirmed || !p.hasAttribute(name, attribute) {
				application = ""
			}
		}
		if application != "" {
			return refusedPool(p.options.Name, application, name)
		}
		if strings.HasPrefix(name, p.options.Prefix) {
			s.Objects++
		}
		return nil
	})
	return s, err
}

// refusedPool says that a pool is an application's, because of an object in it.
func refusedPool(pool, application, object string) error {
	return fmt.Errorf("the pool %s is not adopted: the object %q shows that it holds %s", pool, object, applicationsOf[application])
}

// hasAttribute reports whether an object certainly has an xattr.
func (p *Pool) hasAttribute(name, attribute string) bool {
	io, err := p.context()
	if err != nil {
		return false
	}
	defer p.idle(io)
	names, err := io.ListXattrs(name)
	_, has := names[attribute]
	return err == nil && has
}

// each visits all objects of a namespace, or of all. Where a placement group does not answer it begins again there, as
// patiently as with an object; what lies in that group may be visited twice.
func (p *Pool) each(ctx context.Context, namespace string, visit func(namespace, name string) error) error {
	io, err := p.connection.Rados().OpenIOContext(p.options.Name)
	if err != nil {
		return fmt.Errorf("opening the pool %s: %w", p.options.Name, err)
	}
	defer io.Destroy()
	io.SetNamespace(namespace)
	var from, reached rados.IterToken
	wait := DefaultPatience.FirstWait
	for tries := 1; ; tries++ {
		reached, err = p.eachFrom(ctx, io, from, visit)
		var unanswered *unansweredError
		if !errors.As(err, &unanswered) {
			return err
		}
		if reached != from {
			from, tries, wait = reached, 1, DefaultPatience.FirstWait
		}
		if tries == DefaultPatience.Tries {
			return fmt.Errorf("listing the pool %s: %w", p.options.Name, unanswered.cause)
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
		wait *= 2
	}
}

// unansweredError says that a listing was broken off by an OSD that does not answer.
type unansweredError struct{ cause error }

// Error returns the cause.
func (e *unansweredError) Error() string { return e.cause.Error() }

// eachFrom visits objects from a place in the pool on, and returns the place that it reached.
func (p *Pool) eachFrom(ctx context.Context, io *rados.IOContext, from rados.IterToken, visit func(namespace, name string) error) (rados.IterToken, error) {
	objects, err := io.Iter()
	if err != nil {
		return from, fmt.Errorf("listing the pool %s: %w", p.options.Name, p.seen(err))
	}
	defer objects.Close()
	objects.Seek(from)
	for objects.Next() {
		from = objects.Token()
		if err := ctx.Err(); err != nil {
			return from, err
		}
		if err := visit(objects.Namespace(), objects.Value()); err != nil {
			return from, err
		}
	}
	switch err := objects.Err(); {
	case codeOf(err) == syscall.ETIMEDOUT:
		return from, &unansweredError{p.seen(err)}
	case err != nil:
		return from, fmt.Errorf("listing the pool %s: %w", p.options.Name, p.seen(err))
	}
	return from, nil
}

// List visits the names of the selected objects. A placement group that stays away ends it.
func (p *Pool) List(ctx context.Context, visit func(name string) error) error {
	return p.each(ctx, p.options.Namespace, func(_, name string) error {
		if !strings.HasPrefix(name, p.options.Prefix) {
			return nil
		}
		return visit(name)
	})
}

// Stat returns the version of an object.
func (p *Pool) Stat(ctx context.Context, name string) (Version, error) {
	io, err := p.context()
	if err != nil {
		return Version{}, err
	}
	defer p.idle(io)
	version, _, err := p.stat(io, name)
	return version, err
}

func (p *Pool) stat(io *rados.IOContext, name string) (Version, uint64, error) {
	stat, err := io.Stat(name)
	if err != nil {
		return Version{}, 0, p.seen(err)
	}
	number, err := io.GetLastVersion()
	if err != nil {
		return Version{}, 0, err
	}
	return Version{Tag: strconv.FormatUint(number, 10), Size: int64(stat.Size), Modified: stat.ModTime.UTC()}, number, nil
}

// Open opens the bytes of an object. It fails with a *RefusalError where the object has what would be lost.
func (p *Pool) Open(ctx context.Context, name string) (_ Content, err error) {
	io, err := p.context()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.idle(io)
		}
	}()
	version, number, err := p.stat(io, name)
	if err != nil {
		return nil, err
	}
	if !p.options.Plain {
		if err := p.checkAttributes(io, name); err != nil {
			return nil, err
		}
	}
	return &poolContent{pool: p, io: io, name: name, version: version, number: number, ctx: ctx}, nil
}

func (p *Pool) checkAttributes(io *rados.IOContext, name string) error {
	xattrs, err := io.ListXattrs(name)
	if err != nil {
		return p.seen(err)
	}
	var names []string
	for name := range xattrs {
		names = append(names, name)
	}
	hasOmap := false
	if err := io.ListOmapValues(name, "", "", 1, func(string, []byte) { hasOmap = true }); err != nil {
		return p.seen(err)
	}
	return attributes{dropXattrs: p.options.DropXattrs, dropOmap: p.options.DropOmap}.check(names, hasOmap)
}

// poolContent reads one version of an object, piece by piece.
type poolContent struct {
	ctx     context.Context
	pool    *Pool
	io      *rados.IOContext // nil once closed
	name    string
	version Version
	number  uint64
	offset  int64
	piece   []byte // what was read and not yet passed on
	buffer  []byte
}

// pieceBytes is how much is read or written at once.
const pieceBytes = 4 << 20

// Version returns the version that is read.
func (c *poolContent) Version() Version { return c.version }

// Read reads on.
func (c *poolContent) Read(p []byte) (int, error) {
	if len(c.piece) == 0 {
		if err := c.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.piece)
	c.piece = c.piece[n:]
	return n, nil
}

// fill reads the next piece.
func (c *poolContent) fill() error {
	left := c.version.Size - c.offset
	if left == 0 {
		return errEnd
	}
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if c.buffer == nil {
		c.buffer = make([]byte, min(left, pieceBytes))
	}
	buffer := c.buffer[:min(left, int64(len(c.buffer)))]
	operation := rados.CreateReadOp()
	defer operation.Release()
	operation.AssertVersion(c.number)
	step := operation.Read(uint64(c.offset), buffer)
	err := pinned(buffer, func() error { return operation.Operate(c.io, c.name, rados.OperationNoFlag) })
	switch code := codeOf(err); {
	case code == syscall.ERANGE, code == syscall.EOVERFLOW, code == syscall.ENOENT:
		return ErrChanged
	case err != nil:
		return fmt.Errorf("reading %q at byte %d: %w", c.name, c.offset, c.pool.seen(err))
	case step.BytesRead != int64(len(buffer)):
		return fmt.Errorf("reading %q at byte %d: %d bytes came of %d", c.name, c.offset, step.BytesRead, len(buffer))
	}
	c.offset += int64(len(buffer))
	c.piece = buffer
	return nil
}

// Close ends the reading. It may be called again.
func (c *poolContent) Close() error {
	if c.io != nil {
		c.pool.idle(c.io)
		c.io = nil
	}
	return nil
}

// Trim deletes an object if it is still at the version, in one operation.
func (p *Pool) Trim(ctx context.Context, name string, at Version) error {
	number, err := strconv.ParseUint(at.Tag, 10, 64)
	if err != nil {
		return fmt.Errorf("the version %q of %q: %w", at.Tag, name, err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	io, err := p.context()
	if err != nil {
		return err
	}
	defer p.idle(io)
	operation := rados.CreateWriteOp()
	defer operation.Release()
	operation.AssertVersion(number)
	operation.Remove()
	// A full pool lets deletes through that say so.
	err = operation.Operate(io, name, rados.OperationFullTry)
	switch code := codeOf(err); {
	case code == syscall.ERANGE, code == syscall.EOVERFLOW:
		// A deleted object is behind every version, too.
		if _, _, err := p.stat(io, name); errors.Is(err, ErrGone) {
			return ErrGone
		}
		return ErrChanged
	case err != nil:
		return fmt.Errorf("deleting %q: %w", name, p.seen(err))
	}
	return nil
}

// seen turns an error of librados into one of endpoints. After a time-out the client is blind until it has the latest
// map of the OSDs.
func (p *Pool) seen(err error) error {
	switch codeOf(err) {
	case syscall.ENOENT:
		return ErrGone
	case syscall.ETIMEDOUT:
		if failed := p.connection.Rados().WaitForLatestOSDMap(); failed != nil {
			return fmt.Errorf("%w; no map of the OSDs came, either: %w", err, failed)
		}
		return fmt.Errorf("%w: an OSD does not answer; `ceph -s` says which", err)
	case syscall.EPERM, syscall.EACCES:
		return fmt.Errorf("%w: %w: the user of Ceph may not use the pool %s so; it takes mon 'allow r' and osd 'allow rw pool=%s'", ErrStop, err, p.options.Name, p.options.Name)
	case syscall.ENOSPC, syscall.EDQUOT:
		return fmt.Errorf("%w: the pool %s is full: %w", ErrStop, p.options.Name, err)
	case syscall.EFBIG:
		return refusal("it is larger than objects of the pool may be: see osd_max_object_size")
	case syscall.ENAMETOOLONG:
		return refusal("its name is longer than names of objects of RADOS may be")
	}
	return err
}

// codeOf returns the code of errno.h of an error of librados; 0 if it has none.
func codeOf(err error) syscall.Errno {
	var operation rados.OperationError
	if errors.As(err, &operation) && operation.OpError != nil {
		err = operation.OpError
	}
	var coded interface{ ErrorCode() int }
	if !errors.As(err, &coded) {
		return 0
	}
	return syscall.Errno(-coded.ErrorCode())
}

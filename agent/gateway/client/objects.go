package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
)

// objects stores objects and reads, lists and deletes them.
type objects struct{ *transport }

// PutOptions are the choices of a Put. The zero value stores under the class that the gateway finds by prefix, in the
// class's default scheme, whether or not the key exists.
type PutOptions struct {
	Class      string
	Scheme     string
	Size       int64        // bytes of the body where SizeKnown
	SizeKnown  bool         //
	IfRevision *block.Stamp // only if the object is at this revision
	IfAbsent   bool         // only if there is no object

	Expires  time.Time         // when the object is gone; zero: never
	Metadata map[string]string // kept with it; names in lower case
}

// Put stores body under key and returns once it is committed. body is read once, to its end.
func (c *objects) Put(ctx context.Context, key string, body io.Reader, options PutOptions) (object api.Object, err error) {
	query, header := url.Values{}, http.Header{}
	if options.Class != "" {
		query.Set("class", options.Class)
	}
	if options.Scheme != "" {
		query.Set("scheme", options.Scheme)
	}
	if !options.Expires.IsZero() {
		query.Set("expires", options.Expires.UTC().Format(time.RFC3339Nano))
	}
	api.SetMetadata(header, options.Metadata)
	if options.IfRevision != nil {
		header.Set("If-Match", quoteRevision(*options.IfRevision))
	}
	if options.IfAbsent {
		header.Set("If-None-Match", "*")
	}
	length := int64(-1)
	if options.SizeKnown {
		length = options.Size
	}
	reply, err := c.send(ctx, c.once(request{
		route: api.RoutePutObject.With(key), query: query, header: header, body: body, length: length,
	}))
	if err != nil {
		return object, err
	}
	defer func() { err = errors.Join(err, reply.Body.Close()) }()
	return object, decode(reply, &object)
}

// Update replaces the bytes [offset, offset+length) of an object, which must lie inside it.
func (c *objects) Update(ctx context.Context, key string, offset int64, body io.Reader, length int64) (object api.Object, err error) {
	reply, err := c.send(ctx, c.once(request{
		route: api.RoutePatchObject.With(key),
		query: url.Values{"offset": {strconv.FormatInt(offset, 10)}}, body: body, length: length,
	}))
	if err != nil {
		return object, err
	}
	defer func() { err = errors.Join(err, reply.Body.Close()) }()
	return object, decode(reply, &object)
}

// Range is a run of bytes of an object. The zero Range means all of it; Length 0 with an Offset means to the end.
type Range struct {
	Offset, Length int64
}

// Content is an object's bytes on their way. Read fails, rather than ending early, where the gateway broke off: bytes
// of two revisions are never spliced. Close it.
type Content struct {
	io.ReadCloser
	Revision block.Stamp
	Length   int64 // bytes this Content will deliver; -1 unknown
}

// Get opens the bytes of an object.
func (c *objects) Get(ctx context.Context, key string, span Range) (*Content, error) {
	return c.get(ctx, key, nil, span)
}

// GetRevision opens the bytes that an object has at a revision, or had; ErrNotFound where they are not kept.
func (c *objects) GetRevision(ctx context.Context, key string, revision block.Stamp, span Range) (*Content, error) {
	return c.get(ctx, key, url.Values{"revision": {revision.String()}}, span)
}

func (c *objects) get(ctx context.Context, key string, query url.Values, span Range) (*Content, error) {
	header := http.Header{}
	switch {
	case span.Length > 0:
		header.Set("Range", fmt.Sprintf("bytes=%d-%d", span.Offset, span.Offset+span.Length-1))
	case span.Offset > 0:
		header.Set("Range", fmt.Sprintf("bytes=%d-", span.Offset))
	}
	reply, err := c.send(ctx, request{route: api.RouteGetObject.With(key), query: query, header: header})
	if err != nil {
		return nil, err
	}
	if header.Get("Range") != "" && reply.StatusCode != http.StatusPartialContent {
		return nil, errors.Join(fmt.Errorf("reading a range of %q: the gateway answered %s, not a partial content", key, reply.Status), reply.Body.Close())
	}
	revision, err := parseRevision(reply.Header.Get("ETag"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading %q: %w", key, err), reply.Body.Close())
	}
	return &Content{ReadCloser: reply.Body, Revision: revision, Length: reply.ContentLength}, nil
}

// Delete removes an object; ErrNotFound if there is none.
func (c *objects) Delete(ctx context.Context, key string) error {
	reply, err := c.send(ctx, c.once(request{route: api.RouteDeleteObject.With(key)}))
	if err != nil {
		return err
	}
	return errors.Join(decode(reply, nil), reply.Body.Close())
}

// Stat returns an object with its groups and the health of their blocks.
func (c *objects) Stat(ctx context.Context, key string) (stat api.Stat, err error) {
	return stat, c.call(ctx, api.RouteStatObject.With(key), nil, nil, &stat)
}

// StatDeep is Stat with every block read and checked whole at its node.
func (c *objects) StatDeep(ctx context.Context, key string) (stat api.Stat, err error) {
	return stat, c.call(ctx, api.RouteStatObject.With(key), url.Values{"deep": {"true"}}, nil, &stat)
}

// List returns one page of the objects with prefix, in the order of their keys, after the key after. limit 0 leaves the
// page size to the gateway.
func (c *objects) List(ctx context.Context, prefix, after string, limit int) (page api.ObjectList, err error) {
	query := url.Values{}
	if prefix != "" {
		query.Set("prefix64", api.EncodeKey(prefix))
	}
	if after != "" {
		query.Set("after64", api.EncodeKey(after))
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	return page, c.call(ctx, api.RouteListObjects, query, nil, &page)
}

// Objects walks all objects with prefix, page by page. The walk is no snapshot: each page is as of its own moment.
func (c *objects) Objects(ctx context.Context, prefix string) iter.Seq2[api.Object, error] {
	return func(yield func(api.Object, error) bool) {
		after := ""
		for {
			page, err := c.List(ctx, prefix, after, 0)
			if err != nil {
				yield(api.Object{}, err)
				return
			}
			for _, object := range page.Objects {
				if !yield(object, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			if after, err = api.DecodeKey(page.Next); err != nil {
				yield(api.Object{}, fmt.Errorf("listing: the gateway's page mark %q: %w", page.Next, err))
				return
			}
		}
	}
}

func quoteRevision(revision block.Stamp) string { return `"` + revision.String() + `"` }

func parseRevision(tag string) (block.Stamp, error) {
	revision, err := block.ParseStamp(strings.Trim(tag, `"`))
	if err != nil {
		return block.Stamp{}, fmt.Errorf("the gateway's ETag: %w", err)
	}
	return revision, nil
}

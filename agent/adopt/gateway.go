package adopt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
)

// Gateway is a cluster of Restripe as a source or target. The key of an object is KeyPrefix and the object's name.
type Gateway struct {
	Client    *client.Client
	KeyPrefix string
	Prefix    string // as a source: only names that begin so
	Class     string // as a source: only objects of this class; "" all. As a target: the class they are stored in
}

var (
	_ Source = (*Gateway)(nil)
	_ Target = (*Gateway)(nil)
)

// longestKey is the longest key that gateways take, bytes.
const longestKey = 4096

// CheckClass fails if the cluster has no such class.
func (g *Gateway) CheckClass(ctx context.Context) error {
	classes, err := g.Client.Classes(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, class := range classes {
		if class.Name == g.Class {
			return nil
		}
		names = append(names, class.Name)
	}
	return fmt.Errorf("the cluster has no class %q; it has %s", g.Class, strings.Join(names, ", "))
}

// Cluster returns the identity of the cluster.
func (g *Gateway) Cluster(ctx context.Context) (string, error) {
	status, err := g.Client.StatusBrief(ctx)
	return status.Cluster, err
}

// Survey counts the objects that List would visit, and their bytes.
func (g *Gateway) Survey(ctx context.Context) (objects, bytes int64, err error) {
	err = g.each(ctx, func(_ string, object api.Object) error {
		objects++
		bytes += object.Size
		return nil
	})
	return objects, bytes, err
}

// List visits the names of the selected objects, in order.
func (g *Gateway) List(ctx context.Context, visit func(name string) error) error {
	return g.each(ctx, func(name string, _ api.Object) error { return visit(name) })
}

func (g *Gateway) each(ctx context.Context, visit func(name string, object api.Object) error) error {
	for object, err := range g.Client.Objects(ctx, g.KeyPrefix+g.Prefix) {
		if err != nil {
			return fmt.Errorf("listing the objects of Restripe: %w", err)
		}
		if g.Class != "" && object.Class != g.Class {
			continue
		}
		key, err := api.DecodeKey(object.Key64)
		if err != nil {
			return fmt.Errorf("listing the objects of Restripe: the key %q: %w", object.Key64, err)
		}
		if err := visit(strings.TrimPrefix(key, g.KeyPrefix), object); err != nil {
			return err
		}
	}
	return nil
}

// Stat returns the version of an object. It asks for a listing of one: a stat would look at every block.
func (g *Gateway) Stat(ctx context.Context, name string) (Version, error) {
	key := g.KeyPrefix + name
	page, err := g.Client.List(ctx, key, "", 1)
	if err != nil {
		return Version{}, translate(err)
	}
	if len(page.Objects) == 0 || page.Objects[0].Key64 != api.EncodeKey(key) {
		return Version{}, ErrGone
	}
	return versionOf(page.Objects[0]), nil
}

func versionOf(object api.Object) Version {
	return Version{Tag: object.Revision.String(), Size: object.Size, Modified: object.Modified}
}

// Open opens the bytes of an object.
func (g *Gateway) Open(ctx context.Context, name string) (Content, error) {
	version, err := g.Stat(ctx, name)
	if err != nil {
		return nil, err
	}
	content, err := g.Client.Get(ctx, g.KeyPrefix+name, client.Range{})
	if err != nil {
		return nil, translate(err)
	}
	if content.Revision.String() != version.Tag {
		return nil, errors.Join(ErrChanged, content.Close())
	}
	return &gatewayContent{content: content, version: version}, nil
}

// gatewayContent is bytes on their way from a gateway, which never mixes revisions by itself.
type gatewayContent struct {
	content *client.Content
	version Version
}

func (c *gatewayContent) Version() Version           { return c.version }
func (c *gatewayContent) Read(p []byte) (int, error) { return c.content.Read(p) }
func (c *gatewayContent) Close() error               { return c.content.Close() }

// Put stores an object.
func (g *Gateway) Put(ctx context.Context, name string, body io.Reader, size int64, expected Expectation) (Version, error) {
	key := g.KeyPrefix + name
	if len(key) > longestKey {
		return Version{}, refusal("its key would have %d bytes, and keys have at most %d: choose a shorter --key-prefix", len(key), longestKey)
	}
	options := client.PutOptions{Class: g.Class, Size: size, SizeKnown: true}
	switch {
	case expected.Any:
	case expected.Version == "":
		options.IfAbsent = true
	default:
		revision, err := block.ParseStamp(expected.Version)
		if err != nil {
			return Version{}, fmt.Errorf("%w: the journal's revision %q: %w", ErrStop, expected.Version, err)
		}
		options.IfRevision = &revision
	}
	object, err := g.Client.Put(ctx, key, body, options)
	if err != nil {
		return Version{}, translate(err)
	}
	return versionOf(object), nil
}

// translate turns refusals of gateways into those of endpoints.
func translate(err error) error {
	switch {
	case errors.Is(err, api.ErrNotFound):
		return ErrGone
	case errors.Is(err, api.ErrConflict):
		return ErrConflict
	case errors.Is(err, api.ErrBadRequest):
		return refusal("the gateway refuses it: %v", err)
	case errors.Is(err, api.ErrFull), errors.Is(err, api.ErrTooFewNodes):
		return fmt.Errorf("%w: %w", ErrStop, err)
	}
	return err
}

package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"net"

	"github.com/restripe/restripe/agent/gateway/memcache"
	"github.com/restripe/restripe/agent/gateway/resp"
	"github.com/restripe/restripe/agent/gateway/s3"
)

// ProtocolBytes bounds the buffers of what is read and written for clients of Redis and memcached, all together.
const ProtocolBytes = valueBytes + redisBytes + 2*memcachedBytes

// S3Bytes bounds what clients of S3 send and get in XML, all together. Objects have the memory that those of HTTP have.
const S3Bytes = 64 << 20

const (
	valueBytes     = 64 << 20 // of values that were read and are not sent yet
	redisBytes     = 64 << 20 // of commands
	memcachedBytes = 32 << 20 // of values on their way in, and of those that wait for the replies before theirs, each
)

// doors is how clients are served over TLS; nil: they are not.
func (g *Gateway) doors() *tls.Config {
	if !g.options.HTTPS {
		return nil
	}
	return g.options.Certificates.Doors()
}

// ServeRedis serves clients of Redis until the context ends, once. It closes the listener.
func (g *Gateway) ServeRedis(ctx context.Context, listener net.Listener) error {
	return resp.New(resp.Options{
		Store: g.values, TLS: g.doors(), Logger: g.log, Release: g.options.Release, Metrics: g.metrics.registry,
		MemoryBytes: redisBytes,
	}).Serve(ctx, listener)
}

// ServeMemcached serves clients of memcached until the context ends, once. It closes the listener.
func (g *Gateway) ServeMemcached(ctx context.Context, listener net.Listener) error {
	server, err := memcache.New(memcache.Options{
		Store: g.values, TLS: g.doors(), Logger: g.log, Metrics: g.metrics.registry, MemoryBytes: memcachedBytes,
		AllowFlush: g.options.MemcachedFlush,
	})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	return server.Serve(ctx, listener)
}

// ServeS3 serves clients of S3 until the context ends, once. It closes the listener.
func (g *Gateway) ServeS3(ctx context.Context, listener net.Listener) error {
	return s3.New(s3.Options{
		Objects: g.Objects, Classes: g.Registry, Users: g.options.Users, TLS: g.doors(), Domains: g.options.S3Domains, Load: &g.load,
		Logger: g.log, Metrics: g.metrics.registry, MemoryBytes: S3Bytes,
	}).Serve(ctx, listener)
}

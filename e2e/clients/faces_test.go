package clients_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/redis/rueidis"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
)

// Outcomes of a face that are no faults.
var (
	errMissing = errors.New("there is no such value")
	errRefused = errors.New("the value is not as it was to be")
)

// face is one protocol at one gateway. What a method says besides errMissing and errRefused leaves it open whether a write took place.
type face interface {
	get(ctx context.Context, key string) ([]byte, error)
	put(ctx context.Context, key string, data []byte) error
	create(ctx context.Context, key string, data []byte) error // errRefused: there is a value
	// swap reads a value and, once put has been told of it, stores what that returns if the value is still the same; else errRefused.
	swap(ctx context.Context, key string, put func(was []byte) []byte) error
	delete(ctx context.Context, key string) error
}

// byHTTP is the gateway's own protocol.
type byHTTP struct{ client *client.Client }

func (f byHTTP) read(ctx context.Context, key string) (*client.Content, []byte, error) {
	object, err := f.client.Get(ctx, key, client.Range{})
	if errors.Is(err, api.ErrNotFound) {
		return nil, nil, errMissing
	}
	if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(object)
	return object, data, errors.Join(err, object.Close())
}

func (f byHTTP) get(ctx context.Context, key string) ([]byte, error) {
	_, data, err := f.read(ctx, key)
	return data, err
}

func (f byHTTP) write(ctx context.Context, key string, data []byte, options client.PutOptions) error {
	options.Size, options.SizeKnown = int64(len(data)), true
	_, err := f.client.Put(ctx, key, bytes.NewReader(data), options)
	if errors.Is(err, api.ErrConflict) && (options.IfAbsent || options.IfRevision != nil) {
		return errRefused
	}
	return err
}

func (f byHTTP) put(ctx context.Context, key string, data []byte) error {
	return f.write(ctx, key, data, client.PutOptions{})
}

func (f byHTTP) create(ctx context.Context, key string, data []byte) error {
	return f.write(ctx, key, data, client.PutOptions{IfAbsent: true})
}

func (f byHTTP) swap(ctx context.Context, key string, put func(was []byte) []byte) error {
	object, was, err := f.read(ctx, key)
	if err != nil {
		return errors.Join(errRefused, err)
	}
	return f.write(ctx, key, put(was), client.PutOptions{IfRevision: &object.Revision})
}

func (f byHTTP) delete(ctx context.Context, key string) error {
	err := f.client.Delete(ctx, key)
	if errors.Is(err, api.ErrNotFound) {
		return errMissing
	}
	return err
}

// byRedis is Redis's protocol.
type byRedis struct{ client rueidis.Client }

func (f byRedis) get(ctx context.Context, key string) ([]byte, error) {
	data, err := f.client.Do(ctx, f.client.B().Get().Key(key).Build()).AsBytes()
	if rueidis.IsRedisNil(err) {
		return nil, errMissing
	}
	return data, err
}

func (f byRedis) put(ctx context.Context, key string, data []byte) error {
	return f.client.Do(ctx, f.client.B().Set().Key(key).Value(rueidis.BinaryString(data)).Build()).Error()
}

func (f byRedis) create(ctx context.Context, key string, data []byte) error {
	err := f.client.Do(ctx, f.client.B().Set().Key(key).Value(rueidis.BinaryString(data)).Nx().Build()).Error()
	if rueidis.IsRedisNil(err) {
		return errRefused
	}
	return err
}

func (f byRedis) swap(ctx context.Context, key string, put func(was []byte) []byte) error {
	return f.client.Dedicated(func(c rueidis.DedicatedClient) error {
		if err := c.Do(ctx, c.B().Watch().Key(key).Build()).Error(); err != nil {
			return errors.Join(errRefused, err)
		}
		was, err := c.Do(ctx, c.B().Get().Key(key).Build()).AsBytes()
		if err != nil {
			return errors.Join(errRefused, err, c.Do(ctx, c.B().Unwatch().Build()).Error())
		}
		results := c.DoMulti(ctx, c.B().Multi().Build(), c.B().Set().Key(key).Value(rueidis.BinaryString(put(was))).Build(), c.B().Exec().Build())
		if err = results[2].Error(); rueidis.IsRedisNil(err) {
			return errRefused
		}
		return err
	})
}

func (f byRedis) delete(ctx context.Context, key string) error {
	count, err := f.client.Do(ctx, f.client.B().Del().Key(key).Build()).AsInt64()
	if err == nil && count == 0 {
		return errMissing
	}
	return err
}

// byMemcached is memcached's protocol.
type byMemcached struct{ client *memcache.Client }

func (f byMemcached) get(_ context.Context, key string) ([]byte, error) {
	item, err := f.client.Get(key)
	if errors.Is(err, memcache.ErrCacheMiss) {
		return nil, errMissing
	}
	if err != nil {
		return nil, err
	}
	return item.Value, nil
}

func (f byMemcached) put(_ context.Context, key string, data []byte) error {
	return f.client.Set(&memcache.Item{Key: key, Value: data})
}

func (f byMemcached) create(_ context.Context, key string, data []byte) error {
	err := f.client.Add(&memcache.Item{Key: key, Value: data})
	if errors.Is(err, memcache.ErrNotStored) {
		return errRefused
	}
	return err
}

func (f byMemcached) swap(_ context.Context, key string, put func(was []byte) []byte) error {
	item, err := f.client.Get(key)
	if err != nil {
		return errors.Join(errRefused, err)
	}
	item.Value = put(slices.Clone(item.Value))
	err = f.client.CompareAndSwap(item)
	if errors.Is(err, memcache.ErrCASConflict) || errors.Is(err, memcache.ErrCacheMiss) || errors.Is(err, memcache.ErrNotStored) {
		return errRefused
	}
	return err
}

func (f byMemcached) delete(_ context.Context, key string) error {
	err := f.client.Delete(key)
	if errors.Is(err, memcache.ErrCacheMiss) {
		return errMissing
	}
	return err
}

// faceNames are the protocols, in the order of faces.
var faceNames = []string{"http", "redis", "memcached"}

// faces are all protocols at a gateway.
func faces(t *testing.T, g gateway) []face {
	t.Helper()
	r, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{g.redis}, DisableCache: true, DisableRetry: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	m := memcache.New(g.memcached)
	m.Timeout, m.MaxIdleConns = patience, 16
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return []face{byHTTP{g.http}, byRedis{r}, byMemcached{m}}
}

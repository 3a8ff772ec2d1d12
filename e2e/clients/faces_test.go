package clients_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
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

// byS3 is S3, whose objects lie in a bucket that every key begins with.
type byS3 struct{ client awsClient }

// split is the bucket and the key of a name.
func (f byS3) split(name string) (bucket, key string) {
	bucket, key, _ = strings.Cut(name, "/")
	return bucket, key
}

// refusal says which errors of S3 are no faults.
func (f byS3) refusal(err error) error {
	switch code(err) {
	case "NoSuchKey", "NoSuchBucket":
		return errMissing
	case "PreconditionFailed":
		return errRefused
	}
	return err
}

func (f byS3) get(ctx context.Context, name string) ([]byte, error) {
	bucket, key := f.split(name)
	data, err := f.client.get(ctx, bucket, key)
	return data, f.refusal(err)
}

func (f byS3) put(ctx context.Context, name string, data []byte) error {
	bucket, key := f.split(name)
	_, err := f.client.put(ctx, bucket, key, data, s3Options{})
	return err
}

func (f byS3) create(ctx context.Context, name string, data []byte) error {
	bucket, key := f.split(name)
	_, err := f.client.put(ctx, bucket, key, data, s3Options{ifAbsent: true})
	return f.refusal(err)
}

func (f byS3) swap(ctx context.Context, name string, put func(was []byte) []byte) error {
	bucket, key := f.split(name)
	was, out, err := f.client.read(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		return errors.Join(errRefused, err)
	}
	_, err = f.client.put(ctx, bucket, key, put(was), s3Options{ifMatch: *out.ETag})
	if err = f.refusal(err); errors.Is(err, errMissing) {
		return errRefused
	}
	return err
}

// delete never says that there was nothing.
func (f byS3) delete(ctx context.Context, name string) error {
	bucket, key := f.split(name)
	return f.client.remove(ctx, bucket, key)
}

// faceNames are the protocols, in the order of faces.
var faceNames = []string{"http", "redis", "memcached", s3Name}

const s3Name = "s3"

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
	return []face{byHTTP{g.http}, byRedis{r}, byMemcached{m}, byS3{newAWS("http://"+g.s3, anyKey, http.DefaultTransport, 1)}}
}

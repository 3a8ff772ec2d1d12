package etcd

import (
	"context"
	"crypto/sha256"
	"math"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// againAfter is how long a watch that ended is not begun anew.
const againAfter = 200 * time.Millisecond

// nameBytes is how long the name of a key is among those that were told of.
const nameBytes = 16

// name is what a key is called among those that were told of.
func name(key string) string {
	sum := sha256.Sum256([]byte(key))
	return string(sum[:nameBytes])
}

// Watch implements kv.Engine. All watches share one of etcd, which the first begins.
func (e *Engine) Watch(ctx context.Context, keys ...string) <-chan struct{} {
	e.listen.Do(func() { e.work.Go(func() { e.hear(e.hearing) }) })
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = name(key)
	}
	return e.hub.Watch(ctx, names...)
}

// hear keeps a watch until ctx ends. Each begins with what changes from then on, and with a token for all: what etcd's client would do,
// to resume at the next revision, waits for ever where a cluster was restored that is not that far yet.
func (e *Engine) hear(ctx context.Context) {
	for ctx.Err() == nil {
		// Its error says that the stream ended; whoever reads or writes learns why.
		_ = e.hearOnce(ctx)
		e.hub.Deafen()
		select {
		case <-ctx.Done():
		case <-time.After(againAfter):
		}
	}
}

// hearOnce hears until the stream ends, or the member says that it has no leader or has compacted what was not heard yet.
func (e *Engine) hearOnce(ctx context.Context) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	watch := etcdserverpb.NewWatchClient(e.client.ActiveConnection())
	stream, err := watch.Watch(ctx, grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(math.MaxInt32))
	if err != nil {
		return err
	}
	create := &etcdserverpb.WatchCreateRequest{Key: []byte(e.told)}
	if err := stream.Send(&etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CreateRequest{CreateRequest: create}}); err != nil {
		return err
	}
	for {
		said, err := stream.Recv()
		if err != nil || said.Canceled {
			return err
		}
		if said.Created {
			e.hub.Hears()
		}
		for _, event := range said.Events {
			for told := event.Kv.Value; len(told) >= nameBytes; told = told[nameBytes:] {
				e.hub.Told(string(told[:nameBytes]))
			}
		}
	}
}

package resp

import (
	"context"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/values"
)

// watching is a keyspace whose reads show whether a watched key was changed. A key that had no value when it was watched may have none
// again when the transaction is committed, though the client has read one between. A value that came and went without such a read is not
// noticed: the catalog remembers no single key that is gone, only one number above all that was ever deleted.
type watching struct {
	values.Keyspace
	client *connection
}

// keyspace is where a call outside a transaction finds its keys.
func (x *call) keyspace() values.Keyspace {
	if len(x.client.watched) == 0 {
		return x.session
	}
	return watching{x.session, x.client}
}

// Get notes which version it was.
func (w watching) Get(ctx context.Context, key string) (*values.Value, error) {
	value, err := w.Keyspace.Get(ctx, key)
	if err == nil {
		w.client.saw(key, revisionAt(value))
	}
	return value, err
}

// Look notes which version it was.
func (w watching) Look(ctx context.Context, key string) (*values.Info, error) {
	info, err := w.Keyspace.Look(ctx, key)
	if err == nil && info != nil {
		w.client.saw(key, info.Revision)
	} else if err == nil {
		w.client.saw(key, block.Stamp{})
	}
	return info, err
}

// revisionAt is the revision of a value, zero where there is none.
func revisionAt(value *values.Value) block.Stamp {
	if value == nil {
		return block.Stamp{}
	}
	return value.Revision
}

// saw notes that a key had a revision.
func (c *connection) saw(key string, revision block.Stamp) {
	if want, is := c.watched[key]; is && want != revision {
		c.broken.Store(true)
	}
}

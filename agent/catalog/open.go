package catalog

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/restripe/restripe/agent/catalog/cluster"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
	"github.com/restripe/restripe/agent/catalog/session"
)

// Catalog applies the rules of the commit protocol to the records of an Engine. All methods are safe for concurrent
// use; several Catalogs, in one process or in many, may work on the same records where the engine allows it.
//
// Each of its parts knows the records of one subject. Their methods are its own.
type Catalog struct {
	*records
	*graveyard
	*ledger
	*objects
	*cluster.Keeper
	*cluster.Work
	*auditor

	cluster Cluster
	session *session.Session
	version atomic.Int64 // of the schema, as it was read last: it only grows
}

// Cluster is what all members of a cluster share, made when its catalog was first opened.
type Cluster struct {
	ID             string   `cbor:"1,keyasint" json:"id"`
	FingerprintKey [16]byte `cbor:"2,keyasint" json:"-"`
}

// Option changes a default of Open.
type Option func(*Catalog)

// WithClock sets the source of time for deadlines and graces. Default: time.Now.
func WithClock(now func() time.Time) Option { return func(c *Catalog) { c.now = now } }

// WithRandom sets the source of salts, request names and the cluster's identity. Default: crypto/rand.
func WithRandom(random io.Reader) Option {
	return func(c *Catalog) { c.random = &lockedReader{source: random} }
}

// WithGrace sets how long the blocks of dead addresses are left alone, which spares long streams from being broken.
// Default: one minute.
func WithGrace(grace time.Duration) Option { return func(c *Catalog) { c.grace = grace } }

// WithPatience bounds how long a call keeps asking an engine that gives no clear answer. Default: 30 seconds.
func WithPatience(patience time.Duration) Option { return func(c *Catalog) { c.patience = patience } }

// WithPause sets what is done before asking an engine again that gave no clear answer for the turn-th time, from 1.
// It returns an error to give up. Default: wait 10 ms, doubling up to one second.
func WithPause(pause func(ctx context.Context, turn int) error) Option {
	return func(c *Catalog) { c.pause = pause }
}

// WithHolding sets from how many extents on those of an object that is deleted or written over are given up later, by sweeps, so many
// at a time. Default: 512.
func WithHolding(extents int) Option { return func(c *Catalog) { c.holdFrom = extents } }

// Owner names one start of a gateway, in the form intents carry. Gateway must not contain a slash.
func Owner(gateway, start string) string { return gateway + "/" + start }

// Open makes a Catalog of the records in engine, and the records themselves if there are none. owner names this start
// of this gateway, made by Owner. The Catalog owns engine from then on; if Open fails, the caller still does.
//
// It fails with kv.ErrNewer if a newer release wrote the catalog, and with ErrOlder if an older one did.
func Open(ctx context.Context, engine kv.Engine, owner string, options ...Option) (*Catalog, error) {
	c := build(engine, owner)
	for _, option := range options {
		option(c)
	}
	if owner == "" {
		return nil, fmt.Errorf("opening the catalog: an owner must be named: %w", ErrBadChange)
	}
	err := c.retry(ctx, c.open)
	if err == nil {
		err = c.retry(ctx, c.session.Begin)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the catalog: %w", err)
	}
	return c, nil
}

// build puts the parts together, each over those before it, with the defaults of Open.
func build(engine kv.Engine, owner string) *Catalog {
	begun := session.New(&kv.Observed{Engine: engine}, owner)
	kept := &records{
		engine: begun, now: time.Now, random: &lockedReader{source: rand.Reader}, patience: 30 * time.Second, pause: kv.PauseDoubling,
		holdFrom: holdFrom,
	}
	graves := &graveyard{records: kept, grace: time.Minute}
	keeper, work := cluster.New(begun, kept.retry, kept.draw, func() time.Time { return kept.now() })
	return &Catalog{
		records: kept, graveyard: graves, ledger: newLedger(kept, graves, begun), objects: &objects{records: kept},
		Keeper: keeper, Work: work, auditor: &auditor{kept}, session: begun,
	}
}

func (c *Catalog) open(ctx context.Context) (done bool, err error) {
	values, err := c.engine.Read(ctx, schema.KeySchema, schema.KeyCluster, schema.KeyFloor)
	if err != nil {
		return false, err
	}
	if err := schema.AsideError(values[0]); err != nil {
		return false, err
	}
	if values[0] != nil {
		version, err := strconv.Atoi(string(values[0]))
		if err != nil {
			return false, fmt.Errorf("decoding record %q: %w: %w", schema.KeySchema, ErrCorrupt, err)
		}
		if err := schema.CheckVersion(version, ErrOlder); err != nil {
			return false, err
		}
		c.version.Store(int64(version))
		if values[1] == nil || values[2] == nil {
			return false, fmt.Errorf("%w: the records %q and %q must exist beside %q: restore the catalog from a copy",
				ErrCorrupt, schema.KeyCluster, schema.KeyFloor, schema.KeySchema)
		}
		c.cluster, err = codec.Decode[Cluster](schema.KeyCluster, values[1])
		return err == nil, err
	}
	var identity [32]byte
	if _, err := io.ReadFull(c.random, identity[:]); err != nil {
		return false, kv.Final(fmt.Errorf("drawing the cluster's identity: %w", err))
	}
	cluster := Cluster{ID: hex.EncodeToString(identity[:16]), FingerprintKey: [16]byte(identity[16:])}
	_, err = c.engine.Update(ctx,
		[]kv.Check{{Key: schema.KeySchema}, {Key: schema.KeyCluster}, {Key: schema.KeyFloor}},
		[]kv.Write{
			{Key: schema.KeySchema, Value: []byte(strconv.Itoa(SchemaVersion))},
			{Key: schema.KeyVersion, Value: []byte(strconv.Itoa(SchemaVersion))},
			{Key: schema.KeyCluster, Value: codec.Encode(cluster)},
			{Key: schema.KeyFloor, Value: []byte("1")},
		})
	// Made by us or by somebody who was faster: the next turn reads what there is.
	return false, err
}

// Over is closed once this start of the gateway can change nothing any more; Err says why.
func (c *Catalog) Over() <-chan struct{} { return c.session.Over }

// Err returns why nothing can be changed any more, ErrFenced or ErrBehind; nil while it can.
func (c *Catalog) Err() error { return c.session.Err() }

// Cluster returns the identity of the cluster.
func (c *Catalog) Cluster() Cluster { return c.cluster }

// Close closes the engine. Attempts that are still active are settled by whoever finds them.
func (c *Catalog) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closingPatience)
	defer cancel()
	_ = c.raiseFloor(ctx) // asked for by the release before alone
	return c.engine.Close()
}

// closingPatience bounds how long Close waits for an engine.
const closingPatience = 2 * time.Second

// raiseFloor raises the floor of stamps above what the session drew. The release before takes stamps above it for never drawn.
func (c *Catalog) raiseFloor(ctx context.Context) error {
	values, err := c.engine.Read(ctx, schema.KeyFloor, schema.UptoKey(c.session.Owner))
	if err != nil || values[0] == nil {
		return err
	}
	last, err := codec.DecodeCount(schema.UptoKey(c.session.Owner), values[1])
	if err != nil {
		return err
	}
	checks, writes, err := c.records.raise(values[0], uint64(last)+1)
	if err == nil && len(writes) > 0 {
		_, err = c.engine.Update(ctx, checks, writes)
	}
	return err
}

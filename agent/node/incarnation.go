package node

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

// Keys of the bookkeeping values in a store.
const (
	incarnationKey = "restripe/incarnation"
	clusterKey     = "restripe/cluster"
	printKey       = "restripe/fingerprint-key" // in hexadecimal; a catalog that is lost cannot be rebuilt without it
	maxMarkerBytes = 128

	confirmTries = 100 // readings of a marker that changes at every look
)

// identity is what the node holds of its store's contents: which they are, whose, and whether they are still the same.
type identity struct {
	id    block.NodeID
	store store.Store
	log   *slog.Logger
	obeys *allegiance
	lost  func(cause error) // forgets what was known of other contents; called with the mutex held

	renewing *semaphore.Weighted // held by whoever replaces the marker

	mutex       sync.Mutex
	incarnation block.Incarnation // as last read from the store; empty: not read yet
	known       block.Incarnation // the newest that a catalog of this cluster was heard to know
	readings    uint64            // raised by every change of incarnation
	doubtful    bool              // the store did not answer since; look before believing
	serving     *serving          // nil: unregistered
}

// serving is what an attached node answers under; immutable.
type serving struct {
	incarnation block.Incarnation
	cluster     string
	printer     *kernel.Fingerprinter
	key         [16]byte
}

func (i *identity) registeredAs(incarnation block.Incarnation) bool {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return i.serving != nil && i.serving.incarnation == incarnation
}

// attached returns what the node serves under, or ErrUnregistered.
func (i *identity) attached(ctx context.Context) (*serving, error) {
	i.mutex.Lock()
	doubt := i.doubtful
	i.mutex.Unlock()
	if doubt {
		if _, err := i.confirm(ctx); err != nil {
			return nil, err
		}
	}
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if i.serving == nil {
		return nil, fmt.Errorf("node %s: %w: %q", i.id, wire.ErrUnregistered, i.incarnation)
	}
	return i.serving, nil
}

// confirm reads the marker and returns the incarnation of what the store holds now. A marker that is absent, or says
// nothing of what is in the store now, is replaced by a new one. If it is not the incarnation known so far, the node is
// unregistered and all runs are void.
func (i *identity) confirm(ctx context.Context) (block.Incarnation, error) {
	for range confirmTries {
		i.mutex.Lock()
		readings := i.readings
		i.mutex.Unlock()
		found, run, err := i.look(ctx)
		if err == nil && i.isDoubtful(found, run) {
			if err = i.renew(ctx, found, run); err == nil {
				continue
			}
		}
		if err != nil {
			if ctx.Err() == nil {
				i.doubt()
			}
			return "", down(fmt.Errorf("node %s: reading the incarnation of the store: %w", i.id, err))
		}
		if i.settle(found, readings) {
			return found, nil
		}
		// Somebody saw another marker while this one was read: which is the newer is for the store to say.
	}
	i.doubt()
	return "", fmt.Errorf("node %s: %w: its contents do not hold still: the key %s changed %d times in a row; does another server or agent use this store?",
		i.id, store.ErrDown, incarnationKey, confirmTries)
}

// look returns the marker, empty if there is none, and which run of its server the store is in.
func (i *identity) look(ctx context.Context) (found block.Incarnation, run string, err error) {
	text, err := i.readMarker(ctx, incarnationKey)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return "", "", err
	}
	if volatile, is := i.store.(store.Volatile); is {
		run, err = volatile.Run(ctx)
	} else {
		err = nil
	}
	return block.Incarnation(text), run, err
}

// isDoubtful reports whether the store may have lost contents under the marker that was found: it has none; the server
// was started again, and is one that may lose what it acknowledged; or a newer one is known, or more of what was kept under
// it, so that it went back.
func (i *identity) isDoubtful(found block.Incarnation, run string) bool {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return found == "" || found.Run() != run || i.known.Outdates(found) || i.obeys.isBehind(found)
}

// renew replaces the marker by one with a greater number, unless somebody else did. Whoever crashes in between leaves none,
// which is doubt enough.
func (i *identity) renew(ctx context.Context, found block.Incarnation, run string) error {
	if err := i.renewing.Acquire(ctx, 1); err != nil {
		return err
	}
	defer i.renewing.Release(1)
	if now, err := i.readMarker(ctx, incarnationKey); block.Incarnation(now) != found {
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		return err
	}
	i.mutex.Lock()
	number := max(found.Number(), i.known.Number(), i.incarnation.Number()) + 1
	i.mutex.Unlock()
	if found != "" {
		if err := i.store.Delete(ctx, incarnationKey); err != nil {
			return err
		}
	}
	err := i.store.Create(ctx, incarnationKey, []byte(block.NewIncarnation(number, rand.Text(), run)))
	if errors.Is(err, store.ErrExists) {
		return nil // by another agent
	}
	return err
}

// told takes note of what the catalog of a cluster knows of the contents, if the store is of that cluster.
func (i *identity) told(ctx context.Context, cluster string, known block.Incarnation) error {
	if known == "" {
		return nil
	}
	bound, err := i.boundCluster(ctx)
	if err != nil || bound != "" && bound != cluster {
		return err
	}
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if known.Number() >= i.known.Number() { // another one of the same number is of a catalog that was put back
		i.known = known
	}
	return nil
}

// settle takes over a reading of the marker, unless the known incarnation changed since the reading began.
func (i *identity) settle(found block.Incarnation, readings uint64) bool {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if i.readings != readings {
		return false
	}
	i.doubtful = false
	if i.incarnation == found {
		return true
	}
	if i.incarnation != "" {
		i.log.Warn("the store has lost or changed its contents", "was", i.incarnation, "now", found)
	}
	i.incarnation, i.serving = found, nil
	i.readings++
	i.lost(fmt.Errorf("node %s: %w: the store's contents changed to %q", i.id, wire.ErrUnregistered, found))
	return true
}

func (i *identity) doubt() {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.doubtful = true
}

func (i *identity) readMarker(ctx context.Context, key string) (string, error) {
	value := make([]byte, maxMarkerBytes+1)
	length, err := i.store.ReadAt(ctx, key, value, 0)
	if err != nil {
		return "", err
	}
	if length == 0 || length > maxMarkerBytes {
		return "", fmt.Errorf("%w: %q holds %d bytes, not 1 to %d", store.ErrCorrupt, key, length, maxMarkerBytes)
	}
	return string(value[:length]), nil
}

// judge looks at the marker before a failure of the store is believed: a block may be missing because all are.
func (i *identity) judge(ctx context.Context, under *serving, err error) error {
	if err == nil || ctx.Err() != nil || definite(err) && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if changed := i.still(ctx, under); changed != nil {
		return changed
	}
	return down(err)
}

// definite reports whether err says what happened, be it the store's or the node's own.
func definite(err error) bool {
	for _, class := range []error{wire.ErrBadRequest, wire.ErrUnsupported, wire.ErrConflict, wire.ErrUnregistered} {
		if errors.Is(err, class) {
			return true
		}
	}
	return store.Definite(err)
}

// down adds ErrDown to an error of the store of which it cannot be said what happened.
func down(err error) error {
	if definite(err) || errors.Is(err, store.ErrDown) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrDown, err)
}

// guard runs a write between two readings of the marker, both of which must show what the node serves under.
func (i *identity) guard(ctx context.Context, under *serving, write func() error) error {
	if err := i.still(ctx, under); err != nil {
		return err
	}
	if err := write(); err != nil {
		return i.judge(ctx, under, err)
	}
	return i.still(ctx, under)
}

// create has a value created as guard has it done by write: in one round trip where the store can do so and all is as it should be.
func (i *identity) create(ctx context.Context, under *serving, key string, value []byte, write func() error) error {
	between, is := i.store.(store.Between)
	if !is {
		return i.guard(ctx, under, write)
	}
	before, after, err := between.CreateBetween(ctx, incarnationKey, maxMarkerBytes+1, key, value)
	switch want := string(under.incarnation); {
	case err == nil && string(before) == want && string(after) == want && i.isSure(ctx, under):
		return nil
	case err == nil, errors.Is(err, store.ErrExists):
		return i.guard(ctx, under, write) // which finds what is there, and what the marker is now
	}
	return i.judge(ctx, under, err)
}

// isSure reports whether what the store has just shown as its marker says what is in it.
func (i *identity) isSure(ctx context.Context, under *serving) bool {
	run := ""
	if volatile, is := i.store.(store.Volatile); is {
		var err error
		if run, err = volatile.Run(ctx); err != nil {
			return false
		}
	}
	if i.isDoubtful(under.incarnation, run) {
		return false
	}
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return !i.doubtful && i.incarnation == under.incarnation
}

func (i *identity) still(ctx context.Context, under *serving) error {
	now, err := i.confirm(ctx)
	if err != nil {
		return err
	}
	if now != under.incarnation {
		return fmt.Errorf("node %s: %w: the store's contents changed from %q to %q", i.id, wire.ErrUnregistered, under.incarnation, now)
	}
	return nil
}

func (i *identity) attach(ctx context.Context, request wire.AttachRequest) (any, error) {
	if len(request.Cluster) < 1 || len(request.Cluster) > maxMarkerBytes || request.Incarnation == "" {
		return nil, fmt.Errorf("attaching node %s: %w: a cluster of 1 to %d bytes and an incarnation are required", i.id, wire.ErrBadRequest, maxMarkerBytes)
	}
	cluster, err := i.bindCluster(ctx, request.Cluster)
	if err != nil {
		return nil, err
	}
	if cluster != request.Cluster {
		return nil, fmt.Errorf("attaching node %s: %w: its store belongs to cluster %s, not %s; give this node a store of its own, or delete the key %s if the other cluster is gone",
			i.id, wire.ErrBadRequest, cluster, request.Cluster, clusterKey)
	}
	if err := i.bindOwner(ctx); err != nil {
		return nil, err
	}
	now, err := i.confirm(ctx)
	if err != nil {
		return nil, err
	}
	if now, err = i.compare(ctx, now, request.Water); err != nil {
		return nil, err
	}
	if request.Timeline != nil {
		answer, err := i.obeys.show(ctx, request.Timeline, false)
		if err == nil && answer.Refused() {
			err = fmt.Errorf("attaching node %s: %w; see `restripe catalog lineage`", i.id, wire.ErrNotObeyed)
		}
		if err != nil {
			return nil, err
		}
	}
	if now == request.Incarnation {
		if err := i.bindPrintKey(ctx, request.FingerprintKey); err != nil {
			return nil, err
		}
	}
	i.mutex.Lock()
	current := i.serving
	i.mutex.Unlock()
	if current == nil || current.incarnation != request.Incarnation || current.key != request.FingerprintKey || current.cluster != cluster {
		current = &serving{
			incarnation: request.Incarnation, cluster: cluster, key: request.FingerprintKey,
			printer: kernel.NewFingerprinter(request.FingerprintKey),
		}
	}
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if i.incarnation != request.Incarnation {
		return nil, fmt.Errorf("attaching node %s: %w: the store holds %q, not %q", i.id, wire.ErrUnregistered, now, request.Incarnation)
	}
	i.serving = current
	return nil, nil
}

// compare returns what the store holds: found, or a newer name if that is an earlier state of what a gateway or this agent has
// seen under it.
func (i *identity) compare(ctx context.Context, found block.Incarnation, told block.Watermark) (block.Incarnation, error) {
	back, err := i.obeys.compare(ctx, found, told, i.registeredAs(found))
	if err != nil || !back {
		return found, err
	}
	now, err := i.confirm(ctx)
	if err != nil {
		return "", err
	}
	if now != found { // how far the new contents have come
		_, err = i.obeys.compare(ctx, now, told, false)
	}
	return now, err
}

// boundCluster returns the cluster the store belongs to, empty for none.
func (i *identity) boundCluster(ctx context.Context) (string, error) {
	cluster, err := i.readMarker(ctx, clusterKey)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", down(fmt.Errorf("node %s: reading which cluster the store belongs to: %w", i.id, err))
	}
	return cluster, nil
}

// boundPrintKey returns the key of the fingerprints in the store, nil where an earlier release bound it.
func (i *identity) boundPrintKey(ctx context.Context) ([]byte, error) {
	i.mutex.Lock()
	serving := i.serving
	i.mutex.Unlock()
	if serving != nil { // it was bound, or compared, when the node was attached
		return serving.key[:], nil
	}
	text, err := i.readMarker(ctx, printKey)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, down(fmt.Errorf("node %s: reading the key of the fingerprints: %w", i.id, err))
	}
	key, err := hex.DecodeString(text)
	if err != nil || len(key) != 16 {
		return nil, fmt.Errorf("node %s: %w: the key %s holds %q, not 32 hexadecimal digits", i.id, store.ErrCorrupt, printKey, text)
	}
	return key, nil
}

// bindPrintKey keeps the key of the fingerprints with the blocks that have them.
func (i *identity) bindPrintKey(ctx context.Context, key [16]byte) error {
	bound, err := i.boundPrintKey(ctx)
	if err == nil && bound == nil {
		err = i.store.Create(ctx, printKey, []byte(hex.EncodeToString(key[:])))
		if errors.Is(err, store.ErrExists) {
			bound, err = i.boundPrintKey(ctx)
		} else if err == nil {
			bound = key[:]
		}
	}
	if err != nil {
		return down(fmt.Errorf("node %s: keeping the key of the fingerprints: %w", i.id, err))
	}
	if !bytes.Equal(bound, key[:]) {
		return fmt.Errorf("attaching node %s: %w: its blocks have fingerprints of another key than the catalog has; use the catalog that wrote them, or rebuild it",
			i.id, wire.ErrBadRequest)
	}
	return nil
}

// bindCluster returns the cluster the store belongs to, which is the given one where it belonged to none.
func (i *identity) bindCluster(ctx context.Context, cluster string) (string, error) {
	bound, err := i.boundCluster(ctx)
	if bound != "" || err != nil {
		return bound, err
	}
	err = i.store.Create(ctx, clusterKey, []byte(cluster))
	if errors.Is(err, store.ErrExists) {
		return i.boundCluster(ctx)
	}
	if err != nil {
		return "", down(fmt.Errorf("node %s: noting which cluster the store belongs to: %w", i.id, err))
	}
	return cluster, nil
}

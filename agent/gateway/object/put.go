package object

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/stripe"
)

// Put stores the bytes of body under key, in place of what was there. When it returns without an error the object
// survives the loss of any m nodes and any crash. Small objects share groups with others that arrive at the same time.
// An error that is ErrUnknownOutcome says the outcome could not be learned; after every other error the old object stands.
func (o *Objects) Put(ctx context.Context, key string, body io.Reader, options api.PutOptions) (api.Object, error) {
	if err := checkPut(key, &options); err != nil {
		return api.Object{}, err
	}
	return once(ctx, o, key, options.Request, func() (api.Object, error) { return putUnnamed(ctx, o, key, body, options) })
}

// putUnnamed is Put, however often it is asked for.
func putUnnamed(ctx context.Context, o *Objects, key string, body io.Reader, options api.PutOptions) (api.Object, error) {
	class, scheme, err := schemeFor(o, key, &options)
	if err != nil {
		return api.Object{}, err
	}
	head, whole, err := o.readHead(ctx, body, class.PackBelow, options.Size)
	defer head.Release()
	if err != nil {
		return api.Object{}, err
	}
	if whole && len(head.Bytes) > 0 {
		if options.Metadata, err = withDigests(&options); err != nil {
			return api.Object{}, err
		}
		kind, object := entryOf(o, key, class, scheme, head.Bytes, &options)
		return o.batches.put(ctx, kind, key, object)
	}
	return o.putLarge(ctx, class, scheme, key, head.Bytes, body, options)
}

// PutBytes is Put of bytes that nobody changes any more.
func (o *Objects) PutBytes(ctx context.Context, key string, data []byte, options api.PutOptions) (api.Object, error) {
	options.Size = int64(len(data))
	if err := checkPut(key, &options); err != nil {
		return api.Object{}, err
	}
	class, scheme, err := schemeFor(o, key, &options)
	if err != nil {
		return api.Object{}, err
	}
	if len(data) == 0 || options.Size >= class.PackBelow {
		return o.putLarge(ctx, class, scheme, key, nil, bytes.NewReader(data), options)
	}
	if options.Metadata, err = withDigests(&options); err != nil {
		return api.Object{}, err
	}
	kind, object := entryOf(o, key, class, scheme, data, &options)
	return o.batches.put(ctx, kind, key, object)
}

// schemeFor is the class that an object goes into, and the scheme that is asked for.
func schemeFor(o *Objects, key string, options *api.PutOptions) (*api.Class, stripe.Scheme, error) {
	class, err := o.classes.For(key, options.Class)
	if err != nil {
		return nil, stripe.Scheme{}, err
	}
	if class.Expire > 0 && options.Expires.IsZero() {
		options.Expires = time.Now().Add(class.Expire)
	}
	if (!options.Expires.IsZero() || len(options.Metadata) > 0 || options.Digests != nil || class.Keep != 0) && !o.catalog.IsUpgraded() {
		return nil, stripe.Scheme{}, api.Refuse(api.ErrUnavailable,
			"objects that expire, have metadata, or keep versions are not known to the release before, which may still open the catalog; "+
				"run `restripe catalog upgrade`")
	}
	if options.Scheme == "" {
		return class, class.Default, nil
	}
	scheme, err := stripe.ParseScheme(options.Scheme)
	if err != nil {
		return nil, scheme, api.Refuse(api.ErrBadRequest, "%w", err)
	}
	if !class.Ladder.Contains(scheme) {
		return nil, scheme, api.Refuse(api.ErrBadRequest,
			"scheme %s is not on the ladder %s of class %s; choose one of its schemes, or put this one on the ladder in the class file",
			scheme, class.Ladder, class.Name)
	}
	return class, scheme, nil
}

// entryOf is a small object as it is put, and the kind of group that it goes into: that of a hot key is another one.
func entryOf(
	o *Objects, key string, class *api.Class, scheme stripe.Scheme, data []byte, options *api.PutOptions,
) (batchKey, entry) {
	kind := batchKey{class: class, scheme: scheme}
	if options.Scheme == "" && o.heat.Popularity.IsHot(class, key) {
		kind.scheme = class.HotKeys.Scheme
	}
	object := entry{
		content: content{data: data, expires: millis(options.Expires), metadata: options.Metadata},
		asked:   scheme, ifRevision: options.IfRevision, request: options.Request,
	}
	if o.catalog.IsUpgraded() { // else the release before may still open it, which does not know of checksums
		object.checksum = kernel.Checksum(data)
	}
	object.keep = keepOf(class, kind.scheme)
	return kind, object
}

// checkPut refuses what no put can ask for.
func checkPut(key string, options *api.PutOptions) error {
	if err := api.CheckKey(key); err != nil {
		return err
	}
	options.Metadata = block.WithoutDigests(options.Metadata) // of other bytes
	return api.CheckMetadata(options.Metadata)
}

// keepOf is how many versions an object keeps that is put into a class, where it lies under a scheme.
func keepOf(class *api.Class, scheme stripe.Scheme) int {
	if class.Keep == api.KeepDurable && scheme.M > 0 {
		return 0 // it is durable itself
	}
	return int(class.Keep)
}

// withDigests returns the metadata of an object whose whole body was read.
func withDigests(options *api.PutOptions) (map[string]string, error) {
	if options.Digests == nil {
		return options.Metadata, nil
	}
	digests, err := options.Digests()
	if err != nil {
		return nil, err
	}
	metadata := make(map[string]string, len(options.Metadata)+len(digests))
	maps.Copy(metadata, options.Metadata)
	maps.Copy(metadata, digests)
	return metadata, api.CheckMetadata(metadata)
}

// millis is a time in Unix milliseconds, 0 for the zero time.
func millis(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMilli()
}

// readHead reads the first limit bytes, to learn whether the object is a small one. A body of known size at or over the
// limit is left untouched. Release of what is read is due whatever the error.
func (o *Objects) readHead(ctx context.Context, body io.Reader, limit, size int64) (head *group.Body, whole bool, err error) {
	if size >= 0 && size >= limit && size > 0 {
		return new(group.Body), false, nil
	}
	head, err = group.ReadBody(ctx, o.groups.Memory.Small, body, max(limit, 1))
	if err != nil {
		return head, false, fmt.Errorf("reading the object's bytes: %w", err)
	}
	came := int64(len(head.Bytes))
	whole = came < limit || came == 0
	if whole && size >= 0 && came != size {
		return head, false, api.Refuse(api.ErrBadRequest, "the body ended after %d bytes, %d were announced", came, size)
	}
	return head, whole, nil
}

// groupsPerAnnouncement bounds how far ahead of the data a put announces groups.
const groupsPerAnnouncement = 16

// put is one large object on its way in: groups are filled from the body one after the other and staged side by side.
type put struct {
	objects *Objects
	class   *api.Class
	scheme  stripe.Scheme
	key     string
	size    int64 // -1 unknown
	body    io.Reader
	options *api.PutOptions
	attempt *catalog.Attempt
	workers *errgroup.Group
	turn    uint64 // by which its nodes are chosen

	mutex     sync.Mutex // of what follows
	head      []byte     // of a group for which there is no memory yet
	filling   *filling   // nil: none
	wanted    int64      // how large the next group is to be
	record    catalog.Object
	groups    uint32 // that are staged, or on their way
	announced uint32
	homes     [][]block.NodeID

	pieces pieces
	moves  *catalog.Snapshot // of the object whose bytes are copied and which is left as it is otherwise; nil: it is put
}

// putStaging is how many groups of one put may be staged at once.
const putStaging = 3

func (o *Objects) putLarge(ctx context.Context, class *api.Class, scheme stripe.Scheme, key string, head []byte, body io.Reader, options api.PutOptions) (api.Object, error) {
	p := &put{objects: o, class: class, scheme: scheme, key: key, size: options.Size, body: body, options: &options}
	p.record = catalog.Object{
		Key: key, Class: class.Name, Scheme: scheme.String(), Modified: time.Now().UnixMilli(),
		Expires: millis(options.Expires), Metadata: options.Metadata, Keep: keepOf(class, scheme),
	}
	var public api.Object
	err := p.run(ctx, head, func(change *catalog.Change) {
		change.Put = []catalog.Object{p.record}
		record := p.record
		record.Revision = p.attempt.Stamp()
		public = publicObject(&record)
		change.Answers = answerOf(options.Request, key, &public)
		if options.IfRevision != nil {
			change.IfRevision = map[string]block.Stamp{key: *options.IfRevision}
		}
	})
	return public, err
}

// run has the body, whose first bytes are head, staged, and commits what of says about the object once its record has its extents.
func (p *put) run(ctx context.Context, head []byte, of func(change *catalog.Change)) error {
	o := p.objects
	p.wanted, p.turn = p.class.GroupBytes, o.agents.Turns.Add(1)
	if err := refuseMany(p.class, (p.size+p.class.GroupBytes-1)/p.class.GroupBytes); err != nil {
		return err
	}
	attempt, err := p.begin(ctx)
	if err != nil {
		return err
	}
	defer o.groups.KeepAlive(ctx, attempt)()
	p.pieces = pieces{
		objects: o, attempt: attempt, key: p.key, moves: p.moves != nil, staged: map[uint32]placed{}, witnesses: map[string]witnesses{},
	}
	defer p.pieces.ended()
	groups, err := p.stageAll(ctx, head)
	if err == nil && len(p.record.Extents) == 0 {
		err = p.finish()
	}
	if err != nil {
		return o.groups.Abandon(ctx, attempt, err)
	}
	change := catalog.Change{NewGroups: groups}
	of(&change)
	if err := o.commit(ctx, attempt, change, slices.Collect(maps.Values(p.pieces.witnesses))...); err != nil {
		return err
	}
	if p.moves != nil {
		o.heat.CarriedOn(p.moves.Object.Extents, p.class.Name, p.record.Extents)
		return nil
	}
	for i := range groups {
		o.heat.Used(&groups[i])
	}
	return nil
}

// begin announces the put and its first groups.
func (p *put) begin(ctx context.Context) (*catalog.Attempt, error) {
	code, err := p.objects.groups.CodeFor(p.class, p.scheme)
	if err != nil {
		return nil, err
	}
	ahead := p.ahead(0)
	var nowhere error
	var basis catalog.Basis = catalog.Over(p.key)
	kind := catalog.KindPut
	if p.moves != nil {
		kind, basis = catalog.KindMove, p.moves
	}
	p.attempt, err = p.objects.catalog.Begin(ctx, kind, p.objects.groups.Deadline(), func(stamp block.Stamp) (sets []catalog.BlockSet) {
		p.homes = nil
		sets, nowhere = p.place(stamp, 0, ahead, code)
		return sets
	}, basis)
	if err != nil {
		return nil, fmt.Errorf("announcing the %s: %w", kind, err)
	}
	if nowhere != nil {
		return nil, p.objects.groups.Abandon(ctx, p.attempt, nowhere)
	}
	p.announced = ahead
	return p.attempt, nil
}

// stageAll reads the body, whose first bytes are head, and stages it group by group; the record gets its size and extents.
func (p *put) stageAll(ctx context.Context, head []byte) ([]catalog.Group, error) {
	var working context.Context
	p.workers, working = errgroup.WithContext(ctx)
	p.workers.SetLimit(putStaging)
	readErr := p.readAll(working, head)
	stageErr := p.workers.Wait()
	if err := cmp.Or(errors.Join(readErr, stageErr), ctx.Err()); err != nil {
		return nil, err
	}
	if p.size >= 0 && p.record.Size != p.size {
		return nil, api.Refuse(api.ErrBadRequest, "the body ended after %d bytes, %d were announced", p.record.Size, p.size)
	}
	return p.pieces.rest(ctx)
}

// stage has a group written that got so many bytes, beside others. p.mutex is held.
func (p *put) stage(ctx context.Context, d *group.Draft, bytes int64, last bool) error {
	index, at := p.groups, p.record.Size
	if last {
		if err := p.finish(); err != nil {
			p.objects.groups.Release(d)
			return err
		}
	}
	d.ID = block.GroupID{Stamp: p.attempt.Stamp(), Index: index}
	err := refuseMany(p.class, int64(index)+1)
	var home []block.NodeID
	if err == nil {
		home, err = p.home(ctx, index, d.Code)
	}
	if err != nil {
		p.objects.groups.Release(d)
		return err
	}
	p.objects.groups.Name(d, []block.ManifestEntry{{
		Key: []byte(p.key), Revision: p.revision(), Size: p.sizeAfter(at+bytes, last), At: at, Column: catalog.WholeGroup, Length: bytes,
		Expires: p.record.Expires, Metadata: p.record.Metadata, Checksum: p.record.Checksum, Keep: p.record.Keep,
	}})
	extent := catalog.Extent{Group: d.ID, Column: catalog.WholeGroup, Length: bytes}
	p.record.Extents = append(p.record.Extents, extent)
	p.record.Size += bytes
	p.groups++
	p.workers.Go(func() error {
		group, err := p.objects.groups.Stage(ctx, p.attempt, d, home)
		p.objects.groups.Release(d)
		if err != nil {
			return err
		}
		return p.pieces.add(ctx, group, extent)
	})
	return nil
}

// revision is that which the object has afterwards.
func (p *put) revision() block.Stamp {
	if p.moves != nil {
		return p.moves.Object.Revision
	}
	return p.attempt.Stamp()
}

// finish has the record say what is known once the whole body was read: so do the manifests of the last group.
func (p *put) finish() (err error) {
	if p.moves != nil {
		return nil
	}
	p.record.Metadata, err = withDigests(p.options)
	return err
}

// sizeAfter is the size of the object for the manifest of a group that ends after so many bytes: 0 while it is not known.
func (p *put) sizeAfter(at int64, last bool) int64 {
	if p.size < 0 && last {
		return at
	}
	return max(p.size, 0)
}

// home returns the nodes of group index, announcing its blocks, and those of groups to come, before anything is written.
func (p *put) home(ctx context.Context, index uint32, code *group.Code) ([]block.NodeID, error) {
	if index < p.announced {
		return p.homes[index], nil
	}
	ahead := p.ahead(index)
	sets, err := p.place(p.attempt.Stamp(), index, ahead, code)
	if err != nil {
		return nil, err
	}
	p.announced = index + ahead
	if err := p.attempt.Extend(ctx, sets, p.objects.groups.Deadline()); err != nil {
		return nil, fmt.Errorf("announcing groups: %w", err)
	}
	return p.homes[index], nil
}

// ahead is how many groups are announced at a time, from one on that is the next.
func (p *put) ahead(index uint32) uint32 {
	switch {
	case p.size >= 0:
		left := (p.size - p.record.Size + p.class.GroupBytes - 1) / p.class.GroupBytes
		return uint32(min(max(1, left), groupsPerAnnouncement))
	case index > 0:
		return min(index, groupsPerAnnouncement)
	default:
		return 1
	}
}

// place chooses the nodes of count groups of an attempt, from index on.
func (p *put) place(stamp block.Stamp, index, count uint32, code *group.Code) (sets []catalog.BlockSet, err error) {
	for i := range count {
		id := block.GroupID{Stamp: stamp, Index: index + i}
		home, err := p.objects.agents.Place(p.class, p.turn, id.Index)
		if err != nil {
			return nil, err
		}
		p.homes = append(p.homes, home)
		sets = append(sets, group.Announce(id, code, home))
	}
	return sets, nil
}

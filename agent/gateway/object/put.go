package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/stripe"
)

// Put stores the bytes of body under key, in place of what was there. When it returns without an error the object
// survives the loss of any m nodes and any crash. Small objects share groups with others that arrive at the same time.
// An error that is ErrUnknownOutcome says the outcome could not be learned; after every other error the old object stands.
func (o *Objects) Put(ctx context.Context, key string, body io.Reader, options api.PutOptions) (api.Object, error) {
	if err := api.CheckKey(key); err != nil {
		return api.Object{}, err
	}
	class, err := o.classes.For(key, options.Class)
	if err != nil {
		return api.Object{}, err
	}
	scheme := class.Default
	if options.Scheme != "" {
		if scheme, err = stripe.ParseScheme(options.Scheme); err != nil {
			return api.Object{}, api.Refuse(api.ErrBadRequest, "%w", err)
		}
		if !class.Ladder.Contains(scheme) {
			return api.Object{}, api.Refuse(api.ErrBadRequest, "scheme %s is not on the ladder %s of class %s; choose one of its schemes, or put this one on the ladder in the class file", scheme, class.Ladder, class.Name)
		}
	}
	head, whole, err := o.readHead(ctx, body, class.PackBelow, options.Size)
	defer head.Release()
	if err != nil {
		return api.Object{}, err
	}
	if whole && len(head.Bytes) > 0 {
		return o.batches.put(ctx, batchKey{class: class, scheme: scheme}, key, entry{data: head.Bytes, ifRevision: options.IfRevision})
	}
	return o.putLarge(ctx, class, scheme, key, head.Bytes, body, options)
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

// put is one large object on its way in: groups are read from the body one after the other and staged side by side.
type put struct {
	objects *Objects
	class   *api.Class
	scheme  stripe.Scheme
	key     string
	size    int64 // -1 unknown
	head    []byte
	body    io.Reader

	attempt   *catalog.Attempt
	announced uint32
	homes     [][]block.NodeID
}

// beginBytes is how much of a group has to have come before there is memory for all of it.
const beginBytes = 4 << 10

// putStaging is how many groups of one put may be staged at once.
const putStaging = 3

func (o *Objects) putLarge(ctx context.Context, class *api.Class, scheme stripe.Scheme, key string, head []byte, body io.Reader, options api.PutOptions) (api.Object, error) {
	p := &put{objects: o, class: class, scheme: scheme, key: key, size: options.Size, head: head, body: body}
	attempt, err := o.catalog.Begin(ctx, catalog.KindPut, o.groups.Deadline(), func(stamp block.Stamp) []catalog.BlockSet { return nil })
	if err != nil {
		return api.Object{}, fmt.Errorf("announcing the put: %w", err)
	}
	p.attempt = attempt
	defer o.groups.KeepAlive(ctx, attempt)()
	record := catalog.Object{Key: key, Class: class.Name, Scheme: scheme.String(), Modified: time.Now().UnixMilli()}
	groups, err := p.stageAll(ctx, &record)
	if err != nil {
		return api.Object{}, o.groups.Abandon(ctx, attempt, err)
	}
	change := catalog.Change{Put: []catalog.Object{record}, NewGroups: groups}
	if options.IfRevision != nil {
		change.IfRevision = map[string]block.Stamp{key: *options.IfRevision}
	}
	if err := o.commit(ctx, attempt, change); err != nil {
		return api.Object{}, err
	}
	for i := range groups {
		o.heat.Used(&groups[i])
	}
	record.Revision = attempt.Stamp()
	return publicObject(&record), nil
}

// stageAll reads the body group by group and stages each; record gets its size and extents.
func (p *put) stageAll(ctx context.Context, record *catalog.Object) ([]catalog.Group, error) {
	workers, ctx := errgroup.WithContext(ctx)
	workers.SetLimit(putStaging)
	var groups []*catalog.Group
	readErr := func() error {
		for index := uint32(0); ; index++ {
			d, bytes, last, err := p.read(ctx, index, record.Size)
			if err != nil {
				return err
			}
			if bytes > 0 {
				home, err := p.home(ctx, index, d.Code.Slots())
				if err != nil {
					p.objects.groups.Release(d)
					return err
				}
				d.Manifest = []block.ManifestEntry{{
					Key: []byte(p.key), Revision: p.attempt.Stamp(), Size: p.sizeAfter(record.Size+bytes, last), At: record.Size, Column: catalog.WholeGroup, Length: bytes,
				}}
				record.Extents = append(record.Extents, catalog.Extent{Group: d.ID, Column: catalog.WholeGroup, Length: bytes})
				record.Size += bytes
				staged := new(catalog.Group)
				groups = append(groups, staged)
				workers.Go(func() error {
					defer p.objects.groups.Release(d)
					group, err := p.objects.groups.Stage(ctx, p.attempt, d, home)
					if err == nil {
						*staged = *group
					}
					return err
				})
			} else if d != nil {
				p.objects.groups.Release(d)
			}
			if last || ctx.Err() != nil {
				return nil
			}
		}
	}()
	stageErr := workers.Wait()
	if err := errors.Join(readErr, stageErr); err != nil {
		return nil, err
	}
	if p.size >= 0 && record.Size != p.size {
		return nil, api.Refuse(api.ErrBadRequest, "the body ended after %d bytes, %d were announced", record.Size, p.size)
	}
	done := make([]catalog.Group, len(groups))
	for i, group := range groups {
		done[i] = *group
	}
	return done, nil
}

// read fills the next group from the body: cells in row-major order. bytes is how many it got; last says the body ended.
func (p *put) read(ctx context.Context, index uint32, at int64) (d *group.Draft, bytes int64, last bool, err error) {
	want := p.class.GroupBytes
	if p.size >= 0 {
		want = min(want, p.size-at)
		if want == 0 {
			return nil, 0, true, nil
		}
	}
	layout, err := stripe.NewLayout(p.class.Ladder, 0, p.class.Mode)
	if err != nil {
		return nil, 0, false, fmt.Errorf("class %s: %w", p.class.Name, err)
	}
	// A client that has not begun to send the group holds no memory for it.
	if missing := int(min(want, beginBytes)) - len(p.head); missing > 0 {
		begin := make([]byte, missing)
		n, _, err := group.ReadFull(p.body, begin)
		if err != nil {
			return nil, 0, false, fmt.Errorf("reading the object's bytes: %w", err)
		}
		p.head = append(p.head, begin[:n]...)
	}
	d, err = p.objects.groups.NewDraft(ctx, p.objects.groups.Memory.Groups, p.class, p.scheme, group.CellBytesFor(layout.Cells(), want))
	if err != nil {
		return nil, 0, false, err
	}
	d.ID = block.GroupID{Stamp: p.attempt.Stamp(), Index: index}
	for cell := 0; cell < layout.Cells() && bytes < want; cell++ {
		target := d.CellAt(cell)
		if int64(len(target)) > want-bytes {
			target = target[:want-bytes]
		}
		n := copy(target, p.head)
		p.head = p.head[n:]
		more, ended, err := group.ReadFull(p.body, target[n:])
		bytes += int64(n + more)
		if ended {
			p.objects.groups.Shrink(d, bytes)
			return d, bytes, true, nil
		}
		if err != nil {
			p.objects.groups.Release(d)
			return nil, 0, false, fmt.Errorf("reading the object's bytes: %w", err)
		}
	}
	if last, err = p.endsAt(at + bytes); err != nil {
		p.objects.groups.Release(d)
		return nil, 0, false, fmt.Errorf("reading the object's bytes: %w", err)
	}
	return d, bytes, last, nil
}

// endsAt reports whether the body ends after so many bytes. Of a body of unknown size one byte more is read to see it, so
// that the manifest of the last group can say how long the object is.
func (p *put) endsAt(at int64) (bool, error) {
	if p.size >= 0 || len(p.head) > 0 {
		return p.size == at, nil
	}
	var next [1]byte
	n, ended, err := group.ReadFull(p.body, next[:])
	p.head = append(p.head, next[:n]...) // of the next group, also where the source tells the end together with it
	return ended && n == 0, err
}

// sizeAfter is the size of the object for the manifest of a group that ends after so many bytes: 0 while it is not known.
func (p *put) sizeAfter(at int64, last bool) int64 {
	if p.size < 0 && last {
		return at
	}
	return max(p.size, 0)
}

// home returns the nodes of group index, announcing its blocks, and those of groups to come, before anything is written.
func (p *put) home(ctx context.Context, index uint32, slots int) ([]block.NodeID, error) {
	if index < p.announced {
		return p.homes[index], nil
	}
	ahead := uint32(1)
	if p.size >= 0 {
		total := uint32((p.size + p.class.GroupBytes - 1) / p.class.GroupBytes)
		ahead = min(max(ahead, total-index), groupsPerAnnouncement)
	} else if index > 0 {
		ahead = min(index, groupsPerAnnouncement)
	}
	var sets []catalog.BlockSet
	for i := range ahead {
		id := block.GroupID{Stamp: p.attempt.Stamp(), Index: index + i}
		home, err := p.objects.agents.Place(p.class, id)
		if err != nil {
			return nil, err
		}
		p.homes = append(p.homes, home)
		sets = append(sets, group.Announce(id, slots, home))
	}
	p.announced = index + ahead
	if err := p.attempt.Extend(ctx, sets, p.objects.groups.Deadline()); err != nil {
		return nil, fmt.Errorf("announcing groups: %w", err)
	}
	return p.homes[index], nil
}

package transition

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
)

// mostEstimated is how many objects an estimate of what comes into a class looks at; the rest is taken to be alike.
const mostEstimated = 20_000

// estimateInto returns what taking objects into a class would cost, by a look at the objects as they are and at the groups that they
// share. Earlier versions are not counted.
func (j *Coordinator) estimateInto(ctx context.Context, request *api.TransitionRequest) (api.Estimate, error) {
	if err := j.checkInto(request); err != nil {
		return api.Estimate{}, err
	}
	class, err := j.classes.For("", request.Into)
	if err != nil {
		return api.Estimate{}, err
	}
	r := &runner{coordinator: j, becomes: becomes{into: class.Name, from: request.Class}}
	e := api.Estimate{At: j.now().UTC()}
	groups, more, err := r.countComing(ctx, &e)
	if err != nil {
		return api.Estimate{}, err
	}
	var bytes int64 // of objects that are copied
	for id := range groups {
		objects, size, err := r.countCopied(ctx, id)
		if errors.Is(err, catalog.ErrNoGroup) {
			continue // it is gone meanwhile
		}
		if err != nil {
			return api.Estimate{}, err
		}
		e.Groups++
		if objects > 0 {
			e.GroupsCopied++
			e.ObjectsCopied, bytes = e.ObjectsCopied+objects, bytes+size
		}
	}
	e.BytesRead, e.BytesSent, e.BytesWritten = copied(bytes, class.Default)
	e.PeakBytes, e.ReencodeBytesSent = e.BytesWritten, e.BytesSent
	if more {
		j.alike(&e, request)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "from class %q into class %q, copies under %s", request.Class, class.Name, class.Default))
	e.PlanHash = hex.EncodeToString(sum[:16])
	return e, nil
}

// countComing counts the objects that come and returns their groups; more says that there may be others.
func (r *runner) countComing(ctx context.Context, e *api.Estimate) (groups map[block.GroupID]bool, more bool, err error) {
	groups = map[block.GroupID]bool{}
	for object, err := range r.candidates(ctx) {
		if err != nil {
			return nil, false, err
		}
		if !r.comes(object) || block.IsEarlierKey(object.Key) {
			continue
		}
		if e.Objects == mostEstimated {
			return groups, true, nil
		}
		e.Objects, e.Bytes = e.Objects+1, e.Bytes+object.Size
		for _, extent := range object.Extents {
			groups[extent.Group] = true
		}
	}
	return groups, false, nil
}

// countCopied counts the objects that are copied out of a group, as others in it stay.
func (r *runner) countCopied(ctx context.Context, id block.GroupID) (objects, bytes int64, err error) {
	view, err := r.coordinator.catalog.Group(ctx, id)
	if err != nil || !view.Packed {
		return 0, 0, err
	}
	inside, err := r.coordinator.groups.Inside(ctx, id)
	if err != nil {
		return 0, 0, err
	}
	stays := !inside.All
	for _, snapshot := range inside.Snapshots {
		if r.comes(&snapshot.Object) {
			objects, bytes = objects+1, bytes+snapshot.Object.Size
		} else if snapshot.Object.Class != r.becomes.into {
			stays = true
		}
	}
	if !stays {
		return 0, 0, nil
	}
	return objects, bytes, nil
}

// alike takes what was not looked at to be like what was, by the last count of objects.
func (j *Coordinator) alike(e *api.Estimate, request *api.TransitionRequest) {
	var objects, bytes int64
	report := j.heat.Heat()
	for i := range report.Classes {
		for _, count := range report.Classes[i].Elsewhere {
			if report.Classes[i].Class == request.Into && (request.Class == "" || request.Class == count.Class) {
				objects, bytes = objects+count.Objects, bytes+count.Bytes
			}
		}
	}
	if objects <= e.Objects || e.Objects == 0 {
		return
	}
	share := float64(objects) / float64(e.Objects)
	for _, n := range []*int64{
		&e.ObjectsCopied, &e.Groups, &e.GroupsCopied, &e.BytesRead, &e.BytesSent, &e.BytesWritten, &e.PeakBytes, &e.ReencodeBytesSent,
	} {
		*n = int64(float64(*n) * share)
	}
	e.Objects, e.Bytes = objects, bytes
}
